"""``autograder grade --preview`` says what a grading would change, and the grading does that."""

import contextlib
import json
import shutil
import sys

import pytest
from nbgrader.api import Gradebook

from autograder import ROOT, cell_metadata
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course
from autograder.grading.execution.assemble import error_output
from autograder.grading.execution.task import Graded, WorkFailed
from autograder.grading.notebook.result import Exercise, Result
from autograder.grading.running import result_dependencies
from tests.autograder import small_class
from tests.autograder.small_class import SLUG, make_course, scores

# What the checks refuse: a word in the answer to softmax or weighted_average. The check that was
# wrong refuses a right answer in MINE's words and takes a wrong one in THEIRS; it is mended.
MINE, THEIRS = "an odd and right way", "a wrong way"
REFUSED = {"wrong": MINE, "mended": THEIRS}
PENALTIES = """
from nbgrader.plugins import BasePlugin

class Tenth(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 0.1 * score
"""


class Checks:
    """The checks of a course, as a file of them would be: a version, and a digest of it.

    They stand for a worker, too: ``graded`` says how many notebooks were graded.
    """

    def __init__(self):
        self.version, self.graded, self.fail = "wrong", 0, False

    def run(self, task):
        notebook, exercises = json.loads(task.notebook), []
        sources = [cell["source"] for cell in notebook["cells"]]
        for cell in notebook["cells"]:
            if cell_metadata.run(cell) == cell_metadata.OUTSIDE:
                name, points = cell_metadata.exercise(cell), cell_metadata.points(cell)
                own = next(one for one in sources if one.startswith(f"def {name}("))
                wrong = REFUSED[self.version] in own
                said = f"{name}: the values are off by {self.graded}.\n  got 1"
                cell["outputs"] = [error_output("Wrong", [said])] if wrong else []
                exercises.append(Exercise(name, 0.0 if wrong else points, points, said * wrong))
        self.graded += 1
        if self.fail:
            return WorkFailed("the check divided by zero")
        result = Result("", task.lesson, exercises, "", 0.1, "none", task.limits.as_dict())
        result.care = task.care
        return Graded(json.dumps(notebook), result)


@contextlib.contextmanager
def in_place():
    """Let the grading use such checks."""
    made, digests = Checks(), result_dependencies.Dependencies.of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_class, "run", made.run)
        patch.setattr(
            result_dependencies.Dependencies,
            "of",
            lambda self, handed: {**digests(self, handed), "checks": made.version},
        )
        yield made


@pytest.fixture
def checks():
    with in_place() as made:
        yield made
    sys.modules.pop("penalties", None)  # the next course's is another one


def hand_in(course, student, *words, lesson=SLUG):
    """A hand-in whose answers to softmax, and to weighted_average, hold such words."""
    given = zip(("softmax", "weighted_average"), words, strict=False)
    cells = {name: f"def {name}(scores, dim):\n    return '{word}'" for name, word in given}
    sample_class.submit(sample_class.handed_in(lesson, cells), course, student, lesson)


def grade(course, *options, check=True):
    return small_class.grade(course, "--sandbox", "off", *options, check=check)


def change(course, how):
    with Gradebook(Course(course).db_url, "attention") as book:
        how(book)
        book.db.commit()


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory):
    """A graded class: ben gains by the mended check, cleo loses, dan does both, ada neither."""
    made = make_course(tmp_path_factory.mktemp("class"))
    hand_in(made, "ada")
    hand_in(made, "ben", MINE)
    hand_in(made, "cleo", THEIRS)
    hand_in(made, "dan", THEIRS, MINE)
    with in_place():
        grade(made)
    assert scores(made) == {"ada": 5, "ben": 3, "cleo": 5, "dan": 3}
    return made


@pytest.fixture
def course(graded_once, tmp_path, checks):
    """The same, after the check was mended."""
    checks.version = "mended"
    return shutil.copytree(graded_once, tmp_path / "course", symlinks=True)


AFTER = {"ada": 5, "ben": 5, "cleo": 3, "dan": 3}


def listing(course):
    """Every file of the course with its content."""
    return {path: path.read_bytes() for path in course.rglob("*") if path.is_file()}


def test_it_says_who_gains_and_who_loses_and_writes_nothing(course, checks):
    hand_in(course, "eve")
    before = listing(course)
    said, _, _ = grade(course, "--preview")
    assert listing(course) == before
    assert "4 of 5 would be graded again: the checks changed." in said
    assert "1 would be graded for the first time." in said
    assert "eve" not in said.partition("\n")[2]
    assert "gains: ben, 00_getting_started: 3 → 5 of 5\n    softmax: 0 → 2 of 2: right\n" in said
    assert "loses: cleo, 00_getting_started: 5 → 3 of 5\n    softmax: 2 → 0 of 2: the val" in said
    assert "keeps the total: dan, 00_getting_started: 3 → 3 of 5\n    softmax: 2 → 0 of 2" in said
    assert "Of 4 graded before, 1 would gain points, 1 would lose some, and 2 would keep" in said
    assert "ada" not in said.partition("\n")[2]
    assert said.index("gains: ben") < said.index("loses: cleo") < said.index("Of 4 graded")
    grade(course)
    assert scores(course) == {**AFTER, "eve": 5}
    said, _, _ = grade(course, "--preview")
    assert "5 of 5 are graded and unchanged: they would be skipped." in said
    assert "Nobody's points would change: 5 would keep theirs." in said


