"""Pages of feedback follow every grading, and can be released: lesson 00, nbgrader's own steps."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import notebook_hash

from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.gradebook import Book
from autograder.grading.notebook import records
from autograder.grading.running.batch import Batch
from tests.autograder.small_class import SLUG, WRONG, configure, hand_in, make_course, run

NBGRADER = str(Path(sys.executable).with_name("nbgrader"))
SECRETS = {"early": "5" * 128, "late": "7" * 128}


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A course whose gradebook knows the lesson: making one takes as long as a test."""
    made = make_course(tmp_path_factory.mktemp("course"))
    configure(made)
    with Book(Course(made)) as book:
        book.register(SLUG)
    return made


@pytest.fixture
def course(empty, tmp_path):
    return shutil.copytree(empty, tmp_path / "course", symlinks=True)


@pytest.fixture
def api(course, nbgraders_steps_here):
    return NbGraderAPI(config=Course(course).config)


def hand_in_blank(course, student="ada"):
    sample_class.submit(sample_class.blank(SLUG), course, student, SLUG)


def grade(course, regrade=False):
    """What ``autograder grade`` does, in this process; returns who was graded."""
    where = Course(course)
    with Book(where) as book:
        made = Batch(where, book, where.submissions(), "auto", regrade=regrade)
        return [made.keep(one, run(task)).student for one, task in made.tasks()]


def succeed(outcome):
    assert outcome["success"], outcome


def page(course, student="ada"):
    return course / "class" / "feedback" / student / SLUG / f"{SLUG}.html"


def shown(path):
    """The score at the top of a page."""
    return re.search(r"Score: ([\d.]+ / [\d.]+)", path.read_text())[1]


def released(course):
    return sorted((course / "class" / "exchange" / "attention" / "feedback").glob("*.html"))


def collect(course, api, when, kind, notebook, student="ada"):
    """Collect from the exchange what ``nbgrader submit`` put there at the time ``when``."""
    inbound = course / "class" / "exchange" / "attention" / "inbound"
    sample_class.submit(notebook, course / kind, student, SLUG)
    folder = course / kind / "class" / "submitted" / student / SLUG
    (folder / "timestamp.txt").write_text(when)
    (folder / "submission_secret.txt").write_text(SECRETS[kind])
    inbound.mkdir(parents=True, exist_ok=True)
    folder.rename(inbound / f"{student}+{SLUG}+{when}+{kind}")
    succeed(api.collect(SLUG, update=True))


@pytest.mark.parametrize("command", ["autograder grade", "nbgrader autograde"])
def test_collected_work_is_released_to_whoever_submitted_it(course, api, command):
    collect(course, api, "2020-01-01 00:00:00.000000 UTC", "early", sample_class.blank(SLUG))
    grade(course)
    succeed(api.generate_feedback(SLUG))
    assert grade(course, regrade=True) == ["ada"]
    # Handed in before the gradings above, collected after them.
    collect(course, api, "2020-01-01 00:00:01.000000 UTC", "late", sample_class.handed_in(SLUG))
    if command == "autograder grade":
        assert grade(course) == ["ada"]
    else:
        succeed(api.autograde(SLUG, "ada", force=False))
    succeed(api.generate_feedback(SLUG))
    succeed(api.release_feedback(SLUG))
    assert shown(page(course)) == "5 / 5"
    name = notebook_hash(secret=SECRETS["late"], notebook_id=SLUG)
    assert [path.stem for path in released(course)] == [name]
    with Gradebook(Course(course).db_url, "attention") as book:
        found = book.find_submission(SLUG, "ada")
        assert (found.score, found.timestamp.isoformat()) == (5, "2020-01-01T00:00:01")


def test_a_score_changed_by_hand_reaches_the_page(course):
    hand_in(course, "ada", answers=WRONG)
    grade(course)
    config = Course(course).config
    config.CourseDirectory.assignment_id = SLUG
    GenerateFeedback(coursedir=CourseDirectory(config=config), config=config).start()
    assert shown(page(course)) == "3 / 5"
    with Gradebook(Course(course).db_url, "attention") as book:
        book.find_grade("check_softmax", SLUG, SLUG, "ada").manual_score = 1.5
        book.db.commit()
    GenerateFeedback(coursedir=CourseDirectory(config=config), config=config).start()
    assert shown(page(course)) == "4.5 / 5"


def test_what_an_earlier_grading_left_out_is_written_without_grading_again(course, api):
    hand_in(course, "ada")
    grade(course)
    folder = course / "class" / "autograded" / "ada" / SLUG
    (folder / "timestamp.txt").unlink()
    (folder / "submission_secret.txt").unlink()
    assert grade(course) == []
    succeed(api.generate_feedback(SLUG))
    succeed(api.release_feedback(SLUG))
    assert len(released(course)) == 1


class TestCompanions:
    @pytest.fixture
    def folders(self, tmp_path):
        made = [tmp_path / kind / "ada" / SLUG for kind in ("submitted", "autograded", "feedback")]
        for folder in made:
            folder.mkdir(parents=True)
        return made

    def written(self, folders):
        records.write_companions(*folders)
        return tuple((folders[1] / name).read_text() for name in ("timestamp.txt", records.SECRET))

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            (b"2030-01-01T02:00:00+02:00", "2030-01-01 00:00:00.000000 UTC"),
            (b"", "1970-01-01 00:00:00.000000 UTC"),
            (b"\xff yesterday", "1970-01-01 00:00:00.000000 UTC"),
        ],
    )
    def test_the_time_is_that_of_submission_or_before_every_other(self, folders, said, expected):
        (folders[0] / "timestamp.txt").write_bytes(said)
        assert self.written(folders)[0] == expected

    def test_the_secret_is_the_submissions_or_the_pages_or_a_new_one(self, folders):
        submitted, _, feedback = folders
        (submitted / records.SECRET).write_text("ada")  # it could be guessed
        new = self.written(folders)[1]
        assert re.fullmatch(r"[0-9a-f]{128}", new)
        assert self.written(folders)[1] != new
        (feedback / records.SECRET).write_text(SECRETS["early"])
        assert self.written(folders)[1] == SECRETS["early"]
        (submitted / records.SECRET).write_text(SECRETS["late"])
        assert self.written(folders)[1] == SECRETS["late"]

    def test_a_link_to_another_submission_does_not_give_its_secret(self, folders, tmp_path):
        (folders[0] / records.SECRET).write_text(SECRETS["late"])
        link = tmp_path / "submitted" / "eve" / SLUG
        link.parent.mkdir()
        link.symlink_to(folders[0])
        assert self.written([link, *folders[1:]])[1] != SECRETS["late"]
