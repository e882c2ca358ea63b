"""A student and an instructor on a JupyterHub, from release to feedback, in a real browser."""

import os
import re

import pytest

from autograder.releasing.write import release
from tests import needs
from tests.browser import hub, lab

pytestmark = [
    pytest.mark.browser,
    needs.needs("bubblewrap"),
    needs.needs("node-configurable-http-proxy"),
    needs.needs("jupyterhub"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may start other users' servers"),
]

SLUG = "00_getting_started"
LEFT_OUT = "softmax"  # this exercise stays as it was handed out


@pytest.fixture
def places(tmp_path):
    """The hub's places: see ``hub.prepare``."""
    release(["00"], tmp_path / "released")
    return hub.prepare(tmp_path, tmp_path / "released")


def nbgrader(page, entry):
    """Choose an entry of JupyterLab's menu Nbgrader."""
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name=entry).first.click()


def formgrader(page):
    """Open formgrader; gives its frame, on the page of all assignments."""
    nbgrader(page, "Formgrader")
    form = page.frame_locator("iframe")
    form.get_by_role("row", name=SLUG).wait_for()
    return form


def press(form, row, column):
    """Press formgrader's button in the ``column`` of a row, and wait for its success."""
    form.get_by_role("row", name=row).locator(f"td.{column} a").click()
    dialog = form.locator(".modal.in")
    dialog.get_by_text(re.compile("success", re.IGNORECASE)).first.wait_for()
    dialog.get_by_role("button", name="Close").last.click()
    dialog.wait_for(state="detached")


def hand_out(page):
    form = formgrader(page)
    press(form, SLUG, "assign")
    press(form, SLUG, "release")


def fetch(page):
    nbgrader(page, "Assignment List")
    page.get_by_role("button", name="Fetch", exact=True).click()
    page.get_by_role("button", name="Submit", exact=True).wait_for()


def solve(page, address, home):
    """Solve all but one exercise; that one, in the browser: what the check says of it."""
    path = home / SLUG / f"{SLUG}.ipynb"
    owner = path.stat().st_uid
    lab.solve(path, lab.notebook_path(lab.ROOT, SLUG, "solutions"), leave_blank={LEFT_OUT})
    os.chown(path, owner, owner)
    page.goto(f"{address}user/ada/lab/tree/{SLUG}/{SLUG}.ipynb?reset")
    page.locator("#jp-main-statusbar").get_by_text("(ipykernel) | Idle").wait_for()
    lab.run_cell(page, lab.cell_with(page, "import torch"))
    lab.run_cell(page, lab.cell_with(page, f"def {LEFT_OUT}("))
    return lab.run_cell(page, lab.cell_with(page, f"check.{LEFT_OUT}("))


def submit(page, address):
    page.goto(f"{address}user/ada/lab?reset")
    nbgrader(page, "Assignment List")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_text(re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")).first.wait_for()


def grade(page, address):
    """Collect, grade and give back, with formgrader's buttons; the score that it shows."""
    page.goto(f"{address}user/instructor/lab?reset")
    form = formgrader(page)
    press(form, SLUG, "collect")
    form.get_by_role("row", name=SLUG).locator("td.num-submissions a").click()
    press(form, "ada", "autograde")
    row = form.get_by_role("row", name="ada")  # is asked for again after the dialog of success
    score = row.locator("td.score", has_text=re.compile(r"\d")).inner_text()
    press(form, "ada", "generate-feedback")
    press(form, "ada", "release-feedback")
    return score


def read_feedback(page, address, home):
    """Fetch the feedback; the text of its page."""
    page.goto(f"{address}user/ada/lab?reset")
    nbgrader(page, "Assignment List")
    page.get_by_role("button", name="Fetch Feedback").click()
    page.get_by_text("view feedback").first.wait_for()
    (found,) = home.glob(f"{SLUG}/feedback/*/{SLUG}.html")
    return found.read_text(encoding="utf-8")


@pytest.mark.long
def test_a_class_on_a_hub_from_release_to_feedback(browser, tmp_path, places):
    home = places["/home"] / "ada"
    points = lab.points(lab.notebook_path(lab.ROOT, SLUG))
    total, lost = sum(points.values()), points[f"check_{LEFT_OUT}"]
    with hub.jupyter_hub(tmp_path, places) as address, browser() as page:
        hub.log_in(page, address, "instructor")
        page.get_by_role("tab", name="Create Assignment").wait_for()
        hand_out(page)
        hub.log_in(page, address, "ada")
        assert not page.get_by_role("tab", name="Create Assignment").count()
        fetch(page)
        assert f"{LEFT_OUT}: nothing here yet" in solve(page, address, home)
        submit(page, address)
        hub.log_in(page, address, "instructor")
        assert grade(page, address) == f"{total - lost} / {total}"
        hub.log_in(page, address, "ada")
        assert f"{LEFT_OUT}: nothing here yet" in read_feedback(page, address, home)
