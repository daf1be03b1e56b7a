"""Is a strategy legal, and what follows from it: one operator call at a time.

The order of the checks is MindSpore's: the strategy's form, the operator's own rule, dynamic
shapes, ``out_strategy``, the number of devices, layouts, groups. The first refusal decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from irtool.ir.group_names import group_name
from irtool.operators import checks, measured
from irtool.operators.axes import OF_A_FUNCTION, REPEATS_LEFT
from irtool.operators.call import Operand, OperatorCall, Strategy
from irtool.operators.case import Case
from irtool.operators.configured import NO_CLASS, configured_sharding
from irtool.operators.defaults import batch_strategy, is_stand_alone, locally_inferred
from irtool.operators.fitting import check_inputs
from irtool.operators.guard import could_not_judge
from irtool.operators.irregular import FUNCTIONS, OUT_LAYOUT, OUT_STRATEGY, SELF_CHECKED
from irtool.operators.judgement import (
    Collective,
    Context,
    Judgement,
    Reason,
    Reduction,
    Refused,
    Sharding,
    Unsure,
)
from irtool.operators.layout import (
    WHOLE,
    DeviceMatrix,
    Repeated,
    Shape,
    TensorLayout,
    UserLayout,
    ranks_along,
    repeated_calculation,
    replicas,
)
from irtool.operators.notation import Rule
from irtool.operators.pattern import evaluate
from irtool.operators.table import rule_of
from irtool.sharding.interleave import PartLayouts, has_part_axis, in_parts, part_layouts, parts_of

NO_LAYOUT = "operator_info.cc:CheckInputLayout"
"""Where MindSpore notices that an operator takes no layouts, unless its entry says where."""


DECLARED_BY_USER = "self_define_shard"
"""The function of operators whose layouts MindSpore takes as they are, of unknown sizes, too."""


def _with_its_strategy(
    case: Case,
    strategy: Strategy | None,
    in_layout: Sequence[UserLayout | TensorLayout] | None,
    out_layout: Sequence[UserLayout | TensorLayout] | None,
) -> Case:
    """A case with the user's layouts, or with the strategy that MindSpore makes without any."""
    if in_layout is not None:
        return _with_layouts(case, in_layout, out_layout)
    if strategy is not None:
        return case
    made_here = () if _makes_its_own(case.rule) else batch_strategy(case)
    return replace(case, strategy=made_here, generated=True)


def judge(
    call: OperatorCall,
    strategy: Strategy | None,
    context: Context,
    *,
    in_layout: Sequence[UserLayout | TensorLayout] | None = None,
    out_layout: Sequence[UserLayout | TensorLayout] | None = None,
    out_strategy: Strategy | None = None,
) -> Judgement:
    """Judge a call under a strategy or under the user's layouts, as MindSpore would.

    Args:
        call: the operator with its operands, results and attributes.
        strategy: one tuple of splits a tensor input; None: MindSpore makes one.
        context: devices of a stage, and the settings that rules depend on.
        in_layout: in place of a strategy, a layout a tensor input.
        out_layout: likewise a layout a tensor output.
        out_strategy: one tuple of splits a tensor output, where the operator takes it.

    Returns:
        Legal, with layouts and what is communicated; illegal, with the check that refuses it; or
        unknown, with the reason; an error in a rule makes it unknown too.

    Raises:
        RuleError: the table of operators can't be read.
    """
    used = strategy or ()
    rule_of(call.op)  # a table that can't be read is nobody's doubt about this call
    try:
        rule = _rule(call)
        if context.measured_only:
            _check_measured(call, strategy, in_layout, out_layout, out_strategy)
        if rule is None:
            if in_layout is not None:
                message = f"{call.op} has no rule of its own, so it takes no layouts"
                raise Refused("layout-unsupported", message, NO_LAYOUT)
            return _without_rule(call, context)
        check_inputs(rule, call)
        case = Case(rule, call, used, context, out_strategy=out_strategy)
        case = _with_its_strategy(case, strategy, in_layout, out_layout)
        used = case.strategy
        made = strategy is None and in_layout is None
        sharding = _sharding(case)
        parts, apart = parts_of(in_layout), PartLayouts()
        if parts > 1:
            apart = part_layouts(case, sharding)
        if has_part_axis(in_layout):
            case, sharding = in_parts(case, sharding)
        judgement = replace(
            _complete(case, sharding), generated=made, parts=parts,
            part_inputs=apart.inputs, part_outputs=apart.outputs,
        )  # fmt: skip
        return _as_written(judgement, in_layout, out_layout)
    except Refused as refused:
        return Judgement("illegal", used, (refused.reason,), devices=context.devices)
    except Unsure as unsure:
        return unknown(unsure.reason, used, context)
    except Exception as error:
        return unknown(could_not_judge(call.op, error), used, context)


