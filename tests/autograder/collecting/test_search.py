"""Files in folders and zips: what could do harm is not opened, and is told."""

import io
import os
import stat
import struct
import zipfile
import zlib

import pytest

from autograder import CourseError
from autograder.collecting.search import NotOpened, Refused, search


def zipped(members):
    """The bytes of a zip: name or ZipInfo → content."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def seen(source):
    """Content, or why it is not opened, by the path that is shown."""
    return {"/".join(one.parts): told(one) for one in search(source)}


def told(one):
    if isinstance(one, NotOpened):
        return one.why
    try:
        return one.read()
    except Refused as reason:
        return str(reason)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "came"
    made.mkdir()
    return made


def test_zips_in_folders_and_in_zips_are_opened(folder):
    inner = zipped({"deep/b.ipynb": b"b"})
    (folder / "ada").mkdir()
    (folder / "ada" / "hw.zip").write_bytes(zipped({"a.ipynb": b"a", "more.ZIP": inner}))
    (folder / "c.ipynb").write_bytes(b"c")
    expected = {"ada/hw.zip/a.ipynb": b"a", "ada/hw.zip/more.ZIP/deep/b.ipynb": b"b"}
    assert seen(folder) == {**expected, "c.ipynb": b"c"}
    whole = folder.parent / "whole.zip"
    whole.write_bytes(zipped({"ada/hw.zip": inner}))
    assert seen(whole) == {"ada/hw.zip/deep/b.ipynb": b"b"}


def test_times_inside_a_students_zip_are_not_believed(folder):
    early = zipfile.ZipInfo("a.ipynb", (1999, 1, 1, 0, 0, 0))
    (folder / "ada.zip").write_bytes(zipped({early: b"a"}))
    os.utime(folder / "ada.zip", (10**9, 10**9))
    (one,) = search(folder)
    assert one.moment.year == 2001


def test_links_pipes_and_names_that_lead_out_are_refused(folder):
    (folder / "link.ipynb").symlink_to("/etc/passwd")
    (folder / "away").symlink_to("/etc")
    os.mkfifo(folder / "pipe.ipynb")
    link = zipfile.ZipInfo("l.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    members = {"../../up.ipynb": b"x", "..\\win.ipynb": b"x", "/etc/x.ipynb": b"x", link: b"/etc"}
    (folder / "z.zip").write_bytes(zipped({**members, "a\x1b[2J.ipynb": b"x", "good.ipynb": b"g"}))
    found = seen(folder)
    assert found.pop("z.zip/good.ipynb") == b"g"
    assert "control characters" in found.pop("z.zip/a\x1b[2J.ipynb")
    assert len(found) == 7
    assert all("link" in why or "leads out" in why or "plain" in why for why in found.values())


FLOODS = {
    "5,003 files or more are in it; at most 5,000": {f"{n}.txt": b"" for n in range(5001)},
    "203 notebooks and zips or more are in it; at most 200": {
        f"{n}.ipynb": b"" for n in range(201)
    },
    "105 MiB of notebooks and zips or more are in it; at most 100": {
        f"{n}.ipynb": bytes(35 * 2**20) for n in range(3)
    },
}
SMALL = zipped({f"{n}.txt": b"" for n in range(400)})


@pytest.mark.parametrize(
    ("limit", "members"),
    [
        *FLOODS.items(),
        ("5,215 files or more are in it; at most 5,000", {f"{n}.zip": SMALL for n in range(13)}),
    ],
)
def test_a_flood_in_one_zip_is_one_senders_failure(folder, limit, members):
    flood = zipped(members)
    (folder / "eve.zip").write_bytes(zipped({"a.ipynb": b"a", "more.zip": flood}))
    for number in range(30):
        (folder / f"{number}.zip").write_bytes(zipped({"a.ipynb": b"a", "b.txt": b"b"}))
    found = seen(folder)
    assert found.pop("eve.zip") == f"{limit} are opened"
    assert len(found) == 60 and set(found.values()) == {b"a", b"b"}


def test_what_is_too_large_or_too_deep_is_told_as_such(folder):
    large = bytes(50 * 2**20 + 1)
    (folder / "one.zip").write_bytes(zipped({"a.ipynb": large, "b.ipynb": b"b"}))
    (folder / "big.ipynb").write_bytes(large)
    nested = zipped({"a.ipynb": b"a"})
    for _ in range(14):
        nested = zipped({"n.zip": nested})
    (folder / "nested.zip").write_bytes(nested)
    (folder / "/".join("x" * 14)).mkdir(parents=True)
    found = seen(folder)
    assert found.pop("one.zip/a.ipynb") == found.pop("big.ipynb") == "it is larger than 50 MiB"
    assert found.pop("one.zip/b.ipynb") == b"b"
    deep = "it lies in more than 11 folders and zips"
    assert found == {"nested.zip" + "/n.zip" * 12: deep, "/".join("x" * 13): deep}


def test_damage_is_a_sentence(folder):
    (folder / "text.zip").write_bytes(b"no zip")
    (folder / "a.rar").write_bytes(b"Rar!")
    data = zipped({"a.ipynb": bytes(range(256)) * 9})
    content = zlib.compress(bytes(range(256)) * 9)[2:40]
    (folder / "torn.zip").write_bytes(data.replace(content, bytes(len(content))))
    locked = bytearray(zipped({"a.ipynb": b"secret"}))
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    (folder / "locked.zip").write_bytes(bytes(locked))
    liar = zipped({"a.ipynb": bytes(10**6)})
    small, large = struct.pack("<I", 1000), struct.pack("<I", 10**6)
    (folder / "liar.zip").write_bytes(liar.replace(large, small))  # of its size
    found = seen(folder)
    assert "damaged" in found["liar.zip/a.ipynb"]
    assert found["text.zip"] == "it is no zip, or damaged"
    assert "unpack it" in found["a.rar"]
    assert "damaged" in found["torn.zip/a.ipynb"]
    assert found["locked.zip/a.ipynb"] == "it is protected by a password"


def test_a_single_file_is_taken_and_one_that_is_not_there_is_a_sentence(folder):
    data = zipped({"Zo_ M_ller/a.ipynb": b"a"}).replace(b"Zo_ M_ller", "Zoë Mller".encode())
    (folder / "mac.zip").write_bytes(data)  # UTF-8 that the zip does not announce
    assert seen(folder / "mac.zip") == {"Zoë Mller/a.ipynb": b"a"}
    (folder / "ada_01.ipynb").write_bytes(b"a")
    assert seen(folder / "ada_01.ipynb") == {"ada_01.ipynb": b"a"}
    with pytest.raises(CourseError, match="no such folder or zip"):
        list(search(folder / "gone.zip"))
