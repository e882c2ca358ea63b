"""``autograder receive``: everyone's latest work is in its place, and nothing is lost or untold."""

import contextlib
import io
import json
import os
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nbgrader.api import Gradebook

from autograder.grading.classroom.folders import Course
from tests.autograder.collecting.conftest import FIRST, SECOND, notebook

HOME = f"{FIRST}/{FIRST}.ipynb"
ROSTER = "id,first_name,last_name,email,lms_user_id\nada,Ada,Lovelace,,101\nben,Ben,Bauer,,102\n"
OLD, NEW, NEWEST = notebook(answer="old"), notebook(answer="new"), notebook(answer="newest")


@pytest.fixture
def roster(root, run):
    (root / "roster.csv").write_text(ROSTER)
    assert run("roster", root / "roster.csv")[0] == 0


def stamp(root, student="ada", lesson=FIRST):
    return (root / "class" / "submitted" / student / lesson / "timestamp.txt").read_text()


def aged(path, seconds):
    os.utime(path, (seconds, seconds))


def test_files_of_all_kinds_come_to_their_place(root, run, roster, came, submitted):
    folder = came({"mails/Lovelace Ada/whatever.ipynb": OLD, "ben_00_mini (1).ipynb": NEW})
    aged(folder / "ben_00_mini (1).ipynb", 10**9)
    status, said, err = run("receive", folder, "--lesson", "0")
    assert (status, err) == (0, "")
    assert submitted() == {f"ada/{HOME}": OLD, f"ben/{HOME}": NEW}
    assert stamp(root, "ben") == "2001-09-09 01:46:40.000000 UTC"
    assert f"{FIRST}: 2 new, 0 in place of an earlier one, 0 as before." in said
    assert f"Handed in nothing of {FIRST}: 0 of 2." in said
    status, said, _ = run("receive", folder)
    assert status == 0 and f"{FIRST}: 0 new, 0 in place of an earlier one, 2 as before." in said


def test_an_earlier_hand_in_is_kept(root, run, roster, came, submitted):
    folder = came({"ada/00_mini.ipynb": OLD})
    aged(folder / "ada/00_mini.ipynb", 10**9)
    run("receive", folder)
    (root / "class" / "submitted" / "ada" / FIRST / "notes.txt").write_text("mine")
    for content in (NEW, NEWEST):
        run("receive", came({"ada/00_mini.ipynb": content}), "--at", "2199-01-01T12:00+02:00")
    assert submitted() == {f"ada/{HOME}": NEWEST}
    assert stamp(root) == "2199-01-01 10:00:00.000000 UTC"
    kept = submitted("replaced")
    first, second = sorted(kept)
    assert first == f"ada/{FIRST}/2001-09-09_01-46-40/{FIRST}.ipynb"
    assert second == f"ada/{FIRST}/2199-01-01_10-00-00/{FIRST}.ipynb"
    assert (kept[first], kept[second]) == (OLD, NEW)
    notes = root / "class" / "replaced" / "ada" / FIRST / "2001-09-09_01-46-40" / "notes.txt"
    assert notes.read_text() == "mine"


def test_older_work_does_not_replace_later_work(run, roster, came, submitted):
    run("receive", came({"ada/00_mini.ipynb": NEW}))
    folder = came({"ada/00_mini.ipynb": OLD})
    aged(folder / "ada/00_mini.ipynb", 10**9)
    status, _, err = run("receive", folder)
    assert status == 1 and "a later hand-in" in err
    assert submitted() == {f"ada/{HOME}": NEW}


@pytest.mark.parametrize(
    ("names", "ages"),
    [
        (["00_mini.ipynb", "00_mini-2.ipynb", "00_mini-10.ipynb"], [9, 9, 9]),
        (["00_mini.ipynb", "00_mini (1).ipynb", "00_mini (2).ipynb"], [9, 9, 9]),
        (["x.ipynb", "00_mini (7).ipynb", "final.ipynb"], [1, 2, 3]),
    ],
)
def test_the_latest_of_several_is_taken(run, roster, came, submitted, names, ages):
    contents = (OLD, NEW, NEWEST)
    folder = came({f"ada/{name}": one for name, one in zip(names, contents, strict=True)})
    for name, age in zip(names, ages, strict=True):
        aged(folder / "ada" / name, 10**9 + age)
    status, said, _ = run("receive", folder)
    assert status == 0
    assert submitted() == {f"ada/{HOME}": NEWEST}
    assert f"ada/{names[2]}, not ada/" in said


