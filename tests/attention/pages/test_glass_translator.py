"""The translator's page as a file: one, small, closed, with the links that were asked for."""

import re

import pytest

from attention.pages import glass_translator
from attention.provided.models import translators
from attention.provided.models.bert import files
from autograder.building.book.write import MADE
from autograder.commands import cli


@pytest.fixture(scope="module")
def text():
    return glass_translator.page()


def test_the_page_names_no_address_and_no_file(text):
    outside = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
    addresses = set(re.findall(r"https?://[^\s\"'`]+", outside))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a language, not a place
    assert re.findall(r"\bsrc=|@import|url\(|<link|<iframe", outside) == []
    assert "href=" not in outside.replace('href="#', "")


def test_its_policy_allows_what_stands_in_it_and_nothing_else(text):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1].replace("&#39;", "'")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("style-src").startswith("'sha256-")
    assert rules.pop("script-src").startswith("'sha256-")
    assert rules == dict.fromkeys(["default-src", "base-uri", "form-action"], "'none'")


def test_lessons_are_named_and_linked_only_where_that_is_asked(text):
    assert "Lesson 10 · How do the pieces make a translator?" in text
    linked = glass_translator.page("../{lesson}.html#top")
    assert (
        '<a href="../10_transformer.html#top">'
        "Lesson 10 · How do the pieces make a translator?</a>" in linked
    )


def test_a_missing_model_gets_a_sentence_that_says_how_to_make_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(translators, "CHECKPOINTS", tmp_path)
    assert cli.main(["glass", "--to", str(tmp_path / "glass.html")]) == 1
    said = capsys.readouterr().err
    assert f"{tmp_path / 'transformer.safetensors'} is missing" in said
    assert "python -m attention.train.shipped transformer" in said
    assert list(tmp_path.iterdir()) == []


def test_a_missing_bert_gets_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(files, "STAND_IN", tmp_path / "small_bert.safetensors")
    monkeypatch.setattr(files, "small", files.small.__wrapped__)  # without its memory
    assert cli.main(["glass", "--to", str(tmp_path / "glass.html")]) == 1
    assert f"{tmp_path / 'small_bert.safetensors'} is missing" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_where_the_page_is_written_a_book_can_be_built():
    assert (
        glass_translator.PAGE.parent.name in MADE
    )  # else the book would refuse a folder with other things
    assert glass_translator.PAGE.parent.parent == cli.parser("book").parse_args(["book"]).to
