"""What a student wrote runs nothing and asks for nothing in an instructor's browser."""

import base64
import contextlib
import hashlib
import itertools
from urllib.parse import quote

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbgrader.api import Gradebook

from autograder import ROOT
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from autograder.grading.classroom.folders import Course, Handed
from autograder.grading.feedback import content_policy
from tests.autograder.payloads import BROWSER_PREFIXES, LEAK, PAYLOADS, RUNS
from tests.autograder.small_class import SLUG, grade, make_course
from tests.browser import lab
from tests.waiting import until

pytestmark = pytest.mark.browser

STUDENT, OTHER = "mallory's&lt;b&gt;", "eve"  # an id may hold this much
NAMES = {
    "first_name": f"<img src=x onerror={RUNS}>",
    "last_name": f"</script><script>{RUNS}</script>",
    "email": f'"><svg onload={RUNS}></svg>',
}
FILES = [f"feedback/{STUDENT}/{SLUG}/{SLUG}.html", "report/class.html"]
WRITTEN_BY_HAND = "[!`$\\"  # how what a browser does not read begins: Markdown, formulas
HARMLESS = {"ran": 0, "leaks": [], "live": [], "refused": []}
OWN = ("toggle_name(true);", "toggle_name(false);", "createStudentModal();", "toggleAllNames()")
OWN += ("createAssignmentModal();",)
# What would run or ask where no policy holds: handlers, addresses that are scripts, frames.
LIVE = """own => [...document.querySelectorAll('*')].filter(one =>
    one.matches('iframe, object, embed, base, form, [http-equiv=refresh]')
    || one.getAttributeNames().some(name =>
        /^on/.test(name) && !own.includes(one.getAttribute(name))
        || /^(href|src|action|xlink:href)$/.test(name)
        && /^\\s*javascript:/i.test(one.getAttribute(name))))
    .map(one => one.outerHTML.slice(0, 200))"""


def hostile():
    """A hand-in with the payloads in cells of every kind, in outputs, errors and reasons."""
    each = zip(PAYLOADS, itertools.cycle(BROWSER_PREFIXES))  # all with all: see test_prose
    sources = [*PAYLOADS, *(prefix + payload for payload, prefix in each)]
    sources += [prefix + PAYLOADS[0] for prefix in BROWSER_PREFIXES]
    every = "\n".join(PAYLOADS)
    new = nbformat.v4
    wrong = f"def uniform_average(values):\n    said = {every!r}\n    return values.sum() ** 2 - 3"
    answers = {"softmax": f"raise ValueError({every!r})", "uniform_average": wrong}
    notebook = sample_class.handed_in(SLUG, answers)
    notebook.cells[1:1] = [new.new_markdown_cell(source) for source in sources]
    notebook.cells += [
        new.new_raw_cell(source, metadata={"raw_mimetype": "text/html"}) for source in sources[::4]
    ]
    codes = [*PAYLOADS, "\v" + PAYLOADS[0], f"print({every!r})"]
    codes += [f"{every!r}", f"raise type({PAYLOADS[0]!r}, (Exception,), {{}})({every!r})"]
    codes += [f"from IPython.display import HTML, display\nfor _ in 'ab': display(HTML({every!r}))"]
    notebook.cells += [new.new_code_cell(source) for source in codes]
    rich = dict.fromkeys(RICH, every)
    for cell in notebook.cells:
        cell.metadata |= {"tags": PAYLOADS, "jupyter": {"source_hidden": True}}
        if cell.cell_type == "code":
            cell.outputs = [new.new_output("display_data", rich)]
        else:
            cell.attachments = {"a.svg": {"image/svg+xml": every}}
    language = {"name": every, "mimetype": "text/html", "pygments_lexer": every}
    notebook.metadata |= {"title": every, "widgets": {"application/x": every}}
    notebook.metadata |= {"language_info": language | {"codemirror_mode": every}}
    return notebook


