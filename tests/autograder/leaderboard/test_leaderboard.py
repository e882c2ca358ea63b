"""The board: entries are data, budgets hold, only what is new is trained, nobody is named."""

import csv
import json
import shutil

import nbformat
import pytest

from autograder import CourseError
from autograder.commands import cli
from autograder.grading.classroom.folders import Course
from autograder.grading.notebook.submission import Cell
from autograder.leaderboard import board, entries, numbers, rendering
from tests.autograder.leaderboard.sources import in_source

SLUG = "11_training"


def entry(text):
    return entries.find([Cell("code", text)], numbers.KINDS, numbers.USUAL)


def test_an_entry_is_read_as_data_and_what_is_left_out_is_as_in_the_lesson():
    found = entry(
        'x = 1\nleaderboard = {\n    "name": " the\\n fast one ",\n    "rate": 1,  # high\n}'
    )
    assert found.name == "the fast one"
    assert found.settings == numbers.USUAL | {"rate": 1.0}
    assert entry('leaderboard = {"name": ""}') is None
    assert entry("print('no leaderboard = here')") is None
    cells = [
        Cell("code", 'leaderboard = {"name": "old"}'),
        Cell("code", 'leaderboard = {"name": "new"}'),
    ]
    assert entries.find(cells, numbers.KINDS, numbers.USUAL).name == "new"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("leaderboard = __import__('os').system('true')", "plain numbers"),
        ("leaderboard = {", "plain numbers"),
        ("leaderboard = {'name': 'a', 'rate': open('x')}", "plain numbers"),
        ("leaderboard = " + "[" * 999 + "]" * 999, "plain numbers"),
        ("leaderboard = 3", "no dict"),
        ("leaderboard = {'name': 3}", "a text"),
        ("leaderboard = {'name': 'a', 'learning_rate': 1}", "'learning_rate' is no setting"),
        ("leaderboard = {'name': 'a', 'rate': 'high'}", "rate='high' is not a number"),
        ("leaderboard = {'name': 'a', 'rate': 1e999}", "not between 0 and 1"),
        ("leaderboard = {'name': 'a', 'steps': True}", "steps=True is not a whole number"),
        ("leaderboard = {'name': 'a', 'steps': 0x" + "f" * 99 + "}", "a number of 396 bits"),
        ("leaderboard = {'name': 'a', 'schedule': []}", "is none of noam, rise, constant"),
        ("leaderboard = {'name': 'a', 'pre_norm': 1}", "neither True nor False"),
        ("leaderboard = {'name': '" + "a" * 6000 + "'}", "at most 5000"),
    ],
)
def test_what_is_no_entry_is_refused_in_a_sentence(text, words):
    with pytest.raises(entries.Refused, match=words.replace("[", r"\[")):
        entry(text)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"steps": 200, "sentences": 64}, "12800 sentences, and the budget is 6600"),
        ({"d_model": 128}, "parameters, and the budget is 200000"),
        ({"n_heads": 5}, "n_heads=5 does not divide d_model=64"),
    ],
)
def test_over_the_budget_is_refused_with_both_numbers(changed, words):
    with pytest.raises(entries.Refused, match=words):
        numbers.refuse(numbers.USUAL | changed)
    assert numbers.refuse(numbers.USUAL) <= numbers.PARAMETERS
    assert in_source(SLUG, numbers) == numbers.USUAL


def test_held_out_numbers_are_of_no_training_and_of_no_lesson():
    drawn = numbers.held_out(5)
    corpus = numbers.numbers()
    known = {pair[0] for pair in [*corpus.train, *corpus.test]}
    assert len(drawn) == 300
    assert not known & {pair[0] for pair in drawn}
    assert drawn == numbers.held_out(5)
    assert drawn != numbers.held_out(6)


