"""The grading says no less, and no more that is false, than its card in docs/truth.md."""

import json

import pytest

from autograder.building.lesson import find
from autograder.inside import places
from tests.locked import card

EVERY = 4  # one answer in so many is judged here; `python -m tests.locked` judges all
KEPT = json.loads(card.CARD.read_text(encoding="utf-8"))
REMEDY = (
    "`python -m tests.locked {} --details FILE` writes what is said of each answer. Where the task "
    "of an exercise has changed, see CONTRIBUTING.md, A changed exercise."
)
QUICK = ("00", "01", "02", "04", "05", "12", "14")  # of whole models each takes 5 to 20 s
CI = ("20",)  # the others are make test-all's
LESSONS = [
    pytest.param(
        path.stem[3:],
        marks=[pytest.mark.long] * (path.stem[:2] not in QUICK)
        + [pytest.mark.every] * (path.stem[:2] not in QUICK + CI),
    )
    for path in find()
]


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_lesson_has_fallen(lesson, monkeypatch):
    monkeypatch.setattr(places, "SECONDS", 30)  # a machine that is busy finds as much
    row, _ = card.measure(lesson, EVERY)
    assert lesson in KEPT[str(EVERY)]
    assert card.fallen({lesson: row}, KEPT[str(EVERY)]) == [], REMEDY.format(lesson)


def test_the_second_set_is_rejected_and_told_less_without_stored_mistakes():
    row, details = card.measure_second("getting_started")
    assert row["wrong"] == row["rejected"] == len(details) > 0
    assert row["told"] > row["alone"] > 0


def test_what_falls_is_said():
    row = dict.fromkeys(card.COLUMNS, 3)
    assert card.fallen({"a": {**row, "named": 1}}, {"a": row}) == []
    worse = {**row, "rejected": 2, "false": 4}
    assert card.fallen({"a": worse}, {"a": row}) == [
        "a: rejected 3 before, 2 now",
        "a: false 3 before, 4 now",
    ]


def test_the_page_shows_the_card():
    page = card.PAGE.read_text(encoding="utf-8")
    for line in card.table(KEPT["1"]):
        assert line in page
