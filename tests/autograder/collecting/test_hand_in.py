"""What the names of files that came back say, as an LMS, a mail or a browser writes them."""

from pathlib import Path

import pytest

from autograder import CourseError
from autograder.collecting import hand_in
from autograder.collecting.roster import Roster, Student
from autograder.grading.notebook.filenames import original
from autograder.term.course_file import Choices

SLUGS = ["01_kernel_regression", "08_transformer", "09_transformer_blocks"]
ADA = Student("ada", "Ada", "Lovelace", "ada.lovelace@uni.example", "101")
ZOE = Student("zm7", "Zoë", "Müller-Ødegård", "zoe@uni.example", "102")
ANNA, OTHER = Student("anna1", "Anna", "Schmidt"), Student("anna2", "Anna", "Schmidt")
ROSTER = Roster([ADA, ZOE, ANNA, OTHER])
KERNELS = "01_kernel_regression.ipynb"


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("a.ipynb", ()),
        ("a (1).ipynb", (1,)),
        ("a(12).ipynb", (12,)),
        ("a-2.ipynb", (2,)),
        ("a-2 (1).ipynb", (2, 1)),
        ("a-Copy1.ipynb", (1,)),
        ("a.ipynb.txt", ()),
        ("a.IPYNB.json", ()),
    ],
)
def test_a_copy_has_the_name_that_it_was_copied_from(name, numbers):
    assert original(name) == ("a", numbers)


@pytest.mark.parametrize("name", ["01 (final).ipynb", "2026-11-x.ipynb", "(1).ipynb", "a_2.ipynb"])
def test_other_names_stay(name):
    assert original(name)[1] == ()


def found(path, roster=ROSTER, named=None):
    """Whose a file is, in a class without groups."""
    clues = hand_in.read(tuple(path.split("/")), SLUGS, named and hand_in.pattern(named))
    judge = hand_in.Judge(SLUGS, SLUGS, None, roster, None, Choices(Path("course.toml"), {}))
    return judge._owner(clues, SLUGS[0])[0]


@pytest.mark.parametrize(
    "path",
    [
        f"lovelaceada_101_67890_{KERNELS}",
        "lovelaceada_LATE_101_67890_01_kernel_regression-2.ipynb",
        f"lovelaceada_999_67890_{KERNELS}",  # by name, where the number is not known
        f"Ada Lovelace_1234567_assignsubmission_file_/{KERNELS}",
        f"Ada Lovelace_1234567_assignsubmission_file_{KERNELS}",
        f"Ada Lovelace_1234567_assignsubmission_file/work/{KERNELS}",
        f"ada/{KERNELS}",
        f"ADA/01_kernel_regression/{KERNELS}",
        f"mails/ada.lovelace@uni.example/{KERNELS}",
        f"week 3/Lovelace, Ada/{KERNELS}",
        f"Ada_Lovelace.zip/lessons/{KERNELS}",
        f"ada_{KERNELS}",
        "01_kernel_regression_ada (1).ipynb",
        "01-kernel-regression ADA LOVELACE.ipynb",
        "ada_01_kernel_regression.zip/01_kernel_regression.ipynb",
        "ada.ipynb",
    ],
)
def test_the_student_is_found(path):
    assert found(path).id == "ada"


@pytest.mark.parametrize(
    "name", ["Zoë Müller-Ødegård", "zoe muller odegard", "Mueller-Odegard Zoe"]
)
def test_names_match_without_accents_in_either_order(name):
    assert found(f"{name}/{KERNELS}").id == "zm7"


def test_who_is_not_found_has_a_reason_with_the_nearest():
    assert found(f"Zoe Mueler-Odegard/{KERNELS}").why == (
        "no student of the roster is called Zoe Mueler-Odegard; nearest: zm7"
    )
    assert found(KERNELS).why == "its name does not say whose it is"


