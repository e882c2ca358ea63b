"""Hostile submissions: none earns a point, none leaves a trace, and the honest lose nothing."""

import json
import re

import pytest

from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.inside.answer import LocalAnswer
from tests.autograder.attacks import ATTACKS, ground, ours
from tests.autograder.attacks.ground import most as total
from tests.autograder.attacks.memory_thieves import READY_MADE
from tests.autograder.attacks.paper import BASIC
from tests.needs import needs

pytestmark = [
    pytest.mark.serial,
    pytest.mark.long,
    needs("bubblewrap"),
]

# Tricks of which a plain process without walls is no match; none of them does any harm.
NEEDS_WALLS = [
    "read_the_library_on_disk",
    "secrets_in_the_environment",
    "gradebook_readable",
    "call_the_machine",
    "abstract_socket",
]


class Played:
    """All attacks, graded as one class in one run, with honest students among them."""

    def __init__(self, folder):
        self.folder = folder
        self.outcomes, self.report = ours.play(list(ATTACKS.values()), folder)
        self.faults = ours.faults(folder, self.report)
        self.output = (folder / "output.txt").read_text(errors="replace")


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return Played(tmp_path_factory.mktemp("attacks") / "ours")


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_earns_nothing_and_leaves_nothing(played, name):
    outcome = played.outcomes[name]
    assert outcome.points == 0
    assert 0 < len(outcome.reason) < 40_000
    assert outcome.traces == []


@pytest.mark.parametrize("lesson", ground.LESSONS)
def test_honest_student_in_the_same_class_earns_everything(played, lesson):
    assert played.outcomes[lesson].points == total(lesson)


def test_nothing_is_left_behind(played):
    assert played.report["traces"] == []


def test_the_run_ends_well_and_the_grader_stays_small(played):
    # What has no name that may be printed is told of; all others have a score and a reason.
    (told,) = re.findall(r"^not graded: .*", played.output, re.MULTILINE)
    assert told.startswith(f"not graded: class/submitted/{ours.NAMELESS}/{BASIC}/")
    assert "lies where no work is looked for" in told
    assert (played.report["status"], played.faults) == (1, [])
    assert played.report["peak_mib"] < 2000


def test_nothing_of_a_student_is_printed_on_the_graders_terminal(played):
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", played.output)
    assert "correct." not in played.output
    assert "attack-" not in played.output


def test_reasons_and_graded_notebooks_hold_no_control_characters(played):
    course = played.folder / "course" / "class" / "autograded"
    paths = [*course.glob("unprintable_messages/*/*.ipynb"), *course.glob("unprintable_*/*/*.json")]
    assert len(paths) > 1
    for path in paths:
        written = "".join(_strings(json.loads(path.read_text(encoding="utf-8"))))
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", written)


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def test_feedback_runs_no_script_of_the_students(played):
    student = "script_in_the_feedback"
    course = played.folder / "course"
    ground.nbgrader(course, "generate_feedback", BASIC, "--student", student)
    page = (course / "class" / "feedback" / student / BASIC / f"{BASIC}.html").read_text()
    assert "document.title" in page  # shown, as the text that it is
    assert not re.search(r"<script[^>]*>\s*document\.title", page)
    assert not re.search(r"<img[^>]+onerror", page)
    assert "javascript:1" not in re.findall(r'href="([^"]*)"', page)


def test_canary_what_is_handed_out_would_answer_the_exercise():
    space = {"__name__": "__main__"}
    exec(READY_MADE, space)
    answer = LocalAnswer(space["CachedAttention"])
    assert run_check(registry.find("CachedAttention"), answer, 11) is None


@pytest.fixture(scope="module")
def without_walls(tmp_path_factory):
    chosen = [ATTACKS[name] for name in NEEDS_WALLS]
    # Two at a time: the thief on the disk needs his seconds.
    return ours.play(chosen, tmp_path_factory.mktemp("off") / "ours", sandbox="off", workers=2)


@pytest.mark.parametrize("name", NEEDS_WALLS)
def test_canary_without_the_sandbox_the_attack_succeeds(without_walls, name):
    assert without_walls[0][name].points == total(BASIC)
