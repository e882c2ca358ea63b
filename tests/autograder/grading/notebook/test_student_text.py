"""A student's prose is shown as text, whatever it begins with and whoever makes HTML of it."""

import time

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import markdown2html
from nbgrader.server_extensions.formgrader import handlers
from traitlets.config import Config

from autograder import ROOT
from autograder.course import configure
from autograder.grading.classroom import sample_class
from autograder.grading.execution.assemble import assemble
from autograder.grading.notebook.student_text import prose_cell, text_of
from autograder.grading.notebook.submission import parse
from tests.autograder.payloads import PAYLOADS, PREFIXES

SLUG = "00_getting_started"
RESOURCES = {"index": 0, "total": 1}


@pytest.fixture
def exporter(tmp_path):
    """Makes HTML of a notebook as the course's nbgrader does."""
    config = configure(Config(), tmp_path)
    names = {"template_name": "formgrade", "extra_template_basedirs": [handlers.template_path]}
    return HTMLExporter(config=config, **names)


@pytest.fixture
def page(exporter):
    """Gives what is in the Markdown cells of a page."""

    def make(cells):
        cells = [nbformat.v4.new_markdown_cell(**cell) for cell in cells]
        notebook = nbformat.v4.new_notebook(cells=cells)
        html, _ = exporter.from_notebook_node(notebook, RESOURCES)
        return BeautifulSoup(html, "html.parser").select(".text_cell_render")

    return make


def test_code_is_in_colours_unless_it_is_longer_than_code_is(exporter):
    def shown(*sources):
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        started = time.process_time()
        html, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=cells), RESOURCES)
        found = BeautifulSoup(html, "html.parser").select(".highlight")
        assert time.process_time() - started < 20  # each of these took minutes
        assert [one.get_text().strip() for one in found] == [one.strip() for one in sources]
        return [bool(one.select("span[class]")) for one in found]

    hard = 'x = "%' + "0" * 40_000 + '"'
    assert shown("x = 1", hard, "%%html\n<b>1</b>", hard) == [True, False, True, False]
    for line in ('"%' + "0" * 490 + '"\n', "@" + "a." * 240 + "\n", " " * 499 + "\n", "a = (1)\n"):
        cell = "x\n" + line * (9_000 // len(line))
        assert sum(shown(*[cell] * 200)) == 100_000 // len(cell)
    assert shown("x\n" + "\n" * 50_000 + "y = 1", "<i>" * 200) == [False, False]


def tags(html):
    return [tag.name for tag in html.find_all(True)]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_markdown_makes_one_block_of_text_of_it(payload):
    for prefix in PREFIXES:
        shown = markdown2html(prose_cell(prefix + payload + "\n\nmore")["source"])
        html = BeautifulSoup(shown, "html.parser")
        assert set(tags(html)) == {"pre", "code"}, repr(prefix)
        seen = html.get_text().replace(" ", "")
        assert all(line.strip().replace(" ", "") in seen for line in payload.splitlines())
        assert all(block.get_text().strip() for block in html.find_all("pre")), repr(prefix)


def test_nbgraders_pages_do_not_read_it_as_markdown_at_all(page):
    sources = [prefix + payload for payload in PAYLOADS for prefix in ("", "\v", "\u2028\n")]
    made = [{**prose_cell(""), "source": source} for source in sources]  # nothing is indented
    for source, html in zip(sources, page(made), strict=True):
        assert tags(html) == ["pre", "code"]
        assert html.get_text().strip() == text_of(source).strip()


def test_nbgraders_pages_show_the_lessons_own_prose_but_for_links_to_files(tmp_path):
    ours = HTMLExporter(config=configure(Config(), tmp_path)).environment.filters["markdown2html"]
    stock = HTMLExporter().markdown2html
    near, far = "[01](../01/01.ipynb)", "[a](https://b.org) [c](#d)"
    told = ours({"cell": {}}, f"{near} {far}")
    assert told == stock({}, f"01 {far}")
    for path in sorted((ROOT / "solutions").glob("*/*.ipynb"))[::5]:
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown" and "](../" not in cell.source:
                context = {"cell": cell}
                assert ours(context, cell.source) == stock(context, cell.source)


def test_the_text_is_kept_but_for_control_characters():
    cell = prose_cell("one\r\n\r\n  two\tx\x00\x1b[1m\v\u2028three\n")
    assert text_of(cell["source"]) == "one\n\n  two\tx[1m\n\nthree"
    assert text_of(prose_cell("")["source"]) == ""


def test_prose_of_raw_and_of_edited_cells_is_a_students_too():
    notebook = sample_class.handed_in(SLUG)
    raw = nbformat.v4.new_raw_cell("<b>raw</b>", metadata={"raw_mimetype": "text/html"})
    changed = next(cell for cell in notebook.cells if cell.cell_type == "markdown")
    changed.source += "\n\n<b>edited</b>"
    notebook.cells.append(raw)
    made = assemble(sample_class.solved(SLUG), parse(notebook))["cells"]
    found = [cell for cell in made if "<b>" in cell["source"]]
    assert found == [
        {**prose_cell(cell.source), "id": one["id"]}
        for cell, one in zip((changed, raw), found, strict=True)
    ]
