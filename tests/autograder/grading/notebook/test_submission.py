"""Reading a submission, whatever was handed in, and never more than a plain file of it."""

import json
import os

import pytest
from nbgrader.apps import NbGraderAPI

from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.nbgrader_steps import TolerantExporter
from autograder.grading.notebook.submission import parse, read, read_bytes
from autograder.grading.running.result_dependencies import Dependencies
from tests.autograder.small_class import hand_in, kept, make_course, scores

SLUG = "00_getting_started"
NO_CHOICE = "there is no a.ipynb, only a (1).ipynb: it must keep its name"


def folder(path):
    path.mkdir()


def device(path):
    path.symlink_to("/dev/zero")


def link(path):
    path.symlink_to(__file__)


def flood(path):
    path.touch()
    os.truncate(path, 20 * 2**30)


class TestReading:
    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"", "is empty"),
            (b"  \n", "is empty"),
            (b"{not json", "not valid JSON"),
            (b"\x80\x81", "not valid JSON"),
            (b"[" * 10**5, "not valid JSON"),
            (b"[1, 2]", "not a notebook"),
            (b'{"a": 1}', "not a notebook"),
            (b'{"nbformat": 4}', "no list of cells"),
            (b'{"nbformat": 4, "cells": {}}', "no list of cells"),
            (b'{"nbformat": 9, "cells": []}', "format 9"),
            (b'{"nbformat": 3, "worksheets": 7}', "save it anew with JupyterLab"),
            (b'{"nbformat": 4, "cells": [], "metadata": {"kernelspec": {"language": "R"}}}', "R"),
        ],
    )
    def test_anything_but_a_notebook_has_a_sentence(self, tmp_path, content, sentence):
        path = tmp_path / "a.ipynb"
        path.write_bytes(content)
        submission = read(path)
        assert sentence in submission.problem
        assert not submission.cells

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    @pytest.mark.parametrize("kernel", ["null", '{"language": "python", "name": "conda-env-x"}'])
    def test_what_an_editor_writes_is_read(self, tmp_path, encoding, kernel):
        about = (
            f'"metadata": {{"kernelspec": {kernel}}}' if kernel != "null" else '"metadata": null'
        )
        cell = '{"cell_type": "code", "source": "x = 1\\r\\n"}'
        text = f'{{"nbformat": 4, {about}, "cells": [{cell}]}}'
        (tmp_path / "a.ipynb").write_bytes(text.encode(encoding))
        found = read(tmp_path / "a.ipynb")
        assert found.problem == "" and [one.source.strip() for one in found.cells] == ["x = 1"]

    @pytest.mark.parametrize(
        ("make", "sentence"),
        [
            (lambda path: None, "there is no a.ipynb in the submission"),
            (lambda path: path.with_name("final.ipynb").touch(), "only final.ipynb: it must keep"),
            (link, "a.ipynb is not a plain file"),
            (os.mkfifo, "a.ipynb is not a plain file"),
            (flood, "a.ipynb is larger than 50 MiB"),
        ],
    )
    def test_what_is_no_notebook_of_that_name_has_a_sentence(self, tmp_path, make, sentence):
        make(tmp_path / "a.ipynb")
        assert sentence in read(tmp_path / "a.ipynb").problem

    def test_a_sole_notebook_that_a_browser_renamed_is_read(self, tmp_path):
        for name in ("a (1).ipynb", "a-Copy1.ipynb"):
            (tmp_path / name).write_text('{"nbformat": 4, "cells": []}')
            problem = read(tmp_path / "a.ipynb").problem
            assert problem == ("" if name == "a (1).ipynb" else NO_CHOICE)

    def test_a_link_to_the_folder_is_not_followed(self, tmp_path):
        (tmp_path / "solutions").mkdir()
        (tmp_path / "solutions" / "a.ipynb").write_text('{"nbformat": 4, "cells": []}')
        (tmp_path / "ada").symlink_to(tmp_path / "solutions")
        assert "link" in read(tmp_path / "ada" / "a.ipynb", own_folders=1).problem

    def test_odd_cells_are_dropped(self):
        odd = [7, None, {}, {"cell_type": "spaceship"}, {"cell_type": "code", "source": 3}]
        odd += [{"cell_type": "code", "source": ["a", 1, "b"], "metadata": []}]
        assert [cell.source for cell in parse({"nbformat": 4, "cells": odd}).cells] == ["ab"]

    def test_too_much_text_is_not_graded(self):
        cells = [{"cell_type": "code", "source": "x" * 300_000}] * 7
        assert "2,000,000 characters" in parse({"nbformat": 4, "cells": cells}).problem

    def test_a_name_that_is_no_text_is_shown_without_it(self, tmp_path):
        (tmp_path / os.fsdecode(b"\x1b[2J\xff.ipynb")).write_text("{}")
        problem = read(tmp_path / "a.ipynb").problem
        assert problem == "there is no a.ipynb, only [2J?.ipynb: it must keep its name"
        kernel = {"kernelspec": {"language": "R", "display_name": "\ud800\x07"}}
        notebook = {"nbformat": 4, "cells": [], "metadata": kernel}
        assert parse(notebook).problem == "the notebook's kernel is ?, not Python"

    def test_what_trips_over_a_folder_is_a_problem_of_that_submission(self, tmp_path, monkeypatch):
        def trip(path, limit):
            raise PermissionError(path)

        monkeypatch.setattr("autograder.grading.notebook.submission.read_bytes", trip)
        assert read(tmp_path / "a.ipynb").problem == (
            "the submission cannot be read: PermissionError"
        )


