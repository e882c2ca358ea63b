"""The book's sources, before Sphinx sees them; tests/browser/test_book.py looks at the pages."""

import json
import re
import shutil

import nbformat
import pytest

from attention.pages.moving_picture import NUMBERS
from attention.provided.data.numbers import in_words, is_test
from autograder import ROOT, CourseError
from autograder.building.book import chapters as course
from autograder.building.book import page, write
from autograder.commands import cli
from tests.needs import needs

ADDRESS = "https://github.com/example/course"
SLUGS = sorted(path.name for path in (ROOT / "solutions").glob("[0-9]*"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The sources of the whole book."""
    folder = tmp_path_factory.mktemp("book") / "source"
    write.write([], folder, repository=ADDRESS)
    return folder


def cells(sources, slug):
    return json.loads((sources / slug / f"{slug}.ipynb").read_text(encoding="utf-8"))["cells"]


def tags(cell):
    return cell["metadata"].get("tags", [])


@pytest.mark.parametrize("slug", SLUGS)
def test_a_page_shows_each_gap_and_folds_what_fills_it(sources, slug):
    shown = cells(sources, slug)
    gaps = [index for index, cell in enumerate(shown) if "exercise" in tags(cell)]
    checks = [cell for cell in shown if "check" in tags(cell)]
    assert len(gaps) == len(checks) > 0
    for index in gaps:
        assert "NotImplementedError" in "".join(shown[index]["source"])
        assert "hide-input" in tags(shown[index + 1])
    code = [cell for cell in shown if cell["cell_type"] == "code"]
    text = "".join("".join(cell["source"]) for cell in shown)
    assert not re.search("BEGIN SOLUTION|END SOLUTION|Made by|data:image", text)
    assert not re.search(r"!\[[^\]]*\n", text)  # MyST would join the words around it
    plots = [
        cell for cell in code if any("image/png" in one.get("data", {}) for one in cell["outputs"])
    ]
    words = [cell["metadata"]["mystnb"]["image"]["alt"] for cell in plots]
    assert [one for one in words if len(one) < 30 or re.search(r"[*`$\n]", one)] == []


def test_an_answer_that_is_not_folded_in_the_notebook_is_folded_on_the_page():
    answer = nbformat.v4.new_markdown_cell("### On one page\n```python\nx\n```")
    answer.metadata["tags"] = ["answer"]
    solved = nbformat.v4.new_notebook(cells=[answer])
    made, _ = page.page(solved, nbformat.v4.new_notebook(), "", lambda text, slug: text)
    heading, summary, *_, last = made.cells[0].source.split("\n\n")
    assert heading == "### On one page"
    assert summary == "<details><summary>Show the answer</summary>"
    assert last.endswith("</details>")


def test_a_lesson_leads_to_the_glass_translator():
    prose = nbformat.v4.new_markdown_cell(
        "The\n[glass\nbox](../../book/_build/html/glass.html) is it, "
        "[below](../../book/_build/html/glass.html#bert) too, "
        "[this](../../book/_build/html/writer.html) writes."
    )
    solved = nbformat.v4.new_notebook(cells=[prose])
    made, _ = page.page(solved, nbformat.v4.new_notebook(), "", lambda text, slug: text)
    said = made.cells[0].source
    assert '<a href="../glass.html">glass\nbox</a> is it, ' in said
    assert '<a href="../glass.html#bert">below</a> too, ' in said
    assert '<a href="../writer.html">this</a> writes.' in said


def test_an_exercise_that_lessons_lacks_says_what_to_do():
    solved = nbformat.read(ROOT / "solutions" / SLUGS[0] / f"{SLUGS[0]}.ipynb", as_version=4)
    with pytest.raises(CourseError, match="'uniform_average' is not in lessons/: run `autograder"):
        page.page(solved, nbformat.v4.new_notebook(), "", lambda text, slug: text)


def test_a_lesson_that_is_not_in_the_book_is_named_without_a_link(tmp_path):
    write.write(["06"], tmp_path / "source")
    shown = cells(tmp_path / "source", "06_masked_attention")
    head, below = ("".join(cell["source"]) for cell in shown[:2])
    assert "**You need** lesson 05" in head
    assert "colab" not in below and "mybinder" not in below
    everywhere = "".join("".join(cell["source"]) for cell in shown)
    assert not re.search(r"\]\(\.\./\d\d_", everywhere)
    assert ".ipynb" not in (tmp_path / "source" / "glossary.md").read_text().replace(
        "06_masked_attention/06_masked_attention.ipynb", ""
    )


def test_the_first_page_shows_numbers_that_the_model_translates_right_and_never_saw(sources):
    text = (sources / "index.md").read_text(encoding="utf-8")
    drawn = re.findall(r"reads “(.*?)” and writes “(.*?)”", text)
    expected = [[in_words(one, language) for language in ("en", "de")] for one in NUMBERS]
    assert [list(pair) for pair in drawn] == expected
    assert all(is_test(number) for number in NUMBERS)
    figure = re.search(r"<figure.*?</figure>", text, re.DOTALL)[0]
    assert "\n\n" not in figure  # Markdown would begin anew there
    assert figure.count("<svg hidden") == len(NUMBERS) - 1
    assert 'href="00_getting_started/00_getting_started.html">Start with lesson 00</a>' in text


# Which lesson needs which


def test_what_a_lesson_imports_it_states_directly_or_through_another():
    chapters = course.read(ROOT, SLUGS)
    stated = {number: one.stated for number, one in chapters.items()}
    silent = {
        (number, one)
        for number, chapter in chapters.items()
        for one in chapter.builds - course.everything(stated, number)
    }
    assert silent == set()


def test_needs_are_read_from_imports_and_heads_and_reduced(tmp_path):
    heads = {
        "00_first": "Python",
        "01_second": "lesson 00",
        "02_third": "lessons 00 to\n01",
        "03_fourth": "lesson 00",
    }
    for slug, need in heads.items():
        lesson(tmp_path, slug, need)
    (tmp_path / "attention" / "fourth.py").write_text("from attention.second import f\n")
    chapters = course.read(tmp_path, heads)
    assert chapters[2].stated == {0, 1}
    assert chapters[3].builds == {1}
    assert course.needs(chapters) == {0: set(), 1: {0}, 2: {1}, 3: {1}}


def lesson(root, slug, need):
    """A course's lesson with nothing but a head."""
    for name in ("source", "attention", f"solutions/{slug}"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "source" / f"{slug}.py").write_text("import math\n")
    head = f"# {slug[:2]} · Why {slug}?\n\n**Time** 10 minutes · **You need** {need} · more"
    cell = nbformat.v4.new_markdown_cell(head)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbformat.write(notebook, root / "solutions" / slug / f"{slug}.ipynb")


def test_a_need_that_comes_later_is_refused(tmp_path):
    lesson(tmp_path, "00_first", "lesson 01")
    lesson(tmp_path, "01_second", "lesson 00")
    with pytest.raises(CourseError, match="lesson 00 needs lesson 01, which does not come before"):
        course.read(tmp_path, ["00_first", "01_second"])


def test_a_way_without_what_its_code_builds_on_is_refused():
    book = write.Book(course.read(ROOT, SLUGS), set(range(len(SLUGS))), "")
    assert book.way([6, 5, 2]) == [2, 5, 6]
    with pytest.raises(CourseError, match="lesson 07 without lesson 02, on whose code it builds"):
        book.way([7, 8])


# The repository's address


@pytest.mark.parametrize(
    ("urls", "address"),
    [
        ("", ""),
        ("[project.urls]", ""),
        (f'[project.urls]\nRepository = "{ADDRESS}.git"', ADDRESS),
        (f'[project.urls]\nRepository = "{ADDRESS}/"', ADDRESS),
    ],
)
def test_the_address_stands_in_pyproject(tmp_path, urls, address):
    path = tmp_path / "pyproject.toml"
    path.write_text(f'[project]\nname = "x"\n{urls}\n')
    assert write.repository_in(path) == address


def test_an_address_that_colab_cannot_open_is_refused(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text('[project]\n[project.urls]\nRepository = "https://example.org/course"\n')
    with pytest.raises(CourseError, match="give that, or leave it out"):
        write.repository_in(path)


# Sphinx, and what publishes its pages


@needs("sphinx")
def test_a_warning_of_sphinx_fails_the_build(tmp_path):
    lesson(tmp_path, "00_first", "nothing")
    shutil.copytree(tmp_path / "solutions", tmp_path / "lessons")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "conf.py").write_text('extensions = ["myst_parser"]\n')
    (tmp_path / "book" / "index.md").write_text("# A book\n\n[nowhere](nowhere.md)\n")
    with pytest.raises(CourseError, match="Sphinx does not accept the book:\n.*nowhere.md"):
        write.build([], tmp_path / "made", tmp_path)


def test_without_sphinx_one_sentence_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(write, "NEEDED", ("no_such_package",))
    assert cli.main(["book"]) == 1
    assert re.fullmatch(
        r"the book needs no_such_package: pip install .*\n", capsys.readouterr().err
    )


def test_a_folder_with_other_things_is_left_as_it_is(tmp_path, capsys):
    (tmp_path / "source").mkdir()
    (tmp_path / "README.md").touch()
    assert cli.main(["book", "--to", str(tmp_path)]) == 1
    assert "holds other things than a book: give an empty folder" in capsys.readouterr().err
    assert (tmp_path / "source").is_dir()
