"""A class of one lesson with hand-ins damaged in every way, graded in one run."""

import re

import pytest

from autograder.building.lesson import find, read
from autograder.grading.classroom import sample_class
from autograder.grading.notebook import records
from tests.autograder.attacks import ground, ours
from tests.autograder.attacks.paper import KERNELS
from tests.autograder.mixed_class import CASES, EVERYTHING, solved_paper
from tests.needs import needs

pytestmark = [
    pytest.mark.serial,
    pytest.mark.long,
    needs("bubblewrap"),
]
WORKERS = 3  # some wait for a limit, and keep no core busy; honest work must not be too slow
POINTS = read(find([KERNELS])[0]).exercises
TOTAL = sum(POINTS.values())


class Class:
    """The class, graded in one run."""

    def __init__(self, folder):
        self.course = ground.make_course(folder)
        self.traps = ground.make_traps(self.course)
        for one in CASES.values():
            self._write(one.name, one.build)
        self._write("right", lambda paper: None)
        self._write("blank", self._blank)
        self.report = ours.grade(folder, self.traps, "required", WORKERS, "hurry")
        self.output = (folder / "output.txt").read_text(errors="replace")
        self.scores = ground.scores(self.course, KERNELS)

    def _write(self, student, build):
        paper = solved_paper(student, self.traps)
        build(paper)
        paper.write(self.course / "class" / "submitted" / student / KERNELS)

    def _blank(self, paper):
        paper.notebook = sample_class.blank(KERNELS)

    def result(self, student):
        """The reasons kept for a student."""
        return records.load(self.course / "class" / "autograded" / student / KERNELS)

    def lost(self, student):
        """Reason by exercise, where points were lost; white space made single."""
        return {
            one.name: " ".join(one.reason.split())
            for one in self.result(student).exercises
            if one.score < one.max
        }


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    made = Class(tmp_path_factory.mktemp("mixed"))
    (told,) = re.findall(r"^not graded: .*", made.output, re.MULTILINE)
    assert f"renamed/{KERNELS}/" in told and "lies where no work is looked for" in told
    assert made.report["status"] == 1, made.output[-2000:]
    return made


def test_every_student_has_a_score_and_a_reason_from_one_run(graded):
    assert set(graded.scores) == {*CASES, "right", "blank"}
    for student, score in graded.scores.items():
        result = graded.result(student)
        assert result.complete, student
        assert (result.score, result.max) == (score, TOTAL), student
        assert "the grader is to blame" not in str(result), student
    assert re.search(rf"^{len(graded.scores)} graded in [\d.]+ s", graded.output, re.MULTILINE)
    assert (graded.scores["right"], graded.scores["blank"]) == (TOTAL, 0)
    assert graded.lost("blank").keys() == POINTS.keys()
    assert all("nothing here yet" in reason for reason in graded.lost("blank").values())


@pytest.mark.parametrize("name", CASES)
def test_damage_costs_what_it_must_and_has_a_sentence(graded, name):
    one, lost = CASES[name], graded.lost(name)
    if one.lost == EVERYTHING:
        assert graded.scores[name] == 0
        assert all(one.words in reason for reason in lost.values()), lost
    else:
        assert list(lost) == [one.lost] * bool(one.lost), lost
        assert one.words in lost.get(one.lost, "")