def of_cells(*cells, **metadata):
    about = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata}
    every = [{"cell_type": "code", "source": one, "metadata": {}, "outputs": []} for one in cells]
    return json.dumps({**about, "cells": every}).encode()


NOTES = of_cells('print("my notes")')
BLANK = of_cells(autograder={"lesson": FIRST})
NONE, WHICH = "it has none of the lesson's cells", "neither its name nor what is in it says which"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("ada/mini summary.ipynb", NOTES, f"called like 00_mini, but {NONE}"),
        ("ada_My mini log.ipynb", NOTES, f"called like 00_mini, but {NONE}"),
        ("ada/summary.ipynb", NOTES, WHICH),
        ("ada/00_mini (1).ipynb", BLANK, NONE),
        ("ada/00_mini (1).ipynb", b"{", "it is not a notebook"),
    ],
)
@pytest.mark.parametrize("is_alone", [True, False])
def test_what_holds_nothing_never_replaces_work(
    run, roster, came, submitted, name, content, why, is_alone
):
    folder = came({"ada/00_mini.ipynb": OLD})
    run("receive", folder)
    if is_alone:
        (folder / "ada/00_mini.ipynb").unlink()
    status, _, err = run("receive", came({name: content}), "--at", "2199-01-01 12:00")
    assert submitted() == {f"ada/{HOME}": OLD}
    assert status == 1 and f"not taken: {name}" in err and why in err


def test_what_holds_nothing_is_taken_where_there_is_nothing_better(run, roster, came, submitted):
    folder = came({"ada/00_mini.ipynb": b"{", "ben/00_mini.ipynb": BLANK})
    status, said, _ = run("receive", folder)
    assert status == 0 and "not to be read; grading will say why: ada, ben." in said
    assert submitted() == {f"ada/{HOME}": b"{", f"ben/{HOME}": BLANK}


def test_functions_that_were_written_anew_count_where_the_name_says_the_lesson(
    run, roster, came, submitted
):
    anew = of_cells(f"def answer_{FIRST}(x):\n    return x")
    assert run("receive", came({"ada/my answers.ipynb": anew}))[0] == 1
    run("receive", came({"ada/00_mini.ipynb": anew}))
    assert submitted() == {f"ada/{HOME}": anew}


def test_everything_that_is_not_taken_has_its_reason(run, roster, came, submitted):
    folder = came(
        {
            "adda_00_mini.ipynb": OLD,
            "ada/essay.pdf": b"%PDF",
            "ada/01_more.ipynb": notebook(SECOND),
            "ada/00_mini.ipynb": notebook(SECOND),  # what it is counts, not its name
            "ada/torn.ipynb": b"{",
            "ben/ada_00_mini.ipynb": OLD,
            "00_mini.ipynb": OLD,
            "ada/.ipynb_checkpoints/00_mini-checkpoint.ipynb": OLD,
            "__MACOSX/._x": b"",
        }
    )
    status, said, err = run("receive", folder, "--lesson", "mini")
    reasons = dict(line.removeprefix("not taken: ").split(": ", 1) for line in err.splitlines())
    assert reasons == {
        "adda_00_mini.ipynb": "no student of the roster is called adda; nearest: ada",
        "ada/essay.pdf": "it is not a notebook (.ipynb)",
        "ada/01_more.ipynb": f"it is of another lesson, {SECOND}",
        "ada/00_mini.ipynb": f"it is of another lesson, {SECOND}",
        "ada/torn.ipynb": "it is not a notebook: it is not valid JSON, and its name does not say "
        "which lesson it is of",
        "ben/ada_00_mini.ipynb": "it may be ada's or ben's",
        "00_mini.ipynb": "its name does not say whose it is",
    }
    assert status == 1 and submitted() == {}
    assert "Files that were not taken: 7" in said
    assert f"Handed in nothing of {FIRST}: 2 of 2: ada, ben." in said


def test_a_folder_full_of_other_files_is_one_line(run, roster, came):
    files = {f"ada/attention/{number}.py": b"" for number in range(9)}
    _, _, err = run("receive", came({**files, "ada/00_mini.zip": b""}))
    assert (
        err.splitlines()[-1] == "not taken: ada/ and below, 9 files: it is not a notebook (.ipynb)"
    )