def test_a_short_training_is_repeatable_and_gives_a_share(monkeypatch):
    monkeypatch.setattr(numbers, "EACH", 2)
    settings = numbers.USUAL | {"d_model": 8, "d_ff": 8, "n_layers": 1, "steps": 7, "sentences": 4}
    settings |= {"averaged": 2, "dropout": 0.1}
    first = numbers._trained(settings, 1).state_dict()
    again = numbers._trained(settings, 1).state_dict()
    assert all((first[name] == again[name]).all() for name in first)
    assert numbers.score(settings, 0, secret=3) == 0.0


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course in which three handed in, and training is an invention."""
    trained = []

    def score(settings, seed, secret):
        trained.append((settings["rate"], seed))
        return min(1.0, settings["rate"] * 10 + seed / 100)

    monkeypatch.setattr(numbers, "score", score)
    monkeypatch.setattr(numbers, "refuse", lambda settings: 1000 + refused(settings))
    for student, text in {
        "zoe": '{"name": "=fast<b>", "rate": 0.05}',
        "ben": '{"name": "=fast<b>", "rate": 0.02}',
        "ada": '{"name": "too much", "steps": 6600}',
        "dan": '{"name": ""}',
        "quentin": "{1: 2",
    }.items():
        folder = tmp_path / "class" / "submitted" / student / SLUG
        folder.mkdir(parents=True)
        cell = nbformat.v4.new_code_cell(f"leaderboard = {text}")
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / f"{SLUG}.ipynb")
    (tmp_path / "solutions" / SLUG).mkdir(parents=True)
    (tmp_path / "solutions" / SLUG / f"{SLUG}.ipynb").write_text("{}")
    return tmp_path, trained


def test_without_an_entry_the_command_says_so(course, capsys):
    folder, _ = course
    shutil.rmtree(folder / "class" / "submitted")
    assert cli.main(["leaderboard", "11", "--course", str(folder)]) == 0
    assert f"No notebook of {SLUG} has an entry yet" in capsys.readouterr().out


def refused(settings):
    if settings["steps"] * settings["sentences"] > numbers.SENTENCES:
        raise entries.Refused("too many sentences, and the budget is 6600")
    return 0


def test_the_command_ranks_by_name_given_and_trains_only_what_is_new(course, capsys):
    folder, trained = course
    assert cli.main(["leaderboard", "11", "--course", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "2 entries, 3 measured now, 2 refused" in said
    assert len(trained) == 9
    assert cli.main(["leaderboard", "11", "--course", str(folder)]) == 0
    assert len(trained) == 9
    said += capsys.readouterr().out
    out = folder / "class" / "leaderboard"
    page, table = (out / f"{SLUG}.{kind}" for kind in ("html", "csv"))
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [row["entry"] for row in rows] == ["'=fast<b> (2)", "'=fast<b>", "as in the lesson"]
    assert [float(row["mean"]) for row in rows] == [0.51, 0.21, 0.083]
    text = page.read_text(encoding="utf-8")
    assert "<b>too much</b>: too many sentences, and the budget is 6600." in text
    assert "=fast<b>" not in text
    assert "rate 0.05" in text
    kept = (out / f"{SLUG}.json").read_text(encoding="utf-8")
    for name in ("zoe", "ben", "ada", "dan", "quentin"):
        assert name not in said + text + kept + table.read_text(encoding="utf-8")


def test_what_is_damaged_or_unknown_is_said(course, capsys):
    folder, _ = course
    with pytest.raises(
        CourseError, match="10_transformer has no leaderboard; there are: 11_.*12_.*13_.*14_.*16_"
    ):
        board.Board(Course(folder), "10_transformer")
    one = board.Board(Course(folder), SLUG)
    one.read()
    one.measure()
    rendering.write(one)
    file = folder / "class" / "leaderboard" / f"{SLUG}.json"
    assert json.loads(file.read_text())["secret"] == one._kept["secret"]
    file.write_text("{")
    assert cli.main(["leaderboard", "11", "--course", str(folder)]) == 1
    assert "is damaged" in capsys.readouterr().err