def test_two_of_one_name_and_two_in_one_folder_are_not_guessed():
    assert "anna1's or anna2's" in found(f"Anna Schmidt/{KERNELS}").why
    assert found(f"Anna Schmidt/anna2_{KERNELS}").id == "anna2"
    assert "ada's or zm7's" in found(f"ada/zm7_{KERNELS}").why
    assert "ada's or zm7's" in found(f"ada/x_102_55555_{KERNELS}").why  # a made-up name
    assert found(f"lovelaceada_101_55555_hw.zip/x_102_55556_{KERNELS}").id == "ada"
    # Canvas' number is one student's and the name another's
    assert "ada's or zm7's" in found(f"müllerødegårdzoë_101_5555_{KERNELS}").why


def test_an_id_counts_before_what_is_like_it():
    alike = Roster([Student("12"), Student("Ann"), Student("ann", lms_user_id="12")])
    assert [found(f"{one}/{KERNELS}", alike).id for one in ("12", "Ann", "ann", "ANN")] == [
        *("12", "Ann", "ann"),
        "",
    ]


MOODLE = "{}_5550003_assignsubmission_file_/" + KERNELS


@pytest.mark.parametrize("group", ["Group 2", "Anna-Lena's", "Mon-Tue g_3"])
def test_moodle_puts_a_groups_name_before_a_students(group):
    assert found(MOODLE.format(f"{group}-Ada Lovelace")).id == "ada"
    assert found(MOODLE.format(f"{group}-Zoë Müller-Ødegård")).id == "zm7"
    assert "anna1's or anna2's" in found(MOODLE.format(f"{group}-Anna Schmidt")).why
    assert found(MOODLE.format(f"{group}-Nobody Known")).why.startswith("no student")


def test_a_whole_name_with_a_dash_counts_before_its_end():
    tim, lena = Student("tim", "Anna-Lena", "Tim"), Student("lena", "Lena", "Tim")
    ids = Roster([tim, lena, Student("jones", "Bob", "Jones")])
    assert found(MOODLE.format("Anna-Lena Tim"), ids).id == "tim"
    assert found(MOODLE.format("g1-Anna-Lena Tim"), ids).id == "tim"
    assert found(MOODLE.format("Ann Smith-Jones"), ids).id == ""


def test_what_canvas_says_of_time_and_upload():
    late = hand_in.read(("lovelaceada_LATE_101_67890_01_kernel_regression-2.ipynb",), SLUGS)
    assert (late.late, late.number, late.upload, late.attempt) == (True, "101", 67890, (2,))
    assert hand_in.read((f"lovelaceada_101_67890_{KERNELS}",), SLUGS).late is False
    assert hand_in.read((f"ada_{KERNELS}",), SLUGS).late is None


def test_another_lms_is_an_entry(monkeypatch):
    monkeypatch.setitem(hand_in.LMS, "Ilias", r"(?P<id>\w+)#(?P<upload>\d+)\.ipynb")
    assert found("zm7#15.ipynb").id == "zm7"
    assert hand_in.read(("zm7#15.ipynb",), SLUGS).upload == 15


def test_moodles_number_of_the_assignment_tells_namesakes_apart():
    numbered = Roster([ADA, ANNA, OTHER])
    numbered.participants = {"5550003_assignsubmission": "anna2"}
    assert found(MOODLE.format("Anna Schmidt"), numbered).id == "anna2"
    assert found(MOODLE.format("g 1-Anna Schmidt"), numbered).id == "anna2"
    assert "ada's or anna2's" in found(MOODLE.format("Ada Lovelace"), numbered).why


def test_the_longest_name_of_a_lesson_counts():
    for name, slug in (("transformer blocks", SLUGS[2]), ("Transformer", SLUGS[1]), ("hw3", "")):
        assert hand_in.read(("ada", f"{name}.ipynb"), SLUGS).lesson == slug


def test_a_pattern_says_whose_a_file_is():
    named = r".*__(?P<student_id>\w+)__"
    assert found("zm7/x__ada__.ipynb", named=named).id == "ada"
    assert found(f"Lovelace.Ada-{KERNELS}", named=r"(?P<student_id>\w+\.\w+)").id == "ada"
    assert "does not say" in found(f"ada/{KERNELS}", named=named).why


@pytest.mark.parametrize(("text", "why"), [("(", "no regular expression"), ("(.*)", "says who")])
def test_a_pattern_that_cannot_serve(text, why):
    with pytest.raises(CourseError, match=why):
        hand_in.pattern(text)
