"""Downloads: whole or not at all, from where they stopped, and every failure in one sentence."""

import gzip
import socket
import ssl
import urllib.error
import urllib.request

import pytest

from attention.train import download as module
from attention.train.download import DataError, NoConnection, NotThere
from tests.downloads import PACKED, SHA256, TEXT


def sizes(site):
    """The bytes that were sent in answer to each request."""
    return [sent for _, _, sent in site.asked]


@pytest.mark.parametrize("name", ["/text", "/text.gz"])
def test_a_text_arrives_unpacked(get, site, name):
    assert get(name) == ([], [])
    assert get.path.read_bytes() == TEXT
    assert get.left() == ["text"]
    assert len(site.asked) == 1


@pytest.mark.parametrize(("name", "content"), [("/text", TEXT), ("/text.gz", PACKED)])
def test_a_broken_connection_is_resumed_where_it_broke(get, site, name, content):
    site.plan = ["break", "break"]
    said, waited = get(name)
    assert get.path.read_bytes() == TEXT
    assert [begin for _, begin, _ in site.asked] == [0, sizes(site)[0], sum(sizes(site)[:2])]
    assert sum(sizes(site)) == len(content)
    assert waited == [1, 1]  # each attempt brought something
    assert said[0].startswith(f"{name[1:]}: the connection ended after ")
    assert said[0].endswith(" bytes; trying again in 1 s")


def test_what_an_earlier_download_left_is_not_asked_for_again(get, site):
    get.part.parent.mkdir()
    get.part.write_bytes(TEXT[:50_000])
    get()
    assert get.path.read_bytes() == TEXT
    assert site.asked == [["/text", 50_000, len(TEXT) - 50_000]]


def test_a_download_that_was_stopped_after_its_last_byte_needs_no_server(get, site):
    get.part.parent.mkdir()
    get.part.write_bytes(PACKED)
    get("/text.gz")
    assert get.path.read_bytes() == TEXT
    assert site.asked == []


def test_a_server_without_ranges_sends_all_of_it_again(get, site):
    site.plan = ["break", "ignore"]
    get()
    assert get.path.read_bytes() == TEXT
    assert sizes(site) == [len(TEXT) // 2, len(TEXT)]


def test_another_part_than_the_one_asked_for_is_not_used(get, site):
    site.plan = ["break", "elsewhere"]
    said, _ = get()
    assert get.path.read_bytes() == TEXT
    assert [begin for _, begin, _ in site.asked] == [0, len(TEXT) // 2, 0]
    assert "another part" in said[1]


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * 2 * len(TEXT), PACKED[:1000]])
def test_what_does_not_belong_to_the_file_is_dropped(get, site, left):
    get.part.parent.mkdir()
    get.part.write_bytes(left)
    get()
    assert get.path.read_bytes() == TEXT
    assert get.left() == ["text"]
    assert len(site.asked) == 2


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_busy_server_is_asked_again_after_growing_waits(get, site, status):
    site.plan = [status] * 4
    _, waited = get()
    assert get.path.read_bytes() == TEXT
    assert waited == [1, 2, 4, 8]


def test_a_server_that_stays_busy(get, site):
    site.plan = [503] * 99
    with pytest.raises(NoConnection) as raised:
        get()
    assert str(raised.value) == (
        f"{site.address}/text: the server answers 503 Service Unavailable; "
        "given up after 5 attempts"
    )
    assert len(site.asked) == 5
    assert get.left() == []


def test_a_connection_that_always_breaks_keeps_what_came(get, site):
    site.files["/text"] = TEXT[:100]
    site.plan = ["break"] * 99
    with pytest.raises(NoConnection, match=r"99 of 100 bytes.*\(99 bytes are kept") as raised:
        get()
    assert "\n" not in str(raised.value)
    assert get.waited[-4:] == [1, 2, 4, 8]
    assert get.part.read_bytes() == TEXT[:99]
    assert not get.path.exists()


