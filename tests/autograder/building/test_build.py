"""Building: reproducible, only what changed, all or nothing, and every fault with its line."""

import argparse
import functools
import json
import stat

import nbformat
import pytest

from autograder import CourseError
from autograder.building.build import build
from autograder.commands import build as command_module


def names(paths):
    return sorted(f"{path.parent.parent.name}/{path.name}" for path in paths)


BOTH = ["lessons/00_mini.ipynb", "solutions/00_mini.ipynb"]


def outputs(path):
    notebook = nbformat.read(path, as_version=4)
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


# what a build makes, with a real kernel


def test_the_first_build_makes_both_notebooks(built_once):
    report = built_once.report
    assert names(report.changed) == BOTH
    assert report.executed == ["00_mini"]
    assert report.leftovers == []
    for path in (built_once.solution, built_once.lesson):
        nbformat.validate(json.loads(path.read_bytes()), relax_add_props=False)
        assert path.read_bytes().endswith(b"}\n")
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert len(built_once.generated()) == 2


def test_the_solution_is_executed_and_clean(built_once):
    texts = [[output.text for output in cell] for cell in outputs(built_once.solution)]
    assert texts == [
        ["by hand [2, 4]\n"],
        [],
        ["doubled: correct.\n"],
        [],
        ["tensor([1., 1.])\n"],
        [],
        ["Scale: correct.\n"],
    ]
    text = built_once.solution.read_text(encoding="utf-8")
    assert '"execution_count": null' in text
    assert '"execution_count": 1' not in text
    assert "iopub" not in text
    notebook = nbformat.read(built_once.solution, as_version=4)
    assert notebook.metadata.language_info == {"name": "python"}


def test_the_lesson_has_stubs_and_no_outputs(built_once):
    assert not any(outputs(built_once.lesson))
    lesson = nbformat.read(built_once.lesson, as_version=4)
    sources = {cell.id: cell.source for cell in lesson.cells}
    assert "NotImplementedError" in sources["exercise-doubled"]
    assert "SOLUTION" not in str(sources)
    assert sources["check-doubled"] == "check.doubled(doubled)"
    solution = nbformat.read(built_once.solution, as_version=4)
    assert [cell.id for cell in lesson.cells] == [cell.id for cell in solution.cells]


def test_a_build_from_nothing_gives_the_same_bytes(built):
    before = built.generated()
    for path in before:
        path.unlink()
    assert build(root=built.root).executed == ["00_mini"]
    assert built.generated() == before


# building again


def test_building_twice_changes_nothing(built, client):
    before = built.generated()
    times = {path: path.stat().st_mtime_ns for path in before}
    report = build(root=built.root)
    assert (report.changed, report.executed, report.leftovers) == ([], [], [])
    assert client.started == []
    assert built.generated() == before
    assert times == {path: path.stat().st_mtime_ns for path in before}


def test_only_changed_lessons_are_executed(two, client):
    before = two.generated()
    two.edit(two.root / "attention" / "more.py", "factor = 2.0", "factor = 4.0 / 2.0")
    report = build(root=two.root)
    assert client.started == report.executed == ["01_more"]
    assert names(report.changed) == ["lessons/01_more.ipynb", "solutions/01_more.ipynb"]
    assert {path for path, text in two.generated().items() if before[path] != text} == set(
        report.changed
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The end.", "The very end."),
        ("# ## Double", "# Words.\n\n# %% [markdown]\n# ## Double"),
        ("points=2", "points=4"),
        ("# %% demo=true", "# %%"),
    ],
)
def test_new_prose_changes_the_two_notebooks_of_its_lesson_and_runs_nothing(two, client, old, new):
    before, solution = two.generated(), outputs(two.solution)
    two.edit(two.source, old, new)
    report = build(root=two.root)
    after = two.generated()
    assert [names(report.changed), report.executed, client.started] == [BOTH, [], []]
    assert names(path for path in after if before.get(path) != after[path]) == BOTH
    assert outputs(two.solution) == solution
    assert any(solution)
    assert build(root=two.root, check=True).changed == []


@pytest.mark.parametrize(
    ("code", "name"),
    [('open("found.json")', "found.json"), ('evidence.read("mini", "x")', "evidence/mini.json")],
)
def test_new_measurements_run_the_lessons_that_read_them(two, client, code, name):
    data = two.root / "data" / name
    data.parent.mkdir(parents=True)
    data.write_text("1")
    two.edit(two.source, "print(halved", f"{code}\nprint(halved")
    build(root=two.root)
    client.started.clear()
    data.write_text("2")
    assert build(root=two.root).executed == ["00_mini"]


