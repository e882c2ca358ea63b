"""Points in proportion: what a right answer without care earns, in every place that says so."""

import nbformat
import pytest

from autograder import CourseError, settings
from autograder.grading.classroom import sample_class
from autograder.settings import Care
from tests.autograder.small_class import SLUG, grade, hand_in, kept, make_course, scores

SEEDED = """\
def softmax(scores, dim):
    torch.manual_seed(0)
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
"""


def hand_in_careless(course, student):
    notebook = sample_class.handed_in(SLUG, {"softmax": SEEDED})
    sample_class.submit(notebook, course, student, SLUG)


def test_a_careless_answer_earns_all_but_its_share(tmp_path):
    course = make_course(tmp_path)
    hand_in(course, "ada")
    hand_in_careless(course, "ben")
    grade(course)
    points = {one.name: one.max for one in kept(course, "ben").exercises}
    assert scores(course) == {"ada": 5, "ben": 5 - 0.25 * points["softmax"]}
    (found,) = (one for one in kept(course, "ben").exercises if one.score < one.max)
    assert (found.name, found.is_careless) == ("softmax", True)
    assert found.reason.startswith("softmax: right. One thing to mend: ")
    notebook = nbformat.read(course / "class" / "autograded" / "ben" / SLUG / f"{SLUG}.ipynb", 4)
    (cell,) = (
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "check_softmax"
    )
    assert [one.output_type for one in cell.outputs] == ["stream", "execute_result"]
    assert float(cell.outputs[1].data["text/plain"]) == 0.75 * points["softmax"]


def test_another_share_grades_again_and_says_why(tmp_path):
    course = make_course(tmp_path)
    hand_in_careless(course, "ben")
    grade(course)
    before = scores(course)["ben"]
    (course / "class" / "course.toml").write_text("care_share = 0\n")
    said, _, _ = grade(course)
    assert "graded again: what care costs changed" in said
    assert before < scores(course)["ben"] == 5
    assert "costs     nothing" in kept(course, "ben").exercises[1].reason


def test_what_no_text_has_asked_for_costs_a_class_that_says_so(tmp_path):
    course = make_course(tmp_path)
    of_the_cpu = SEEDED.replace(
        "    torch.manual_seed(0)\n", "    scores = scores + torch.zeros(1)\n"
    )
    notebook = sample_class.handed_in(SLUG, {"softmax": of_the_cpu})
    sample_class.submit(notebook, course, "ben", SLUG)
    grade(course)
    (found,) = (one for one in kept(course, "ben").exercises if one.name == "softmax")
    assert (scores(course)["ben"], found.reason) == (5, "")
    (course / "class" / "course.toml").write_text("care_everywhere = true\n")
    grade(course)
    assert scores(course)["ben"] == 5 - 0.25 * found.max


@pytest.mark.parametrize(
    "text", ["care_share = 2", "care_share = true", "care_share = 'a'", "care_everywhere = 1", "?"]
)
def test_a_share_that_is_none_is_refused_in_a_sentence(tmp_path, text):
    (tmp_path / "course.toml").write_text(text)
    with pytest.raises(CourseError, match=r"course\.toml"):
        settings.care(tmp_path)


def test_without_a_file_it_is_a_quarter(tmp_path):
    assert settings.care(tmp_path) == Care(0.25, everywhere=False)
    (tmp_path / "course.toml").write_text("# nothing yet\n")
    assert settings.care(tmp_path) == Care(0.25, everywhere=False)
