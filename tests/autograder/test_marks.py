"""What a cell is, by its metadata, whatever they hold."""

import pytest
from nbformat import from_dict

from autograder import marks

KINDS = {
    "exercise": {"solution": True, "known": True},
    "check": {"check": True, "known": True},
    "given": {"known": True},
    "broken": {"known": True},
    "demo": {"demo": True},
    "code": {},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", [dict, from_dict])
def test_what_is_written_is_read(kind, made):
    cell = made({"cell_type": "code", "metadata": marks.metadata(kind, "softmax", 2)})
    found = {
        "check": marks.is_check(cell),
        "solution": marks.is_solution(cell),
        "known": marks.is_known(cell),
        "demo": marks.is_demo(cell),
    }
    assert found == {**dict.fromkeys(found, False), **KINDS[kind]}
    assert marks.exercise(cell) == ("softmax" if found["known"] else "")
    assert marks.points(cell) == (2 if kind == "check" else 0)
    identity = "check_softmax" if kind == "check" else marks.exercise(cell)
    assert marks.grade_id(cell) == identity
    assert marks.run(cell) == ""


@pytest.mark.parametrize("how", [marks.INSIDE, marks.OUTSIDE, marks.SKIP])
def test_how_a_cell_is_run(how):
    assert marks.run({"metadata": marks.to_run(how)}) == how
    assert not marks.is_missing({"metadata": marks.to_run(how)})
    assert marks.is_missing({"metadata": marks.to_run(how, missing=True)})


ODD = [{}, {"metadata": None}, {"metadata": []}, {"metadata": {"nbgrader": 1, "autograder": "x"}}]
ODD += [{"metadata": {"nbgrader": {"grade_id": 5}, "autograder": {}}}]


@pytest.mark.parametrize("cell", ODD)
def test_odd_metadata_say_nothing(cell):
    asked = [marks.is_check, marks.is_solution, marks.is_known, marks.is_demo, marks.is_missing]
    assert not any(ask(cell) for ask in asked)
    assert (marks.grade_id(cell), marks.exercise(cell), marks.run(cell)) == ("", "", "")
