"""A long download: broken at any moment it goes on, and only what is right gets the file's name."""

import errno
import hashlib
import io
import os
import random
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests

from attention.provided.downloads import failures, resumable
from attention.provided.downloads.failures import (
    DownloadError,
    NoConnection,
    NotThere,
    NotWritten,
    named,
)
from attention.provided.downloads.resumable import PIECE, download
from tests.server import serving
from tests.waiting import until

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

    def run(name="/model", address=None, path=path, patient=True):
        url = (site.address if address is None else address) + name
        try:
            download(url, path, SIZE, SHA256, patient)
        except DownloadError as error:
            assert "\n" not in str(error)
            assert not path.is_file() or path.read_bytes() in (CONTENT, b"old")
            raise
        assert path.read_bytes() == CONTENT
        assert os.listdir(path.parent) == ["model"]

    return run


def test_a_file_arrives(get, site, capfd):
    get()
    assert site.asked == ["/model"] and site.begins == [None]
    assert capfd.readouterr() == ("", "")


def test_an_older_file_is_replaced(get, path):
    path.parent.mkdir()
    path.write_bytes(b"old")
    get()


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


def test_four_connections_bring_what_one_does_not(get, site):
    site.plan = [("cut", 70_000)] * 3
    get()
    assert site.begins == [None, PIECE, 2 * PIECE, 3 * PIECE]


@pytest.mark.parametrize("way", ["break", "stall"])
def test_a_connection_that_always_ends_too_soon(get, site, monkeypatch, path, way):
    monkeypatch.setattr(failures, "TIMEOUT", 0.2)
    site.plan = [way] * 4
    with pytest.raises(NoConnection, match=r"no connection \(.*\); given up after 4 attempts; the"):
        get()
    get()  # it goes on
    assert None not in site.begins[1:]


def test_a_server_that_says_no_length_and_ends_too_soon(get, site):
    site.files["/model"] = CONTENT[:100_000]
    site.plan = ["unknown"] * 99
    with pytest.raises(NoConnection, match="it ended after 100 000 of 300 000 bytes"):
        get()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals")
def test_a_killed_download_goes_on(get, site, path):
    code = """
import sys
from pathlib import Path
from attention.provided.downloads.resumable import download
download(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
"""
    site.plan = ["stall"]
    part = path.parent / "model.part"
    arguments = [f"{site.address}/model", path, str(SIZE), SHA256]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments])
    try:
        came = lambda: part.exists() and part.stat().st_size >= PIECE  # noqa: E731
        until(lambda: came() or process.poll() is not None, "some bytes")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL and not path.exists()
    kept = part.stat().st_size
    get()
    assert site.begins == [None, kept]


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


# A part that does not fit


def test_a_part_that_is_not_the_beginning_of_the_file(get, site, part):
    part.write_bytes(b"?" + CONTENT[1:100_000])
    get()
    assert site.begins == [100_000, None]


@pytest.mark.parametrize("size", [SIZE, SIZE + 1])
def test_a_wrong_part_as_long_as_the_file_or_longer(get, site, part, size):
    part.write_bytes(bytes(size))
    get()
    assert site.begins == [None]


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


# Not the file

WRONG = {
    "a byte": (CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]), f"expected SHA-256 {SHA256[:16]}…, got "),
    "cut off": (CONTENT[:1000], "it has 1 000 bytes, not 300 000"),
    "empty": (b"", "it has 0 bytes, not 300 000"),
    "too long": (CONTENT * 2, "it has 600 000 bytes, not 300 000"),
    "a login page": (PAGE, "it is a web page, perhaps the login page of a network"),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_file_is_refused_and_the_old_one_stays(get, site, path, part, why):
    path.write_bytes(b"old")
    content, words = WRONG[why]
    site.files["/model"] = content
    with pytest.raises(DownloadError) as raised:
        get()
    assert str(raised.value).startswith(
        f"{site.address}/model is not the file that the course knows: {words}"
    )
    assert str(raised.value).endswith("; nothing of it was kept")
    assert path.read_bytes() == b"old" and not part.exists()
    assert len(site.asked) == 1


@pytest.mark.parametrize("why", ["cut off", "too long", "a login page"])
def test_what_cannot_be_the_file_leaves_the_part(get, site, part, why):
    """Who comes into a network with a login page halfway keeps the first half."""
    part.write_bytes(CONTENT[:100_000])
    site.files["/model"] = WRONG[why][0]
    site.plan = ["whole"]
    with pytest.raises(DownloadError, match=WRONG[why][1]):
        get()
    site.files["/model"] = CONTENT
    get()
    assert site.begins == [100_000, 100_000]


@pytest.mark.parametrize("way", ["unknown", "endless"])
def test_a_server_that_does_not_say_how_much_will_come(get, site, path, way):
    site.plan = [way]
    if way == "unknown":
        return get()
    with pytest.raises(DownloadError, match="it is longer than it should be; nothing of it was"):
        get()
    assert os.listdir(path.parent) == []
    return None


