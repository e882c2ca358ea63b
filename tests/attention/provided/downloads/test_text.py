"""Downloads: whole or not at all, and every failure in one sentence."""

import errno
import gzip
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace

import pooch
import pytest
import requests

from attention.provided.downloads import failures
from attention.provided.downloads.failures import DownloadError, NoConnection, NotThere
from attention.provided.downloads.text import download
from tests.server import serving
from tests.waiting import until

TEXT = "".join(f"{random.Random(i).getrandbits(64)} ein Satz\n" for i in range(4000)).encode()
PACKED = gzip.compress(TEXT, mtime=0)
SHA256 = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture(autouse=True)
def waited(monkeypatch):
    """The seconds before other attempts, for which nobody waits here."""
    seconds = []
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=seconds.append))
    return seconds


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving({"/text": TEXT, "/text.gz": PACKED}) as site:
        yield site


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "text"


@pytest.fixture
def get(site, path):
    """Download the text; every error is one sentence, and no half of a file stays."""

    def run(name="/text", address=None, path=path):
        try:
            url = (site.address if address is None else address) + name
            download(url, path, len(TEXT), SHA256)
        except DownloadError as error:
            assert "\n" not in str(error)
            if path.parent.is_dir():
                assert [left.name for left in path.parent.iterdir()] in ([], ["text"])
            raise

    return run


@pytest.mark.parametrize("name", ["/text", "/text.gz"])
def test_a_text_arrives_unpacked(get, site, path, name, capfd):
    get(name)
    assert path.read_bytes() == TEXT and path.stat().st_mode & 0o777 == 0o644
    assert [left.name for left in path.parent.iterdir()] == ["text"]
    assert site.asked == [name]
    assert capfd.readouterr() == ("", "")


def test_an_altered_text_is_replaced(get, path):
    path.parent.mkdir()
    path.write_bytes(b"altered")
    get()
    assert path.read_bytes() == TEXT


@pytest.mark.parametrize("way", ["break", 408, 429, 500, 503])
def test_a_busy_server_and_a_broken_connection_are_tried_again(get, site, path, waited, way):
    site.plan = [way] * 3
    get()
    assert path.read_bytes() == TEXT
    assert waited == [1, 2, 3]


def test_a_server_that_stays_busy(get, site):
    site.plan = [503] * 99
    with pytest.raises(NoConnection) as raised:
        get()
    assert str(raised.value) == (
        f"{site.address}/text: the server answers 503 Service Unavailable; "
        "given up after 4 attempts"
    )
    assert len(site.asked) == 4


@pytest.mark.parametrize("way", ["break", "stall"])
def test_a_connection_that_always_ends_too_soon(get, site, monkeypatch, way):
    monkeypatch.setattr(failures, "TIMEOUT", 0.2)
    site.plan = [way] * 99
    with pytest.raises(NoConnection, match=r"no connection \(.*\); given up after 4 attempts"):
        get()


WRONG = {
    "a byte": (TEXT[:70] + b"?" + TEXT[71:], f"expected SHA-256 {SHA256[:16]}…, got "),
    "packed": (gzip.compress(TEXT.replace(b"ein", b"EIN", 1)), f"SHA-256 {SHA256[:16]}…, got "),
    "damaged": (PACKED[:500] + bytes([PACKED[500] ^ 1]) + PACKED[501:], "damaged"),
    "cut off": (TEXT[:1000], "and only 1 000 of "),
    "cut off, packed": (PACKED[:1000], "damaged"),
    "empty": (b"", "and only 0 of "),
    "a bomb": (gzip.compress(b"\0" * 10_000_000), "got "),
    "too long": (TEXT * 2, "is longer than it should be"),
    "a login page": (b"<!DOCTYPE html>\n<p>Who are you?", "a web page"),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_file_is_refused_and_the_old_one_stays(get, site, path, why):
    path.parent.mkdir()
    path.write_bytes(b"old")
    content, words = WRONG[why]
    site.files["/text"] = content
    with pytest.raises(DownloadError) as raised:
        get()
    said = str(raised.value)
    assert words in said and f"{site.address}/text" in said and "nothing of it was kept" in said
    assert path.read_bytes() == b"old"
    assert len(site.asked) == 1


def test_a_server_that_does_not_say_how_much_will_come(get, site, path):
    site.plan = ["unknown"]
    get()
    assert path.read_bytes() == TEXT


def test_a_server_that_never_ends(get, site):
    site.plan = ["endless"]
    with pytest.raises(DownloadError, match="longer than it should be"):
        get()


@pytest.mark.parametrize(
    ("status", "kind"), [(403, NotThere), (404, NotThere), (410, NotThere), (401, DownloadError)]
)
def test_a_refusal_is_asked_for_once(get, site, status, kind):
    site.plan = [status]
    with pytest.raises(DownloadError, match=f"/text: the server answers {status} ") as raised:
        get()
    assert raised.type is kind
    assert len(site.asked) == 1


def test_no_connection(get, waited):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{one.getsockname()[1]}"
    with pytest.raises(NoConnection) as raised:
        get(address=address)
    words = "no connection (Connection refused); given up after 4 attempts"
    assert str(raised.value) == f"{address}/text: {words}"
    assert waited == [1, 2, 3]


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


@pytest.mark.parametrize("address", ["http://", "http://[::1", "http://a:b", "http://a..b"])
def test_addresses_that_are_none(get, address, waited):
    with pytest.raises(DownloadError, match="is no valid address"):
        get(address=address)
    assert waited == []


def test_a_folder_as_a_server(get, tmp_path, path):
    folder = tmp_path / "ein Stück"
    folder.mkdir()
    (folder / "text.gz").write_bytes(PACKED)
    get("/text.gz", address=f"file://{folder}")
    assert path.read_bytes() == TEXT
    path.unlink()
    with pytest.raises(NotThere, match="No such file"):
        get("/other", address=f"file://{folder}")


# The disk


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "there is no space left for .*text: free some"), (errno.EIO, "cannot be wri")],
)
def test_a_disk_that_fails(get, monkeypatch, number, says):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(shutil, "move", fail)
    with pytest.raises(DownloadError, match=says):
        get()


def test_a_folder_that_may_not_be_written(get, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "makedirs", refuse)
    with pytest.raises(DownloadError, match=r"text cannot be written: .*Permission denied"):
        get()


@pytest.mark.parametrize("inside", ["text", "folder/text"])
def test_a_file_in_place_of_the_folder(get, tmp_path, inside):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(DownloadError, match="there is a file where its folder should be"):
        get(path=tmp_path / "file" / inside)


CODE = """
import sys
from pathlib import Path
from attention.provided.downloads.text import download
download(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals")
def test_a_killed_download_leaves_nothing_under_the_final_name(get, site, path):
    site.plan = ["stall"]
    arguments = [f"{site.address}/text", path, str(len(TEXT)), SHA256]
    process = subprocess.Popen([sys.executable, "-c", CODE, *arguments])
    try:
        until(lambda: site.asked or process.poll() is not None, "the command to ask for the text")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert not path.exists()
    get()
    assert path.read_bytes() == TEXT