def judge_configured(
    call: OperatorCall, given: Sequence[UserLayout], context: Context
) -> Judgement:
    """Judge a call under the attribute ``layout`` of its primitive.

    Args:
        call: the call.
        given: matrix and map of each tensor operand, as the attribute has them.
        context: where it runs.
    """
    used: Strategy = ()
    try:
        rule = _rule(call)
        if context.measured_only:
            reason = measured.why_not_measured(call, "attribute")
            if reason:
                raise Unsure(reason)
        if rule is None:
            raise Unsure(NO_CLASS.format(op=call.op))
        case = Case(rule, call, (), context)
        sharding = configured_sharding(case, given)
        matrix = sharding.device_matrix
        used = tuple(
            TensorLayout(matrix, entries, operand.shape or ()).splits
            for entries, operand in zip(sharding.input_maps, case.tensors, strict=True)
        )
        return _complete(replace(case, strategy=used), sharding)
    except Refused as refused:
        return Judgement("illegal", used, (refused.reason,), devices=context.devices)
    except Unsure as unsure:
        return unknown(unsure.reason, used, context)
    except Exception as error:
        return unknown(could_not_judge(call.op, error), used, context)


def unknown(reason: str, strategy: Strategy, context: Context) -> Judgement:
    """The judgement where a rule does not know, or nobody could ask it.

    Args:
        reason: why, for people.
        strategy: that was asked about; empty where none was.
        context: whose devices the judgement is for.
    """
    return Judgement("unknown", strategy, (Reason("unknown", reason, ""),), devices=context.devices)


def _check_measured(
    call: OperatorCall, strategy: object, layouts: object, outputs: object, out_strategy: object
) -> None:
    """Say of a form that nobody measured that nobody knows."""
    asked = measured.kind_of(strategy, layouts, out_strategy, outputs)
    reason = measured.why_not_measured(call, asked)
    if reason:
        raise Unsure(reason)


def _as_written(
    judgement: Judgement,
    given: Sequence[UserLayout | TensorLayout] | None,
    output: Sequence[UserLayout | TensorLayout] | None,
) -> Judgement:
    """The judgement with the user's own way to write layouts: it decides what is inserted."""

    def written(
        layouts: tuple[TensorLayout, ...], users: Sequence[UserLayout | TensorLayout] | None
    ) -> tuple[TensorLayout, ...]:
        if users is None or len(users) != len(layouts):
            return layouts
        return tuple(
            user.as_written(layout) if isinstance(user, UserLayout) else layout
            for user, layout in zip(users, layouts, strict=True)
        )

    return replace(
        judgement,
        input_layouts=written(judgement.input_layouts, given),
        output_layouts=written(judgement.output_layouts, output),
    )


def _rule(call: OperatorCall) -> Rule | None:
    """The rule to use; ``self_define_shard`` puts another in the place of the operator's own."""
    mark = call.attributes.get("self_define_shard", False)
    if not isinstance(mark, bool):
        raise Refused("attribute", "self_define_shard is not a bool", "")
    return rule_of("SelfDefineShard") if mark else rule_of(call.op)


def _makes_its_own(rule: Rule) -> bool:
    return rule.function in SELF_CHECKED and not rule.batch


