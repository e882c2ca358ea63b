"""The recorded experiments: that they are complete, and that one point of each comes out again."""

import json

import numpy as np
import pytest

from attention.experiments.__main__ import main, read
from attention.experiments.recorded import path_of
from attention.experiments.runner import as_stored, lessons, run_point
from autograder import ROOT
from autograder.building.gates.text import evidence

LESSONS = lessons()
# Another kind of processor rounds otherwise, and so moves the end of a training, as a seed does: by
# so many times what lies between the seeds at most.
CPUS = 3
RECORDED = [
    (lesson, name)
    for lesson, module in LESSONS.items()
    for name in getattr(module, "EXPERIMENTS", {})
]
# Those with a point that takes seconds.
AGAIN = [(lesson, name) for lesson, name in RECORDED if LESSONS[lesson].EXPERIMENTS[name].again]
QUICK = {  # those that take less than half a second
    *("one step", "05 divided by d", "checkpointing", "04 learned queries and keys"),
    *("05 fetch without a matrix", "07 without W_o", "how many heads"),
    *("09 fewer layers", "04 pairs that a rank holds"),
}
LENGTHY = {  # those that take more than ten seconds, of lessons that have others
    *("hidden words", "positions", "tied tables", "sampling x smoothing", "samples and beams"),
    *("cache that stays", "learning rates", "gradient noise", "more sentences", "a strange batch"),
}
# Of the others, those that CI trains again: one a lesson.
FIRST = {lesson: name for lesson, name in reversed(AGAIN) if name not in QUICK | LENGTHY}


@pytest.mark.parametrize(("lesson", "name"), RECORDED)
def test_every_point_is_recorded_and_no_other(lesson, name):
    wanted = [as_stored(point) for point in LESSONS[lesson].EXPERIMENTS[name].points]
    found = [row["point"] for row in read(path_of(lesson))[name]]
    assert found == wanted


@pytest.mark.parametrize(("lesson", "name"), RECORDED)
def test_a_recorded_experiment_has_three_seeds(lesson, name):
    one = LESSONS[lesson].EXPERIMENTS[name]
    assert one.seeds.startswith("none needed") or len(one.seeds.split(", ")) >= 3


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_claims_of_a_lesson_are_whole_and_stand_where_they_say(lesson):
    rows = [row.strip("| ").split(" | ") for row in evidence(lesson, ROOT)]
    assert [row for row in rows if len(row) != 5 or not all(map(str.strip, row))] == []
    places = {row[4] for row in rows}
    recorded = {f"recorded: {name}" for name in getattr(LESSONS[lesson], "EXPERIMENTS", {})}
    assert {place for place in places if place.startswith("recorded: ")} == recorded
    sources = (ROOT / "source").glob(f"[0-9][0-9]_{lesson}.py")
    said = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    headings = "\n".join(line for line in said.splitlines() if line.startswith("# #"))
    assert [place for place in places - recorded if headings and place not in headings] == []


def _marks(lesson, name):
    if name in QUICK:
        return []
    return [pytest.mark.long] + [pytest.mark.every] * (name != FIRST[lesson])


@pytest.mark.parametrize(
    ("lesson", "name"), [pytest.param(*one, marks=_marks(*one)) for one in AGAIN]
)
def test_a_point_comes_out_again(lesson, name):
    one = LESSONS[lesson].EXPERIMENTS[name]
    assert one.again in one.points
    rows, point = read(path_of(lesson))[name], as_stored(one.again)
    (recorded,) = [row["result"] for row in rows if row["point"] == point]
    same = [row["result"] for row in rows if _without_seed(row["point"]) == _without_seed(point)]
    found = run_point(lesson, name, one.again)
    assert found.keys() == recorded.keys()
    for key, value in recorded.items():
        numbers = np.atleast_1d(value)
        allowed = 0.05 + 0.05 * np.abs(numbers) + CPUS * np.ptp([one[key] for one in same], axis=0)
        assert np.shape(found[key]) == np.shape(value), key
        assert (np.abs(np.atleast_1d(found[key]) - numbers) <= allowed).all(), (key, found[key])


def _without_seed(point):
    return {key: value for key, value in point.items() if key != "seed"}


@pytest.mark.long
def test_what_is_missing_is_run_and_what_is_not_asked_for_is_dropped(tmp_path):
    lesson, name = RECORDED[0]
    recorded = read(path_of(lesson))
    again = as_stored(LESSONS[lesson].EXPERIMENTS[name].again)
    known = [row for row in recorded[name] if row["point"] != again]
    path = tmp_path / "found.json"
    stray = {"point": {"seed": 99}, "result": {}}
    path.write_text(json.dumps({"experiments": {name: [*known, stray]}}), encoding="utf-8")
    seed = str(again["seed"])
    assert main([lesson, "--only", name, "--seeds", seed, "--to", str(path)]) == 0
    found = [row["point"] for row in read(path)[name]]
    assert found == [row["point"] for row in recorded[name]]
