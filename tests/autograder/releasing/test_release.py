"""`autograder release`: what students get works, names mistakes, and holds no solution."""

import errno
import io
import json
import os
import subprocess
import sys
import zipfile
from datetime import datetime, timedelta

import nbformat
import pytest
from nbgrader.api import Gradebook

from attention.provided.figures.moving import SCRIPTS
from autograder import ROOT, lessons
from autograder.building.lesson import find
from autograder.checking.toolbox import registry
from autograder.grading.classroom.folders import Course
from autograder.lessons import RELEASED
from autograder.releasing import release_files, solution_leaks, write
from autograder.releasing.release_files import ReleaseError, contents
from autograder.releasing.write import release
from tests.autograder.releasing import asked_there
from tests.waiting import LONG

SLUG = "05_scaled_dot_product_attention"
NAME = lessons.name_of(SLUG)
SLUGS = [path.stem for path in find()]


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    """A released folder of one lesson. The tests leave it as it is."""
    folder = tmp_path_factory.mktemp("released") / "course"
    release(["05"], folder)
    return folder


def run(folder, *arguments, status=0):
    """Run Python in the released folder, which hides the repository; returns what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert done.returncode == status, done.stderr[-2000:]
    return done.stdout


def check(folder, path, *options, status):
    return run(folder, "-m", "autograder.commands.cli", "check", *options, path, status=status)


EMPTY = b"PK\x05\x06" + bytes(18)  # an archive of nothing


@pytest.mark.parametrize("slug", SLUGS)
def test_no_release_holds_a_line_of_a_solution(slug, monkeypatch):
    monkeypatch.setattr("autograder.releasing.release_files.kept_recordings", lambda lesson: EMPTY)
    files = contents([slug])
    assert solution_leaks.leaks(files, [slug]) == []
    assert f"attention/{lessons.name_of(slug)}.py" not in files
    text = files[f"lessons/{slug}/{slug}.ipynb"].decode()
    assert ("autograder data" not in text) or "attention/commands/data.py" in files
    assert not [path for path in files if path.startswith(("solutions", "source", "tests"))]
    for later in SLUGS[SLUGS.index(slug) + 1 :]:
        names = (f"/{later}.", f"/{lessons.name_of(later)}.")
        code = [path for path in files if not path.startswith("data/")]
        assert not [path for path in code if any(name in path for name in names)]


def zipped(text):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("softmax/1", text)
    return stream.getvalue()


def test_one_line_of_a_solution_anywhere_stops_a_release(monkeypatch, tmp_path):
    monkeypatch.setattr("autograder.releasing.release_files.kept_recordings", lambda lesson: EMPTY)
    compact = next(
        text
        for text in solution_leaks.secrets([SLUG])
        if "k.transpose(-2,-1)" in text and "sqrt" in text
    )
    files = contents([SLUG])
    hidden_places = {
        "attention/provided/figures/plots.py": lambda old: old + f"\n{compact}\n".encode(),
        f"lessons/{SLUG}/{SLUG}.ipynb": lambda old: old.replace(
            b'"source": [', b'"source": [' + json.dumps(f"{compact}\n").encode() + b",", 1
        ),
        "README.md": lambda old: old + compact.encode(),
        f"autograder/recorded/{NAME}.zip": lambda old: zipped(compact),
    }
    for path, put in hidden_places.items():
        found = solution_leaks.leaks({**files, path: put(files[path])}, [SLUG])
        assert found and all(path in sentence for sentence in found)
    assert solution_leaks.leaks({"attention/__pycache__/softmax.pyc": b""}, [SLUG])

    monkeypatch.setattr(
        "autograder.releasing.write.contents",
        lambda names: {**files, "notes.txt": compact.encode()},
    )
    with pytest.raises(ReleaseError, match="notes.txt shows a line of"):
        release([SLUG], tmp_path / "course")
    assert not (tmp_path / "course").exists()


@pytest.mark.long
def test_solutions_cannot_be_imported_there(handed_out):
    names = [lessons.name_of(slug) for slug in SLUGS]
    tried = f"""
import importlib
for name in {names}:
    try:
        importlib.import_module("attention." + name)
        print(name)
    except ModuleNotFoundError as error:
        assert error.name == "attention." + name, error
