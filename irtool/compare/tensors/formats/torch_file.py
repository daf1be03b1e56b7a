"""PyTorch's .pt files, read without PyTorch.

Such a file is an uncompressed zip with a pickle that says type, shape and strides, and the plain
bytes of a storage.  The pickle is never executed; the few opcodes that a tensor takes are read off
it.  Older files hold the same without an archive.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from irtool.compare.tensors.dtypes import dtype_name, numpy_code
from irtool.compare.tensors.formats.torch_legacy import MAGIC, legacy_parts, storages
from irtool.compare.tensors.formats.window import Window
from irtool.compare.tensors.model import Shape

_DIRECTORY = struct.Struct("<10xH8xI4xHHH8xI")
"""Of a member in a zip's directory: method, packed size, lengths of the texts, its place."""
_LENGTHS = struct.Struct("<HH")
_LARGE = 0xFFFFFFFF
_MOST_DIRECTORY = 1 << 26
"""Bytes of a zip's directory that are read: a hundred or so for each storage of a file."""
_BIG = b"big"
_USUAL_PICKLE = 1 << 10
"""Bytes of a pickle that is worth remembering."""
_MOST_PICKLE = 1 << 20
"""Bytes of a pickle that are looked at: that of one tensor has a few hundred."""
_MOST_STATE = 1 << 28
"""The same of a whole state: a few hundred bytes a tensor."""
_DEEPEST = 20
"""Dictionaries and lists inside one another that are looked into."""
_REBUILDERS = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3")


class NotATensor(ValueError):
    """A file that holds no tensor, or more than one, with the reason."""


Raw = tuple[str, Shape, tuple[int, ...], Window]
"""Type, shape, strides (in elements) and bytes of a tensor."""


def read_torch(data: Window) -> Raw:
    """The only tensor of a .pt file.

    Args:
        data: the bytes of the file.

    Raises:
        NotATensor: it holds something else.
    """
    pickle, archive = _opened(data)
    return archive.tensor(_tensor(pickle))


def read_torch_tensors(data: Window) -> dict[str, Raw]:
    """The tensors of a .pt file, by where its dictionaries and lists hold them: ``model.0.weight``.

    Args:
        data: the bytes of the file.

    Raises:
        NotATensor: it holds none.
    """
    pickle, archive = _opened(data, _MOST_STATE)
    tensors = {".".join(keys): tensor for keys, tensor in _tensors_in(_stated(pickle))}
    if not tensors:
        raise NotATensor(
            "no tensors in dictionaries, as torch.save(model.state_dict(), …) writes them"
        )
    return {name: archive.tensor(_rebuilt(tensor)) for name, tensor in tensors.items()}


def _tensors_in(value: object) -> Iterator[tuple[tuple[str, ...], _Tensor]]:
    """The tensors in dictionaries and lists, with the keys that lead to each; however deep."""
    pending: list[tuple[tuple[str, ...], object]] = [((), value)]
    while pending:
        keys, held = pending.pop()
        if isinstance(held, _Tensor):
            yield keys, held
        elif len(keys) >= _DEEPEST:
            continue
        elif isinstance(held, dict):
            entries = cast("dict[object, object]", held).items()
            pending += [((*keys, str(key)), inner) for key, inner in reversed(list(entries))]
        elif isinstance(held, list | tuple):
            inners = list(enumerate(cast("list[object]", held)))
            pending += [((*keys, str(key)), inner) for key, inner in reversed(inners)]


class _Archive:
    """The storages of a .pt file; of an archive, members begin with a header of their own."""

    def __init__(
        self, data: Window, members: dict[bytes, tuple[int, int]], folder: bytes, is_zip: bool
    ) -> None:
        self._data = data
        self._members = members
        self._folder = folder
        self._is_zip = is_zip

    def tensor(self, stated: Rebuilt) -> Raw:
        """The bytes of a tensor of which the pickle states the rest."""
        dtype, key, offset, shape, strides = stated
        place = self._members.get(self._folder + b"data/" + key.encode())
        if place is None:
            is_archive = bool(self._folder)
            why = f"the storage {key} is not in the file" if is_archive else "the file is cut off"
            raise NotATensor(why)
        begin, length = place
        if self._is_zip:
            begin = _behind_header(self._data, begin)
        width = _width(dtype)
        return dtype, shape, strides, self._data.part(begin + offset * width, begin + length)


