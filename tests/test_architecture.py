"""What docs/architecture.md names and draws is there."""

import re

from tests.test_rooms import MODULES, ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMES = re.compile(r"`((?:attention|autograder|source|docs)/[\w/.*-]+)`")
BOX = re.compile(r"^  subgraph (\S+)|^    \w+\[\"<b>(\w+)</b>", re.MULTILINE)


def test_every_place_that_the_page_names_is_there():
    named = [name for name in NAMES.findall(TEXT) if not re.search(r"\bname\.|NN", name)]
    assert len(named) > 20
    assert [name for name in named if not list(ROOT.glob(name))] == []


def test_every_module_of_a_drawing_is_there():
    drawn, room = [], ""
    for new, module in BOX.findall(TEXT):
        room = new or room
        drawn += [f"autograder.{room}.{module}"] * bool(module)
    assert len(drawn) > 30
    assert [one for one in drawn if one not in MODULES] == []
