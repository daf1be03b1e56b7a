"""File names of a run: which are dumps, and what their names say."""

from __future__ import annotations

import re
from functools import lru_cache

from irtool.ir.run import PassKind, PassName

PARALLEL = (
    "step_auto_parallel_begin",
    "step_auto_parallel_end",
    "step_parallel_begin",
    "step_parallel_end",
)
"""Dumps of the parallel passes in the order in which they are written."""

# Stages of all versions from 1.x to 2.10 in the order in which they run; the parallel passes run
# inside `optimize`, whose own dump is written after it.  A name that comes no later than one
# already seen begins the next compilation.
_STAGES = (
    *("bootstrap", "parse", "symbol_resolve", "set_mixed_precision_flag"),
    *("resolve", "combine_like_graphs", "inference_opt_prepare", "meta_unpack_prepare"),
    *("type_inference", "abstract_specialize", "event_method", "auto_monad", "graph_reusing"),
    *("py_pre_ad", "inline", "pynative_shard", "add_attr", "parallel-infer-symbol"),
    *("pre_auto_parallel", "insert-virtual-dataset", "parallel-infer-symbol-second"),
    *("dataset_repeat_opt", "pipeline_split", *PARALLEL, "optimize", "detach_backward"),
    *("pipeline_parallel_scheduler", "auto_monad_reorder", "get_jit_bprop_graph"),
    *("rewriter_after_jit_bprop_graph", "opt_after_jit_grad", "distribtued_split"),
    *("partial_unused_args_eliminate_after_recompute", "validate", "backend_pass"),
    *("task_emit", "execute"),
)
_PHASE = {name: index for index, name in enumerate(_STAGES)}

_SUFFIX = re.compile(r"\.(?:gz|xz)$")
_KERNEL = (
    *("graph_build_", "trace_code_graph", "graph_before_reset_id_"),
    "ms_output_trace_code_graph",
)
_STAGE = re.compile(r"(\d\d)_(.+)")
_PASS = re.compile(r"opt_pass_\d+_(.+)")
_SUBSTEP = re.compile(r"opt_substep_.+?_r\d+_j\d+_\d+_(.+)")
_PATTERN = re.compile(r"[A-Za-z](?:(?!__)[\w-])*\.r\d+\.(.+)")
_MERGED = re.compile(
    r"merge_(?:comm|send_receive)|allreduce_fusion_(?:begin|end)"
    r"|(?:before|after)_(?:lift|opt|recompute|reorder)(?:_.+)?",
    re.DOTALL,
)
_NAMED = re.compile(rf"(.*[^A-Za-z0-9])((?:\d\d_)?(?:{'|'.join(PARALLEL)}|validate))", re.DOTALL)
_BACKEND = ("hwopt_", "expand_", "bprop_expander_")


def is_dump(name: str) -> bool:
    """Whether a file in a folder is taken for a dump of ANF IR by its name.

    Actor sets are another language; ``.dot``, ``.dat`` and ``.pb`` are other forms of dumps.

    Args:
        name: of the file, without its folders.
    """
    name = _SUFFIX.sub("", name)
    if "actor_set" in name:
        return False
    if name.endswith(".ir"):
        return True
    return bool(re.fullmatch(r"(?:.*__)?trace_code_graph_\d+", name))


def parse_name(name: str) -> PassName:
    """What a dump's file name says, in every style from 1.0 to 2.10.

    >>> parse_name("20_validate_0074.ir")
    PassName(number=74, name='validate', stage=20)

    Args:
        name: of the file, without its folders.
    """
    number, base = split_number(name)
    stage, pass_name, _ = parse_base(base)
    return PassName(number, pass_name, stage)


def split_number(name: str) -> tuple[int | None, str]:
    """File number (None if there is none) and the rest of the name without suffixes.

    Args:
        name: of the file, without its folders.
    """
    base = re.sub(r"\.(?:ir|dat|dot|pb)$", "", _SUFFIX.sub("", name))
    # Numbers have at least four digits; in 1.0 they stood in front.
    if match := re.fullmatch(r"(.+)_(\d{4,})", base, re.DOTALL):
        return int(match[2]), match[1]
    if match := re.fullmatch(r"(\d{4,})_(.+)", base, re.DOTALL):
        return int(match[1]), match[2]
    if match := re.fullmatch(r"(.+)_(\d+)", base, re.DOTALL):
        # Shorter ones are numbers where the rest is a name that never ends with one of its own.
        rest = match[1]
        stage = _STAGE.fullmatch(rest)
        if _PATTERN.fullmatch(rest) or rest in _PHASE or (stage and stage[2] in _PHASE):
            return int(match[2]), rest
    if (match := re.fullmatch(r"(\d+)_(.+)", base, re.DOTALL)) and (
        _STAGE.fullmatch(match[2]) or match[2] in PARALLEL
    ):
        return int(match[1]), match[2]
    return None, base


@lru_cache(maxsize=4096)
def split_prefix(base: str) -> tuple[str, str]:
    """What somebody wrote before a file's usual name, and that name.

    >>> split_prefix("resnet__20_validate"), split_prefix("gpt_24_layers_validate")
    (('resnet__', '20_validate'), ('gpt_24_layers_', 'validate'))

    Args:
        base: name of a file without number and suffix.

    Returns:
        The prefix, "" where there is none, and the rest.
    """
    if _parsed(base)[2] != "other":
        return "", base
    start = base.find("__")
    while start >= 0:
        rest = base[start + 2 :].removeprefix("verbose_ir_files__")
        if _parsed(rest)[2] != "other":
            return base[: start + 2], rest
        start = base.find("__", start + 1)
    match = _NAMED.fullmatch(base)
    return (match[1], match[2]) if match else ("", base)


@lru_cache(maxsize=4096)
def parse_base(base: str) -> tuple[int | None, str, PassKind]:
    """Stage index, action or pass name, and kind of a file name without number and suffix.

    Args:
        base: name of a file without number and suffix; a prefix is passed over.
    """
    return _parsed(split_prefix(base)[1])


def _parsed(base: str) -> tuple[int | None, str, PassKind]:
    match = _STAGE.fullmatch(base)
    if match:
        return int(match[1]), match[2], "stage"
    if base in PARALLEL:
        return None, base, "parallel"
    if base in _PHASE:
        return None, base, "stage"
    if base.startswith("analyze_fail"):
        return None, "analyze_fail", "failure"
    kinds: tuple[tuple[re.Pattern[str], PassKind], ...] = (
        (_SUBSTEP, "substep"),
        (_PASS, "pass"),
        (_PATTERN, "substep"),
    )
    for pattern, kind in kinds:
        if match := pattern.fullmatch(base):
            return None, match[1], kind
    if _MERGED.fullmatch(base):
        return None, base, "pass"
    if base.startswith(_KERNEL):
        return None, base, "kernel"
    return None, base, "backend" if base.startswith(_BACKEND) else "other"


def phase(name: str, kind: PassKind) -> int | None:
    """The place of a dump in the order of a compilation's stages, None for what is no stage.

    Args:
        name: of the action or pass.
        kind: of dumps of this name.
    """
    return _PHASE.get(name) if kind in ("stage", "parallel") else None
