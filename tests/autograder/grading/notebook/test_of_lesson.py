"""Whose lesson a notebook is: what it holds decides."""

import nbformat

from autograder import ROOT, cell_metadata
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.notebook.records import read_notebook
from autograder.grading.notebook.submission import defined, is_of, parse
from tests.autograder.small_class import SLUG, grade, hand_in, kept, make_course

OTHER = "01_kernel_regression"


def notebook(*sources):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in sources])


def master(slug):
    return read_notebook(ROOT / f"solutions/{slug}/{slug}.ipynb")


def test_a_lessons_cells_or_functions_make_a_notebook_its_own():
    assert is_of(parse(sample_class.blank(SLUG)), master(SLUG))
    assert not is_of(parse(sample_class.blank(SLUG)), master(OTHER))
    ours = parse(notebook("import torch", "def softmax(scores, dim):\n    return scores"))
    assert defined(ours) == {"softmax"}
    assert is_of(ours, master(SLUG)) and not is_of(ours, master(OTHER))
    assert not is_of(parse(notebook("# def softmax(scores):")), master(SLUG))


def test_another_notebook_is_told_apart_from_an_empty_one(tmp_path):
    course = make_course(tmp_path)
    hand_in(course, "ada")
    others = {
        "notes": (notebook('print("my notes")'), "this notebook has none of the lesson's cells or"),
        "other": (sample_class.blank(OTHER), f"functions: it says that it is of {OTHER}"),
        "none": (notebook(), "the notebook is empty"),
        "blank": (notebook(" ", ""), "the notebook is empty"),
    }
    for student, (handed, _) in others.items():
        sample_class.submit(handed, course, student, SLUG)
    said, err, status = grade(course, check=False)
    assert (status, kept(course, "ada").score) == (1, 5)
    for student, (_, why) in others.items():
        assert why in kept(course, student).problem and why in said
        assert all(why in one.reason for one in kept(course, student).exercises)
        strange = student in ("notes", "other")
        assert (f"0 points: {student}, {SLUG}: " in err) == strange


def test_an_answer_below_its_check_is_told_where_it_belongs(tmp_path, capsys):
    course = make_course(tmp_path)
    handed = sample_class.handed_in(SLUG, {"softmax": stub("softmax")})
    answer = sample_class.handed_in(SLUG).cells
    right = next(cell for cell in answer if cell_metadata.grade_id(cell) == "softmax").source
    place = next(
        n for n, c in enumerate(handed.cells) if cell_metadata.grade_id(c) == "check_softmax"
    )
    handed.cells.insert(place + 1, nbformat.v4.new_code_cell(right))
    path = sample_class.submit(handed, course, "ada", SLUG)
    grade(course)
    reason = next(one.reason for one in kept(course, "ada").exercises if one.name == "softmax")
    assert "nothing here yet" in reason and "a definition below the check" in reason
    assert cli.main(["check", str(path)]) == 1
    assert "a definition below the check" in capsys.readouterr().out


def stub(name):
    return next(
        cell for cell in sample_class.blank(SLUG).cells if cell_metadata.grade_id(cell) == name
    ).source


def test_answers_in_a_notebook_of_ones_own_are_graded(tmp_path):
    course = make_course(tmp_path)
    ours = [cell.source for cell in sample_class.solved(SLUG).cells if cell.cell_type == "code"]
    sample_class.submit(notebook(*ours), course, "ada", SLUG)
    grade(course)
    assert not kept(course, "ada").problem
