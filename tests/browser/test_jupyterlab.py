"""What a student and an instructor do in JupyterLab, in a real browser."""

import re
import tomllib

import pytest

from autograder.releasing import release_files
from tests.browser import lab

pytestmark = [pytest.mark.browser, pytest.mark.long]

SLUG = "00_getting_started"
EXERCISE = "softmax"
# The sum runs over everything instead of along dim: a mistake that has a name.
WRONG = "return scores.exp() / scores.exp().sum()"
RIGHT = "return torch.softmax(scores, dim)"


def validate(page):
    """Press nbgrader's Validate; gives the text of the dialog that it opens."""
    page.locator(".jp-Toolbar-item").get_by_text("Validate", exact=True).click()
    dialog = page.locator(".jp-Dialog", has_text="Validation Results")
    dialog.wait_for()
    said = dialog.inner_text()
    dialog.get_by_role("button", name="Ok", exact=True).click()
    dialog.wait_for(state="detached")
    return said


@pytest.fixture
def page(browser, course, home):
    """Lesson 00, open in JupyterLab, all exercises solved but one."""
    path = lab.notebook_path(course, SLUG)
    lab.solve(path, lab.notebook_path(course, SLUG, "solutions"), leave_blank={EXERCISE})
    with lab.jupyter_lab(course, home) as address, browser() as opened:
        lab.open_lesson(opened, address, SLUG)
        yield opened


def test_a_student_sees_the_drawing_runs_all_is_wrong_and_then_right(page):
    sees_the_drawing(page)
    runs_all_and_reaches_the_last_cell_below_a_skipped_exercise(page)
    reads_what_is_wrong_and_then_that_all_is_right(page)


def sees_the_drawing(page):
    drawing = page.locator(".jp-RenderedMarkdown img[alt^='Queries and keys']")
    drawing.wait_for(state="attached")
    drawing.scroll_into_view_if_needed()
    drawing.evaluate("image => image.decode()")  # fails where there is nothing to show
    assert drawing.evaluate("image => image.naturalWidth") > 300


def runs_all_and_reaches_the_last_cell_below_a_skipped_exercise(page):
    lab.run_all(page, page.locator(".jp-NotebookPanel .jp-CodeCell").last)
    check = lab.cell_with(page, f"check.{EXERCISE}(")
    check.get_by_text(f"{EXERCISE}: nothing here yet").first.wait_for()
    prompts = page.locator(".jp-NotebookPanel .jp-CodeCell .jp-InputPrompt").all_inner_texts()
    assert prompts == [f"[{number}]:" for number in range(1, len(prompts) + 1)]


def reads_what_is_wrong_and_then_that_all_is_right(page):
    exercise = lab.cell_with(page, f"def {EXERCISE}(")
    check = lab.cell_with(page, f"check.{EXERCISE}(")

    lab.write_answer(page, EXERCISE, WRONG)
    assert lab.run_cell(page, exercise) == ""
    said = lab.run_cell(page, check)
    assert said.startswith(f"{EXERCISE}: "), said
    labels = re.findall(r"^  (\w+) ", said, re.MULTILINE)
    assert labels == ["got", "expected", "likely", "seed"]
    verdict = validate(page)
    assert "The following cell failed" in verdict
    assert f"check.{EXERCISE}({EXERCISE})" in verdict
    assert f"{EXERCISE}: the weights do not sum to 1" in verdict
    assert "likely" in verdict

    lab.write_answer(page, EXERCISE, RIGHT)
    assert lab.run_cell(page, exercise) == ""
    assert lab.run_cell(page, check).strip() == f"{EXERCISE}: correct."
    assert "Success! Your notebook passes all the tests." in validate(page)


def install_settings(home):
    """Put JupyterLab's settings of a release where pip puts them: into an ``etc/jupyter``."""
    text = (release_files.PAGES / "pyproject.toml.txt").read_text().replace("$dependencies", "")
    shared = tomllib.loads(text)["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    for name, place in shared.items():
        to = home / "config" / place.removeprefix("etc/jupyter/")
        to.parent.mkdir(parents=True)
        to.write_bytes((release_files.PAGES / name).read_bytes())


def test_a_release_has_no_tools_of_instructors_and_validates_in_a_narrow_window(
    browser, course, home
):
    install_settings(home)
    with lab.jupyter_lab(course, home) as address, browser(width=700) as page:
        lab.open_lesson(page, address, SLUG)
        page.get_by_role("menuitem", name="Nbgrader").click()
        menu = page.locator(".lm-Menu:not(.lm-MenuBar)")
        assert menu.inner_text().split("\t")[0] == "Assignment List"
        assert menu.get_by_role("menuitem").count() == 1
        page.keyboard.press("Escape")
        assert page.get_by_text("Create Assignment").count() == 0
        page.locator("[data-jp-item-name=toolbar-popup-opener]").click()
        assert f"{EXERCISE}: nothing here yet" in validate(page)
