"""Downloads and the disk: it is full, it is not to be written, the process is killed."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attention.train import download as module
from attention.train.download import DataError
from tests.downloads import PACKED, SHA256, TEXT


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk(get):
    get.part.parent.mkdir()
    get.part.symlink_to("/dev/full")
    with pytest.raises(DataError, match="there is no space left for .*text: free some"):
        get()
    assert not get.path.exists()


def test_a_disk_that_is_full_when_the_text_is_unpacked(get, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DataError, match="there is no space left"):
        get("/text.gz")
    monkeypatch.undo()
    assert get.left() == ["text.part"]
    assert get.part.read_bytes() == PACKED


def test_a_folder_that_may_not_be_written(get, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DataError, match=r"text cannot be written: Permission denied$"):
        get()


@pytest.mark.parametrize("inside", ["text", "folder/text"])
def test_a_file_in_place_of_the_folder(get, tmp_path, inside):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(DataError, match="there is a file where its folder should be"):
        get(path=tmp_path / "file" / inside)


@pytest.mark.skipif(module.fcntl is None, reason="Windows has no fcntl")
def test_a_disk_without_locks_is_no_hindrance(get, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(module.fcntl, "flock", refuse)
    get()
    assert get.path.read_bytes() == TEXT


@pytest.mark.skipif(module.fcntl is None, reason="Windows has no fcntl")
def test_two_downloads_at_once(get, site):
    get.part.parent.mkdir()
    with get.part.open("a+b") as file:
        module._lock(file, get.part)
        with pytest.raises(DataError, match="another download is writing .*part: wait"):
            get()
    assert site.asked == []


# Killed


CODE = """
import sys
from pathlib import Path
from attention.train.download import download
download(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals")
def test_a_killed_download_leaves_nothing_under_the_final_name_and_is_resumed(get, site):
    site.plan = ["stall"]
    arguments = [f"{site.address}/text", get.path, str(len(TEXT)), SHA256]
    process = subprocess.Popen([sys.executable, "-c", CODE, *arguments])
    try:
        deadline = time.monotonic() + 30
        while not (get.part.exists() and get.part.stat().st_size > 20_000):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    kept = get.part.stat().st_size
    assert get.left() == ["text.part"]
    get()
    assert get.path.read_bytes() == TEXT
    assert site.asked[1] == ["/text", kept, len(TEXT) - kept]


def test_the_final_name_appears_at_once(get, monkeypatch):
    """The text is written aside; what has the final name came by a rename."""
    renamed = []
    replace = os.replace

    def watch(aside, target):
        renamed.append((Path(aside).read_bytes() == TEXT, Path(target).exists()))
        replace(aside, target)

    monkeypatch.setattr(os, "replace", watch)
    get("/text.gz")
    assert renamed == [(True, False)]


# The progress bar


def test_the_bar_counts_from_where_the_download_began_and_goes_away():
    shown = []

    class Handle:
        def update(self, text):
            shown.append(repr(text))

    with module._Kilobytes(50_000, 100_000, "text.gz") as bar:
        bar.handle, bar.shown, bar.begin = Handle(), 0.0, time.monotonic() - 10
        bar.update(75_000)
        bar.update(76_000)  # too soon after the last
    assert len(shown) == 2
    assert shown[0].startswith("text.gz ██") and shown[0].endswith(" 75/100 kB · 10 s left")
    assert shown[1] == ""