def _opened(data: Window, most: int | None = None) -> tuple[bytes, _Archive]:
    """The pickle of a .pt file, and its storages."""
    if bytes(data.read(0, len(MAGIC))) == MAGIC:
        return _opened_legacy(data, most or _MOST_PICKLE)
    members = _members(data)
    pickle = next((name for name in members if name.endswith(b"data.pkl")), None)
    if pickle is None:
        raise NotATensor("no tensor of PyTorch")
    folder = pickle[:-8]
    order = members.get(folder + b"byteorder")
    if order is not None and order[1] == len(_BIG):
        start = _behind_header(data, order[0])
        if bytes(data.read(start, start + len(_BIG))) == _BIG:
            raise NotATensor("big-endian numbers")
    start, size = _behind_header(data, members[pickle][0]), members[pickle][1]
    text = bytes(data.read(start, start + min(size, most or _MOST_PICKLE)))
    return text, _Archive(data, members, folder, is_zip=True)


def _opened_legacy(data: Window, most: int) -> tuple[bytes, _Archive]:
    text, keys, start = legacy_parts(data, most)
    stored: list[Any] = []
    _stated(text, stored)
    widths = {str(item[2]): _width(_type_of_storage(item[1])) for item in stored}
    members = {
        b"data/" + key.encode(): place for key, place in storages(data, keys, start, widths).items()
    }
    return text, _Archive(data, members, b"", is_zip=False)


def _width(dtype: str) -> int:
    """Bytes of an element; 1 of types that NumPy lacks."""
    return int((numpy_code(dtype) or "|i1")[2:])


def _type_of_storage(kind: object) -> str:
    """The type of its elements: ``torch FloatStorage``."""
    return dtype_name(str(kind).rpartition(" ")[2].rpartition(".")[2])


def _members(data: Window) -> dict[bytes, tuple[int, int]]:
    """Place of the header and length of each stored member, by the directory at the end."""
    tail = bytes(data.read(-22))
    if not tail.startswith(b"PK\x05\x06"):  # a comment follows, or more than 32 bits are needed
        tail = bytes(data.read(-65557))
    position = tail.rfind(b"PK\x05\x06")
    if position < 0 or len(tail) < position + 22:
        raise NotATensor(_why_no_archive(data))
    count, length, place = struct.unpack_from("<HII", tail, position + 10)
    if place == _LARGE or count == 0xFFFF:
        tail = bytes(data.read(-65557))
        position = tail.rfind(b"PK\x06\x06")
        if position < 0:
            raise NotATensor("the file is cut off")
        count, length, place = struct.unpack_from("<QQQ", tail, position + 32)
    directory = bytes(data.read(place, place + min(length, _MOST_DIRECTORY)))
    members: dict[bytes, tuple[int, int]] = {}
    start = 0
    for _ in range(count):
        method, packed, names, extras, notes, local = _DIRECTORY.unpack_from(directory, start)
        if method:
            raise NotATensor("a compressed archive")
        start += _DIRECTORY.size
        if packed == _LARGE or local == _LARGE:
            extra = directory[start + names : start + names + extras]
            packed, local = _wide(extra, packed, local)
        members[directory[start : start + names]] = local, packed
        start += names + extras + notes
    return members


def _behind_header(data: Window, place: int) -> int:
    """Where the bytes of a member begin whose header is there."""
    names, extras = _LENGTHS.unpack(data.read(place + 26, place + 30))
    return place + 30 + names + extras


def _why_no_archive(data: Window) -> str:
    if not len(data):
        return "the file is empty"
    is_archive = bytes(data.read(0, 2)) == b"PK"
    missing = "the file is cut off: the directory of the archive, at its end, is missing"
    return missing if is_archive else "it does not begin as torch.save's files do"


def _wide(extra: bytes, packed: int, local: int) -> tuple[int, int]:
    """Sizes and places of 64 bits: those of unpacked, packed and place that 32 do not hold."""
    place = 0
    while place + 4 <= len(extra):
        kind, size = _LENGTHS.unpack_from(extra, place)
        if kind == 1:
            numbers = iter(struct.unpack_from(f"<{size // 8}Q", extra, place + 4))
            if packed == _LARGE:
                packed = next(numbers)  # a stored member has the same size unpacked
                next(numbers, None)
            return packed, next(numbers, local) if local == _LARGE else local
        place += 4 + size
    raise NotATensor("the archive's directory is damaged")


