"""The control group around each hand-in: what it limits and counts, and where it can be had."""

import os

import pytest

from autograder.inside.limits import MIB, Limits
from autograder.sandbox import cgroup
from autograder.sandbox.cgroup import ControlGroup
from autograder.sandbox.process import StudentLost
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.sandbox.boxes import LESSON, LIMITS, printed

needs_groups = pytest.mark.skipif(
    not cgroup._place(), reason="this user may make no control group of version 2 here"
)
CHILDREN = (
    "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n"
    "    if os.fork() == 0:\n        while time.process_time() < 0.045: pass\n"
    "        os._exit(0)\n    try: os.wait()\n    except ChildProcessError: pass"
)


@pytest.fixture
def folder(tmp_path):
    """A group with all controllers, as the kernel shows it."""
    for name in ("memory.max", "memory.swap.max", "pids.max", "cgroup.procs"):
        (tmp_path / name).write_text("max\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")
    (tmp_path / "memory.events").write_text("low 0\nmax 12\noom 0\noom_kill 3\n")
    return tmp_path


class TestControlGroup:
    def test_limits_are_set_where_there_are_controllers(self, folder):
        (folder / "memory.swap.max").unlink()  # as where the kernel counts no swap
        ControlGroup(folder, Limits(memory_bytes=100 * MIB, file_bytes=MIB, processes=7))
        assert (folder / "memory.max").read_text() == str(101 * MIB)
        assert (folder / "pids.max").read_text() == "7"
        assert not (folder / "memory.swap.max").exists()

    def test_seconds_are_those_of_the_kernel(self, folder):
        assert ControlGroup(folder, LIMITS).seconds() == 2.5

    def test_its_own_limit_is_told_from_the_machines_memory(self, folder):
        group = ControlGroup(folder, LIMITS)
        assert not group.ran_out_of_memory()
        (folder / "memory.events").write_text("low 0\nmax 40\noom 1\noom_kill 3\n")
        assert group.ran_out_of_memory()


class TestPlace:
    @pytest.mark.parametrize(
        ("said", "places"),
        [
            ("0::/user.slice/a.scope\n", ["user.slice/a.scope", "user.slice", "."]),
            ("3:memory:/x\n0::/\n", ["."]),
            ("0::/../other\n", []),
            ("3:memory:/x\n", []),
        ],
    )
    def test_groups_are_made_within_this_processs_own_or_beside_it(self, tmp_path, said, places):
        assert cgroup._above(tmp_path, said) == [tmp_path / one for one in places]

    def test_of_several_the_one_that_keeps_most_is_taken(self, tmp_path, monkeypatch):
        (tmp_path / "cgroup.controllers").touch()
        keeps = {"own": ["cpu"], "beside": ["cpu", "memory"], "above": []}
        monkeypatch.setattr(cgroup, "MOUNTS", [tmp_path / "no", tmp_path])
        monkeypatch.setattr(cgroup, "_above", lambda mount, _: [mount / name for name in keeps])
        monkeypatch.setattr(cgroup, "_kept_in", lambda place: keeps[place.name])
        assert cgroup._place.__wrapped__() == tmp_path / "beside"
        keeps |= {"own": [], "beside": []}
        assert cgroup._place.__wrapped__() is None

    def test_a_folder_that_is_no_group_keeps_nothing(self, tmp_path):
        assert cgroup._kept_in(tmp_path) == []
        assert cgroup._kept_in(tmp_path / "missing") == []

    def test_groups_of_graders_that_were_killed_are_removed(self, tmp_path):
        alive, dead = (tmp_path / f"autograder-{pid}-x" for pid in (os.getpid(), 99999999))
        alive.mkdir()
        dead.mkdir()
        cgroup._sweep(tmp_path)
        assert list(tmp_path.iterdir()) == [alive]


@pytest.mark.busy
class TestStudents:
    @needs_groups
    @pytest.mark.long
    @pytest.mark.parametrize("policy", ["auto", "off"])
    def test_children_that_nobody_waits_for_are_charged(self, policy):
        limits = Limits(cell_seconds=1.5, patience=200)
        with Sandbox(LESSON, policy, limits) as box:
            with pytest.raises(StudentLost, match="more than 1.5 s of processor time") as lost:
                box.start().run(CHILDREN)
            assert not lost.value.doubtful
            assert printed(box.start(), "print(1)") == "1"

    @needs_groups
    def test_each_student_has_a_group_and_leaves_none(self):
        with Sandbox(LESSON, "auto", LIMITS) as box:
            process = box.start()
            process.run("1")
            first = box._group._folder
            assert first.joinpath("cgroup.procs").read_text().split()
            assert str(os.getpid()) not in first.joinpath("cgroup.procs").read_text().split()
            box.start().run("1")
            assert box._group._folder != first and not first.exists()
            second = box._group._folder
            box.stop()
            assert not second.exists()

    def test_who_meets_the_groups_limit_is_told_so_and_not_tried_again(self, folder, monkeypatch):
        (folder / "memory.events").write_text("oom 1\n")
        monkeypatch.setattr(cgroup, "make", lambda limits: ControlGroup(folder, limits))
        with Sandbox(LESSON, "off", LIMITS) as box:
            with pytest.raises(StudentLost, match="more than 2048 MiB of memory") as lost:
                box.start().run("import os; os.kill(os.getpid(), 9)")
            assert not lost.value.doubtful
