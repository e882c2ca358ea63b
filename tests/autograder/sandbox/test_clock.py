"""Whom waiting is charged to: to those who work or sleep, not to those whom the machine forgets."""

import os
import socket
import threading
import time

import pytest

from autograder.inside.limits import Limits
from autograder.inside.messages.codec import STEP
from autograder.sandbox import cgroup
from autograder.sandbox.clock import GAP, Allowance, Clock, OutOfTime, readable
from autograder.sandbox.process import StudentLost
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.sandbox.boxes import LESSON, printed


class Machine:
    """A student's process as the clock sees it: what it has had so far, and what it wants."""

    def __init__(self, awake, share):
        self.awake, self.share, self.busy = awake, share, 0.0

    def look(self):
        self.busy += self.share * STEP
        return self.busy, self.awake


def lasts(machine, silent=True, seconds=5.0, patience=10.0, notebook=1000.0):
    """How many seconds of waiting it takes until time is up, and what is said then."""
    clock = Clock(machine.look, Allowance(notebook, patience), patience)
    clock.allow(seconds)
    for count in range(1, 100_000):
        try:
            clock.passed(STEP, silent)
        except OutOfTime as error:
            return count * STEP, error
    raise AssertionError("it never ends")


class TestClock:
    @pytest.mark.parametrize(
        ("awake", "share", "how", "seconds", "starved", "says"),
        [
            (True, 1.0, {}, 5, False, "it took more than 5 s of processor time"),
            (
                True,
                0.2,
                {},
                25,
                False,
                "of processor time",
            ),  # a fifth of a core
            (True, 4.0, {}, 1.25, False, "of processor time"),  # processes side by side
            (False, 0.2, {}, 5, False, "1.0 s of work and 4.0 s in which it slept or waited"),
            (False, 0.0, {"silent": False}, 50, True, ""),  # it came before it was read
            (True, 0.01, {}, 50, True, "after 50 s, in which this machine gave it 0.5 s"),
            (
                True,
                1.0,
                {"notebook": 3},
                3,
                False,
                "the notebook's time is up: it took more than 3",
            ),
        ],
    )
    def test_work_and_sleep_are_charged_and_waiting_is_not(
        self, awake, share, how, seconds, starved, says
    ):
        waited, error = lasts(Machine(awake, share), **how)
        assert waited == pytest.approx(seconds, rel=0.04, abs=0.3)
        assert error.starved == starved and says in str(error)

    def test_a_machine_that_slept_takes_a_second_at_most(self):
        clock = Clock(Machine(awake=False, share=0.0).look, Allowance(1000, 10), 10)
        clock.allow(5)
        clock.passed(3600.0, silent=True)
        for _ in range(int((5 - GAP) / STEP) - 1):
            clock.passed(STEP, silent=True)
        with pytest.raises(OutOfTime):
            for _ in range(5):
                clock.passed(STEP, silent=True)

    @pytest.mark.busy
    def test_what_is_readable_is_found_after_a_long_stop_of_the_one_who_waits(self, monkeypatch):
        ours, theirs = socket.socketpair()
        slept = iter([0.0, 3600.0])  # the clock at the first step, and after it
        monkeypatch.setattr(time, "monotonic", lambda: next(slept, 3600.0))
        threading.Timer(3 * STEP, theirs.send, [b"x"]).start()
        assert readable(ours, 60.0)


@pytest.fixture(scope="class", params=["auto", "off"])
def small(request):
    """A sandbox, and a plain process, with little time."""
    with Sandbox(LESSON, request.param, Limits(cell_seconds=1.5, patience=200)) as box:
        yield box


@pytest.mark.busy
class TestStudents:
    @pytest.mark.long
    @pytest.mark.parametrize(
        ("source", "says"),
        [
            ("while True: pass", "more than 1.5 s of processor time"),
            ("import os\nfor _ in range(3): os.fork()\nwhile True: pass", "of processor time"),
            (
                "import threading\ndef loop():\n    while True: pass\n"
                "one = threading.Thread(target=loop)\none.start()\none.join()",
                "more than 1.5 s of processor time",
            ),
            ("import subprocess; subprocess.run(['sh', '-c', 'while :; do :; done'])", "processor"),
            ("import time; time.sleep(1000)", "in which it slept or waited"),
            ("import subprocess; subprocess.run(['sleep', '1000'])", "slept or waited"),
            (
                "import ctypes, os, time\nclone = 56 if os.uname().machine == 'x86_64' else 220\n"
                "if not ctypes.CDLL(None).syscall(clone, 0x4000 | 17, 0, 0, 0, 0):\n"
                "    time.sleep(1000)",
                "slept or waited",
            ),
            ("import os, signal; os.kill(os.getppid() or os.getpid(), 0); signal.pause()", "slept"),
        ],
    )
    def test_who_works_or_sleeps_without_end_is_stopped_and_told_which(self, small, source, says):
        with pytest.raises(StudentLost, match=says) as lost:
            small.start().run(source)
        assert not lost.value.doubtful
        assert printed(small.start(), "print(2)") == "2"

    def test_a_childs_time_stays_in_sight_until_it_is_waited_for(self, walled):
        source = (
            "import os, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
            "child = os.fork()\nif child == 0:\n    os._exit(0)\n"
            "os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)\n"
            "print(os.path.exists(f'/proc/{child}/stat'), os.wait()[0] == child)"
        )
        assert printed(walled.start(), source) == "True True"

    @pytest.mark.long
    def test_children_that_nobody_waits_for_end_in_the_graders_patience(self, monkeypatch):
        monkeypatch.setattr(cgroup, "make", lambda _: None)
        source = (
            "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
            "while True:\n    if os.fork() == 0:\n        os._exit(0)"
        )
        lost, limits = pytest.raises(StudentLost), Limits(cell_seconds=0.5, patience=10)
        with Sandbox(LESSON, "off", limits) as box, lost:
            box.start().run(source)

    @pytest.mark.long
    def test_processes_that_are_stopped_and_go_on_lose_nothing(self):
        """As when the lid of a laptop is shut: all stop, and the time that passes is nobody's."""
        with Sandbox(LESSON, "off", Limits(cell_seconds=3, patience=2.5)) as box:
            process = box.start()
            start = time.monotonic()
            process.run(_STOPS.format(others=[os.getpid(), box._zygote.pid], seconds=8))
            assert time.monotonic() - start > 8


# The cell itself stops everything, so that it has its work before it however busy the machine is.
_STOPS = """
import os, signal, time
stopped = {others} + [os.getpid()]
if os.fork() == 0:
    time.sleep({seconds})
    for pid in reversed(stopped):  # the grader last
        os.kill(pid, signal.SIGCONT)
    os._exit(0)
for pid in stopped:
    os.kill(pid, signal.SIGSTOP)
end = time.process_time() + 0.2
while time.process_time() < end: pass
"""
