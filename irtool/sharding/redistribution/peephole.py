"""Tidy up the moves of a redistribution as MindSpore's peephole pass does.

Gathers come first (last dimension first), then slices; a dimension behind leading ones is moved to
the front, which saves operators; neighbours on one dimension become one. What the pass leaves
alone: chains with an AllToAll, single operators, and (the caller's business) unknown sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.operators.layout import Shape
from irtool.sharding.redistribution.moves import (
    AllConcat,
    AllToAll,
    Move,
    Reshape,
    Slice,
    shapes_along,
)


def tidied(shape: Shape, moves: list[Move]) -> list[Move]:
    """The moves as MindSpore's peephole pass leaves them.

    Args:
        shape: the local shape before the first move.
        moves: in order.

    Returns:
        The moves given where the pass leaves them alone.
    """
    if any(isinstance(move, AllToAll) for move in moves) or _operator_count(moves) <= 1:
        return moves
    moves = _without_idle_reshapes(shape, moves)
    moves = _library_sort(moves, _before)
    moves = _gathers_on_first_dimension(shape, moves)
    moves = _slices_on_first_dimension(shape, moves)
    moves = _without_idle_reshapes(shape, moves)
    return _merged_slices(_merged_gathers(moves))


def _operator_count(moves: list[Move]) -> int:
    # Gathering along a later dimension takes three operators: AllGather, Split and Concat.
    return sum(3 if isinstance(move, AllConcat) and move.axis else 1 for move in moves)


def _without_idle_reshapes(shape: Shape, moves: list[Move]) -> list[Move]:
    """One Reshape for several in a row, none where the shape stays the same."""
    kept: list[Move] = []
    now = shape
    for index, move in enumerate(moves):
        following = moves[index + 1] if index + 1 < len(moves) else None
        if isinstance(move, Reshape):
            if not isinstance(following, Reshape) and move.shape != now:
                kept.append(move)
                now = move.shape
            continue
        kept.append(move)
        now = move.applied(now)
    return kept


def _before(first: Move, second: Move) -> bool:
    if isinstance(first, AllConcat):
        if isinstance(second, AllConcat):
            return first.axis > second.axis
        return isinstance(second, Slice)
    return isinstance(first, Slice) and isinstance(second, Slice) and first.axis < second.axis


def _gathers_on_first_dimension(shape: Shape, moves: list[Move]) -> list[Move]:
    """Where all dimensions before a gathered one are 1, gather on dimension 0 and reshape.

    That saves the Split and Concat which a gather on a later dimension needs.
    """
    rewritten: list[Move] = []
    now = shape
    for move in moves:
        after = move.applied(now)
        if isinstance(move, AllConcat) and move.axis and set(now[: move.axis]) == {1}:
            # The reshape goes to the shape that the last real move left, if there was one.
            flat = now[move.axis :]
            shapes = shapes_along(shape, rewritten)
            for index in range(len(rewritten) - 1, -1, -1):
                if not isinstance(rewritten[index], Reshape):
                    flat = shapes[index + 1]
                    break
            rewritten += [Reshape(flat), AllConcat(0, move.ranks), Reshape(after)]
        else:
            rewritten.append(move)
        now = after
    return rewritten


def _slices_on_first_dimension(shape: Shape, moves: list[Move]) -> list[Move]:
    """Where all dimensions before a sliced one are 1, reshape first and slice dimension 0."""
    rewritten = list(moves)
    for index in range(len(rewritten) - 2, -1, -1):
        move, following = rewritten[index], rewritten[index + 1]
        if not isinstance(move, Slice) or not isinstance(following, Reshape):
            continue
        now = shapes_along(shape, rewritten[:index])[-1]
        if all(size == 1 for size in now[: move.axis]):
            rewritten[index] = Reshape((following.shape[0] * move.count, *following.shape[1:]))
            rewritten[index + 1] = replace(move, axis=0)
    return rewritten


def _merged_gathers(moves: list[Move]) -> list[Move]:
    """Two gathers on one dimension become one where their ranks interlock evenly."""
    merged: list[Move] = []
    for move in moves:
        last = merged[-1] if merged else None
        if isinstance(last, AllConcat) and isinstance(move, AllConcat) and last.axis == move.axis:
            step, wide = _stride(last.ranks), _stride(move.ranks)
            if step * len(last.ranks) == wide:
                (common,) = set(last.ranks) & set(move.ranks)
                start = move.ranks[0] - (common - last.ranks[0])
                ranks = tuple(range(start, start + wide * len(move.ranks), step))
                merged[-1] = AllConcat(move.axis, ranks)
                continue
        merged.append(move)
    return merged


def _stride(ranks: tuple[int, ...]) -> int:
    return ranks[1] - ranks[0]


def _merged_slices(moves: list[Move]) -> list[Move]:
    """Two slices of one dimension become one, a Reshape between them dropped."""
    merged = list(moves)
    index = 0
    while index < len(merged):
        first, after = merged[index], index + 1
        while isinstance(first, Slice) and after < len(merged):
            second = merged[after]
            if isinstance(second, Reshape):
                after += 1
                continue
            if not isinstance(second, Slice) or second.axis != first.axis:
                break
            part = first.index * second.count + second.index
            first = Slice(first.axis, first.count * second.count, part)
            merged[index : after + 1] = [first]
            after = index + 1
        index += 1
    return merged


def _library_sort(moves: list[Move], before: Callable[[Move, Move], bool]) -> list[Move]:
    """Sort as the C++ library's ``stable_sort`` does that MindSpore is built with.

    A Reshape compares equal with everything, so "sorted" is not well defined, and the answer
    depends on which pairs are compared: two halves, runs of 7 by insertion, then merges.
    """
    half = (len(moves) + 1) // 2
    first, second = (_sorted_half(part, before) for part in (moves[:half], moves[half:]))
    if len(first) <= len(second):
        return _merge(first, second, before)
    # A longer first half is merged from the back.
    merged = _merge(second[::-1], first[::-1], lambda one, other: before(other, one))
    return merged[::-1]


def _sorted_half(moves: list[Move], before: Callable[[Move, Move], bool]) -> list[Move]:
    runs = [_insertion_sort(moves[start : start + 7], before) for start in range(0, len(moves), 7)]
    while len(runs) > 1:
        odd = [runs.pop()] if len(runs) % 2 else []
        pairs = zip(runs[::2], runs[1::2], strict=True)
        runs = [_merge(one, other, before) for one, other in pairs] + odd
    return runs[0] if runs else []


def _insertion_sort(moves: list[Move], before: Callable[[Move, Move], bool]) -> list[Move]:
    done: list[Move] = []
    for move in moves:
        position = len(done)
        if done and before(move, done[0]):
            position = 0
        else:
            while position and before(move, done[position - 1]):
                position -= 1
        done.insert(position, move)
    return done


def _merge(
    first: list[Move], second: list[Move], before: Callable[[Move, Move], bool]
) -> list[Move]:
    merged: list[Move] = []
    left, right = 0, 0
    while left < len(first) and right < len(second):
        if before(second[right], first[left]):
            merged.append(second[right])
            right += 1
        else:
            merged.append(first[left])
            left += 1
    return [*merged, *first[left:], *second[right:]]
