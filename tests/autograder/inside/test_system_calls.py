"""What the filter of system calls answers, on both machines that it knows.

Its program is carried out here as the kernel would, so that each machine can test the other's.
"""

import errno
import struct

import pytest

from autograder.inside import system_calls

X86_64, AARCH64 = "x86_64", "aarch64"
# Their numbers on x86_64 and aarch64.
OUTSIDE = """
    add_key 248 217, bpf 321 280, chroot 161 51, fanotify_init 300 262, fsopen 430 430,
    init_module 175 105, inotify_add_watch 254 27, io_setup 206 0, io_submit 209 2,
    io_uring_enter 426 426, io_uring_setup 425 425, kcmp 312 272, kexec_load 246 104, keyctl
    250 219, memfd_create 319 279, memfd_secret 447 447, mlock 149 228, mount 165 40,
    mount_setattr 442 442, move_mount 429 429, mq_open 240 180, msgget 68 186,
    open_by_handle_at 304 265, open_tree 428 428, perf_event_open 298 241, pidfd_getfd 438
    438, pivot_root 155 41, process_madvise 440 440, process_vm_readv 310 270,
    process_vm_writev 311 271, ptrace 101 117, remap_file_pages 216 234, request_key 249 218,
    seccomp 317 277, semget 64 190, sendfile 40 71, setns 308 268, setpriority 141 140,
    setxattr 188 5, shmget 29 194, splice 275 76, sync 162 81, tee 276 77, umount2 166 39,
    unshare 272 97, userfaultfd 323 282, vmsplice 278 75
"""
both = pytest.mark.parametrize("machine", [X86_64, AARCH64])


def answer(machine, number, *arguments, architecture=None):
    """0 if the kernel carries the call out, or the number of the error that it gives."""
    column, own = system_calls.MACHINES[machine]
    data = struct.pack(
        "<iIQ6Q", number, architecture or own, 0, *arguments, *[0] * (6 - len(arguments))
    )
    program, place, loaded = system_calls._program(column, own), 0, 0
    while True:
        code, when_true, when_false, value = struct.unpack("HBBI", program[place])
        place += 1
        if code == system_calls.LOAD:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif code == system_calls.AND:
            loaded &= value
        elif code == system_calls.RETURN:
            return 0 if value == system_calls.ALLOW else value & 0xFFF
        else:
            passes = {
                system_calls.EQUAL: loaded == value,
                system_calls.GREATER: loaded > value,
                system_calls.ANY_OF: bool(loaded & value),
            }
            place += when_true if passes[code] else when_false


@both
@pytest.mark.parametrize("call", [call.strip() for call in OUTSIDE.split(",")])
def test_what_no_notebook_needs_is_refused(machine, call):
    number = int(call.split()[1 + system_calls.MACHINES[machine][0]])
    assert answer(machine, number) == errno.EPERM


@pytest.mark.parametrize(
    ("machine", "number"), [(X86_64, 257), (X86_64, 9), (AARCH64, 56), (AARCH64, 222)]
)
def test_files_and_memory_may_be_had(machine, number):
    assert answer(machine, number) == 0


@both
def test_a_newer_call_is_not_found_so_that_libraries_do_without(machine):
    assert answer(machine, 435) == errno.ENOSYS  # clone3
    assert answer(machine, 463) == errno.ENOSYS
    assert answer(machine, -1) == errno.ENOSYS


def test_the_second_set_of_numbers_has_no_call():
    assert answer(X86_64, 0x40000000 + 1) == errno.ENOSYS


@both
def test_another_architectures_numbers_are_refused(machine):
    assert answer(machine, 3, architecture=0x40000003) == errno.EPERM  # i386


@pytest.mark.parametrize(("machine", "number"), [(X86_64, 56), (AARCH64, 220)])
def test_clone_makes_threads_and_processes_but_no_namespaces(machine, number):
    assert answer(machine, number, 0x3D0F00) == 0  # as a thread is made
    assert answer(machine, number, 0x4111) == 0  # as subprocess and system() do
    for namespace in (0x20000, 0x2000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(machine, number, namespace | 17) == errno.EPERM


@pytest.mark.parametrize(("machine", "number"), [(X86_64, 9), (AARCH64, 222)])
def test_memory_is_shared_only_in_files(machine, number):
    assert answer(machine, number, 0, 4096, 3, 0x22) == 0  # private
    assert answer(machine, number, 0, 4096, 3, 0x01) == 0  # a file's
    assert answer(machine, number, 0, 4096, 3, 0x21) == errno.EPERM
    assert answer(machine, number, 0, 4096, 3, 0x23) == errno.EPERM  # MAP_SHARED_VALIDATE


@pytest.mark.parametrize(
    ("machine", "number"), [(X86_64, 41), (X86_64, 53), (AARCH64, 198), (AARCH64, 199)]
)
def test_sockets_are_local(machine, number):
    assert answer(machine, number, 1, 1) == 0
    assert answer(machine, number, 2, 1) == answer(machine, number, 30, 1) == errno.EAFNOSUPPORT
