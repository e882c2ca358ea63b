"""Files out of a wheel: found in pip's index, and taken only if their SHA-256 is right."""

import os
from types import SimpleNamespace

import pytest

from attention.provided.downloads import failures, resumable, wheel
from attention.provided.downloads.failures import (
    DownloadError,
    NoConnection,
    NotThere,
    NotWritten,
)
from attention.provided.downloads.wheel import Member, Wheel
from attention.provided.models.bert import minilm
from tests import small_model
from tests.attention.provided.downloads.test_resumable import full
from tests.server import serving
from tests.small_model import INDEX, NAME, sha256

MADE = small_model.files()
PACKED = small_model.packed(MADE)
FILE = f"/files/{NAME}"
WHEEL = Wheel("small-model", NAME, len(PACKED), sha256(PACKED))


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(failures, "time", SimpleNamespace(sleep=lambda _: None))
    with serving({}) as site:
        monkeypatch.setenv("PIP_INDEX_URL", f"{site.address}/simple/")
        small_model.offer(site, PACKED)
        yield site


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "model"


@pytest.fixture
def members(folder):
    return [
        Member(f"{minilm.IN_THE_WHEEL}/{name}", folder / name, sha256(one))
        for name, one in MADE.items()
    ]


@pytest.fixture
def get(site, folder, members):
    """Fetch the files; no error leaves a wrong one under its name."""

    def run(packed=WHEEL):
        said = []
        try:
            wheel.fetch(packed, members, folder, said.append)
        except DownloadError as error:
            assert "\n" not in str(error)
            for name, content in MADE.items():
                path = folder / name
                assert not path.exists() or path.read_bytes() == content
            raise
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == MADE
        return said

    return run


def changed(site, content):
    """Let another wheel be the right one."""
    small_model.offer(site, content)
    return Wheel("small-model", NAME, len(content), sha256(content))


# The index


@pytest.mark.parametrize("kind", ["json", "html"])
def test_both_kinds_of_page_are_read(get, site, kind):
    small_model.offer(site, PACKED, kind)
    said = get()
    assert site.asked == [INDEX, FILE]
    bytes_ = resumable.readable(len(PACKED))
    assert said == [f"{NAME}: {bytes_} bytes from {site.address}{FILE}"]


def test_a_page_without_sums_and_with_other_files(get, site):
    site.files[INDEX] = (
        f'<a name="x">x</a><a>y</a><a href="/files/{NAME}.tar.gz">{NAME}</a>'
        f'<link href="/wrong/{NAME}"><a class="z" href="{FILE}">anything</a>'
    ).encode()
    site.kinds.clear()
    get()


@pytest.mark.parametrize("section", ["global", "install"])
def test_pips_configuration_is_read(monkeypatch, tmp_path, section):
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://a.example/simple/\nextra-index-url = https://other.example\n"
        + ("[install]\nindex-url = https://b.example/simple\n" if section == "install" else "")
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    letter = {"global": "a", "install": "b"}[section]
    assert wheel.index() == f"https://{letter}.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://c.example/simple")
    assert wheel.index() == "https://c.example/simple"


def test_an_index_without_the_package(get, site):
    del site.files[INDEX]
    with pytest.raises(NotThere, match=f"{INDEX}: the server answers 404 Not Found"):
        get()


@pytest.mark.parametrize("content", [b'{"files": []}', b"<p>log in"])
def test_an_index_without_the_wheel(get, site, content):
    site.files[INDEX] = content
    site.kinds[INDEX] = "text/html" if content[:1] == b"<" else "application/json"
    with pytest.raises(NotThere) as raised:
        get()
    assert str(raised.value) == f"{site.address}{INDEX} does not list {NAME}"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"files": [1]}', b'{"files": 1}'])
def test_a_page_that_is_none(get, site, content):
    site.files[INDEX] = content
    with pytest.raises(DownloadError, match=f"{INDEX} is no page of a package index"):
        get()


def test_another_wheel_of_the_same_name_is_not_asked_for(get, site):
    site.files[INDEX] = small_model.page({FILE: "0" * 64})
    says = f"{FILE} is not the file that the course knows: expected SHA-256 {WHEEL.sha256[:16]}…, "
    with pytest.raises(DownloadError, match=f"{says}the index lists 0000000000000000…; nothing"):
        get()
    assert site.asked == [INDEX]


@pytest.mark.parametrize("plan", [[503] * 4, [503, 503, 503, "stall"]])
def test_an_index_that_does_not_answer(get, site, monkeypatch, plan):
    monkeypatch.setattr(failures, "TIMEOUT", 0.2)
    site.plan = plan
    with pytest.raises(NoConnection, match=f"{INDEX}: .*; given up after 4 attempts"):
        get()


def test_the_password_of_an_index_is_not_shown(get, site, monkeypatch):
    secret = site.address.replace("//", "//me:secret@")
    monkeypatch.setenv("PIP_INDEX_URL", f"{secret}/simple")
    assert not [line for line in get() if "secret" in line]
    del site.files[INDEX]
    (said,) = [str(pytest.raises(NotThere, wheel.address, WHEEL).value)]
    assert "secret" not in said and said.startswith(f"{site.address}{INDEX}: ")


# The wheel


def test_another_file_than_the_wheel(get, site, folder):
    site.files[FILE] = PACKED[:500] + bytes([PACKED[500] ^ 1]) + PACKED[501:]
    says = f"{FILE} is not the file that the course knows: expected SHA-256 .* got "
    with pytest.raises(DownloadError, match=says):
        get()
    assert os.listdir(folder) == []


VOCABULARY = f"{minilm.IN_THE_WHEEL}/vocab.txt"
UNFIT = [
    (b"no zip", "is no wheel, or a damaged one; it was removed$", []),
    (PACKED[:-30], "is no wheel, or a damaged one; it was removed$", []),
    (
        PACKED[:2000] + bytes(1000) + PACKED[3000:],
        "is no wheel, or a damaged one; it was removed$",
        ["model.safetensors.part"],
    ),
    (small_model.packed({"vocab.txt": b""}), r"\.whl holds no .*/model\.safetensors", [NAME]),
    (
        small_model.packed({**MADE, "vocab.txt": b"Other"}),
        f"{VOCABULARY} in .* is not the file that .*: expected SHA-256 .* got .*; nothing of it",
        ["model.safetensors", NAME],
    ),
]


@pytest.mark.parametrize(("content", "says", "left"), UNFIT)
def test_a_wheel_without_the_right_files(get, site, folder, content, says, left):
    with pytest.raises(DownloadError, match=says):
        get(changed(site, content))
    assert sorted(os.listdir(folder)) == left


def test_a_disk_without_space_for_the_files(get, site, folder, monkeypatch):
    with monkeypatch.context() as patch:
        full(patch, len(PACKED), wheel)
        with pytest.raises(NotWritten) as raised:
            get()
    path = folder / "model.safetensors"
    assert str(raised.value) == f"there is no space left for {path}: free some, and ask again"
    site.asked.clear()
    get()
    assert site.asked == []  # the wheel is there


def test_stopped_between_the_files(get, site, folder, monkeypatch):
    def halt(part, path):
        raise KeyboardInterrupt if path.name in MADE else AssertionError

    folder.mkdir()
    (folder / NAME).write_bytes(PACKED)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", halt)
        with pytest.raises(KeyboardInterrupt):
            get()
    assert not (folder / "model.safetensors").exists()
    get()
    assert site.asked == []


def test_a_wheel_that_cannot_be_read(folder, members):
    with pytest.raises(DownloadError, match=f"{NAME} cannot be read: No such file"):
        wheel.take(folder / NAME, members)