def _with_layouts(
    case: Case,
    given: Sequence[UserLayout | TensorLayout],
    output: Sequence[UserLayout | TensorLayout] | None,
) -> Case:
    """The case under the user's layouts; what they come to becomes its strategy."""
    op = case.call.op
    layouts = _extracted(_of_tensors(given, case.call), case.tensors, "input", op)
    outputs = None if output is None else _extracted(output, case.call.results, "output", op)
    if not case.rule.layout:
        check = case.rule.layout_check or NO_LAYOUT
        raise Refused("layout-unsupported", f"{op} does not take layouts", check)
    if case.tensors and not any(layout.tensor_shape for layout in layouts):
        message = f"of scalars alone {op} gets no layout for its result"
        case.refuse("layout", message, case.rule.check.partition(":")[0] + ":CheckOutputLayout")
    if case.rule.function != DECLARED_BY_USER and case.call.is_dynamic:
        for index, (layout, operand) in enumerate(zip(layouts, case.tensors, strict=True)):
            checks.check_unknown_sizes(layout, operand.divisible_shape, f"input {index}")
        for index, layout in enumerate(outputs or ()):
            sizes = case.call.results[index].divisible_shape
            checks.check_unknown_sizes(layout, sizes, f"output {index}")
    strategy = tuple(layout.splits for layout in layouts)
    return replace(case, layouts=layouts, output_layouts=outputs, strategy=strategy)


def _of_tensors(
    given: Sequence[UserLayout | TensorLayout], call: OperatorCall
) -> Sequence[UserLayout | TensorLayout]:
    """The layouts of tensors only, where constants were given layouts too (custom operators)."""
    counts = [len(list(operand.tensors)) for operand in call.inputs]
    if len(given) == sum(counts) or len(given) != sum(count or 1 for count in counts):
        return given
    kept: list[UserLayout | TensorLayout] = []
    place = 0
    for count in counts:
        kept += given[place : place + count]
        place += count or 1
    return kept


def _extracted(
    given: Sequence[UserLayout | TensorLayout], operands: Sequence[Operand], what: str, op: str
) -> tuple[TensorLayout, ...]:
    if len(given) != len(operands):
        raise Unsure(f"{op} has {len(operands)} {what}s and {len(given)} layouts")
    layouts: list[TensorLayout] = []
    for index, (layout, operand) in enumerate(zip(given, operands, strict=True)):
        if isinstance(layout, UserLayout):
            layout = layout.full_layout(operand.shape or ())
        checks.check_layout(layout, f"{what} {index}")
        layouts.append(layout)
    return tuple(layouts)


def _sharding(case: Case) -> Sharding:
    """Form of the strategy, then the operator's own rule."""
    rule = case.rule
    if rule.kind == "unknown":
        raise Unsure(f"{case.call.op}: {rule.reason}")
    if case.layouts is None and rule.function not in SELF_CHECKED:
        count = rule.read_inputs
        shapes = tuple(tensor.divisible_shape for tensor in case.tensors)
        if count is not None:
            shapes = shapes[:count]
        checks.check_strategy(case.strategy, shapes, case.context)
    if rule.function:
        sharding = FUNCTIONS[rule.function](case, lambda: evaluate(case))
    else:
        sharding = evaluate(case)
    if case.call.attributes.get(REPEATS_LEFT) is False and sharding.repeat_right is None:
        sharding = replace(sharding, repeat_right=False)
    if rule.static and case.call.is_dynamic:
        case.refuse("dynamic-shape", f"{case.call.op} does not support dynamic shapes now")
    if case.output_layouts is not None and rule.function not in OUT_LAYOUT:
        case.refuse_output_layout()
    follows = OF_A_FUNCTION in case.call.attributes or "ShardIdentity" in case.call.op
    if case.out_strategy is not None and not follows and rule.function not in OUT_STRATEGY:
        message = f"{case.call.op} does not support an output strategy"
        raise Refused("out-strategy", message, checks.OUT_STRATEGY)
    return sharding


