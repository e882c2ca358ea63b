"""A long download: broken at any moment it goes on with what it has."""

import errno
import hashlib
import io
import os
import random
import re
import sys
from types import SimpleNamespace

import pytest

from attention.provided.downloads import failures, resumable
from attention.provided.downloads.failures import DownloadError, NoConnection, NotWritten
from attention.provided.downloads.resumable import PIECE, download
from tests.server import serving

CONTENT = random.Random(0).randbytes(300_000)
SIZE, SHA256 = len(CONTENT), hashlib.sha256(CONTENT).hexdigest()
PAGE = b"<!DOCTYPE html>\n<p>Who are you?"


@pytest.fixture(autouse=True)
def waited(monkeypatch):
    """The seconds before other attempts, for which nobody waits here."""
    seconds = []
    monkeypatch.setattr(failures, "time", SimpleNamespace(sleep=seconds.append))
    return seconds


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving({"/model": CONTENT}) as site:
        yield site


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "model"


@pytest.fixture
def part(path):
    path.parent.mkdir()
    return path.parent / "model.part"


@pytest.fixture
def get(site, path):
    """Download the file; every error is one sentence, and only the right file has its name."""

    def run(patient=True):
        try:
            download(f"{site.address}/model", path, SIZE, SHA256, patient)
        except DownloadError as error:
            assert "\n" not in str(error) and not path.exists()
            raise
        assert path.read_bytes() == CONTENT
        assert os.listdir(path.parent) == ["model"]

    return run


# Interrupted

MOMENTS = (0, 1, PIECE - 1, PIECE, PIECE + 1, 150_000, 4 * PIECE, SIZE - 1)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_connection_that_is_cut_goes_on_where_it_was(get, site, moment):
    site.plan = [("cut", moment)]
    get()
    assert site.begins[0] is None and len(site.begins) == 2
    assert moment - PIECE < (site.begins[1] or 0) <= moment  # what came is not asked for again


@pytest.mark.parametrize("moment", MOMENTS)
def test_another_run_asks_only_for_the_rest(get, site, path, moment):
    site.plan = [("cut", moment), 503, 503, 503]
    with pytest.raises(NoConnection) as raised:
        get()
    kept = (path.parent / "model.part").stat().st_size if moment >= PIECE else 0
    says = f"; given up after 4 attempts; the {kept:_} bytes that came are kept".replace("_", " ")
    assert str(raised.value).endswith(says if kept else "given up after 4 attempts")
    site.begins.clear()
    get()
    assert site.begins == [kept or None]
    assert moment - PIECE < kept <= moment


def test_a_server_that_says_no_length_and_ends_too_soon(get, site):
    site.files["/model"] = CONTENT[:100_000]
    site.plan = ["unknown"] * 99
    with pytest.raises(NoConnection, match="it ended after 100 000 of 300 000 bytes"):
        get()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_stopped_between_the_last_byte_and_the_name(get, site, path, monkeypatch, stop):
    def halt(*_):
        raise stop

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", halt)
        with pytest.raises(stop):
            get()
    assert not path.exists()
    get()
    assert len(site.asked) == 1  # all bytes were there


def test_where_there_is_another_address_one_attempt_without_an_answer_is_enough(get, site, waited):
    address, site.address = site.address, "http://127.0.0.1:9"
    with pytest.raises(NoConnection, match=r"/model: no connection \(Connection refused\)$"):
        get(patient=False)
    assert waited == []
    site.address = address
    site.plan = [503, ("cut", PIECE)]
    get(patient=False)  # what has begun to come is waited for there as well


# A part that does not fit


@pytest.mark.parametrize(
    ("begin", "begins"),
    [
        (b"?" + CONTENT[1:100_000], [100_000, None]),  # not the beginning of the file
        (bytes(SIZE), [None]),
        (bytes(SIZE + 1), [None]),
    ],
)
def test_a_part_of_something_else(get, site, part, begin, begins):
    part.write_bytes(begin)
    get()
    assert site.begins == begins


@pytest.mark.parametrize(
    ("way", "begins"), [("whole", [70_000]), ("other", [70_000, None]), (416, [70_000, None])]
)
def test_servers_that_do_not_go_on(get, site, part, way, begins):
    part.write_bytes(CONTENT[:70_000])
    site.plan = [way]
    get()
    assert site.begins == begins


def test_a_part_and_a_wrong_file(get, site, part):
    part.write_bytes(bytes(70_000))
    site.files["/model"] = bytes(SIZE)
    with pytest.raises(DownloadError, match=f"expected SHA-256 {SHA256[:16]}…, got "):
        get()
    assert site.begins == [70_000, None]
    assert not part.exists()


@pytest.mark.parametrize("content", [CONTENT[:1000], CONTENT * 2, PAGE])
def test_what_cannot_be_the_file_leaves_the_part(get, site, part, content):
    """Who comes into a network with a login page halfway keeps the first half."""
    part.write_bytes(CONTENT[:100_000])
    site.files["/model"] = content
    site.plan = ["whole"]
    with pytest.raises(DownloadError, match="is not the file that the course knows"):
        get()
    site.files["/model"] = CONTENT
    get()
    assert site.begins == [100_000, 100_000]


# The disk


class Full(io.FileIO):
    """A file on a disk that has room for so many bytes more."""

    room = 0

    def write(self, piece):
        if len(piece) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(piece)
        return super().write(piece)


def full(monkeypatch, room, module=resumable):
    """Let a module write only so many bytes into a file."""

    def opened(path, mode):
        if mode not in ("wb", "ab"):
            return open(path, mode)
        stream = Full(path, mode)
        stream.room = room
        return stream

    monkeypatch.setattr(module, "open", opened, raising=False)


def test_a_disk_without_space(get, site, path, monkeypatch):
    with monkeypatch.context() as patch:
        full(patch, 2 * PIECE + 5)
        with pytest.raises(NotWritten) as raised:
            get()
    assert str(raised.value) == f"there is no space left for {path}: free some, and ask again"
    get()
    assert site.begins == [None, 2 * PIECE]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_two_at_once(get, site, path):
    """They would write into the same part."""
    with resumable.writing(path):
        says = f"another download writes into {path.parent}: wait until it ends"
        with pytest.raises(NotWritten, match=re.escape(says)):
            get()
    assert site.asked == []
    get()


def test_the_bar_says_how_much_is_there_and_disappears(get, part, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    part.write_bytes(CONTENT[:100_000])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    get()
    err = capsys.readouterr().err
    assert re.search(r"\rmodel █{30} 0\.3 of 0\.3 MB · 0 s left", err)
    assert err.endswith("\r\x1b[K")
