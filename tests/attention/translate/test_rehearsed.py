"""`python -m attention.translate` on a device that refuses as CUDA does: it writes the same."""

import pytest

from attention.provided.files import ROOT
from attention.translate import __main__ as translate
from tests.cuda import cuda

SHIPPED = str(ROOT / "data" / "checkpoints" / "numbers.safetensors")
ENGLISH, GERMAN = "seven\n\ntwelve\n", "sieben\n\nzwölf\n"


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """The command finds CUDA."""
    with cuda(monkeypatch) as there:
        monkeypatch.setattr(translate, "choose_device", lambda _: there)
        yield there


@pytest.fixture
def english(tmp_path):
    path = tmp_path / "english.txt"
    path.write_text(ENGLISH, encoding="utf-8")
    return str(path)


def test_lines_become_lines_and_are_drawn(english, tmp_path, capsys):
    picture = tmp_path / "line-{}.png"
    assert translate.main([SHIPPED, english, "--beam", "2", "--attention", str(picture)]) == 0
    said = capsys.readouterr()
    assert said.out == GERMAN and said.err.count("is drawn in") == 2
    assert (tmp_path / "line-3.png").read_bytes().startswith(b"\x89PNG")