def _complete(case: Case, sharding: Sharding) -> Judgement:
    """Complete the matrix to all devices of the stage; layouts, slices and groups follow."""
    context = case.context
    if len(sharding.input_maps) != len(case.tensors):
        raise Unsure(
            f"the rule of {case.call.op} is about {len(sharding.input_maps)} tensor inputs, "
            f"here are {len(case.tensors)}"
        )
    repeated = _repeated(sharding, context)
    matrix = repeated.device_matrix
    inputs = tuple(
        TensorLayout(matrix, repeated.shifted(tensor_map), operand.shape or ())
        for tensor_map, operand in zip(sharding.input_maps, case.tensors, strict=True)
    )
    outputs = tuple(
        TensorLayout(
            _output_matrix(sharding, index, repeated, context),
            repeated.shifted(tensor_map),
            operand.shape or (),
        )
        for index, (tensor_map, operand) in enumerate(
            zip(sharding.output_maps, case.call.results, strict=False)
        )
    )
    _check_layouts(sharding, inputs, outputs)
    input_slices = _slices(inputs, sharding.input_slices)
    output_slices = _slices(outputs, sharding.output_slices)
    collectives = _collectives(sharding, repeated, output_slices, context)
    mirrors = _mirrors(case, sharding, inputs)
    for index, ranks in enumerate(mirrors):
        checks.check_group(ranks, f"mirror group of input {index}", context)
    return Judgement(
        verdict="legal",
        strategy=sharding.strategy if sharding.strategy is not None else case.strategy,
        device_matrix=matrix,
        input_layouts=inputs,
        output_layouts=outputs,
        input_slices=input_slices,
        output_slices=output_slices,
        raw_inputs=tuple(dict(sharding.raw_inputs).get(i, s) for i, s in enumerate(input_slices)),
        raw_outputs=_raw_outputs(sharding, output_slices),
        collectives=collectives,
        mirrors=mirrors,
        repeats=repeated.repeats,
        loss_divisor=_loss_divisor(sharding, outputs, context),
        replaced=sharding.replaced,
        unsure=sharding.unsure,
        no_gradient=sharding.no_gradient,
        devices=context.devices,
    )


def _repeated(sharding: Sharding, context: Context) -> Repeated:
    product = prod(sharding.device_matrix)
    if sharding.complete:
        if product != context.stage_size:
            raise Refused(
                "device-count",
                f"the device matrix {sharding.device_matrix} has {product} devices, "
                f"the stage has {context.stage_size}",
                checks.REPEATED,
            )
        return Repeated(sharding.device_matrix, 1, None, True)
    checks.check_product(product, context)
    completed = repeated_calculation(
        sharding.device_matrix, context.stage_size, right=sharding.repeat_right is not False
    )
    assert completed is not None
    return completed


def _output_matrix(
    sharding: Sharding, index: int, repeated: Repeated, context: Context
) -> DeviceMatrix:
    """The completed matrix of one output."""
    matrix = dict(sharding.output_matrices).get(index, sharding.output_matrix)
    if matrix is None:
        return repeated.device_matrix
    if sharding.complete or repeated.axis is None:
        return matrix
    completed = repeated_calculation(
        matrix, context.stage_size, right=sharding.repeat_right is not False
    )
    assert completed is not None
    return completed.device_matrix


def _check_layouts(
    sharding: Sharding, inputs: Sequence[TensorLayout], outputs: Sequence[TensorLayout]
) -> None:
    uneven = {index for index, _ in sharding.input_slices}
    for index, layout in enumerate(inputs):
        if index not in uneven:
            checks.check_layout(layout, f"input {index}")
    uneven = {index for index, _ in sharding.output_slices}
    for index, layout in enumerate(outputs):
        if index not in uneven:
            checks.check_layout(layout, f"output {index}")


def _slices(
    layouts: Sequence[TensorLayout], special: Sequence[tuple[int, Shape]]
) -> tuple[Shape, ...]:
    known = dict(special)
    return tuple(known.get(index, layout.slice_shape) for index, layout in enumerate(layouts))


def _raw_outputs(sharding: Sharding, slices: Sequence[Shape]) -> tuple[Shape, ...]:
    """Local outputs before the first collective that stands behind them."""
    before: dict[int, Shape] = {
        reduction.output: reduction.shape
        for reduction in reversed(sharding.reductions)
        if reduction.output is not None and reduction.shape is not None
    }
    before |= {index: shape for index, shape in sharding.raw_outputs if index not in before}
    return tuple(before.get(index, shape) for index, shape in enumerate(slices))


