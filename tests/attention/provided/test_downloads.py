"""A file arrives whole or not at all, and every failure is one sentence."""

import errno
import gzip
import hashlib
import os
import random
import re
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace

import pooch
import pytest
import requests

from attention.provided import downloads
from attention.provided.downloads import (
    DownloadError,
    File,
    NoConnection,
    NotThere,
    Source,
    download,
    named,
)
from tests.server import serving

CONTENT = random.Random(0).randbytes(300_000)
PACKED = gzip.compress(CONTENT, mtime=0)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def waited(monkeypatch):
    """The seconds before other attempts, for which nobody waits here."""
    seconds = []
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=seconds.append))
    return seconds


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving({"/file": CONTENT, "/file.gz": PACKED}) as site:
        yield site


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "file"


@pytest.fixture
def get(site, path):
    """Download the file; every error is one sentence, and only the right file has its name."""

    def run(name="/file", address=None, path=path):
        url = (site.address if address is None else address) + name
        try:
            download(url, path, len(CONTENT), SHA256)
        except DownloadError as error:
            assert "\n" not in str(error)
            assert not path.is_file() or path.read_bytes() in (CONTENT, b"old")
            raise
        assert path.read_bytes() == CONTENT
        assert os.listdir(path.parent) == ["file"]

    return run


@pytest.mark.parametrize(
    ("name", "older"), [("/file", False), ("/file", True), ("/file.gz", False)]
)
def test_a_file_arrives_also_in_place_of_an_older_one(get, site, path, capfd, name, older):
    if older:
        path.parent.mkdir()
        path.write_bytes(b"old")
    get(name)
    assert site.asked == [name] and path.stat().st_mode & 0o777 == 0o644
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("way", [408, 429, 500, 503, "break"])
def test_a_busy_server_and_a_broken_connection_are_tried_again(get, site, waited, way):
    site.plan = [way] * 3
    get()
    assert way == "break" or waited == [1, 2, 3]


def test_a_server_that_stays_busy(get, site):
    site.plan = [503] * 99
    with pytest.raises(NoConnection) as raised:
        get()
    assert str(raised.value) == (
        f"{site.address}/file: the server answers 503 Service Unavailable; "
        "given up after 4 attempts"
    )
    assert len(site.asked) == 4


@pytest.mark.parametrize("way", ["break", "stall"])
def test_a_connection_that_always_ends_too_soon(get, site, monkeypatch, way):
    monkeypatch.setattr(downloads, "TIMEOUT", 0.2)
    site.plan = [way] * 4
    with pytest.raises(NoConnection, match=r"no connection \(.*\); given up after 4 attempts"):
        get()
    get()


WRONG = {  # the content, and what is said of it
    "a byte": (CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]), "expected SHA-256 {sum}…, got "),
    "cut off": (CONTENT[:1000], "and only 1 000 of "),
    "empty": (b"", "and only 0 of "),
    "too long": (CONTENT * 2, "is longer than it"),
    "a login page": (b"<!DOCTYPE html>\n<p>Who are you?", "a web page, perhaps the login"),
    "another, packed": (gzip.compress(b"?" + CONTENT[1:]), "expected SHA-256 {sum}…, got "),
    "damaged": (PACKED[:500] + bytes([PACKED[500] ^ 1]) + PACKED[501:], "damaged"),
    "cut off, packed": (PACKED[:1000], "damaged"),
    "a bomb": (gzip.compress(b"\0" * 10_000_000), "got "),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_file_is_refused_and_the_old_one_stays(get, site, path, why):
    path.parent.mkdir()
    path.write_bytes(b"old")
    site.files["/file"], words = WRONG[why]
    with pytest.raises(DownloadError) as raised:
        get()
    said = str(raised.value)
    assert words.format(sum=SHA256[:16]) in said
    assert f"{site.address}/file" in said and "nothing of it was kept" in said
    assert path.read_bytes() == b"old" and os.listdir(path.parent) == ["file"]
    assert len(site.asked) == 1


def test_a_server_that_does_not_say_how_much_will_come(get, site):
    site.plan = ["unknown"]
    get()