ODD = pytest.mark.parametrize("make", [folder, os.mkfifo, device, link, flood])


@ODD
def test_only_a_plain_file_of_a_decent_size_is_ever_opened(tmp_path, make):
    make(tmp_path / "x")
    assert read_bytes(tmp_path / "x", 10**6) is None


@ODD
def test_the_marks_of_a_submission_are_made_from_plain_files_only(tmp_path, make):
    course, one = Course(tmp_path), Handed(SLUG, "ada")
    beside = course.submitted(one).parent
    beside.mkdir(parents=True)
    make(course.submitted(one))
    make(beside / "timestamp.txt")
    assert course.timestamp(one) == ""
    assert not read(course.submitted(one)).cells
    assert Dependencies(course, SLUG, {"cells": []}).of(one)["submission"]


@ODD
def test_nbgraders_exporter_reads_an_empty_notebook_in_place_of_an_odd_file(tmp_path, make):
    make(tmp_path / "a.ipynb")
    text, _ = TolerantExporter().from_filename(str(tmp_path / "a.ipynb"))
    assert json.loads(text)["cells"] == []


@pytest.mark.parametrize("name", [os.fsdecode(b"\xff"), "a\u202eb", "<img src=x onerror=a>"])
def test_a_folder_whose_name_is_no_text_costs_nobody_else(tmp_path, name):
    (tmp_path / "solutions" / SLUG).mkdir(parents=True)
    (tmp_path / "solutions" / SLUG / f"{SLUG}.ipynb").write_text("{}")
    (tmp_path / "class" / "submitted" / name / SLUG).mkdir(parents=True)
    (tmp_path / "class" / "submitted" / "ada" / SLUG).mkdir(parents=True)
    assert Course(tmp_path).submissions() == [Handed(SLUG, "ada")]


@pytest.mark.usefixtures("nbgraders_steps_here")
def test_nbgraders_autograde_grades_where_its_own_configuration_says(tmp_path):
    course = make_course(tmp_path)
    hand_in(course, "ada")
    (course / "class" / "submitted").rename(course / "handed")
    config = Course(course).config
    config.CourseDirectory.submitted_directory = "handed"
    done = NbGraderAPI(config=config).autograde(SLUG, "*")
    assert done["success"], done["log"]
    assert scores(course) == {"ada": 5}


@pytest.mark.usefixtures("nbgraders_steps_here")
@pytest.mark.parametrize("odd", [b"soon", None])
def test_nbgraders_autograde_needs_no_step_before_it_and_no_readable_time(tmp_path, odd):
    course = make_course(tmp_path)
    (course / "class" / "gradebook.db").unlink()
    hand_in(course, "ada", "ben")
    beside = course / "class" / "submitted" / "ada" / SLUG
    (beside / "more.zip").write_bytes(b"PK")
    (beside / f"{SLUG}.ipynb").write_text("no notebook")
    if odd is None:
        (beside / "timestamp.txt").unlink(missing_ok=True)
        (beside / "timestamp.txt").mkdir()
        (beside / "timestamp.txt" / "x").write_text("")
    else:
        (beside / "timestamp.txt").write_bytes(odd)
    done = NbGraderAPI(config=Course(course).config).autograde(SLUG, "*")
    assert done["success"], done["log"]
    assert scores(course) == {"ada": 0, "ben": 5}
    assert "not valid JSON" in kept(course, "ada").problem and kept(course, "ada").complete
    assert NbGraderAPI(config=Course(course).config).generate_feedback(SLUG)["success"]
    page = Course(course).feedback(Handed(SLUG, "ada")).read_text(encoding="utf-8")
    assert "not valid JSON" in page
