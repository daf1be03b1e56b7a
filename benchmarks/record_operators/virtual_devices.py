"""Let the CPU wheel of MindSpore compile parallel networks for devices that are not there.

MindSpore refuses auto-parallel compilation where the communication backend is the CPU. Nothing
in its front end needs a device, though: this module rewrites, in this process's memory only, the
device name that the context holds and the world size that the missing backend would report.
Compilation then runs through every pass of the front end (all .ir dumps up to NN_validate) and ends
where the real device would be opened, with an exception.

Written for one exact wheel (2.7.0, CPython 3.11, x86-64); 2.10.0 works as well.
"""

import ctypes
import os
import re
import struct

import mindspore

_LIBRARIES = os.path.join(os.path.dirname(mindspore.__file__), "lib")
_world_size = 1
_device_name_addresses: list[int] = []


def _context_address() -> int:
    core = ctypes.CDLL(os.path.join(_LIBRARIES, "libmindspore_core.so"))
    get_instance = core._ZN9mindspore9MsContext11GetInstanceEv
    get_instance.restype, get_instance.argtypes = None, [ctypes.c_void_p]
    shared_pointer = (ctypes.c_void_p * 2)()
    get_instance(ctypes.addressof(shared_pointer))
    return shared_pointer[0]


def _writable_ranges() -> list[tuple[int, int]]:
    ranges = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, access = line.split()[:2]
            if "rw" in access:
                low, high = (int(v, 16) for v in span.split("-"))
                ranges.append((low, high))
    return ranges


def _find_device_names() -> list[int]:
    """Addresses of the context's own copies of 'CPU' (old-ABI strings: length 24 bytes before)."""
    base = _context_address()
    memory = ctypes.string_at(base, 16384)
    ranges = _writable_ranges()
    found = []
    for offset in range(0, 4096, 8):
        pointer = struct.unpack_from("<Q", memory, offset)[0]
        if any(low <= pointer - 24 and pointer + 16 <= high for low, high in ranges):  # noqa: SIM102
            if ctypes.string_at(pointer, 4) == b"CPU\0" and ctypes.string_at(pointer - 24, 8) == (
                3
            ).to_bytes(8, "little"):
                found.append(pointer)
    return found


def remember_context() -> None:
    """Call once, after set_context(device_target="CPU") and before any set_device_name."""
    if not _device_name_addresses:
        _device_name_addresses.extend(_find_device_names())
    if not _device_name_addresses:
        raise RuntimeError("device name not found in the context: not the 2.7.0 wheel?")


def set_device_name(name: str) -> None:
    """'Ascend', 'GPU', or 'CPU' to go back."""
    remember_context()
    for address in _device_name_addresses:
        ctypes.memmove(address, name.encode() + b"\0", len(name) + 1)
        ctypes.memmove(address - 24, len(name).to_bytes(8, "little"), 8)


def set_world_size(devices: int) -> None:
    """Number of devices that the absent communication backend reports.

    A group's size is read off its name ("4-6301172352641561019" has 4 members), as the front end
    needs it when it folds an AllReduce of a constant; where the wheel's code is another one, every
    group gets the size of the world, and such constants of smaller groups come out too large.
    """
    global _world_size
    _world_size = devices
    library = os.path.join(_LIBRARIES, "libmindspore_common.so")
    with open(library, "rb") as file:
        code = file.read()
    with open("/proc/self/maps") as maps:
        base = next(
            int(line.split("-")[0], 16) for line in maps if "libmindspore_common.so" in line
        )
    position = code.find(
        bytes.fromhex("4883ec18c70200080000")
    )  # the placeholder backend's "2048 devices", its function's beginning
    if position >= 0:
        # *size = the digits that the name begins with, or the world's size; return true
        program = bytes.fromhex(
            "488b06 31c9 0fb630 83ee30 83fe09 770a 6bc90a 01f1 48ffc0 ebeb 85c9 7505 b9"
        ) + devices.to_bytes(4, "little")
        _write(base + position, program + bytes.fromhex("890a b801000000 c3"))
        return
    position = code.find(b"\xc7\x02\x00\x08\x00\x00")
    if position < 0:
        raise RuntimeError(
            "world size not found in libmindspore_common.so: another wheel than 2.7.0?"
        )
    _write(base + position + 2, devices.to_bytes(4, "little"))


def _write(address: int, content: bytes) -> None:
    page = address & ~4095
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), 8192, 7) != 0:
        raise RuntimeError("mprotect refused")
    ctypes.memmove(address, content, len(content))


def _group_size(group=None) -> int:
    match = re.match(r"^(\d+)-\d+$", str(group or ""))
    return int(match.group(1)) if match else _world_size


def answer_group_sizes() -> None:
    """Collectives ask for the size of their group in Python: the name of a group begins with it."""
    import mindspore.communication
    import mindspore.communication.management
    import mindspore.ops.operations.comm_ops

    for module in (
        mindspore.ops.operations.comm_ops,
        mindspore.communication.management,
        mindspore.communication,
    ):
        if hasattr(module, "get_group_size"):
            module.get_group_size = _group_size
        if hasattr(module, "get_rank"):
            module.get_rank = lambda group=None: 0
