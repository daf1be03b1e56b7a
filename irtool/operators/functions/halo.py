"""Split images: the rows that a device needs of its neighbours (halos).

Output rows ``[first, last)`` of a convolution with kernel ``k``, stride ``s`` and padding ``p``
need input rows from ``first * s - p`` to ``(last - 1) * s - p + k``. What of them is not a
device's own is exchanged with the neighbours before the local operator runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from irtool.ir.dataclass import dataclass
from irtool.ir.group_names import WORLD_GROUPS
from irtool.operators.case import Case
from irtool.operators.judgement import Collective, Sharding
from irtool.operators.layout import Shape, TensorMap, axes_of, coordinates, position_of

PAD, SAME, VALID = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Window:
    """A kernel along one image dimension: effective size, stride, padding before and after."""

    kernel: int
    stride: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Image:
    """One split image dimension: its place, sizes before and after, number of slices."""

    dimension: int
    size: int
    out: int
    split: int
    window: Window

    @property
    def slice(self) -> int:
        return self.size // self.split


def used_padding(size: int, kernel: int, stride: int, before: int, after: int) -> int:
    """The padding behind that any window reaches: rows left over by the stride are not padded.

    Args:
        size: of the image dimension, in rows.
        kernel: effective size, dilation included.
        stride: of the window.
        before: rows of padding in front.
        after: rows of padding that are asked for behind.
    """
    rest = (size + before + after - kernel) % stride
    return after - rest if rest <= after else after


def check_output_divides(case: Case, image: Image, check: str = "") -> None:
    """Refuse an image dimension whose output rows don't divide by its split.

    Args:
        case: that refuses.
        image: one dimension of the image.
        check: MindSpore's file and function that refuses; empty: ``CheckHWStrategyBase`` of the
            operator.

    Raises:
        Refused: they don't.
    """
    if image.out % image.split:
        message = (
            f"dimension {image.dimension} of the output has size {image.out}, "
            f"which its strategy {image.split} does not divide"
        )
        case.refuse("image-split", message, check or place_of(case, "CheckHWStrategyBase"))


SILENT = "operator_info.cc:InferByStrategy"
"""Who speaks first where a convolution can't split its image: the check itself only warns."""


def place_of(case: Case, function: str) -> str:
    """The log source of a check: three-dimensional convolution uses that of two dimensions.

    Args:
        case: whose rule names the file.
        function: that checks.

    Returns:
        ``FILE:FUNCTION``; :data:`SILENT` for a check of convolution that only warns.
    """
    file = case.rule.check.partition(":")[0]
    if file not in ("conv2d_info.cc", "conv3d_info.cc"):
        return f"{file}:{function}"
    return SILENT if function.startswith("CheckHWStrategy") else f"conv2d_info.cc:{function}"


def check_images(case: Case, images: list[Image], mode: int) -> None:
    """Check that the split image dimensions can be computed with halos, or need none.

    Args:
        case: that refuses.
        images: the dimensions of the image, split or not.
        mode: of padding: 0 explicit, 1 same, 2 valid.

    Raises:
        Refused: they can't.
    """
    if all(image.split == 1 for image in images):
        return
    for image in images:
        check_output_divides(case, image)
    if mode == VALID:
        _check_valid(case, images)
        return
    for image in images:
        if image.split > 1:
            _check_padded(case, image)


def _check_valid(case: Case, images: list[Image]) -> None:
    check = place_of(case, "CheckHWStrategyValidMode")
    if any(image.window.kernel > image.window.stride and image.split > 1 for image in images):
        message = "in valid mode, a kernel larger than its stride forbids to split the image"
        case.refuse("image-split", message, check)
    for image in images:
        window = image.window
        if window.kernel <= window.stride and image.slice % window.stride:
            message = f"slices of {image.slice} rows don't divide by stride {window.stride}"
            case.refuse("image-split", f"{message} in dimension {image.dimension}", check)


def _check_padded(case: Case, image: Image) -> None:
    """Pad and same mode."""
    window = image.window
    check = place_of(case, "CheckHWStrategyPadModeByDimension")
    where = f"in dimension {image.dimension}"
    padding = window.before + window.after
    if window.kernel <= window.stride:
        if padding:
            message = f"a kernel no larger than its stride allows no padding {where}"
            case.refuse("image-split", message, check)
        if image.slice % window.stride:
            message = f"slices of {image.slice} rows don't divide by stride {window.stride} {where}"
            case.refuse("image-split", message, check)
        return
    if (image.size + padding - window.kernel) % window.stride:
        message = f"the padded image less the kernel does not divide by the stride {where}"
        case.refuse("image-split", message, check)
    if (image.out * window.stride - image.size) % image.split:
        message = f"output rows times stride, less input rows, don't divide by the split {where}"
        case.refuse("image-split", message, check)


Needs = Callable[[Image, int], tuple[int, int]]


def needs_of(image: Image, index: int) -> tuple[int, int]:
    """Input rows [first, end) that slice ``index`` of the output needs, padding not cut off.

    Args:
        image: a split dimension.
        index: of the slice, from 0.

    Returns:
        ``first`` is negative, and ``end`` beyond the size, where the window reaches into padding.
    """
    per_slice = image.out // image.split
    first, last = index * per_slice, (index + 1) * per_slice
    window = image.window
    return (
        first * window.stride - window.before,
        (last - 1) * window.stride - window.before + window.kernel,
    )