RICH = ["text/html", "text/markdown", "text/latex", "image/svg+xml", "application/javascript"]
RICH += ["application/vnd.jupyter.widget-view+json", "application/geo+json", "text/plain"]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The folder of a course with the hand-in of two, graded, and all that is made of it."""
    course = make_course(tmp_path_factory.mktemp("hostile"))
    (course / "nbgrader_config.py").write_bytes((ROOT / "nbgrader_config.py").read_bytes())
    for student in (STUDENT, OTHER):
        sample_class.submit(hostile(), course, student, SLUG)
    with Gradebook(Course(course).db_url, "attention") as book:
        book.update_or_create_student(STUDENT, **NAMES)
    grade(course, check=False)  # eve is in no roster, which is told
    for command in (["feedback"], ["report"]):
        assert cli.main([*command, "--course", str(course)]) == 0
    return course


def watch(page):
    """Let the page load nothing from elsewhere; gives what it asks for there, and what it says."""
    asked, said = [], []
    page.route(
        lambda url: not url.startswith(("file:", "data:", "http://127.0.0.1:")),
        lambda route: (asked.append(route.request.url), route.abort()),
    )
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: (said.append("Content Security: dialog"), dialog.dismiss()))
    return asked, said


def harm(page, watched, wait=300):
    """What went wrong in an open page until so many milliseconds later.

    The page counts them, so that on a slow machine, too, it has done by then what it began.
    """
    with contextlib.suppress(Exception):  # it may be led away meanwhile
        page.evaluate("wait => new Promise(done => setTimeout(done, wait))", wait)
    asked, said = watched
    leaks = [url for url in asked if not url.startswith(content_policy.MATHJAX)]
    if any(LEAK in url for url in leaks):  # the page itself may be on its way there
        return {**HARMLESS, "leaks": leaks}
    found = {"ran": page.evaluate("window.ran || 0"), "live": page.evaluate(LIVE, OWN)}
    refused = [line for line in said if "Content Security" in line and "font" not in line]
    return {**found, "leaks": leaks, "refused": refused}


def refused(page, watched):
    """The same as ``harm``, as soon as something was refused, which has to be."""
    return until(lambda: (found := harm(page, watched))["refused"] and found, "a refusal")


def text_of(page):
    return page.locator("body").inner_text()


def stands_in(page):
    """Whether the payloads stand in the page, as text."""
    text = text_of(page)
    return all(payload.splitlines()[0] in text for payload in PAYLOADS)


@pytest.mark.long
def test_payloads_do_harm_where_nothing_holds_them(browser):
    with browser() as first:
        for payload in PAYLOADS:
            if payload[0] not in WRITTEN_BY_HAND and "<javascript" not in payload:
                page = first.context.new_page()
                do_harm(page, payload)
                page.close()


def do_harm(page, payload):
    watched = watch(page)
    with contextlib.suppress(Exception):  # a refresh leads away while it is loaded
        page.set_content(f"<body>{payload}</body>", wait_until="commit")

    def harmed():
        with contextlib.suppress(Exception):
            return harm(page, watched, wait=100) != HARMLESS

    until(harmed, f"the harm of {payload}")


def test_the_pages_on_disk_are_harmless(browser, graded):
    with browser() as page:
        watched = watch(page)
        for name in FILES:
            page.goto((graded / "class" / name).as_uri(), wait_until="load")
            assert harm(page, watched) == HARMLESS, name
            assert f"<script>{RUNS}" in text_of(page), name


def test_no_page_on_disk_would_run_what_was_not_escaped(browser, graded, tmp_path):
    with browser() as page:
        for name in FILES:
            text = (graded / "class" / name).read_text(encoding="utf-8")
            path = tmp_path / "page.html"
            path.write_text(text + unescaped(), encoding="utf-8")
            watched = watch(page)
            page.goto(path.as_uri(), wait_until="load")
            found = refused(page, watched)
            assert (found["ran"], found["leaks"]) == (0, []), name
            assert found["live"], name


def unescaped():
    """The payloads as HTML. No policy in a page keeps it from being led away."""
    return "\n".join(one for one in PAYLOADS if "refresh" not in one)


def test_the_graded_notebook_is_harmless_where_nbconvert_shows_it(browser, graded, tmp_path):
    source = Course(graded).autograded(Handed(SLUG, STUDENT))
    html, _ = HTMLExporter().from_filename(str(source))
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    with browser() as page:
        asked, said = watch(page)
        page.goto(path.as_uri(), wait_until="load")
        found = harm(page, ([url for url in asked if LEAK in url], said))
        assert found == HARMLESS
        assert stands_in(page)


@pytest.mark.parametrize("is_the_file", [True, False])
def test_formulas_are_set_by_the_one_file_whose_hash_is_known(
    browser, tmp_path, monkeypatch, is_the_file
):
    script = b"window.ran = 1"
    digest = base64.b64encode(hashlib.sha384(script).digest()).decode()
    ours = content_policy.FORMULAS
    if is_the_file:
        ours = ours.replace(content_policy.INTEGRITY, f"sha384-{digest}")
    monkeypatch.setattr(content_policy, "FORMULAS", ours)
    head = "<head><!-- Load mathjax --><!-- End of mathjax configuration --></head>"
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html>{content_policy.held(head)}<body>", encoding="utf-8")
    answer = {"body": script, "content_type": "text/javascript"}
    answer["headers"] = {"Access-Control-Allow-Origin": "*"}
    with browser() as page:
        page.route(content_policy.MATHJAX, lambda route: route.fulfill(**answer))
        page.goto(path.as_uri(), wait_until="networkidle")
        assert page.evaluate("window.ran || 0") == is_the_file


def test_the_reports_scroll_downwards_only_on_a_telephone(browser, graded):
    """Wide tables scroll by themselves, and whoever has no mouse can reach them."""
    with browser() as page:
        page.set_viewport_size({"width": 380, "height": 800})
        page.goto((graded / "class" / "report" / "class.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        loose = "[...document.querySelectorAll('table')].filter(e => !e.closest('.wide'))"
        assert page.evaluate(f"{loose}.length") == 0
        wide = page.locator(".wide[tabindex='0'][aria-label]")
        assert wide.count() == page.locator(".wide").count() > 0


@pytest.mark.long
def test_axe_finds_nothing_in_a_page_of_feedback(browser, graded):
    for size in ({"width": 380, "height": 800}, {"width": 1280, "height": 900}):
        with browser() as page:
            page.set_viewport_size(size)
            page.goto((graded / "class" / FILES[0]).as_uri())
            assert lab.axe(page) == []


@pytest.fixture(scope="module")
def server(graded, tmp_path_factory):
    """The address of JupyterLab on the course."""
    with lab.jupyter_lab(graded, tmp_path_factory.mktemp("home")) as address:
        yield address


def submission(course):
    """The path of formgrader's page of the hostile hand-in."""
    with Gradebook(Course(course).db_url, "attention") as book:
        one = book.find_submission_notebook(SLUG, SLUG, STUDENT)
        return f"submissions/{one.id}/?index=0"