def test_only_the_chosen_are_previewed_and_a_regrading_is_not_begun(course, checks):
    grade(course)
    before, count = listing(course), checks.graded
    said, _, _ = grade(course, "--preview", "--regrade", "--student", "ben", "--lesson", "0")
    assert "1 of 1 would be graded again: --regrade asks for it." in said
    assert (listing(course), checks.graded) == (before, count + 1)
    assert "4 of 4 are graded and unchanged" in grade(course)[0]


def test_points_by_hand_stay_and_it_says_so(course):
    def by_hand(book):
        book.find_grade("check_softmax", SLUG, SLUG, "ben").manual_score = 1.5
        book.find_grade("check_softmax", SLUG, SLUG, "cleo").extra_credit = 0.5

    change(course, by_hand)
    said, _, _ = grade(course, "--preview")
    assert "ben" not in said.partition("\n")[2]
    assert (
        "cleo, 00_getting_started: 5.5 → 3.5 of 5\n    softmax: 2.5 → 0.5 of 2 (the check: 0)"
        in said
    )
    grade(course)
    assert scores(course) == {"ada": 5, "ben": 4.5, "cleo": 3.5, "dan": 3}


def test_late_penalties_are_those_of_the_grading(course):
    small_class.configure(course, 'c.AssignLatePenalties.plugin_class = "penalties.Tenth"')
    (course / "penalties.py").write_text(PENALTIES)
    change(course, lambda book: book.update_or_create_assignment(SLUG, duedate="2020-01-01"))
    stamp = course / "class" / "submitted" / "ben" / SLUG / "timestamp.txt"
    stamp.write_text("2020-01-02 12:00:00 UTC")
    before = listing(course)
    said, _, _ = grade(course, "--preview")
    assert listing(course).keys() - before.keys() <= {*course.glob("__pycache__/*")}
    assert "gains: ben, 00_getting_started: 3 → 4.5 of 5" in said
    assert "late penalty: 0 → 0.5" in said
    said, _, _ = grade(course)
    assert "ben                  5/5  counts as 4.5" in said


def test_what_cannot_be_graded_now_cannot_be_told(course, checks):
    checks.fail = True
    said, told, status = grade(course, "--preview", "--student", "ben", check=False)
    assert status == 1
    assert "nothing can be said of ben, 00_getting_started: this could not be graded" in told
    assert "loses" not in said
    assert scores(course)["ben"] == 3


def test_nobody_gains_by_a_grading_that_failed_before(course, checks):
    checks.fail = True
    grade(course, "--student", "ben", check=False)
    checks.fail = False
    said, _, status = grade(course, "--preview")
    assert (status, "ben" in said.partition("\n")[2]) == (0, False)
    assert "Of 3 graded before, 0 would gain" in said
    assert "1, whose last grading failed, would have points again." in said


class TestLessonThatChanged:
    """The solved notebook has other exercises, or other points, than the gradebook."""

    def master(self, course, how):
        link = course / "solutions" / SLUG
        link.unlink()
        shutil.copytree(ROOT / "solutions" / SLUG, link)
        path = link / f"{SLUG}.ipynb"
        notebook = json.loads(path.read_text())
        for cell in [cell for cell in notebook["cells"] if cell_metadata.is_check(cell)]:
            how(notebook, cell)
        path.write_text(json.dumps(notebook))

    @pytest.mark.parametrize(
        ("version", "told"),
        [
            ("mended", "gains: ada, 00_getting_started: 5 of 5 → 7 of 7\n    softmax: 2 → 4 of 4"),
            ("wrong", "keeps the total: ben, 00_getting_started: 3 of 5 → 3 of 7\n"),
        ],
    )
    def test_other_points_are_said(self, course, checks, version, told):
        def more(_, cell):
            if cell_metadata.exercise(cell) == "softmax":
                cell["metadata"]["nbgrader"]["points"] = 4

        checks.version = version
        self.master(course, more)
        assert told in grade(course, "--preview")[0]

    def test_a_lesson_with_other_exercises_stays_and_says_so(self, course):
        def fewer(notebook, cell):
            if cell_metadata.exercise(cell) == "softmax":
                notebook["cells"].remove(cell)

        self.master(course, fewer)
        before = listing(course)
        said, _, _ = grade(course, "--preview")
        assert "another than when the class handed it in: without softmax. Its graded" in said
        assert listing(course) == before
        said, _, _ = grade(course)
        assert "Of its submissions 4 were graded and stay so" in said
        hand_in(course, "eve")
        said, told, status = grade(course, check=False)
        assert status == 1 and "not graded: new submissions of 00_getting_started: 1" in told

    def test_cells_that_are_given_may_come_and_go(self, course):
        def given(notebook, cell):
            about = {**cell["metadata"]["nbgrader"], "grade": False, "grade_id": "given"}
            more = {**cell, "metadata": {"nbgrader": about}, "id": "given", "source": "x = 1"}
            if cell_metadata.exercise(cell) == "softmax":
                notebook["cells"].insert(1, more)

        original = (ROOT / "solutions" / SLUG / f"{SLUG}.ipynb").read_bytes()
        self.master(course, given)
        grade(course)
        assert scores(course) == AFTER
        (course / "solutions" / SLUG / f"{SLUG}.ipynb").write_bytes(original)
        hand_in(course, "eve")
        grade(course)
        assert scores(course) == {**AFTER, "eve": 5}
