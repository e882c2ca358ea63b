"""The table at the top of a page of feedback says what counts, why, and nothing that runs."""

import re

import nbformat
import pytest
from bs4 import BeautifulSoup

from autograder import cell_metadata
from autograder.checking.toolbox.failure import not_defined
from autograder.grading.execution.assemble import assemble, error_output
from autograder.grading.feedback.score_table import summary
from autograder.grading.notebook.submission import Submission
from tests.autograder.payloads import PAYLOADS

HINT = "The exponentials are not divided by their sum."
REASON = ["softmax: the rows do not sum to 1.", "  got       1.5", f"  likely    {HINT}"]
GRADES = {"notebook": "00_mini", "score": 0.0, "max_score": 2.0, "late_penalty": 0}


def answer(name, comment=None, **more):
    metadata = {"nbgrader": {"solution": True, "grade_id": name, "comment": comment}, **more}
    return nbformat.v4.new_code_cell("...", metadata=metadata)


def check(name, score, reason=(), most=2.0, title=""):
    notes = cell_metadata.metadata("check", name, most)["nbgrader"] | {"score": score}
    metadata = {"nbgrader": notes, **cell_metadata.to_run(cell_metadata.OUTSIDE, title=title)}
    cell = nbformat.v4.new_code_cell(f"check.{name}({name})", metadata=metadata)
    if reason:
        cell.outputs = [nbformat.from_dict(error_output("CheckFailed", reason))]
    return cell


def table(*cells, problem="", **grades):
    """The made HTML, parsed."""
    notebook = nbformat.v4.new_notebook(
        cells=list(cells), metadata={"autograder": {"problem": problem}}
    )
    return BeautifulSoup(summary(notebook, GRADES | grades), "html.parser")


def read(html):
    """Texts of the rows in the table's body: exercise, points, reason."""
    return [
        [" ".join(cell.get_text(" ").split()) for cell in row.find_all(["th", "td"])]
        for row in html.tbody.find_all("tr")
    ]


def test_a_lost_point_has_its_first_sentence_its_hint_and_links_to_answer_and_reason():
    html = table(answer("softmax"), check("softmax", 0.0, REASON, title="Exercise 0.2 · `softmax`"))
    ((name, points, why),) = read(html)
    assert (name, points) == ("Exercise 0.2 · softmax", "0 / 2")
    assert why == f"the rows do not sum to 1. ( the whole reason ) Likely: {HINT}"
    assert [one["href"] for one in html.tbody.find_all("a")] == [
        "#comment-softmax",
        "#check_softmax",
    ]


def test_a_right_answer_is_correct_and_an_untouched_one_not_attempted():
    stub = ["mean: nothing here yet: write about 1 line."]
    part = ["Scale: nothing here yet: write about 1 line in forward."]
    html = table(
        *(answer("softmax"), check("softmax", 2.0)),
        *(answer("mean", "No response."), check("mean", 0.0, stub)),
        *(answer("mean2", "Do try!"), check("mean2", 0.0, [stub[0].replace("mean", "mean2")])),
        *(answer("Scale"), check("Scale", 0.0, part)),
        *(
            answer(
                "gone", **cell_metadata.to_run(cell_metadata.INSIDE, missing=cell_metadata.MISSING)
            ),
            check("gone", 0.0, REASON),
        ),
    )
    whys = [why for _, _, why in read(html)]
    assert whys == [
        "correct",
        "not attempted",
        "not attempted Comment: Do try!",
        "nothing here yet: write about 1 line in forward. ( the whole reason )",
        "not attempted",
    ]


def test_why_nothing_is_defined_is_said_in_the_table():
    stops = "its cell stops with SyntaxError: '(' was never closed, line 1: def softmax(<b>"
    reason = str(not_defined("softmax", stops)).splitlines()
    ((_, _, why),) = read(table(answer("softmax"), check("softmax", 0.0, reason)))
    assert why == f"it is not defined: {stops} ( the whole reason )"
    alone = str(not_defined("softmax", "")).splitlines()
    ((_, _, why),) = read(table(answer("softmax"), check("softmax", 0.0, alone)))
    assert why == "it is not defined. ( the whole reason )"


def printed(name, score, reason, before=""):
    """A check that gives a part of the points: it prints the reason, and its value are points."""
    cell = check(name, score)
    text = before + "\n".join(reason) + "\n"
    cell.outputs = [
        nbformat.v4.new_output("stream", text=text),
        nbformat.v4.new_output("execute_result", data={"text/plain": f"{score:g}"}),
    ]
    return cell


