"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the repository."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from autograder import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
STEP = re.compile(
    r"^(?:([^`\n]*)`([^`\n]+)`:\n)?```(python|diff|sh|markdown)\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
NEEDED = (
    *("attention", "autograder", "source", "data"),
    *("autograder.toml", "nbgrader_config.py", "pyproject.toml"),
)


@pytest.fixture(scope="module")
def recipes():
    """By heading: steps (what is said before a block, the file's name, language, text)."""
    parts = re.split(r"^## ([A-Z].*)\n", TEXT, flags=re.MULTILINE)
    return {name: STEP.findall(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What the build needs of the repository, with lesson 00 as the only one."""
    folder = tmp_path_factory.mktemp("clone")
    for name in NEEDED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    for script in (folder / "source").glob("[0-9][0-9]_*.py"):
        if not script.name.startswith("00_"):
            script.unlink()
    for path in (folder / "attention").rglob("*.py"):  # no lesson is left that these would answer
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"^ANSWERS = .*\n", "", text, flags=re.MULTILINE), encoding="utf-8")
    for name in ("lessons", "solutions"):
        shutil.copytree(ROOT / name / "00_getting_started", folder / name / "00_getting_started")
    return folder


def follow(steps, folder):
    """Write what is to be written and run what is to be run; what the commands said, in order."""
    said = []
    for where, name, language, text in steps:
        if language == "sh":
            said += [run(shlex.split(line), folder) for line in text.splitlines()]
            continue
        path = folder / name
        if language == "diff":
            old, new = (re.findall(rf"^[{sign}](.*)$", text, re.MULTILINE) for sign in "-+")
            before = path.read_text(encoding="utf-8")
            assert before.count("\n".join(old)) == 1
            path.write_text(before.replace("\n".join(old), "\n".join(new)), encoding="utf-8")
        elif where.startswith("At the end"):
            gap = "\n" if text.startswith("# %%") else "\n\n" * (language == "python")
            path.write_text(path.read_text(encoding="utf-8") + gap + text, encoding="utf-8")
        else:
            assert not path.exists()
            path.write_text(text, encoding="utf-8")
    return said


def run(words, folder):
    assert words[0] == "autograder"
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_recipes_make_a_lesson_then_an_exercise_then_a_mistake(recipes, clone):
    said = follow(recipes["A lesson"], clone)
    assert "solved 1 of 1 points, blank 0" in said[-1]
    assert "mistakes 3: 3 rejected, 3 named; alternatives 2: 2 accepted" in said[-1]
    said = follow(recipes["An exercise"], clone)
    assert "solved 2 of 2 points, blank 0" in said[-1]
    assert "mistakes 6: 6 rejected, 6 named; alternatives 4: 4 accepted" in said[-1]
    said = follow(recipes["A mistake"], clone)
    assert "mistakes 7: 7 rejected, 7 named" in said[-1]
    files = {name for steps in recipes.values() for _, name, kind, _ in steps if kind == "python"}
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, *sorted(files)]
        done = subprocess.run(ruff, cwd=clone, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
