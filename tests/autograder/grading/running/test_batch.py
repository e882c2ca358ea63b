"""``autograder grade`` on a class: complete, resumable, and the gradebook always right."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import ROOT
from autograder.grading.classroom import sample_class
from tests.autograder.small_class import (
    LINE,
    PROGRAM,
    SLUG,
    WRONG,
    configure,
    grade,
    hand_in,
    kept,
    make_course,
    scores,
)
from tests.needs import skip_without


@pytest.fixture
def course(tmp_path):
    return make_course(tmp_path)


def test_a_class_is_graded_once_and_then_skipped(course):
    hand_in(course, "ada", "cleo")
    hand_in(course, "ben", answers=WRONG)
    said, _, _ = grade(course)
    assert sorted(LINE.findall(said)) == ["ada", "ben", "cleo"]
    assert "3/5  lost: softmax" in said
    assert scores(course) == {"ada": 5, "ben": 3, "cleo": 5}
    assert kept(course, "ben").complete

    said, _, _ = grade(course)
    assert "3 of 3 are graded and unchanged: skipped." in said
    assert not LINE.findall(said)

    hand_in(course, "ben")
    said, _, _ = grade(course)
    assert LINE.findall(said) == ["ben"]
    assert scores(course)["ben"] == 5

    said, _, _ = grade(course, "--regrade", "--student", "ada", "--lesson", "0")
    assert LINE.findall(said) == ["ada"]


def test_damage_is_a_score_and_a_sentence(course):
    hand_in(course, "ada")
    broken = {
        "empty": b"",
        "text": b"dear instructor",
        "other": b'{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code"}]}',
    }
    for student, content in broken.items():
        folder = course / "class" / "submitted" / student / SLUG
        folder.mkdir(parents=True)
        (folder / f"{SLUG}.ipynb").write_bytes(content)
    (course / "class" / "submitted" / "nothing" / SLUG).mkdir(parents=True)
    renamed = course / "class" / "submitted" / "renamed" / SLUG
    renamed.mkdir(parents=True)
    (renamed / "final (2).ipynb").write_text("{}")
    (course / "class" / "submitted" / "linked").mkdir()
    link = course / "class" / "submitted" / "linked" / SLUG
    link.symlink_to(course / "solutions" / SLUG)
    said, told, status = grade(course, "--sandbox", "auto", check=False)
    assert status == 1
    assert f"renamed/{SLUG}/final (2).ipynb lies where no work is looked for" in told
    found = scores(course)
    assert found.pop("ada") == 5
    assert found == dict.fromkeys([*broken, "nothing", "renamed", "linked"], 0)
    assert all(kept(course, student).complete for student in found)
    assert "there is no 00_getting_started.ipynb, only final (2).ipynb" in said


def test_a_lost_gradebook_is_filled_again_without_grading(course):
    hand_in(course, "ada")
    hand_in(course, "ben", answers=WRONG)
    grade(course)
    (course / "class" / "gradebook.db").unlink()
    said, told, status = grade(course, check=False)
    assert not LINE.findall(said) and scores(course) == {"ada": 5, "ben": 3}
    assert status == 1 and "The gradebook is new, and has the automatic scores of 2 graded" in told
    assert grade(course)[1] == ""


@pytest.mark.long
def test_who_is_graded_again_is_told_why(course):
    skip_without("bubblewrap")
    hand_in(course, "ada", "ben")
    grade(course, "--sandbox", "off")
    assert kept(course, "ada").sandbox == "none"
    said, _, _ = grade(course, "--sandbox", "off")
    assert "2 of 2 are graded and unchanged: skipped." in said

    hand_in(course, "ben", answers=WRONG)
    said, _, _ = grade(course, "--sandbox", "required")
    assert "Students' code runs in a sandbox of bubblewrap; control groups " in said
    assert "1 of 2 graded again: graded without a sandbox before.\n" in said
    assert "1 of 2 graded again: the submission changed.\n" in said
    assert kept(course, "ada").sandbox == "bubblewrap"
    for policy in ("required", "auto", "off"):
        said, _, _ = grade(course, "--sandbox", policy)
        assert "2 of 2 are graded and unchanged: skipped." in said


def test_a_student_whom_nobody_knows_is_an_error(course):
    hand_in(course, "ada")
    told, said, status = grade(course, "--student", "ada", "--student", "nobody", check=False)
    sentence = "no student is called 'nobody': class/submitted/ has no such folder\n"
    assert (status, said, told) == (1, sentence, "")


def test_no_submission_is_an_error(course):
    _, said, status = grade(course, check=False)
    assert status == 1
    assert "no submission" in said


@pytest.mark.long
def test_a_sandbox_that_cannot_be_had_is_refused_in_one_sentence(course):
    hand_in(course, "ada")
    environment = {**os.environ, "PATH": str(Path(sys.executable).parent)}
    command = [*PROGRAM, "--course", str(course), "--sandbox", "required"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode != 0
    assert done.stderr.startswith("the sandbox is required, but bubblewrap is not installed")
    assert len(done.stderr.splitlines()) == 1

    command[-1] = "auto"
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    assert "WITHOUT A SANDBOX" in done.stderr


class TestNbgrader:
    """nbgrader's own commands take the same path."""

    def nbgrader(self, course, *arguments):
        command = [PROGRAM[0].replace("autograder", "nbgrader"), *arguments]
        done = subprocess.run(command, cwd=course, capture_output=True, text=True, timeout=600)
        return done.stdout + done.stderr

    @pytest.mark.long
    def test_autograde_gives_the_same_and_feedback_shows_the_reasons(self, course):
        configure(course)
        known = sample_class.wrong("softmax")
        hand_in(course, "ada")
        hand_in(course, "ben", answers={"softmax": known})
        hand_in(course, "eve", answers={"softmax": "import os; os._exit(0)"})
        folder = course / "class" / "submitted" / "text" / SLUG
        folder.mkdir(parents=True)
        (folder / f"{SLUG}.ipynb").write_text("not a notebook")
        grade(course)
        ours = (
            scores(course),
            {name: kept(course, name).exercises for name in ("ada", "eve")},
        )
        self.nbgrader(course, "autograde", SLUG, "--force")
        theirs = (
            scores(course),
            {name: kept(course, name).exercises for name in ("ada", "eve")},
        )
        assert ours == theirs
        assert ours[0] == {"ada": 5, "ben": 3, "eve": 3, "text": 0}

        self.nbgrader(course, "generate_feedback", SLUG)
        page = course / "class" / "feedback" / "ben" / SLUG / f"{SLUG}.html"
        shown = re.sub(r"(?s)<style.*?</style>", "", page.read_text())
        for line in kept(course, "ben").exercises[1].reason.splitlines()[1:3]:
            assert line.split()[0] in shown
        words = re.sub(r"<[^>]+>|\s+", " ", html.unescape(shown))
        assert " ".join(known.hint.split()) in " ".join(words.split())
        own = sum(cell.source.count("Traceback") for cell in sample_class.handed_in(SLUG).cells)
        assert shown.count("Traceback") == own  # in the docstrings, no other
        assert "/autograder/" not in shown
        assert str(ROOT) not in shown
        solution = sample_class.solved(SLUG)
        text = next(cell.source for cell in solution.cells if "def softmax" in cell.source)
        line = next(line for line in text.splitlines() if "amax" in line)
        assert line.strip().split("  #")[0] not in shown
