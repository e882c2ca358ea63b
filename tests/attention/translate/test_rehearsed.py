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


def test_a_file_is_scored_there(tmp_path, capsys):
    source, reference = tmp_path / "english", tmp_path / "german"
    source.write_text("seven\ntwelve\n", encoding="utf-8")
    reference.write_text("sieben\nzwölf\n", encoding="utf-8")
    assert translate.main([SHIPPED, "--score", str(source), str(reference), "--beam", "2"]) == 0
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert said["exact"] == "1.0" and 0 < float(said["loss"]) < 1
