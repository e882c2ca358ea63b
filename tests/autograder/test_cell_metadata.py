"""What a cell is, by its metadata, whatever they hold."""

import pytest
from nbformat import from_dict

from autograder import cell_metadata

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
    cell = made({"cell_type": "code", "metadata": cell_metadata.metadata(kind, "softmax", 2)})
    found = {
        "check": cell_metadata.is_check(cell),
        "solution": cell_metadata.is_solution(cell),
        "known": cell_metadata.is_known(cell),
        "demo": cell_metadata.is_demo(cell),
    }
    assert found == {**dict.fromkeys(found, False), **KINDS[kind]}
    assert cell_metadata.exercise(cell) == ("softmax" if found["known"] else "")
    assert cell_metadata.points(cell) == (2 if kind == "check" else 0)
    identity = "check_softmax" if kind == "check" else cell_metadata.exercise(cell)
    assert cell_metadata.grade_id(cell) == identity
    assert cell_metadata.run(cell) == ""


@pytest.mark.parametrize("how", [cell_metadata.INSIDE, cell_metadata.OUTSIDE, cell_metadata.SKIP])
def test_how_a_cell_is_run(how):
    assert cell_metadata.run({"metadata": cell_metadata.to_run(how)}) == how
    assert not cell_metadata.missing({"metadata": cell_metadata.to_run(how)})
    assert cell_metadata.missing({"metadata": cell_metadata.to_run(how, missing="gone")})


ODD = [{}, {"metadata": None}, {"metadata": []}, {"metadata": {"nbgrader": 1, "autograder": "x"}}]
ODD += [{"metadata": {"nbgrader": {"grade_id": 5}, "autograder": {}}}]


@pytest.mark.parametrize("cell", ODD)
def test_odd_metadata_say_nothing(cell):
    asked = [
        cell_metadata.is_check,
        cell_metadata.is_solution,
        cell_metadata.is_known,
        cell_metadata.is_demo,
        cell_metadata.missing,
    ]
    assert not any(ask(cell) for ask in asked)
    assert (
        cell_metadata.grade_id(cell),
        cell_metadata.exercise(cell),
        cell_metadata.run(cell),
    ) == ("", "", "")