def test_attempts_have_an_end_even_if_each_brings_a_little(get, site, monkeypatch):
    monkeypatch.setattr(module, "ATTEMPTS", 3)
    site.plan = ["break"] * 99
    with pytest.raises(NoConnection, match="given up after 3 attempts"):
        get()
    assert len(site.asked) == 3


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
def test_a_wrong_file_is_refused_and_nothing_of_it_kept(get, site, why):
    content, words = WRONG[why]
    site.files["/text"] = content
    with pytest.raises(DataError) as raised:
        get()
    said = str(raised.value)
    assert words in said and f"{site.address}/text" in said and "nothing of it was kept" in said
    assert get.left() == []
    assert len(site.asked) == 1


def test_a_wrong_file_leaves_the_old_one_alone(get, site):
    get.path.parent.mkdir()
    get.path.write_bytes(b"old")
    site.files["/text"] = b"wrong"
    with pytest.raises(DataError):
        get()
    assert get.path.read_bytes() == b"old"


def test_a_server_that_does_not_say_how_much_will_come(get, site):
    site.plan = ["unknown"]
    get()
    assert get.path.read_bytes() == TEXT


def test_a_server_that_never_ends(get, site):
    site.plan = ["endless"]
    with pytest.raises(DataError, match="longer than it should be"):
        get()
    assert get.left() == []


def test_a_server_that_falls_silent(get, site, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    site.plan = ["stall"]
    said, _ = get()
    assert get.path.read_bytes() == TEXT
    assert "the connection broke (timed out)" in said[0]
    assert 0 <= sizes(site)[0] - site.asked[1][1] < module.CHUNK


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_file_that_is_not_there_is_asked_for_once(get, site, status):
    site.plan = [status]
    with pytest.raises(NotThere, match=f"/text: the server answers {status} "):
        get()
    assert len(site.asked) == 1
    assert get.left() == []


def test_another_refusal(get, site):
    site.plan = [401]
    with pytest.raises(DataError, match="/text: the server answers 401 Unauthorized$"):
        get()


def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_no_connection(get):
    address = f"http://127.0.0.1:{closed_port()}"
    with pytest.raises(NoConnection) as raised:
        get(address=address)
    words = "no connection (Connection refused); given up after 5 attempts"
    assert str(raised.value) == f"{address}/text: {words}"
    assert get.waited == [1, 2, 4, 8]


NO_NETWORK = {
    NoConnection: socket.gaierror(-2, "Name or service not known"),
    DataError: ssl.SSLCertVerificationError(1, "self-signed certificate"),
}


@pytest.mark.parametrize("expected", NO_NETWORK)
def test_names_that_are_unknown_and_certificates_that_are_wrong(get, monkeypatch, expected):
    def fail(*_, **__):
        raise urllib.error.URLError(NO_NETWORK[expected])

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    with pytest.raises(DataError, match=NO_NETWORK[expected].strerror) as raised:
        get()
    assert raised.type is expected
    assert len(get.waited) == (4 if expected is NoConnection else 0)


@pytest.mark.parametrize("address", ["ftp://a", "/media/stick", "stick", "", "javascript:a"])
def test_other_addresses_are_refused(get, address):
    with pytest.raises(DataError, match="begins with http:// or https://, or with file:///"):
        get(address=address)


@pytest.mark.parametrize("address", ["http://", "http://[::1", "http://a:b", "http://a..b"])
def test_addresses_that_are_none(get, address):
    with pytest.raises(DataError, match="is no valid address|names no server"):
        get(address=address)


def test_a_folder_as_a_server(get, tmp_path):
    folder = tmp_path / "ein Stück"
    folder.mkdir()
    (folder / "text.gz").write_bytes(PACKED)
    get("/text.gz", address=f"file://{folder}")
    assert get.path.read_bytes() == TEXT
    with pytest.raises(NotThere, match="No such file"):
        get("/other", address=f"file://{folder}")
    assert get.left() == ["text"]
