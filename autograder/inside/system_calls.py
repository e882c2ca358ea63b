"""A filter that refuses the system calls a notebook has no use for. Runs inside the sandbox.

They either reach far into the kernel, look into other processes, make namespaces or mounts, or
hold memory that no limit counts. The filter is inherited by everything the process starts.
"""

import ctypes
import errno
import platform
import struct

SET_SECCOMP, FILTER = 22, 2
LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NEW_USER = 0x10000000

# name: number on x86_64, number on aarch64 (None: there is none)
REFUSED = {
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "ptrace": (101, 117),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "init_module": (175, 105),
    "kexec_load": (246, 104),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "open_by_handle_at": (304, 265),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "memfd_create": (319, 279),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442),
    "memfd_secret": (447, 447),
}
SOCKET, UNIX = (41, 198), 1  # sockets of other families hold much memory, or know no namespaces
SETSOCKOPT, BUFFERS = (54, 208), (7, 8, 32, 33)  # larger buffers hold memory that no limit counts
CLONE, CLONE3 = (56, 220), 435
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def forbid() -> None:
    """Apply the filter to this process for good; on other machines than these two, do nothing."""
    if platform.machine() not in MACHINES:
        return
    program = _program(*MACHINES[platform.machine()])
    code = ctypes.create_string_buffer(b"".join(program))
    described = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(SET_SECCOMP, FILTER, ctypes.create_string_buffer(described), 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "the filter of system calls was refused")


def _program(column: int, architecture: int) -> list[bytes]:
    """The filter's instructions: the first that returns decides."""
    refuse = REFUSE | errno.EPERM
    program = [
        _instruction(LOAD, 4),  # the architecture: its numbers mean something else in another
        _instruction(JUMP_EQUAL, architecture, 1, 0),
        _instruction(RETURN, refuse),
        _instruction(LOAD, 0),  # the number of the call
    ]
    if column == 0:  # x86_64 has a second set of numbers, from here up
        program += [_instruction(0x35, 0x40000000, 0, 1), _instruction(RETURN, refuse)]
    for numbers in REFUSED.values():
        program += [
            _instruction(JUMP_EQUAL, numbers[column], 0, 1),
            _instruction(RETURN, refuse),
        ]
    program += [
        _instruction(JUMP_EQUAL, SOCKET[column], 0, 3),
        _instruction(LOAD, 16),  # the family
        _instruction(JUMP_EQUAL, UNIX, 1, 0),
        _instruction(RETURN, REFUSE | errno.EAFNOSUPPORT),
        _instruction(LOAD, 0),
        _instruction(JUMP_EQUAL, SETSOCKOPT[column], 0, 2 * len(BUFFERS) + 2),
        _instruction(LOAD, 32),  # the option
    ]
    for option in BUFFERS:
        program += [_instruction(JUMP_EQUAL, option, 0, 1), _instruction(RETURN, refuse)]
    program.append(_instruction(LOAD, 0))
    # The C library falls back from clone3, whose flags cannot be seen here, to clone.
    program += [
        _instruction(JUMP_EQUAL, CLONE3, 0, 1),
        _instruction(RETURN, REFUSE | errno.ENOSYS),
        _instruction(JUMP_EQUAL, CLONE[column], 0, 3),
        _instruction(LOAD, 16),  # the flags of clone
        _instruction(JUMP_SET, NEW_USER, 0, 1),
        _instruction(RETURN, refuse),
        _instruction(RETURN, ALLOW),
    ]
    return program


def _instruction(code: int, value: int, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, when_true, when_false, value)
