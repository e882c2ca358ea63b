"""Temporary folders go with their process or with the next one, and nobody else's does."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from autograder.temporary import Temporary, sweep
from tests.waiting import LONG

DIES = """
import os, signal, sys
from autograder.temporary import Temporary, for_processes
import multiprocessing.util
for_processes()
multiprocessing.util.get_temp_dir()
Temporary(sys.argv[1], ".aside-")
print("made", flush=True)
if len(sys.argv) > 2:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The system's temporary folder, with a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="t") as short:
        monkeypatch.setenv("TMPDIR", short)
        monkeypatch.setattr("tempfile.tempdir", short)
        yield tmp_path.__class__(short)


def test_it_is_gone_at_the_end_and_stays_while_its_process_lives(folder):
    with Temporary() as first, Temporary() as second:
        sweep()
        assert sorted(folder.iterdir()) == sorted([first, second])
    assert not list(folder.iterdir())


def test_what_a_killed_process_left_goes_with_the_next(folder, tmp_path):
    program = [sys.executable, "-c", DIES, str(tmp_path)]
    assert subprocess.run([*program, "dies"]).returncode == -signal.SIGKILL
    left = [*folder.iterdir(), *tmp_path.iterdir()]
    assert [path.name[:11] for path in left] == ["autograder-", ".aside-" + left[1].name[7:11]]
    subprocess.run(program, check=True)
    sweep(tmp_path, ".aside-")
    assert not [*folder.iterdir(), *tmp_path.iterdir()]


@pytest.mark.parametrize("patience", [0, LONG])
def test_what_a_process_writes_as_it_ends_is_waited_for(folder, monkeypatch, patience):
    old = folder / "autograder-99999999-abcdefgh"
    old.mkdir()
    removed, real = [], shutil.rmtree

    def remove(path, **named):
        real(path, **named)
        if len(removed) < 3:
            (path / "home").mkdir(parents=True)
        removed.append(path)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", remove)
        sweep(patience=patience)
    assert (removed, old.exists()) == (([old] * 4, False) if patience else ([old], True))


def test_links_files_and_what_is_called_alike_are_left_alone(folder, tmp_path):
    (tmp_path / "thesis.txt").write_text("three years")
    (folder / "autograder-1-abcdefgh").symlink_to(tmp_path)
    (folder / "autograder-2-abcdefgh").write_text("")
    os.mkfifo(folder / "autograder-3-abcdefgh")
    for name in ("99999999999999999999-x", "notes", "1-x", "²-x"):
        (folder / f"autograder-{name}").mkdir()
    sweep()
    assert len(list(folder.iterdir())) == 7 and (tmp_path / "thesis.txt").exists()


def test_another_users_folder_is_left_alone(folder, monkeypatch):
    (folder / "autograder-1-abcdefgh").mkdir()
    own = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: own + 1)
    sweep()
    assert list(folder.iterdir())
    monkeypatch.undo()
    sweep(folder)
    assert not list(folder.iterdir())


def test_a_forked_process_leaves_the_folder_to_its_parent(folder):
    held = Temporary()
    child = os.fork()
    if not child:
        held.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert held.path.is_dir()
    held.close()
    assert not held.path.exists()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOLCK])
def test_where_nothing_can_be_locked_no_folder_is_left(folder, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("autograder.temporary.fcntl.flock", fail)
    with pytest.raises(OSError, match=re.escape(os.strerror(number))):
        Temporary()
    assert not list(folder.iterdir())