def test_a_part_of_the_points_has_its_reason_and_its_cost():
    costs = "  costs     1 of 2 points: with a <mask> (1)"
    lost = [*REASON, costs, " " * 12 + "¼ of the rest goes for this: too slow"]
    careless = "mean: right. One thing to mend: on a GPU this fails."
    html = table(
        *(answer("softmax"), printed("softmax", 0.75, lost, "softmax is great\n")),
        *(answer("mean"), printed("mean", 1.5, [careless, "  costs     ¼ of 2 points"])),
        *(answer("mean"), printed("mean", 2.0, [careless, "  costs     nothing"])),
        *(answer("mean"), printed("mean", 2.0, ["mean: correct."])),
        *(answer("mean"), printed("mean", 2.0, ["mean of 2"])),
    )
    first, *others = read(html)
    assert first[1:] == [
        "0.75 / 2",
        f"the rows do not sum to 1. ( the whole reason ) Likely: {HINT} Costs: 1 of 2 points: "
        "with a <mask> (1); ¼ of the rest goes for this: too slow",
    ]
    mend = "right. One thing to mend: on a GPU this fails. ( the whole reason ) Costs:"
    assert [why for *_, why in others] == [
        f"{mend} ¼ of 2 points",
        f"{mend} nothing",
        "correct",
        "correct",
    ]


@pytest.mark.parametrize(
    ("score", "reason", "shown"),
    [(1.5, REASON, "the check gave 0 of 2."), (0.5, (), "the check gave 2 of 2.")],
)
def test_a_score_changed_by_hand_counts_and_says_what_the_check_gave(score, reason, shown):
    html = table(answer("softmax", "Half\nright."), check("softmax", score, reason))
    ((_, points, why),) = read(html)
    assert points == f"{score} / 2"
    assert f"Changed by your instructor: {shown} Comment: Half right." in why
    assert html.find(class_="comment").get_text() == "Comment: Half\nright."


def test_extra_points_a_late_penalty_and_the_total():
    html = table(answer("softmax"), check("softmax", 2.5), score=1.25, late_penalty=1.25)
    assert read(html)[0][1] == "2.5 / 2"
    assert html.tfoot.get_text("|").split("|") == ["Handed in late", "−1.25", "Total", "1.25 / 2"]
    assert "late" not in table(check("softmax", 2.0)).tfoot.get_text()
    html = table(check("softmax", 2.5), late_penalty=1, came="Handed in <then>, 1 h late")
    assert html.tfoot.get_text("|").split("|")[:2] == ["Handed in <then>, 1 h late", "−1"]
    assert "Handed in then" in table(check("softmax", 2.0), came="Handed in then").tfoot.get_text()


def test_an_unreadable_hand_in_has_the_sentence_once():
    html = table(answer("softmax", "No response."), check("softmax", 0.0, REASON), problem="no <x>")
    assert html.find(class_="problem").get_text() == "Not graded: no <x>."
    assert read(html)[0][2] == "not graded"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_in_it_runs(payload):
    line = payload.replace("\n", " ")
    reason = [f"softmax: {line}", f"  likely    {line}"]
    html = table(answer("softmax", payload), check("softmax", 0.0, reason), problem=None)
    allowed = r"header|h1|table|caption|t(head|body|foot|r|h|d)|a|code|p|b"
    assert all(re.fullmatch(allowed, tag.name) for tag in html.find_all(True))
    assert {name for tag in html.find_all(True) for name in tag.attrs} == {"class", "scope", "href"}
    assert html.tbody.get_text().count(line.split()[0]) >= 3
    assert html.header["class"] == ["tex2jax_ignore", "mathjax_ignore"]


def test_an_exercise_is_called_as_in_the_solved_notebook():
    def text(source):
        return {"cell_type": "markdown", "metadata": {}, "source": source}

    def graded(name):
        metadata = cell_metadata.metadata("check", name, 1)
        return {"cell_type": "code", "metadata": metadata, "source": f"check.{name}({name})"}

    cells = [
        text("# Lesson\n\ntext"),
        text("## Part"),
        text("### Exercise 1 · `one`\n\nMore."),
    ]
    cells += [
        graded("one"),
        text("no heading"),
        graded("two"),
        text("### Exercise 3"),
        graded("x_y"),
    ]
    made = assemble({"cells": cells, "metadata": {}}, Submission())
    checks = [cell for cell in made["cells"] if cell_metadata.is_check(cell)]
    assert [cell_metadata.title(cell) for cell in checks] == [
        "Exercise 1 · `one`",
        "",
        "Exercise 3",
    ]
    given = [
        check(name, 1.0, (), 1.0, cell_metadata.title(cell))
        for name, cell in zip(("one", "two", "x_y"), checks, strict=True)
    ]
    names = [one.get_text() for one in table(*given).select("tbody th")]
    assert names == ["Exercise 1 · one", "two", "Exercise 3 · x_y"]