def test_a_server_that_never_ends(get, site, path):
    site.plan = ["endless"]
    with pytest.raises(DownloadError, match="longer than it should be"):
        get()
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize(
    ("status", "kind"), [(403, NotThere), (404, NotThere), (410, NotThere), (401, DownloadError)]
)
def test_a_refusal_is_asked_for_once_and_no_password_is_shown(get, site, status, kind):
    site.plan = [status]
    with pytest.raises(DownloadError) as raised:
        get(address=site.address.replace("//", "//me:secret@"))
    assert str(raised.value).startswith(f"{site.address}/file: the server answers {status} ")
    assert raised.type is kind and len(site.asked) == 1
    assert named("https://a@b/c@d") == "https://b/c@d" and named("file:///a@b") == "file:///a@b"


def test_no_connection(get, waited):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{one.getsockname()[1]}"
    with pytest.raises(NoConnection) as raised:
        get(address=address)
    words = "no connection (Connection refused); given up after 4 attempts"
    assert str(raised.value) == f"{address}/file: {words}"
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


# The disk


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "there is no space left for .*file: free some"), (errno.EIO, "cannot be wri")],
)
def test_a_disk_that_fails_at_the_end(get, monkeypatch, number, says):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(shutil, "move", fail)
    with pytest.raises(DownloadError, match=says):
        get()


@pytest.mark.parametrize("inside", ["file", "folder/file"])
def test_a_file_in_place_of_the_folder(get, tmp_path, inside):
    (tmp_path / "taken").write_text("no folder")
    with pytest.raises(DownloadError, match="there is a file where its folder should be"):
        get(path=tmp_path / "taken" / inside)


# A source of files

SPOILT = {
    "missing": (Path.unlink, "a is not in {folder}: fetch it with"),
    "altered": (lambda path: path.write_bytes(b"E" + CONTENT[1:]), "differs): mend it with"),
    "cut": (lambda path: path.write_bytes(CONTENT[:-1]), "differs): mend it with"),
    "unreadable": (lambda path: path.unlink() or path.mkdir(), "a cannot be read: Is a directory"),
}


@pytest.fixture
def source(site):
    """One file, packed at home."""
    return Source("one", site.address, {"a": File(len(CONTENT), SHA256, "file.gz")})


@pytest.mark.parametrize("how", SPOILT)
def test_what_cannot_be_used_says_how_it_is_fetched(source, tmp_path, how):
    source.fetch(tmp_path, say=lambda said: None)
    assert source.read("a", tmp_path, KeyError) == CONTENT
    spoil, says = SPOILT[how]
    spoil(tmp_path / "a")
    assert source.state("a", tmp_path) == ("altered" if how == "cut" else how)
    with pytest.raises(KeyError, match=re.escape(says.format(folder=tmp_path))) as raised:
        source.read("a", tmp_path, KeyError)
    command = f"autograder data fetch one --data {tmp_path}"
    assert how == "unreadable" or raised.value.args[0].endswith(command)
    assert source.command(source.folder) == source.command() == "autograder data fetch one"


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize("kind", ["server", "folder"])
def test_a_mirror_has_the_files_as_they_are_in_a_folder(source, site, tmp_path, kind, end):
    (tmp_path / "a").write_bytes(CONTENT)
    site.files["/copies/a"] = CONTENT
    source.home, said = "http://nobody.invalid", []
    mirror = {"server": f"{site.address}/copies", "folder": f"file://{tmp_path}"}[kind]
    for _ in range(2):
        source.fetch(tmp_path / "new", mirror + end, said.append)
    assert said == ["a: fetched, 300 000 bytes", "a: there already"]


@pytest.mark.parametrize(
    ("plan", "kind", "given_up"), [([404], NotThere, ""), ([503] * 4, NoConnection, "4 attempts; ")]
)
def test_another_address_is_named_where_one_fails(source, site, tmp_path, plan, kind, given_up):
    for mirror, words in (
        (None, "name a copy of the files with --mi"),
        (site.address, "leave out"),
    ):
        site.plan = list(plan)
        with pytest.raises(kind, match=f"{given_up}.*try again later, or {words}"):
            source.fetch(tmp_path, mirror, lambda said: None)
