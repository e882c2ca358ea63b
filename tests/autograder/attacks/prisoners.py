"""Getting out: what a process inside must not be able to open, mount, trace, reach or become.

Each ``won()`` tries one thing and reverts it. Whoever gets out answers every exercise rightly."""

from .paper import attacks

BURGLARS = {
    # ptrace, process_vm_readv and pidfd_getfd on every process in sight.
    "trace_other_processes": """
        def won():
            own = os.fork()
            if own == 0:
                os._exit(0)
            os.waitpid(own, 0)
            for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
                if pid in (os.getpid(), 1 if os.getpid() == 2 else 0):
                    continue
                if libc.ptrace(16, pid, None, None) == 0:   # PTRACE_ATTACH
                    os.waitpid(pid, 0)
                    libc.ptrace(17, pid, None, None)        # PTRACE_DETACH
                    return True
                descriptor = libc.syscall(434, pid, 0)      # pidfd_open
                if descriptor >= 0 and libc.syscall(438, descriptor, 0, 0) >= 0:  # pidfd_getfd
                    return True
            return False
    """,
    # A password in the grader's environment, its own or that of any process in sight.
    "secrets_in_the_environment": """
        def told(pid):
            return b"@SECRET@" in open(f"/proc/{pid}/environ", "rb").read()

        def won():
            return "@SECRET@" in str(dict(os.environ)) or (
                any_of(told, filter(str.isdigit, os.listdir("/proc"))))
    """,
    # A password file in the home folder of whoever grades.
    "secrets_in_the_home": """
        import pwd

        def won():
            homes = {os.path.expanduser("~"), *(user.pw_dir for user in pwd.getpwall())}
            homes.update(glob.glob("/home/*"))
            return any_of(lambda home: "@SECRET@" in open(home + "/.pgpass").read(), homes)
    """,
    # Other people's scores: any gradebook.db that can be opened.
    "gradebook_readable": """
        def holds(place):
            return open(place + "/gradebook.db", "rb").read(16).startswith(b"SQLite")

        def won():
            places = ["@COURSE@", "@COURSE@/class", os.getcwd(), "..", "../..", "../../.."]
            return any_of(holds, places + [os.path.dirname(path) for path in sys.path])
    """,
    # Memory, kernel log, disks, KVM and FUSE in /dev.
    "device_files": """
        def won():
            names = ["/dev/mem", "/dev/kmsg", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/net/tun"]
            names += glob.glob("/dev/[vsx]d[a-z]*") + glob.glob("/dev/nvme*")
            return opened(names, os.O_RDWR)
    """,
    # core_pattern, sysctls and control groups, opened for writing (nothing is written).
    "kernel_settings": """
        def won():
            names = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]
            names += ["/proc/sys/vm/drop_caches", "/sys/kernel/uevent_helper"]
            names += glob.glob("/sys/fs/cgroup/*.procs") + glob.glob("/sys/fs/cgroup/*/*.procs")
            return opened(names, os.O_WRONLY)
    """,
    # A user namespace of its own, in which every mount is taken away to find the course.
    "unmount_the_walls": """
        def unmount():
            libc.unshare(0x10000000 | 0x00020000)       # CLONE_NEWUSER | CLONE_NEWNS
            mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
            for mount in reversed(mounts):
                if mount != "/":
                    libc.umount2(mount.encode(), 2)     # MNT_DETACH
            found = os.path.exists("@COURSE@/attention/@MODULE@.py")
            for flags in (0x1000, 0x1000 | 0x4000):     # MS_BIND, and MS_REC
                libc.mount(b"/", b"/tmp", None, flags, None)
                found = found or os.path.exists("/tmp@COURSE@/attention/@MODULE@.py")
            return found

        def won():
            return in_a_child(unmount)
    """,
    # TIOCSTI: put a command into the instructor's own terminal.
    "type_on_the_terminal": """
        import fcntl
        import termios

        def put(name):
            terminal = os.open(name, os.O_RDWR | os.O_NOCTTY)
            return os.isatty(terminal) and fcntl.ioctl(terminal, termios.TIOCSTI, b" ") is not None

        def won():
            return any_of(put, ["/dev/tty", "/proc/1/fd/0", "/proc/self/fd/0", "/dev/pts/0"])
    """,
    # Capabilities that were left over, set-user-id programs that still work, user 0.
    "keep_privileges": """
        def won():
            status = dict(line.split(":\\t", 1) for line in open("/proc/self/status"))
            return int(status["CapEff"], 16) != 0 or status["NoNewPrivs"].strip() == "0"
    """,
    # The interpreter, the libraries and the autograder's package, opened for writing.
    "write_where_it_came_from": """
        import autograder.check

        def is_strange(name):
            return os.path.isdir(name) and not name.startswith(("/tmp", "/scratch", os.getcwd()))

        def won():
            names = [sys.executable, torch.__file__, autograder.check.__file__, os.__file__]
            folders = [*sys.path, "/etc/cron.d", "/usr/local/bin", "/var/spool/cron"]
            return opened([*names, "/etc/passwd", "/etc/hosts", "/bin/sh"], os.O_WRONLY) or any(
                os.access(name, os.W_OK) for name in filter(is_strange, folders))
    """,
}
attacks(__name__, "burglar", BURGLARS)
