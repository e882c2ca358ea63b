"""A stopped --regrade goes on where it was, and one that ended begins anew."""

import pytest

from autograder.grading.classroom.folders import Course
from autograder.grading.running.regrading import MARKER, Regrading

ALL, ONE = [[], []], [[], ["ada"]]


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path)


def test_it_goes_on_until_it_has_ended(course):
    first = Regrading(course, ALL)
    again = Regrading(course, ALL)
    assert (first.resumed, again.resumed, again.name) == (False, True, first.name)
    again.end()
    assert not (course.root / "class" / MARKER).exists()
    after = Regrading(course, ALL)
    assert not after.resumed
    assert after.name > first.name


def test_another_choice_is_another_run(course):
    first = Regrading(course, ALL)
    other = Regrading(course, ONE)
    assert not other.resumed
    assert other.name != first.name


@pytest.mark.parametrize("content", ["", "{", "[1]", "null"])
def test_a_damaged_file_begins_anew(course, content):
    (course.root / "class").mkdir(exist_ok=True)
    (course.root / "class" / MARKER).write_text(content)
    assert not Regrading(course, ALL).resumed
    assert Regrading(course, ALL).resumed