def test_only_the_lessons_asked_for_are_built(two, client):
    for path in two.generated():
        path.unlink()
    assert names(build(["more"], root=two.root).changed) == [
        "lessons/01_more.ipynb",
        "solutions/01_more.ipynb",
    ]
    with pytest.raises(CourseError, match="no lesson is called 'less'"):
        build(["less"], root=two.root)


def edit_notebook(path, change):
    notebook = nbformat.read(path, as_version=4)
    change(notebook)
    nbformat.write(notebook, path)


def change_output(notebook):
    notebook.cells[1].outputs[0].text = "by hand [2, 5]\n"


def change_code(notebook):
    notebook.cells[1].source += "\nprint()"


def drop_cell(notebook):
    del notebook.cells[2]


def change_id(notebook):
    notebook.cells[1].id = "another"


def drop_metadata(notebook):
    del notebook.metadata["autograder"]


@pytest.mark.parametrize(
    ("change", "executed"),
    [
        (change_output, True),
        (change_id, True),
        (drop_metadata, True),
        (change_code, False),
        (drop_cell, False),
    ],
)
def test_a_solution_edited_by_hand_is_restored(built, client, change, executed):
    before = built.generated()
    edit_notebook(built.solution, change)
    assert built.solution in build(root=built.root, check=True).changed
    build(root=built.root)
    assert client.started == ["00_mini"] * executed
    if executed:
        assert outputs(built.solution)[0][0].text == "an output"
    else:
        assert built.generated() == before


@pytest.mark.parametrize("content", [b"", b"not json", b"[]", b"{}", b"\xff\xfe", b'{"cells": 3}'])
@pytest.mark.parametrize("kind", ["solution", "lesson"])
def test_a_damaged_notebook_is_made_anew(built, client, kind, content):
    before = built.generated()
    getattr(built, kind).write_bytes(content)
    build(root=built.root)
    assert client.started == (["00_mini"] if kind == "solution" else [])
    assert len(built.generated()) == 2
    if kind == "lesson":
        assert built.generated() == before


# --check


@pytest.mark.parametrize(
    ("change", "differ"),
    [
        (lambda made: made.edit(made.source, "The end.", "The very end."), BOTH),
        (lambda made: made.edit(made.library, "Double every", "Twice every"), BOTH),
        (lambda made: made.edit(made.checks, "some values", "a few values"), []),
        (lambda made: made.lesson.unlink(), BOTH[:1]),
        (lambda made: made.lesson.write_text(made.lesson.read_text() + "\n"), BOTH[:1]),
        (lambda made: edit_notebook(made.lesson, drop_cell), BOTH[:1]),
    ],
)
def test_check_lists_what_differs_and_touches_nothing(built, client, change, differ):
    change(built)
    before = built.generated()
    report = build(root=built.root, check=True)
    assert names(report.changed) == differ
    assert client.started == []
    assert built.generated() == before


# leftovers


# the command


@pytest.fixture
def command(built, client, monkeypatch):
    """Run ``autograder build`` on the small course; returns the exit status."""

    def run(*lessons, check=False):
        return command_module.run(argparse.Namespace(lessons=lessons, check=check))

    monkeypatch.setattr(command_module, "ROOT", built.root)
    monkeypatch.setattr(command_module, "build", functools.partial(build, root=built.root))
    return run


def test_the_command_says_what_it_wrote(built, command, capsys):
    assert command() == 0
    assert capsys.readouterr().out == "Everything is up to date.\n"
    built.edit(built.source, "by hand", "with care")
    assert command("mini") == 0
    said = capsys.readouterr()
    assert (
        said.out == "wrote  solutions/00_mini/00_mini.ipynb\nwrote  lessons/00_mini/00_mini.ipynb\n"
    )
    assert "00_mini" in said.err  # the progress bar
    assert "10/10" in said.err
    assert command(check=True) == 0


def test_the_command_lists_what_is_left_over(built, command, capsys):
    (built.lesson.parent.parent / "07_gone").mkdir()
    (built.lesson.parent.parent / "07_gone" / "07_gone.ipynb").write_text("{}")
    for check in (False, True):
        assert command(check=check) == 1
        assert capsys.readouterr().out == (
            "left over  lessons/07_gone/07_gone.ipynb: its source is gone; delete it\n"
        )
