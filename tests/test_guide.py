"""The instructor's guide: its commands take a class from the roster to the report, in its order."""

import contextlib
import io
import re
import shlex
import zipfile
from unittest import mock

import nbformat
import pytest
from nbgrader.apps.nbgraderapp import NbGraderApp

from autograder import ROOT, lessons
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.running import pool
from tests.autograder.small_class import Here
from tests.needs import needs

GUIDE = ROOT / "autograder" / "README.md"
PAGES = (GUIDE, *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md"))
SLUG = "01_kernel_regression"
WRONG = "def soft_lookup(query, keys, values, temperature):\n    return values[0]"
# Their own tests run them on real lessons: each takes minutes or half of one.
ELSEWHERE = {
    "init": "tests/autograder/term/test_class.py",
    "release": "tests/autograder/releasing/test_release.py",
    "new-lesson": "tests/autograder/building/own/test_own_lesson.py",
    "build": "tests/autograder/building/own/test_own_lesson.py",
    "verify": "tests/autograder/building/gates/test_verify.py",
}
CANVAS = (
    f"Student,ID,SIS User ID,SIS Login ID,Section,{SLUG} (77)\r\n"
    "    Points Possible,,,,,{}\r\n"
    '"Lovelace, Ada",101,,ada,A,\r\n'
    '"Dent, Stu",102,,STUDENT,A,\r\n'
)
MOODLE = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,"
    "Grade can be changed,Last modified (grade),Feedback comments\r\n"
    "Participant 1,Ada Lovelace,ada@example.org,Submitted,,{},Yes,-,\r\n"
    "Participant 2,Stu Dent,stu@example.org,Submitted,,{},Yes,-,\r\n"
)


def commands(path=GUIDE):
    """The commands in a page's blocks for a shell: lists of words."""
    blocks = re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with what an LMS gives: a roster, a download and the files to fill in."""
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / SLUG).symlink_to(ROOT / "solutions" / SLUG)
    (tmp_path / "students.csv").write_text(
        "id,last_name,first_name,email,lms_user_id\n"
        "ada,Lovelace,Ada,ada@example.org,101\nSTUDENT,Dent,Stu,stu@example.org,102\n"
    )
    answers = {"ada": None, "STUDENT": {"soft_lookup": WRONG}}
    names = {"ada": "lovelaceada_101_9001", "STUDENT": "dentstu_102_9002"}
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        for student, given in answers.items():
            text = nbformat.writes(sample_class.handed_in(SLUG, given))
            archive.writestr(f"{names[student]}_{SLUG}.ipynb", text)
    master = nbformat.read(lessons.notebook(ROOT, "solutions", SLUG), as_version=4)
    cells = [cell.metadata.get("nbgrader", {}) for cell in master.cells]
    points = sum(cell.get("points", 0) for cell in cells if cell.get("grade"))
    (tmp_path / "canvas_export.csv").write_bytes(CANVAS.format(points).encode())
    (tmp_path / "worksheet.csv").write_bytes(MOODLE.format(points, points).encode())
    (tmp_path / "nbgrader_config.py").write_text((ROOT / "nbgrader_config.py").read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words):
    """Run ``autograder`` in this process; return (exit status, what it printed)."""
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        mock.patch.object(pool, "Pool", lambda count: Here(1)),
    ):
        return cli.main(words), out.getvalue()


@pytest.mark.long
@needs("bubblewrap")
def test_the_commands_of_the_guide_take_a_class_through_a_term(course):
    asked = commands()
    assert {words[0] for words in asked} == {"autograder"}
    for _, *words in asked:
        if words[0] in ELSEWHERE:
            cli.parser(words[0]).parse_args(words)
            continue
        status, said = run(words)
        assert status == 0, f"autograder {' '.join(words)}\n{said}"
    written = ["upload.csv", "grades.csv", "feedback.zip", "class/report/class.html"]
    written += ["class/gradebook.db"]
    written += [f"feedback/{student}_{SLUG}.html" for student in ("ada", "STUDENT")]
    assert [name for name in written if not (course / name).is_file()] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_named_on_a_page_is_there(path):
    named = re.findall(r"`autograder ([a-z-]+)", path.read_text(encoding="utf-8"))
    blocks = re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    named += re.findall(r"^autograder ([a-z-]+)", "".join(blocks), re.M)
    assert [name for name in named if name not in cli.MODULES] == []
    nbgraders = re.findall(r"`nbgrader ([a-z_]+)", path.read_text(encoding="utf-8"))
    assert [name for name in nbgraders if name not in NbGraderApp.subcommands] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    away = [link for link in links if "://" not in link]
    assert [link for link in away if not (path.parent / link).exists()] == []