# No answer, or another one


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_busy_server_is_asked_again(get, site, waited, status):
    site.plan = [status] * 3
    get()
    assert waited == [1, 2, 3]


def test_a_server_that_stays_busy(get, site, part):
    part.write_bytes(CONTENT[:70_000])
    site.plan = [503] * 99
    with pytest.raises(NoConnection) as raised:
        get()
    assert str(raised.value) == (
        f"{site.address}/model: the server answers 503 Service Unavailable; "
        "given up after 4 attempts; the 70 000 bytes that came are kept"
    )
    assert len(site.asked) == 4 and part.read_bytes() == CONTENT[:70_000]


@pytest.mark.parametrize(
    ("status", "kind"), [(403, NotThere), (404, NotThere), (410, NotThere), (401, DownloadError)]
)
def test_a_refusal_is_asked_for_once(get, site, status, kind):
    site.plan = [status]
    with pytest.raises(DownloadError, match=f"/model: the server answers {status} ") as raised:
        get()
    assert raised.type is kind
    assert len(site.asked) == 1


@pytest.fixture
def nobody():
    """An address where nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


def test_no_connection(get, nobody, waited):
    with pytest.raises(NoConnection) as raised:
        get(address=nobody)
    words = "no connection (Connection refused); given up after 4 attempts"
    assert str(raised.value) == f"{nobody}/model: {words}"
    assert waited == [1, 2, 3]


def test_where_there_is_another_address_one_attempt_without_an_answer_is_enough(
    get, nobody, waited
):
    with pytest.raises(NoConnection) as raised:
        get(address=nobody, patient=False)
    assert str(raised.value) == f"{nobody}/model: no connection (Connection refused)"
    assert waited == []


def test_what_has_begun_to_come_is_waited_for_there_as_well(get, site):
    site.plan = [503, ("cut", PIECE)]
    get(patient=False)


def test_a_certificate_that_is_wrong_is_not_asked_again(get, monkeypatch, waited):
    def fail(*_, **__):
        raise requests.exceptions.SSLError("self-signed certificate")

    monkeypatch.setattr(requests, "get", fail)
    with pytest.raises(DownloadError, match="self-signed certificate"):
        get()
    assert waited == []


@pytest.mark.parametrize("address", ["ftp://a", "/media/stick", "stick", "", "javascript:a"])
def test_other_addresses_are_refused(get, address):
    with pytest.raises(DownloadError, match="begins with http:// or https://, or with file:///"):
        get(address=address)


def test_a_password_in_an_address_is_not_shown(get, site):
    site.plan = [404]
    with pytest.raises(NotThere) as raised:
        get(address=site.address.replace("//", "//me:secret@"))
    assert str(raised.value) == f"{site.address}/model: the server answers 404 Not Found"
    assert named("https://a@b/c@d") == "https://b/c@d" and named("file:///a@b") == "file:///a@b"


def test_a_folder_as_a_server(get, tmp_path, path):
    folder = tmp_path / "ein Stück"
    folder.mkdir()
    (folder / "model").write_bytes(CONTENT)
    get(address=f"file://{folder}")
    path.unlink()
    (path.parent / "model.part").write_bytes(bytes(100))
    get(address=f"file://{folder}")
    with pytest.raises(NotThere, match="/other: No such file"):
        get("/other", address=f"file://{folder}", path=path.with_name("other"))
    with pytest.raises(DownloadError, match="Is a directory"):
        get("", address=f"file://{folder}", path=path.with_name("other"))


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


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "there is no space left for .*model: free some"), (errno.EIO, "cannot be wri")],
)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fails_at_the_end(get, monkeypatch, step, number, says):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(NotWritten, match=says):
        get()


def test_a_folder_that_may_not_be_written(get, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(NotWritten, match=r"model cannot be written: Permission denied$"):
        get()


@pytest.mark.parametrize("inside", ["model", "folder/model"])
def test_a_file_in_place_of_the_folder(get, tmp_path, inside):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(NotWritten, match="there is a file where its folder should be"):
        get(path=tmp_path / "file" / inside)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_two_at_once(get, site, path):
    """They would write into the same part."""
    with resumable.writing(path):
        says = f"another download writes into {path.parent}: wait until it ends"
        with pytest.raises(NotWritten, match=re.escape(says)):
            get()
    assert site.asked == []
    get()


# What is shown


def test_the_bar_says_how_much_is_there_and_disappears(get, site, path, part, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    part.write_bytes(CONTENT[:100_000])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    get()
    err = capsys.readouterr().err
    assert re.search(r"\rmodel █{30} 0\.3 of 0\.3 MB · 0 s left", err)
    assert err.endswith("\r\x1b[K")


def test_a_long_name_leaves_room_for_the_bar(site, path, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    path = path.with_name("a_name_of_more_than_eighteen_characters.whl")
    download(f"{site.address}/model", path, SIZE, SHA256)
    assert "\ra_name_of_more_th… █" in capsys.readouterr().err
