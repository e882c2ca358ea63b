"""The writer's page as a file: one, closed, with the links that were asked for."""

import re

import pytest

from attention.pages import glass_translator, writer_page
from attention.provided.models.decoders import small_writer
from autograder.commands import cli


@pytest.fixture(scope="module")
def text():
    return writer_page.page()


def test_the_page_names_no_address_and_no_file(text):
    outside = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
    assert re.findall(r"https?://|\bsrc=|@import|url\(|<link|<iframe|href=", outside) == []


def test_the_two_pages_lead_to_each_other_where_that_is_asked():
    assert '<a href="glass.html">' in writer_page.page(translator="glass.html")
    assert '<a href="writer.html">' in glass_translator.page(writer="writer.html")
    assert '<a href="../13_decoding.html">Lesson 13' in writer_page.page("../{lesson}.html")


def test_a_missing_model_gets_a_sentence_that_says_how_to_make_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(small_writer, "PATH", tmp_path / "modern_decoder.safetensors")
    assert cli.main(["glass", "writer", "--to", str(tmp_path / "writer.html")]) == 1
    said = capsys.readouterr().err
    assert f"{tmp_path / 'modern_decoder.safetensors'} is missing" in said
    assert "python -m benchmarks.small_writer" in said
    assert cli.main(["glass", "writer", "--to", str(tmp_path)]) == 1
    assert "is a folder: name the file to write, as in " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
