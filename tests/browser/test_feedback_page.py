"""What a student hands in runs no script and asks for no page in the instructor's browser."""

import contextlib
import subprocess
import sys

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbgrader.api import Gradebook

from autograder import ROOT
from autograder.grading import classroom
from autograder.grading.folders import Course, Handed
from tests.autograder.payloads import BROWSER_PREFIXES, LEAK, PAYLOADS
from tests.autograder.small_class import SLUG, grade, make_course
from tests.browser import lab

pytestmark = pytest.mark.browser

STUDENT = "mallory"
HARMLESS = {"ran": 0, "leaks": [], "live": []}
LIVE = (
    "[...document.querySelectorAll('*')].filter(one => one.getAttributeNames().some(name =>"
    " /^(href|src|action|xlink:href)$/.test(name)"
    " && /^\\s*javascript:/i.test(one.getAttribute(name))))"
    ".map(one => one.outerHTML.slice(0, 200))"
)


def hostile():
    """A hand-in with the payloads in cells of every kind, in outputs, errors and reasons."""
    sources = [prefix + payload for payload in PAYLOADS for prefix in BROWSER_PREFIXES]
    every = "\n".join(PAYLOADS)
    new = nbformat.v4
    notebook = classroom.handed_in(SLUG, {"softmax": f"raise ValueError({every!r})"})
    notebook.cells[1:1] = [new.new_markdown_cell(source) for source in sources[::2]]
    notebook.cells += [
        new.new_raw_cell(source, metadata={"raw_mimetype": "text/html"}) for source in sources[1::2]
    ]
    codes = [*PAYLOADS, *("\v" + payload for payload in PAYLOADS), f"print({every!r})"]
    codes += [f"{every!r}", f"raise type({PAYLOADS[0]!r}, (Exception,), {{}})({every!r})"]
    notebook.cells += [new.new_code_cell(source) for source in codes]
    return notebook


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The folder of a course with the hostile hand-in, graded, and its feedback page."""
    course = make_course(tmp_path_factory.mktemp("hostile"))
    (course / "nbgrader_config.py").write_bytes((ROOT / "nbgrader_config.py").read_bytes())
    classroom.submit(hostile(), course, STUDENT, SLUG)
    grade(course)
    command = [sys.executable, "-m", "nbgrader", "generate_feedback", SLUG]
    subprocess.run(command, cwd=course, check=True, capture_output=True, timeout=300)
    return course


def watch(page):
    """Let the page load nothing from elsewhere; gives the list of what it asks for there."""
    asked = []
    page.route(
        lambda url: not url.startswith(("file:", "data:", "http://127.0.0.1:")),
        lambda route: (asked.append(route.request.url), route.abort()),
    )
    return asked


def harm(page, asked, wait=1000):
    """What went wrong in an open page until so many milliseconds later."""
    page.wait_for_timeout(wait)
    if leaks := [url for url in asked if LEAK in url]:  # the page itself may be on its way there
        return {**HARMLESS, "leaks": leaks}
    return {**HARMLESS, "ran": page.evaluate("window.ran || 0"), "live": page.evaluate(LIVE)}


def shown(page):
    """Whether the payloads stand in the page, as text."""
    text = page.locator("body").inner_text()
    return all(payload.splitlines()[0] in text for payload in PAYLOADS)


def test_payloads_do_harm_where_nothing_holds_them(browser):
    with browser() as first:
        for payload in PAYLOADS:
            if payload[0] in "[!`" or "<javascript" in payload:
                continue  # Markdown, which the browser does not read
            page = first.context.browser.new_page()
            assert does_harm(page, payload), payload
            page.close()


def does_harm(page, payload):
    asked, found = watch(page), HARMLESS
    with contextlib.suppress(Exception):  # a refresh leads away while it is loaded
        page.set_content(f"<body>{payload}</body>", wait_until="commit")
    for number in range(15):
        with contextlib.suppress(Exception):
            found = harm(page, asked, wait=100 * number)
        if found != HARMLESS:
            return True
    return False


def test_the_feedback_page_is_harmless(browser, graded):
    path = graded / "class" / "feedback" / STUDENT / SLUG / f"{SLUG}.html"
    with browser() as page:
        asked = watch(page)
        page.goto(path.as_uri(), wait_until="load")
        assert harm(page, asked) == HARMLESS
        assert shown(page)


def test_the_graded_notebook_is_harmless_where_nbconvert_shows_it(browser, graded, tmp_path):
    source = Course(graded).autograded(Handed(SLUG, STUDENT))
    html, _ = HTMLExporter().from_filename(str(source))
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    with browser() as page:
        asked = watch(page)
        page.goto(path.as_uri(), wait_until="load")
        assert harm(page, asked) == HARMLESS
        assert shown(page)


def test_the_formgrader_is_harmless(browser, graded, home):
    with Gradebook(Course(graded).db_url, "attention") as book:
        (notebook,) = book.notebook_submissions(SLUG, SLUG)
        name = notebook.id
    with lab.jupyter_lab(graded, home) as address, browser() as page:
        asked = watch(page)
        page.goto(f"{address}formgrader/submissions/{name}/?index=0", wait_until="load")
        assert harm(page, asked) == HARMLESS
        assert shown(page)
