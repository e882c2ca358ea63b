"""What a class has is out of sight inside, wherever it lies; else grading is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.sandbox import bubblewrap, proof
from autograder.sandbox.policy import SandboxRefused
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.sandbox.boxes import LESSON
from tests.needs import needs

pytestmark = needs("bubblewrap")

READ = """
import json, sys
def read(path):
    try:
        return open(path).read()
    except OSError:
        return None
print(json.dumps([read(path) for path in sys.argv[1:]]))
"""
# Where a class lies, seen from the folder of the Python environment.
PLACES = {
    "python -m venv .": ".",
    "beside bin and lib": "class",
    "among the libraries": "lib/class",
    "deep among the libraries": "lib/python3/site-packages/course/class",
    "in what is shared": "share/class",
    "above the environment": "..",
}


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A Python environment of the test's own, beside the one that Python really runs from."""
    prefix = tmp_path / "home" / "environment"
    for name in ("bin", "lib/python3/site-packages", "share"):
        (prefix / name).mkdir(parents=True)
    (prefix / "lib" / "needed").write_text("needed")
    monkeypatch.setattr(sys, "executable", os.path.realpath(sys.executable))
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "exec_prefix", str(prefix))
    return prefix


def class_in(folder):
    """The secrets of a class in ``folder``: the folder, and the files that nobody may read."""
    files = [folder / "gradebook.db", folder / "solutions" / "one.ipynb"]
    files.append(folder / "submitted" / "ben" / "one.ipynb")
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    return files


def read(paths, secrets):
    """What is read inside at ``paths``: texts, or None."""
    program = [sys.executable, "-I", "-S", "-c", READ, *map(str, paths)]
    command = bubblewrap.command("/usr", program, secrets)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_class_is_hidden_wherever_it_lies(environment, place):
    folder = Path(os.path.normpath(environment / place))
    files, secrets = class_in(folder), (str(folder),)
    proof.prove(secrets)
    assert read([*files, environment / "lib" / "needed"], secrets) == [None] * 3 + ["needed"]


def test_a_class_is_hidden_behind_links(environment, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(environment)
    monkeypatch.setattr(sys, "prefix", str(link))
    monkeypatch.setattr(sys, "exec_prefix", str(link))
    class_in(environment / "lib" / "class")
    folder = link / "lib" / "class"
    for secrets in [(str(folder),), (str(environment / "lib" / "class"),)]:
        proof.prove(secrets)
        found = read([folder / "gradebook.db", link / "lib" / "needed"], secrets)
        assert found == [None, "needed"]


def test_a_gradebook_that_is_elsewhere_is_hidden(environment):
    book = environment / "lib" / "grades.db"
    book.write_text("secret")
    proof.prove((str(book),))
    assert read([book, environment / "lib" / "needed"], (str(book),)) in (
        [None, "needed"],
        ["", "needed"],
    )


def test_what_cannot_be_hidden_is_refused(environment):
    class_in(environment / "lib")
    with pytest.raises(SandboxRefused, match=r"would see .*/environment/lib/.* move it"):
        Sandbox(LESSON, "required", secrets=(str(environment / "lib"),))


def test_what_stays_in_sight_is_seen_before_anything_runs(environment, monkeypatch):
    folder = environment / "share" / "class"
    class_in(folder)
    monkeypatch.setattr(bubblewrap, "_hidden", lambda secrets=(): set())
    with pytest.raises(SandboxRefused, match="students' code would see"):
        Sandbox(LESSON, "auto", secrets=(str(folder), "/nowhere/at/all"))


def test_a_sandbox_that_does_not_start_is_refused_with_what_to_do(tmp_path, monkeypatch):
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "available", lambda: str(program))
    for policy in ("required", "auto"):
        with pytest.raises(SandboxRefused, match=r"No permissions .* allow user namespaces"):
            Sandbox(LESSON, policy, secrets=(policy,))
