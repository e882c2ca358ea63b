"""docs/architecture.md shows the code as it is."""

import re

import pytest

from tests import architecture
from tests.test_rooms import ROOT

TEXT = architecture.PAGE.read_text(encoding="utf-8")
NAMES = re.compile(r"`((?:attention|autograder|source|docs)/[\w/.*-]+)`")


@pytest.mark.parametrize("way", architecture.WAYS)
def test_every_arrow_of_a_way_is_in_the_code(way):
    assert list(architecture.wrong(way)) == []


def test_the_drawings_are_those_of_the_code():
    assert architecture.drawn(TEXT) == TEXT, "python -m tests.architecture draws them again"


def test_an_arrow_that_is_not_in_the_code_is_found(monkeypatch):
    ways = {"one": "building.source > grading.feedback.exporter > building.nothing"}
    monkeypatch.setattr(architecture, "WAYS", ways)
    first, second = architecture.wrong("one")
    assert first.endswith("grading.feedback.exporter imports the other")
    assert second == "one: there is no module autograder.building.nothing"


def test_every_place_that_the_page_names_is_there():
    named = [name for name in NAMES.findall(TEXT) if not re.search(r"\bname\.|NN", name)]
    assert len(named) > 20
    assert [name for name in named if not list(ROOT.glob(name))] == []
