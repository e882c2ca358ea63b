"""Ending early, not ending at all, and living on."""

from .paper import attack

LOOP = """
import time

def loop_for(seconds=300):
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        try:
            while time.monotonic() < stop:
                pass
        except BaseException:
            pass

"""

LINGER = """
import os
import signal
import sys
import time

def linger(seconds=60):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    with open("/proc/self/comm", "w") as stream:
        stream.write("@MARK@"[:15])
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        time.sleep(0.2)
    os._exit(0)

"""


@attack
def exit_in_a_cell(paper):
    """os._exit(0) before the tests: the process ends with the status of success."""
    paper.before_tests("import os\nos._exit(0)")


@attack
def exit_in_the_answers(paper):
    """os._exit(0) in every function, when the check calls it."""
    paper.answer("import os\nos._exit(0)")


@attack
def polite_exits(paper):
    """sys.exit, exit, quit and SystemExit, in cells and in answers."""
    paper.first("import sys\nsys.exit(0)")
    paper.before_tests("quit()")
    paper.answer("raise SystemExit(0)")


@attack
def exit_from_a_thread(paper):
    """A thread that ends the process a moment later, in the middle of whatever runs then."""
    paper.first("""
        import os
        import threading
        threading.Timer(0.5, os._exit, (0,)).start()
        import time
        time.sleep(0.3)
    """)
    paper.answer("import time\ntime.sleep(5)")


@attack
def crash(paper):
    """A null pointer, an abort, an illegal stack depth: one in every answer."""
    paper.first("""
        import ctypes, itertools, os, sys
        def too_deep():
            sys.setrecursionlimit(10**9)
            def down(x): return down(x) + 1
            return down(0)
        crashes = itertools.cycle([lambda: ctypes.string_at(0), os.abort, too_deep])
    """)
    paper.answer("return next(crashes)()")


@attack
def endless_loop_in_a_cell(paper):
    """A loop that catches KeyboardInterrupt and everything else, before the tests."""
    paper.before_tests(LOOP + "loop_for()")


@attack
def endless_loop_in_an_answer(paper):
    """The same loop in the answers."""
    paper.first(LOOP)
    paper.answer("loop_for()")


@attack
def endless_loop_in_c(paper):
    """Work in C that holds the interpreter: no signal handler of Python's ever runs."""
    paper.answer("""
        import re
        return re.match("(a|aa|aaa)+$", "a" * 200 + "b") or 9 ** 9 ** 9
    """)


@attack
def signals_ignored(paper):
    """Every signal that can be ignored is ignored and blocked, then the answers sleep."""
    paper.first("""
        import signal

        for number in signal.valid_signals():
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        signal.alarm(0)
    """)
    paper.answer("import time\ntime.sleep(300)")


@attack
def loop_at_the_end(paper):
    """Loops in __del__, atexit and a thread that is no daemon: leaving takes for ever."""
    paper.first(
        LOOP
        + """
import atexit
import threading

class Sticky:
    def __del__(self):
        loop_for()

kept = Sticky()
atexit.register(loop_for)
threading.Thread(target=loop_for).start()
"""
    )


@attack
def loop_in_a_representation(paper):
    """__repr__ and _repr_html_ of a cell's last value that do not return."""
    paper.before_tests(
        LOOP
        + """
class Slow:
    def __repr__(self):
        loop_for()
    _repr_html_ = _ipython_display_ = __str__ = __repr__

Slow()
"""
    )


@attack
def slow_drip(paper):
    """Every call takes as long as a call may take, again and again."""
    paper.answer("""
        import time
        time.sleep(4)
        return torch.zeros(4, dtype=torch.float64)
    """)


@attack
def stops_everybody(paper):
    """SIGSTOP and SIGKILL to every process that this one may signal."""
    paper.first("""
        import os
        import signal

        if os.readlink("/proc/self/ns/pid") == "@NAMESPACE@":
            open("/tmp/@MARK@", "w").close()       # outside every sandbox: leave only a trace
        else:
            os.kill(-1, signal.SIGSTOP)
            os.kill(-1, signal.SIGKILL)
    """)


@attack
def stops_itself(paper):
    """SIGSTOP: the process neither ends nor goes on."""
    paper.answer("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)")


@attack
def kills_its_parent(paper):
    """The parent process killed, and the group, and the session's leader."""
    paper.first("""
        import os
        import signal

        if os.readlink("/proc/self/ns/pid") == "@NAMESPACE@":
            open("/tmp/@MARK@", "w").close()
        else:
            for number in (signal.SIGTERM, signal.SIGKILL):
                for target in (os.getppid(), os.getsid(0), 1):
                    if target > 0 and target != os.getpid():
                        try:
                            os.kill(target, number)
                        except OSError:
                            pass
    """)


@attack
def daemon(paper):
    """A process that leaves family and session (two forks, setsid), ignores signals and stays."""
    paper.first(
        LINGER
        + """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3):
            os.close(descriptor)
        linger()
    os._exit(0)
os.wait()
"""
    )


@attack
def daemon_that_keeps_the_line(paper):
    """A child that inherits every descriptor and lives on, while its parent ends at once."""
    paper.first(
        LINGER
        + """
if os.fork() == 0:
    os.setsid()
    linger()
"""
    )
    paper.answer("import os\nos._exit(0)")


@attack
def the_child_goes_on(paper):
    """The process forks and ends; its child goes on in its place."""
    paper.before_tests("""
        import os
        import time

        if os.fork():
            time.sleep(0.5)
            os._exit(0)
        with open("/proc/self/comm", "w") as stream:
            stream.write("@MARK@"[:15])
    """)


@attack
def becomes_another_program(paper):
    """execv: the process turns into `sleep`, with every descriptor inherited."""
    paper.before_tests("""
        import os

        for descriptor in range(3, 64):
            try:
                os.set_inheritable(descriptor, True)
            except OSError:
                pass
        os.execv("/bin/sleep", ["sleep", "100"])
    """)


@attack
def killed_at_the_parents_death_never(paper):
    """prctl takes the parent-death signal away and makes the process a reaper of its own."""
    paper.first(
        LINGER
        + """
import ctypes

libc = ctypes.CDLL(None)
libc.prctl(1, 0)        # PR_SET_PDEATHSIG: none
libc.prctl(36, 1)       # PR_SET_CHILD_SUBREAPER
if os.fork() == 0:
    libc.prctl(1, 0)
    os.setpgid(0, 0)
    linger()
libc.prctl(4, 0)        # PR_SET_DUMPABLE: nobody may trace or look
"""
    )