@pytest.mark.long
def test_the_formgrader_is_harmless(browser, graded, server):
    person = f"manage_students/{quote(STUDENT)}"
    places = ["manage_assignments", f"manage_submissions/{SLUG}", "gradebook", f"gradebook/{SLUG}"]
    places += [f"gradebook/{SLUG}/{SLUG}", "manage_students", person, f"{person}/{SLUG}"]
    with browser() as page:
        watched = watch(page)
        for place in [*places, submission(graded)]:
            page.goto(f"{server}formgrader/{place}", wait_until="networkidle")
            assert harm(page, watched) == HARMLESS, place
            if place in ("manage_students", f"manage_submissions/{SLUG}"):
                until(lambda: NAMES["first_name"] in text_of(page), f"the names in {place}")
        assert stands_in(page)
        page.locator(".glyphicon.name-hidden").click()
        assert NAMES["first_name"] in text_of(page)  # its own scripts run


def test_the_formgrader_would_not_run_what_was_not_escaped(browser, graded, server):
    def spoil(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("</body>", unescaped()))

    with browser() as page:
        watched = watch(page)
        page.route("**/formgrader/submissions/*/?index=0", spoil)
        page.goto(f"{server}formgrader/{submission(graded)}", wait_until="load")
        found = refused(page, watched)
    assert (found["ran"], found["leaks"]) == (0, [])
    assert found["live"]


@pytest.mark.long
def test_the_graded_notebook_is_harmless_in_jupyterlab(browser, graded, server):
    path = Course(graded).autograded(Handed(SLUG, STUDENT)).relative_to(graded)
    with browser() as page:
        watched = watch(page)
        page.goto(f"{server}doc/tree/{quote(str(path))}?reset")
        page.locator(".jp-NotebookPanel .jp-CodeCell").first.wait_for()
        page.locator(".jp-MarkdownCell .jp-RenderedMarkdown pre").last.wait_for()
        found = harm(page, watched, wait=1000)
        assert {**found, "live": []} == HARMLESS
        assert not [one for one in found["live"] if LEAK in one or "ran=" in one]
