"""Ending early, not ending at all, and living on."""

from .paper import attacks

PRELUDE = """
def is_held():
    \"\"\"Whether there is a sandbox around this; outside, a trace is left and nothing else.\"\"\"
    held = os.readlink("/proc/self/ns/pid") != "@NAMESPACE@"
    if not held:
        open("/tmp/@MARK@", "w").close()
    return held

def loop_for(seconds=300):
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        try:
            while time.monotonic() < stop:
                pass
        except BaseException:
            pass

def linger(seconds=60):
    each(lambda number: signal.signal(number, signal.SIG_IGN), range(1, 65))
    name_it()
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        time.sleep(0.2)
    os._exit(0)
"""

BEFORE_TESTS = {
    # __repr__ and _repr_html_ of a cell's last value that do not return.
    "loop_in_a_representation": """
        class Slow:
            def __repr__(self):
                loop_for()
            _repr_html_ = _ipython_display_ = __str__ = __repr__

        Slow()
    """,
    # The process forks and ends; its child goes on in its place.
    "the_child_goes_on": """
        if os.fork():
            time.sleep(0.5)
            os._exit(0)
        name_it()
    """,
    # execv: the process turns into `sleep`, with every descriptor inherited.
    "becomes_another_program": """
        each(lambda descriptor: os.set_inheritable(descriptor, True), range(3, 64))
        os.execv("/bin/sleep", ["sleep", "100"])
    """,
}
attacks(__name__, "before_tests", BEFORE_TESTS, prelude=PRELUDE)

ANSWERS = {
    # Work in C that holds the interpreter: no signal handler of Python's ever runs.
    "endless_loop_in_c": """
        import re
        return re.match("(a|aa|aaa)+$", "a" * 200 + "b") or 9 ** 9 ** 9
    """,
    # Every call takes as long as a call may take, again and again.
    "slow_drip": """
        time.sleep(4)
        return torch.zeros(4, dtype=torch.float64)
    """,
    # SIGSTOP: the process neither ends nor goes on.
    "stops_itself": "os.kill(os.getpid(), signal.SIGSTOP)",
}
attacks(__name__, "answer", ANSWERS, prelude=PRELUDE)

CELLS = {
    # Loops in __del__, atexit and a thread that is no daemon: leaving takes for ever.
    "loop_at_the_end": """
        import atexit

        class Sticky:
            def __del__(self):
                loop_for()

        kept = Sticky()
        atexit.register(loop_for)
        threading.Thread(target=loop_for).start()
    """,
    # The parent process killed, and the group, and the session's leader.
    "kills_its_parent": """
        for number in (signal.SIGTERM, signal.SIGKILL) if is_held() else ():
            targets = {os.getppid(), os.getsid(0), 1} - {0, os.getpid()}
            each(lambda target: os.kill(target, number), targets)
    """,
    # A process that leaves family and session (two forks, setsid), ignores signals and stays.
    "daemon": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for descriptor in range(3):
                    os.close(descriptor)
                linger()
            os._exit(0)
        os.wait()
    """,
}
attacks(__name__, "first", CELLS, prelude=PRELUDE)