def needs_transposed(image: Image, index: int) -> tuple[int, int]:
    """Input rows [first, end) that a slice needs of an image that is spread by the stride.

    So it is in the gradient of a convolution, and in a transposed one.

    Args:
        image: a split dimension.
        index: of the slice of the output, from 0.

    Returns:
        ``first`` is negative, and ``end`` beyond the size, where the window reaches past the image.
    """
    per_slice = image.out // image.split
    window = image.window
    first = index * per_slice - window.kernel + window.before + 1
    end = (index + 1) * per_slice + window.before
    return -(-first // window.stride), -(-end // window.stride)


def _overlaps(image: Image, index: int, needs: Needs) -> tuple[int, int]:
    """Rows that slice ``index`` needs of its neighbours before and after."""
    first, end = needs(image, index)
    own = image.slice
    before = 0 if index == 0 else index * own - first
    after = 0 if index == image.split - 1 else end - (index + 1) * own
    return before, after


def with_halos(
    case: Case,
    sharding: Sharding,
    images: list[Image],
    needs: Needs,
    where: tuple[TensorMap, int],
) -> Sharding:
    """Add the exchange with neighbours, and what the local operator then gets.

    Args:
        case: whose own rank is told what it exchanges.
        sharding: without halos.
        images: the dimensions that are split.
        needs: which input rows a slice needs: :func:`needs_of` or :func:`needs_transposed`.
        where: the image's tensor map, and its index among the tensor inputs.

    Returns:
        The sharding as it is where the own rank holds no slice of it.
    """
    x_map, index = where
    matrix = sharding.device_matrix
    repeats = case.devices // (prod(matrix) or 1) or 1
    position = (case.context.own_rank - case.context.devices[0]) // repeats
    if position >= prod(matrix):
        return sharding
    place = coordinates(matrix, position)
    own = [size // split for size, split in zip(case.shape(index), case.strategy[0], strict=True)]
    local = list(own)
    moves: list[_Move] = []
    for image in images:
        axis = axes_of(matrix, x_map[image.dimension])[0]
        move = _move(case, image, axis, place[axis], needs)
        local[image.dimension] += sum(move.received)
        moves.append(move)
    moved = any((*move.received, *move.sent) != (0, 0, 0, 0) for move in moves)
    partners = {position, *(position_of(matrix, near) for near in _neighbours(place, moves))}
    first = case.context.own_rank - position * repeats
    ranks = tuple(sorted(first + partner * repeats for partner in partners))
    dimensions = [image.dimension for image in images]
    exchange = Collective(
        "NeighborExchangeV2",
        ranks,
        why="halo of a split image",
        output=None,
        shape=exchanged(
            own,
            dict(zip(dimensions, (move.received for move in moves), strict=True)),
            dict(zip(dimensions, (move.sent for move in moves), strict=True)),
        ),
        group=WORLD_GROUPS[0],
        input=index,
    )
    return replace(
        sharding,
        exchanges=(exchange,) if moved else (),
        raw_inputs=((index, tuple(local)),),
        replaced="an exchange of halos, then the local operator" if moved else "",
    )


def exchanged(
    own: Sequence[int],
    received: Mapping[int, tuple[int, int]],
    sent: Mapping[int, tuple[int, int]],
) -> Shape | None:
    """How much of a slice's edges a device gets or hands over, whichever is more.

    Args:
        own: the shape of a device's slice.
        received: by dimension rows of the neighbours before and behind; corners come with them.
        sent: rows of its own that go to them.

    Returns:
        Elements, as a shape of one dimension; None where a size is not known.
    """
    if any(size < 0 for size in own):
        return None

    def around(rows: Mapping[int, tuple[int, int]]) -> int:
        wider = prod(size + sum(rows.get(axis, ())) for axis, size in enumerate(own))
        return wider - prod(own)

    return (max(around(received), around(sent)),)


@dataclass(frozen=True, slots=True)
class _Move:
    """Rows exchanged along one device axis: with the neighbour before and the one after."""

    axis: int
    received: tuple[int, int]
    sent: tuple[int, int]


def _neighbours(place: Shape, moves: list[_Move]) -> Iterator[Shape]:
    """Coordinates of those with whom something is exchanged, corners included."""
    for steps in product((-1, 0, 1), repeat=len(moves)):
        taken = [(move, step) for move, step in zip(moves, steps, strict=True) if step]
        for kind in ("received", "sent"):
            if taken and all(getattr(move, kind)[step > 0] for move, step in taken):
                near = list(place)
                for move, step in taken:
                    near[move.axis] += step
                yield tuple(near)


def _move(case: Case, image: Image, axis: int, own: int, needs: Needs) -> _Move:
    """No negative overlap anywhere, none larger than a slice here."""
    check = place_of(case, "InferCommunicationAttrs")
    if needs is needs_of:
        for index in range(image.split):
            if min(_overlaps(image, index, needs)) < 0:
                message = f"slice {index} of dimension {image.dimension} would need negative rows"
                case.refuse("halo", message, place_of(case, "InferOverlapSize"))
    received = _overlaps(image, own, needs)
    sent = (
        _overlaps(image, own - 1, needs)[1] if own > 0 else 0,
        _overlaps(image, own + 1, needs)[0] if own < image.split - 1 else 0,
    )
    lengths = (*received, *sent)
    if max(lengths) > image.slice:
        message = (
            f"{max(lengths)} rows to exchange are more than the {image.slice} of a slice "
            f"of dimension {image.dimension}"
        )
        case.refuse("halo", message, check)
    if min(lengths) < 0:
        case.refuse("halo", f"negative rows to exchange in dimension {image.dimension}", check)
    return _Move(axis, received, sent)
