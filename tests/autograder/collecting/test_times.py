"""When work came in: by the class's zone, on every machine, and by the dates of its file."""

import time
import zipfile
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from nbgrader.utils import parse_utc

from autograder.grading.notebook import records
from autograder.term.course_file import late_by
from tests.autograder.collecting.conftest import FIRST, notebook

CHOSEN = f"""
timezone = "Europe/Berlin"
[late]
percent_a_day = 10
[lessons.{FIRST}]
due = "2026-11-22 23:59"
"""
PLAIN, CANVAS, LATE = (
    "ada_00_mini.ipynb",
    "x_101_5555_00_mini.ipynb",
    "x_LATE_101_5555_00_mini.ipynb",
)


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/Los_Angeles"])
def machine(request, monkeypatch):
    """A machine of another zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def receive(root, run, tmp_path):
    """Receive a zip with one file of a name and time; returns (what is said, the time in UTC)."""
    (root / "class" / "course.toml").write_text(CHOSEN)
    (root / "roster.csv").write_text("id,first_name,last_name,lms_user_id\nada,Ada,Lovelace,101\n")
    run("roster", root / "roster.csv")

    def command(name, *when):
        with zipfile.ZipFile(tmp_path / "came.zip", "w") as archive:
            archive.writestr(zipfile.ZipInfo(name, (*when, 0)), notebook())
        status, said, err = run("receive", tmp_path / "came.zip")
        assert (status, err) == (0, "")
        return said, (root / f"class/submitted/ada/{FIRST}/timestamp.txt").read_text()[:16]

    return command


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("here", "there"),
    [
        ((2026, 11, 23, 0, 30), "2026-11-22 23:30"),
        ((2026, 3, 29, 1, 30), "2026-03-29 00:30"),  # an hour before summer time begins
        ((2026, 3, 29, 3, 30), "2026-03-29 01:30"),
        ((2026, 10, 25, 1, 30), "2026-10-24 23:30"),  # before it ends
        ((2026, 10, 25, 2, 30), "2026-10-25 00:30"),  # this one comes twice
        ((2026, 10, 25, 3, 30), "2026-10-25 02:30"),
    ],
)
def test_the_times_in_a_zip_are_the_classs_on_every_machine(receive, here, there):
    said, stamp = receive(PLAIN, *here)
    assert stamp == there
    shown = f"{datetime(*here):%a} {here[2]} {datetime(*here):%b %Y, %H:%M}"
    late = f"ada ({shown}, 31 min late)" if here[1] == 11 else "nobody"
    assert f"Late with {FIRST}, due Sun 22 Nov 2026, 23:59: {late}." in said
    assert f"They came in from {shown} to {shown}." in said


def test_a_date_that_stands_in_the_file_alone_decides_over_canvas_zip(receive):
    said, stamp = receive(CANVAS, 2026, 12, 3, 12, 0)  # the time of the download
    assert stamp == "2026-11-22 22:59" and "23:59: nobody." in said
    said, _ = receive(LATE, 2026, 12, 3, 12, 0)
    assert "ada (Sun 22 Nov 2026, 23:59, 1 s late)" in said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, ""), (0.2, "1 s"), (91 * 60, "1 h 31 min"), (90_061, "1 d 1 h"), (86_400, "1 d")],
)
def test_how_late_it_is_is_said_in_two_units(seconds, said):
    assert late_by(seconds) == (said and f"{said} late")


@pytest.mark.parametrize(
    ("said", "hour"),
    [("CEST", 0), ("CET", 1), ("UTC", 2), ("+0000", 2), ("", 2), ("XYZ", 2), ("Europe/Berlin", 0)]
    + [("+0200", 0), ("-05:00", 7)],
)
def test_an_abbreviation_in_the_exchanges_time_is_the_classs(tmp_path, said, hour):
    """Of the hour that comes twice, too: nbgrader alone takes CEST for UTC, +0200 for seconds."""
    (tmp_path / "timestamp.txt").write_text(f"2026-10-25 02:30:00.000000 {said}".strip())
    told = parse_utc(records.timestamp(tmp_path, ZoneInfo("Europe/Berlin")))
    assert told == datetime(2026, 10, 25, hour, 30)
    assert said[:1] not in "+-" or records.moment(tmp_path) == told