Rebuilt = tuple[str, str, int, Shape, tuple[int, ...]]
"""Type, storage key, offset, shape and strides."""


def _tensor(pickle: bytes) -> Rebuilt:
    """What a pickle states, if that is one tensor."""
    return _usual_tensor(pickle) if len(pickle) <= _USUAL_PICKLE else _checked(_stated(pickle))


@lru_cache(maxsize=4096)
def _usual_tensor(pickle: bytes) -> Rebuilt:
    return _checked(_stated(pickle))


def _stated(pickle: bytes, stored: list[Any] | None = None) -> object:
    """What a pickle makes, with tensors as what they are rebuilt from; nothing is called.

    Args:
        pickle: its bytes.
        stored: takes what is said of each storage.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    for opcode, argument, _ in pickletools.genops(pickle):
        name = opcode.name
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[int(argument or 0)] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[int(argument or 0)])
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "TUPLE":
            start = marks.pop()
            stack[start:] = [tuple(stack[start:])]
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            size = int(name[-1])
            stack[-size:] = [tuple(stack[-size:])]
        elif name == "EMPTY_TUPLE":
            stack.append(())
        elif name == "GLOBAL":
            stack.append(argument)
        elif name == "STACK_GLOBAL":
            stack[-2:] = [" ".join(map(str, stack[-2:]))]
        elif name in ("EMPTY_DICT", "EMPTY_LIST"):
            stack.append({} if name == "EMPTY_DICT" else [])
        elif name == "BINPERSID":
            if stored is not None:
                stored.append(stack[-1])
            stack[-1] = ("storage", stack[-1])
        elif name == "REDUCE":
            arguments, function = stack.pop(), str(stack.pop()).rpartition(" ")[2]
            stack.append(_called(function, arguments))
        elif name in ("NEWTRUE", "NEWFALSE"):
            stack.append(name == "NEWTRUE")
        elif name == "NONE":
            stack.append(None)
        elif name in ("SETITEM", "SETITEMS", "APPEND", "APPENDS", "BUILD"):
            _put(stack, name, marks)
        elif name == "STOP":
            return stack.pop()
        elif argument is not None and name not in ("PROTO", "FRAME"):
            stack.append(argument)
    raise NotATensor("no tensor of PyTorch")


def _put(stack: list[Any], name: str, marks: list[int]) -> None:
    """Put what stands on the stack into the dictionary or list below it, if it is one."""
    start = marks.pop() if name.endswith("S") else len(stack) - 1 - (name == "SETITEM")
    items = stack[start:]
    del stack[start:]
    holder: object = stack[-1] if stack else None
    if isinstance(holder, dict) and name.startswith("SETITEM"):
        entries = cast("dict[object, object]", holder)
        for key, value in zip(items[::2], items[1::2], strict=False):
            if isinstance(key, str | int):
                entries[key] = value
    elif isinstance(holder, list) and name.startswith("APPEND"):
        cast("list[object]", holder).extend(items)


class _Tensor(tuple[Any, ...]):
    """The arguments that a tensor is rebuilt from."""


def _called(function: str, arguments: Any) -> object:
    if function in _REBUILDERS:
        return _Tensor(arguments)
    if function in ("_rebuild_parameter", "_rebuild_parameter_with_state"):
        return arguments[0]
    if function in ("OrderedDict", "defaultdict"):
        return {}
    return f"what {function} gives"


def _checked(value: object) -> Rebuilt:
    """What is stated of a tensor, where that is all."""
    if not isinstance(value, _Tensor):
        what = value if isinstance(value, str) else "something else"
        if isinstance(value, dict | list):
            what = "a dictionary" if isinstance(value, dict) else "a list"
        raise NotATensor(f"not one tensor but {what}")
    return _rebuilt(value)


def _rebuilt(value: _Tensor) -> Rebuilt:
    (_, stored), offset, shape, strides = value[:4]
    dtype = _type_of_storage(stored[1])
    if str(stored[1]).endswith(
        "UntypedStorage"
    ):  # newer types have no storage of their own; offsets are elements
        dtype = dtype_name(str(value[6]).rpartition(" ")[2])
    return dtype, str(stored[2]), int(offset), tuple(shape), tuple(strides)
