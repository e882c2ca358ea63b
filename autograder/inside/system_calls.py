"""The system calls that a notebook may make; all others are refused. Runs inside the sandbox.

They are what Python, PyTorch, numpy, matplotlib, threads, files and programs like a shell or a
compiler need. What is left out reaches far into the kernel, looks into other processes, makes
namespaces or mounts, or holds memory that no limit counts. The filter is inherited by everything
the process starts.
"""

import ctypes
import errno
import platform
import struct

SET_SECCOMP, FILTER = 22, 2
LOAD, AND, EQUAL, GREATER, ANY_OF, RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000

# By what they are for: name, number on x86_64, number on aarch64 (-: there is none).
CALLS = {
    "files": """
        read 0 63, write 1 64, open 2 -, close 3 57, creat 85 -, openat 257 56,
        openat2 437 437, close_range 436 436, stat 4 -, fstat 5 80, lstat 6 -,
        newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44, lseek 8 62,
        pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66, preadv 295 69,
        pwritev 296 70, preadv2 327 286, pwritev2 328 287, access 21 -, faccessat 269 48,
        faccessat2 439 439, dup 32 23, dup2 33 -, dup3 292 24, fcntl 72 25, ioctl 16 29,
        flock 73 32, fsync 74 82, fdatasync 75 83, truncate 76 45, ftruncate 77 46,
        fallocate 285 47, fadvise64 221 223, copy_file_range 326 285, getdents 78 -,
        getdents64 217 61, getcwd 79 17, chdir 80 49, fchdir 81 50, rename 82 -,
        renameat 264 38, renameat2 316 276, mkdir 83 -, mkdirat 258 34, rmdir 84 -,
        link 86 -, linkat 265 37, unlink 87 -, unlinkat 263 35, symlink 88 -,
        symlinkat 266 36, readlink 89 -, readlinkat 267 78, chmod 90 -, fchmod 91 52,
        fchmodat 268 53, fchmodat2 452 452, chown 92 -, fchown 93 55, lchown 94 -,
        fchownat 260 54, umask 95 166, utime 132 -, utimes 235 -, futimesat 261 -,
        utimensat 280 88, getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10,
        listxattr 194 11, llistxattr 195 12, flistxattr 196 13
    """,
    "memory": """
        mprotect 10 226, munmap 11 215, brk 12 214, mremap 25 216, msync 26 227,
        mincore 27 232, madvise 28 233, get_mempolicy 239 236, mbind 237 235,
        membarrier 324 283
    """,
    "processes and threads": """
        fork 57 -, vfork 58 -, execve 59 221, exit 60 93, exit_group 231 94, wait4 61 260,
        waitid 247 95, set_tid_address 218 96, futex 202 98, set_robust_list 273 99,
        get_robust_list 274 100, rseq 334 293, arch_prctl 158 -, prctl 157 167,
        getpid 39 172, gettid 186 178, getppid 110 173, getpgrp 111 -, getpgid 121 155,
        setpgid 109 154, getsid 124 156, setsid 112 157, getuid 102 174, geteuid 107 175,
        getgid 104 176, getegid 108 177, getresuid 118 148, getresgid 120 150,
        getgroups 115 158, capget 125 90, getrlimit 97 163, setrlimit 160 164,
        prlimit64 302 261, getrusage 98 165, getpriority 140 141, getcpu 309 168,
        sched_yield 24 124, sched_getaffinity 204 123, sched_setaffinity 203 122,
        sched_getparam 143 121, sched_getscheduler 145 120, sched_get_priority_max 146 125,
        sched_get_priority_min 147 126, pidfd_open 434 434
    """,
    "signals": """
        rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139,
        rt_sigpending 127 136, rt_sigtimedwait 128 137, rt_sigsuspend 130 133,
        sigaltstack 131 132, kill 62 129, tkill 200 130, tgkill 234 131,
        pidfd_send_signal 424 424, pause 34 -, restart_syscall 219 128
    """,
    "waiting and time": """
        poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create 213 -,
        epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22,
        epoll_pwait2 441 441, eventfd 284 -, eventfd2 290 19, pipe 22 -, pipe2 293 59,
        nanosleep 35 101, clock_nanosleep 230 115, clock_gettime 228 113,
        clock_getres 229 114, gettimeofday 96 169, time 201 -, times 100 153, alarm 37 -,
        getitimer 36 102, setitimer 38 103
    """,
    "local sockets": """
        connect 42 203, accept 43 202, accept4 288 242, bind 49 200, listen 50 201,
        shutdown 48 210, getsockname 51 204, getpeername 52 205, getsockopt 55 209,
        sendto 44 206, recvfrom 45 207, sendmsg 46 211, recvmsg 47 212, sendmmsg 307 269,
        recvmmsg 299 243
    """,
    "the machine": """
        uname 63 160, sysinfo 99 179, getrandom 318 278
    """,
}
# A library takes a call that is not found for one of a newer kernel, and does without. Calls that
# came after this one are not found; older ones that are missing above are left out on purpose.
NEWEST = 452
CLONE3 = 435  # its flags cannot be seen here: the C library falls back to clone
CLONE, NAMESPACES = (56, 220), 0x7E020000
# Sockets of other families hold much memory, or know no namespaces.
SOCKETS, UNIX = ((41, 53), (198, 199)), 1
# Larger buffers, and filters, hold memory that no limit counts: only what sets no such thing.
SETSOCKOPT, OPTIONS = (54, 208), (2, 9, 13, 15, 16, 20, 21, 66, 67)
# Memory that is shared and in no file stays when it is unmapped in part, and is no process's then.
# A file of /dev/shm, whose size is limited, can be shared.
MMAP, SHARED_AND_IN_NO_FILE = (9, 222), 0x21
# Who ignores SIGCHLD has children that end unseen, and with them the time that they took: whatever
# is to be done at that signal is taken for done, and is not.
ACTION, SIGCHLD, TAKEN_FOR_DONE = (13, 134), 17, REFUSE
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
    allow, refuse, absent = (
        _instruction(RETURN, what) for what in (ALLOW, REFUSE | errno.EPERM, REFUSE | errno.ENOSYS)
    )
    no_family = _instruction(RETURN, REFUSE | errno.EAFNOSUPPORT)
    options = [one for option in OPTIONS for one in _where(EQUAL, option, allow)]
    first, third, fourth = (_instruction(LOAD, place) for place in (16, 32, 40))  # arguments
    shared = _instruction(AND, SHARED_AND_IN_NO_FILE)
    new = _where(ANY_OF, 0xFFFFFFFF, _instruction(RETURN, TAKEN_FOR_DONE))
    halves = (part for place in (24, 28) for part in (_instruction(LOAD, place), *new))
    program = [
        _instruction(LOAD, 4),  # the architecture: the numbers mean something else in another
        _instruction(EQUAL, architecture, 1, 0),
        refuse,
        _instruction(LOAD, 0),  # the number of the call
        *_where(GREATER, NEWEST, absent),
        *_where(EQUAL, CLONE3, absent),
        *_where(EQUAL, CLONE[column], first, *_where(ANY_OF, NAMESPACES, refuse), allow),
        *_where(
            EQUAL,
            MMAP[column],
            *(fourth, shared, *_where(EQUAL, SHARED_AND_IN_NO_FILE, refuse), allow),
        ),
        *_where(EQUAL, ACTION[column], first, *_where(EQUAL, SIGCHLD, *halves), allow),
        *_where(EQUAL, SETSOCKOPT[column], third, *options, refuse),
    ]
    for number in SOCKETS[column]:
        program += _where(EQUAL, number, first, *_where(EQUAL, UNIX, allow), no_family)
    for calls in CALLS.values():
        for call in calls.split(","):
            listed = call.split()[1 + column]
            if listed != "-":
                program += _where(EQUAL, int(listed), allow)
    return [*program, refuse]


def _where(test: int, value: int, *then: bytes) -> list[bytes]:
    """The instructions that do ``then`` where what was loaded passes a test, and else go on."""
    return [_instruction(test, value, 0, len(then)), *then]


def _instruction(code: int, value: int, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, when_true, when_false, value)