def _collectives(
    sharding: Sharding, repeated: Repeated, slices: Sequence[Shape], context: Context
) -> tuple[Collective, ...]:
    """The rule's collectives as ranks; a group of one rank is none."""
    shift = 1 if repeated.axis == 0 and not repeated.right else 0
    collectives: list[Collective] = []
    for reduction in sharding.reductions:
        axes = [axis + shift for axis in reduction.axes]
        ranks = ranks_along(repeated.device_matrix, axes, context.devices, context.own_rank)
        if len(ranks) < 2:
            continue
        checks.check_group(ranks, f"{reduction.op} ({reduction.why})", context)
        collectives.append(_collective(reduction, ranks, slices, context))
    return (*sharding.exchanges, *collectives)


def _collective(
    reduction: Reduction, ranks: tuple[int, ...], slices: Sequence[Shape], context: Context
) -> Collective:
    shape = reduction.shape
    if shape is None and reduction.output is not None and reduction.output < len(slices):
        shape = slices[reduction.output]
    return Collective(
        op=reduction.op,
        ranks=ranks,
        reduce=reduction.reduce,
        why=reduction.why,
        output=reduction.output,
        input=reduction.input,
        shape=shape,
        group=group_name(ranks, context.world_size, context.target),
    )


def _mirrors(
    case: Case, sharding: Sharding, inputs: Sequence[TensorLayout]
) -> tuple[tuple[int, ...], ...]:
    """Per input the ranks that hold the same slice; one rank where gradients are not summed.

    With layouts every input's gradient is summed, also where the operator's own rule sums none,
    but a scalar's is not: MindSpore leaves it out, and the sums of those behind it move up a place.
    """
    context = case.context
    alone = (context.own_rank,)
    groups = [replicas(layout, context.devices, context.own_rank) for layout in inputs]
    if case.layouts is not None:
        summed = [
            ranks for ranks, layout in zip(groups, inputs, strict=True) if layout.tensor_shape
        ]
        return (*summed, *((alone,) * (len(groups) - len(summed))))
    flags = sharding.mirrored if sharding.mirrored is not None else (True,) * len(inputs)
    return tuple(ranks if flag else alone for ranks, flag in zip(groups, flags, strict=True))


def _loss_divisor(sharding: Sharding, outputs: Sequence[TensorLayout], context: Context) -> int:
    """Devices of the stage, by those that the loss is split over."""
    if sharding.loss_divisor is not None:
        return sharding.loss_divisor
    if sharding.loss_output >= len(outputs):
        return 1
    return context.stage_size // (prod(outputs[sharding.loss_output].splits) or 1)


def _without_rule(call: OperatorCall, context: Context) -> Judgement:
    """What MindSpore does with an operator it has no rule for; the user's strategy is ignored."""
    alone = is_stand_alone(call, context.stage_size)
    rule = Rule(op=call.op, kind="function")
    rank = [len(tensor.shape or ()) for tensor in call.tensors]
    if alone:
        strategy: Strategy = tuple((1,) * size for size in rank)
    else:
        strategy = batch_strategy(Case(rule, call, (), context))
    case = Case(rule, call, strategy, context)
    split = any(value > 1 for row in strategy for value in row)
    sharding = Sharding(
        device_matrix=(context.stage_size,),
        input_maps=tuple(tuple(0 if value > 1 else WHOLE for value in row) for row in strategy),
        output_maps=tuple(
            tuple(
                0 if not alone and not dimension else WHOLE
                for dimension in range(len(operand.shape or ()))
            )
            for operand in call.results
        ),
        complete=True,
        loss_divisor=None if alone else 1,
        output_slices=() if alone else locally_inferred(call, context.stage_size),
    )
    judgement = _complete(case, sharding)
    assert alone or split or context.stage_size == 1
    return replace(judgement, generated=True, kind="stand-alone" if alone else "batch-parallel")