"""
    assert run(handed_out, "-c", tried).split() == names[: SLUGS.index(SLUG)]


@pytest.mark.long
def test_a_students_copy_names_the_mistakes_that_the_repository_names(handed_out):
    items = [item for item in registry.of_lesson(NAME).values() if item.has_one_right_answer]
    told = json.loads(run(handed_out, asked_there.__file__, ROOT, NAME))
    for item in items:
        for answer in registry.stored_answers(item):
            failed, likely = told[f"{item.name}/{answer.name}"]
            assert failed == (answer.hint is not None or answer.is_careless), answer.name
            assert answer.is_careless or likely == (answer.hint or ""), answer.name


@pytest.mark.long
def test_check_works_there_with_and_without_json(handed_out, tmp_path):
    blank = handed_out / "lessons" / SLUG / f"{SLUG}.ipynb"
    said = check(handed_out, blank, status=1)
    assert "0 of 14" in said and "nothing here yet: write about 6 lines" in said

    notebook = nbformat.read(lessons.notebook(ROOT, "solutions", SLUG), as_version=4)
    wrong = "def attention_multiplications(B, T_q, T_k, d_k, d_v):\n    return 0"
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "attention_multiplications":
            cell.source = wrong
    path = tmp_path / f"{SLUG}.ipynb"
    nbformat.write(notebook, path)
    found = json.loads(check(handed_out, path, "--json", status=1))
    lost = [one for one in found["exercises"] if one["earned"] < one["points"]]
    assert [one["exercise"] for one in lost] == ["attention_multiplications"]
    assert {"what", "got"} <= lost[0].keys()
    assert found["points"] - found["earned"] == lost[0]["points"]


@pytest.mark.long
def test_what_passes_there_is_collected_without_the_library_of_the_lesson(handed_out, tmp_path):
    path, folder = tmp_path / f"{SLUG}.ipynb", tmp_path / "mine"
    notebook = nbformat.read(lessons.notebook(ROOT, "solutions", SLUG), as_version=4)
    helper = "def products(q, k):\n    return (q * k).sum(dim=1)"
    answer = (
        "def dot_product_statistics(q, k):\n    found = products(q, k)\n"
        "    return found.mean(), found.var(correction=0)"
    )
    for number, cell in enumerate(notebook.cells):
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "dot_product_statistics":
            cell.source = answer
            notebook.cells.insert(number, nbformat.v4.new_code_cell(helper))
            break
    nbformat.write(notebook, path)
    command = ("-m", "autograder.commands.cli", "collect", path, "--to", folder)
    said = run(handed_out, *command)
    assert "6 of 6 pieces are yours" in said
    text = (folder / f"{NAME}.py").read_text()
    assert helper in text and answer in text
    assert f"attention.{NAME}" not in text  # it is not there


@pytest.mark.long
def test_validate_accepts_a_solved_notebook_there(handed_out, tmp_path):
    path = tmp_path / f"{SLUG}.ipynb"
    path.write_bytes(lessons.notebook(ROOT, "solutions", SLUG).read_bytes())
    said = run(handed_out, "-m", "nbgrader", "validate", path)
    assert "Success" in said


def test_what_draws_moving_figures_brings_their_scripts(monkeypatch):
    module = ROOT / "attention" / "provided" / "figures" / "moving.py"
    monkeypatch.setattr(release_files, "kept_recordings", lambda lesson: EMPTY)
    monkeypatch.setattr(release_files, "_modules", lambda *_: {module})
    scripts = {f"attention/provided/figures/moving/{path.name}": path for path in SCRIPTS.iterdir()}
    files = contents(["05"])
    assert len(scripts) == 11 and "data/moving_figures.json" in files
    assert {name: files.get(name) for name in scripts} == {
        name: path.read_bytes() for name, path in scripts.items()
    }


def test_the_next_release_leaves_work_alone(monkeypatch, tmp_path):
    monkeypatch.setattr("autograder.releasing.release_files.kept_recordings", lambda lesson: EMPTY)
    folder = tmp_path / "course"
    release(["00"], folder)
    notebook = lessons.notebook(folder, "lessons", SLUGS[0])
    assert release(["00"], folder).kept == []
    notebook.write_text(notebook.read_text() + "\n")
    worked_in = notebook.read_bytes()
    assert release(["01"], folder).kept == []
    assert notebook.read_bytes() == worked_in
    assert release(["00"], folder).kept == [f"lessons/{SLUGS[0]}/{SLUGS[0]}.ipynb"]
    assert notebook.read_bytes() == worked_in
    assert lessons.notebook(folder, "lessons", SLUGS[1]).is_file()


def test_a_zip_is_the_same_each_time_and_opens_in_one_folder(monkeypatch, tmp_path):
    monkeypatch.setattr("autograder.releasing.release_files.kept_recordings", lambda lesson: EMPTY)
    for name in ("one.zip", "two.zip"):
        release(["00"], tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"attention-course"}


class FullDisk:
    """Writes so many files; then there is no room."""

    def __init__(self, room):
        self.room = room

    def write(self, path, content):
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        self.room -= 1
        path.write_bytes(content)


def test_wherever_a_full_disk_stops_a_release_the_same_command_goes_on(monkeypatch, tmp_path):
    course = ["README.md", "lessons/a/a.ipynb", f"{RELEASED}/a/a.ipynb", "x/y.py"]
    first, second = (dict.fromkeys(course, text) for text in (b"1", b"2"))
    monkeypatch.setattr(write.secrets, "leaks", lambda *_: [])
    monkeypatch.setattr(write.secrets, "secrets", lambda *_: [])
    for room in range(len(course)):
        folder = tmp_path / str(room)
        for files in (first, second):
            monkeypatch.setattr(write, "contents", lambda _, files=files: files)
            with monkeypatch.context() as patch:
                patch.setattr(write, "write_aside", FullDisk(room).write)
                with pytest.raises(OSError):
                    release(["00"], folder)
            assert release(["00"], folder).kept == []
            assert {path: (folder / path).read_bytes() for path in course} == files


def test_bad_requests_are_refused_in_a_sentence(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for names, place, words in (
        (["00"], tmp_path / "full", "holds no release"),
        (["00"], ROOT, "this repository's own"),
        (["00"], tmp_path / "no" / "such.zip", "there is no folder"),
        (["02", "03"], tmp_path / "two", "release 03_bahdanau_attention by itself, when they have"),
    ):
        with pytest.raises(ReleaseError, match=words):
            release(names, place)
    assert not (tmp_path / "two").exists()


def test_no_release_holds_solutions_of_a_lesson_that_is_still_open(monkeypatch, tmp_path):
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "course.toml").write_text(
        'timezone = "UTC"\n[lessons.00]\ndue = "2199-01-01 10:00"\n[lessons.01]'
    )
    monkeypatch.setattr("autograder.releasing.write.Course", lambda root: Course(tmp_path))
    monkeypatch.setattr("autograder.releasing.write.contents", lambda names: {})
    with pytest.raises(ReleaseError, match="00_getting_started is due .* or add --early"):
        release(["01"], tmp_path / "out")
    assert release(["01"], tmp_path / "out", early=True).lessons == ["01_kernel_regression"]
    assert release(["00"], tmp_path / "first").lessons == ["00_getting_started"]


def test_a_lesson_is_open_while_the_gradebook_gives_anybody_time(monkeypatch, tmp_path):
    course = Course(tmp_path)
    monkeypatch.setattr("autograder.releasing.write.Course", lambda root: course)
    monkeypatch.setattr("autograder.releasing.write.contents", lambda names: {})
    with Gradebook(course.db_url, course.id) as book:
        book.add_assignment("00_getting_started", duedate=datetime(2020, 1, 1))
        book.add_student("ada")
        assert release(["01"], tmp_path / "over").lessons == ["01_kernel_regression"]
        book.add_submission("00_getting_started", "ada", extension=timedelta(days=99_999))
        with pytest.raises(ReleaseError, match="00_getting_started is due .* for ada"):
            release(["01"], tmp_path / "out")
        (tmp_path / "solutions").symlink_to(ROOT / "solutions")
        (tmp_path / "class" / "submitted" / "ada" / "00_getting_started").mkdir(parents=True)
        assert release(["01"], tmp_path / "handed_in").lessons == ["01_kernel_regression"]
        book.update_or_create_assignment("00_getting_started", duedate=datetime(2199, 1, 1))
        with pytest.raises(ReleaseError, match=r"00_getting_started is due .*\d\d:\d\d \S+, and"):
            release(["01"], tmp_path / "out")