def test_a_dry_run_changes_nothing_and_says_the_same(root, run, roster, came, submitted):
    folder = came({"ada/00_mini.ipynb": OLD, "x/00_mini.ipynb": NEW})
    before = sorted(root.rglob("*"))
    dry = run("receive", folder, "--dry-run")
    assert sorted(root.rglob("*")) == before
    real = run("receive", folder)
    assert dry[0] == real[0] == 1 and dry[2] == real[2]
    assert dry[1].splitlines()[2:] == real[1].splitlines()


def test_without_a_roster_it_asks_for_one(run, came, submitted):
    status, said, err = run("receive", came({f"ada/{HOME}": NEW}))
    assert (status, said, submitted()) == (1, "", {}) and "autograder roster" in err


def canvas(folder, *names, year=2030):
    """A zip as Canvas makes it: every file has the time of the download."""
    with zipfile.ZipFile(folder / "canvas.zip", "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 2, 12, 0, 0)), OLD)
    return folder / "canvas.zip"


def test_canvas_says_who_is_late(tmp_path, root, run, roster):
    names = "lovelaceada_101_5555_00_mini.ipynb", "bauerben_LATE_102_5556_00_mini-1.ipynb"
    source = canvas(tmp_path, *names)
    _, said, _ = run("receive", source)
    assert "has no due date, so nobody is late: set it, and receive the same again" in said
    assert run("due", "0", "2029-12-31T23:59:00+00:00")[0] == 0
    _, said, _ = run("receive", source)
    assert f"Late with {FIRST}, due Mon 31 Dec 2029, 23:59 UTC: ben (Mon 31 Dec" in said
    assert stamp(root, "ada") == "2029-12-31 23:59:00.000000 UTC"
    assert stamp(root, "ben") == "2029-12-31 23:59:01.000000 UTC"  # not when the zip was made
    with Gradebook(Course(root).db_url, "attention") as book:
        book.update_or_create_submission(FIRST, "ben", extension=timedelta(days=7))
    _, said, _ = run("receive", source)  # Canvas need not know of it
    assert "in time with the extension that they have: ben." in said and "UTC: nobody." in said


def test_a_mailed_file_with_a_name_as_in_canvas_is_late_all_the_same(root, run, roster, came):
    run("due", "0", "2020-01-01T00:00")
    folder = came({"lovelaceada_101_5555_00_mini.ipynb": OLD, "ben_00_mini.ipynb": OLD})
    told = run("receive", folder)[1]
    assert (
        f"Late with {FIRST}, due Wed 1 Jan 2020" in told and ": ada (" in told and ", ben (" in told
    )


def test_two_of_one_name_are_not_one(run, roster, came, submitted):
    files = {f"lovelaceada_{number}_9999_00_mini.ipynb": OLD for number in (101, 999)}
    status, _, err = run("receive", came(files))
    assert status == 1 and submitted() == {}
    assert err.count("two students, by their numbers, are called so") == 2


def test_moodles_worksheet_tells_namesakes_apart(root, run, came, submitted):
    (root / "roster.csv").write_text(
        "id,first_name,last_name,email\nann1,Ann,Lee,a1@x.org\nann2,Ann,Lee,a2@x.org\n"
    )
    run("roster", root / "roster.csv")
    (root / "worksheet.csv").write_text(
        "Identifier,Full name,Email address,Grade\n"
        "Participant 72,Ann Lee,a1@x.org,-\nParticipant 71,Ann Lee,a2@x.org,-\n"
    )
    folder = came({f"Ann Lee_7{n}_assignsubmission_file_/00_mini.ipynb": OLD for n in (1, 2)})
    status, said, err = run("receive", folder)
    assert status == 1 and err.count("may be ann1's or ann2's") == 2 and submitted() == {}
    assert "--like" in said
    status, _, err = run("receive", folder, "--like", root / "worksheet.csv")
    assert (status, err) == (0, "") and len(submitted()) == 2
    note = (root / "class" / "submitted" / "ann2" / FIRST / "received.json").read_text()
    assert "Ann Lee_71" in note
    assert "is it a worksheet?" in run("receive", folder, "--like", root / "roster.csv")[2]


def test_two_of_one_name_in_moodle_are_not_one(run, roster, came, submitted):
    names = (f"Ada Lovelace_{number}_assignsubmission_file_" for number in (71, 72))
    status, _, err = run("receive", came({f"{one}/00_mini.ipynb": OLD for one in names}))
    assert status == 1 and submitted() == {}
    assert err.count("two students, by their numbers, are called so") == 2


def test_a_student_has_another_number_in_each_of_moodles_assignments(run, roster, came, submitted):
    names = (f"part {n}/Ada Lovelace_7{n}_assignsubmission_file_/00_mini.ipynb" for n in (1, 2))
    status, said, err = run("receive", came(dict.fromkeys(names, OLD)))
    assert (status, err) == (0, "") and len(submitted()) == 1 and "1 new" in said


def test_what_cannot_be_stored_is_told(root, run, roster, came):
    (root / "class" / "submitted" / "ada").mkdir(parents=True)
    (root / "class" / "submitted" / "ada" / FIRST).write_text("a file where a folder belongs")
    status, _, err = run("receive", came({"ada/00_mini.ipynb": OLD}))
    assert status == 1 and "not taken: ada/00_mini.ipynb: it cannot be taken: Not a dir" in err


def test_a_name_that_looks_like_another_students_takes_nobodys_place(run, roster, came, submitted):
    run("receive", came({"ada/00_mini.ipynb": OLD}))
    names = ["\uff41\uff44\uff41", "\u00e1da", "a-da", "ad\u0430", "ADA\u0301"]
    for name in names:
        status, _, err = run(
            "receive", came({f"{name}/00_mini.ipynb": NEW}), "--at", "2199-01-01 12:00"
        )
        assert status == 1 and f"no student of the roster is called {name}" in err
        (came({}) / name / "00_mini.ipynb").unlink()
    assert submitted() == {f"ada/{HOME}": OLD}


NAMES = st.binary(min_size=1, max_size=60) | st.text(min_size=1, max_size=30).map(
    lambda text: text.encode("utf-8", "surrogatepass")
)
NAMES |= st.sampled_from(
    [b"a" * 200, b"/".join([b"a"] * 90), b"ada\x00.ipynb", b"ben\n/00_mini.zip"]
)
CONTENTS = st.sampled_from([OLD, b"", b"{", b"PK\x03\x04", b"[" * 10_000, OLD[:-40]]) | st.binary()


@st.composite
def zips(draw, depth=0):
    """A zip of nonsense, in which some bytes may have been changed."""
    inside = CONTENTS if depth > 2 else CONTENTS | zips(depth + 1)
    endings = st.sampled_from([b"", b".ipynb", b".zip", b"/00_mini.ipynb", b".rar"])
    stream, names = io.BytesIO(), {}
    packing = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    with zipfile.ZipFile(stream, "w") as archive:
        for place in range(draw(st.integers(0, 4))):
            name = draw(NAMES) + draw(endings)
            stand_in = f"{place}".ljust(len(name), "_")
            names[stand_in.encode()] = name
            archive.writestr(zipfile.ZipInfo(stand_in), draw(inside), packing)
    data = stream.getvalue()
    for stand_in, name in names.items():
        data = data.replace(stand_in, name)
    changed = bytearray(data)
    for place in draw(st.lists(st.integers(0, len(data) - 1), max_size=3)):
        changed[place] = draw(st.integers(0, 255))
    return bytes(changed)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(zips(), NAMES, CONTENTS | zips())
def test_whatever_comes_stops_nobody_else(run, roster, came, submitted, packed, name, content):
    folder = came({"ada/00_mini.ipynb": OLD, "ben_00_mini.zip": packed})
    path = os.fsencode(folder) + b"/" + name.replace(b"\0", b"").replace(b"/", b"")
    with contextlib.suppress(OSError):  # '..', or too long for this disk
        Path(os.fsdecode(path)).write_bytes(content)
    try:
        status, said, err = run("receive", folder)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
    assert submitted()[f"ada/{HOME}"] == OLD
    told = err.splitlines()
    assert all(line.startswith("not taken: ") and line.isprintable() for line in told)
    assert status == bool(told) and all(line.isprintable() for line in said.splitlines())


def test_a_link_in_the_class_is_not_followed(root, run, roster, came, tmp_path):
    (root / "class" / "submitted").mkdir()
    (root / "class" / "submitted" / "ada").symlink_to(tmp_path)
    status, _, err = run("receive", came({"ada/00_mini.ipynb": OLD}))
    assert status == 1 and "is a link" in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--lesson", "77"], "no lesson is called '77'"),
        (["--at", "yesterday"], "'yesterday' is no time: write it as 2026-12-01T23:59+01:00"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(run, roster, came, words, why):
    status, said, err = run("receive", came({"ada/00_mini.ipynb": OLD}), *words)
    assert (status, said) == (1, "") and why in err and err.count("\n") == 1
