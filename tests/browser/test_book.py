"""The book in a browser: from disk, with every request refused that is not for one of its files."""

import itertools
import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from autograder import ROOT
from autograder.building.book.write import MADE, build
from tests import needs
from tests.browser import lab
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.long]

LESSONS = ["00", "05", "06", "17"]  # wide formulas, drawings, a link between two, a script's page
ADDRESS = "https://github.com/example/course"
WIDTH, NARROW, HEIGHT = 1280, 380, 900
READY = "() => window.MathJax?.startup?.promise?.then(() => null)"
# An address in a drawing is no text in the page's own links.
LINKS = """() => [...document.querySelectorAll('a[href]')].map(one =>
    new URL(one.href.baseVal ?? one.href, location).href)"""
PICTURES = """() => Promise.all([...document.querySelectorAll('img')].map(async one => {
    one.loading = 'eager';
    await one.decode().catch(() => {});
    return [one.src.slice(-80), one.alt, one.naturalWidth];
}))"""
# Where the keyboard is: what stands there, its name, and whether it is seen, with a ring.
STOP = """() => {
    const one = document.activeElement, style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    if (one === document.body) return null;
    return {
        what: one.matches('a.right-next') ? 'right-next' : one.localName,
        name: one.ariaLabel || one.title || one.innerText.trim(),
        ring: parseFloat(style.outlineWidth) > 1 && style.outlineStyle === 'solid'
            || /0px 0px 0px 3px/.test(style.boxShadow),
        seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    };
}"""
STILL = "* { transition: none !important; animation: none !important }"
WIDEST = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The folder of a book with some lessons and all pages beside them."""
    for name in ("playwright", "chromium", "sphinx", "axe_playwright_python"):
        needs.skip_without(name)
    return build(LESSONS, tmp_path_factory.mktemp("book"), repository=ADDRESS).parent


@pytest.fixture(scope="module")
def window(book, browser):
    """A page on the book; ``page.faults`` are refused requests and what scripts complain of."""
    with browser() as page:
        page.faults = []

        def admit(route):
            if route.request.url.startswith((book.as_uri(), "data:")):
                route.continue_()
            else:
                page.faults.append(route.request.url)
                route.abort()

        def hear(said):
            if said.type == "error":
                page.faults.append(said.text)

        page.route("**/*", admit)
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("console", hear)
        page.on("requestfailed", lambda request: page.faults.append(request.url))
        yield page


@pytest.fixture
def page(window):
    """The page as whoever opens it first has it."""
    window.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    window.emulate_media(color_scheme="light")
    yield window
    window.evaluate("localStorage.clear()")
    window.faults.clear()


@pytest.fixture(scope="module")
def seen(book, window):
    """What was seen of each page on a walk through all of them, by path."""
    found = {}
    for path in sorted([*book.glob("*.html"), *book.glob("[0-9]*/*.html")]):
        window.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        go(window, path)
        one = found[path] = SimpleNamespace()
        one.pictures, one.links = window.evaluate(PICTURES), window.evaluate(LINKS)
        one.formulas = window.locator(".math").count()
        one.drawn = window.locator(".math mjx-container").count()
        one.misread = window.locator("mjx-merror, [data-mjx-error]").count()
        window.set_viewport_size({"width": NARROW, "height": HEIGHT})
        one.widest = window.evaluate(WIDEST)
        one.faults = list(window.faults)
        window.faults.clear()
    return found


def go(page, path):
    page.goto(path.as_uri())
    page.evaluate(READY)


def lesson(book, number):
    """The page of the lesson with this number."""
    return next(book.glob(f"{number}_*/{number}_*.html"))


def test_a_book_can_be_built_again_where_it_is(book):
    """Nothing else is left there, which the next build would refuse to touch."""
    assert {path.name for path in book.parent.iterdir()} == set(MADE)


def test_every_page_is_whole_without_a_network(seen):
    def pages(fault):
        return [path.name for path, one in seen.items() if fault(one)]

    assert {path.name: one.faults for path, one in seen.items() if one.faults} == {}
    pictures = [picture for one in seen.values() for picture in one.pictures]
    assert [one for one in pictures if not one[1].strip() or not one[2]] == []
    assert len(pictures) > 20
    assert pages(lambda one: one.drawn != one.formulas or one.misread) == []
    assert sum(one.formulas for one in seen.values()) > 20
    assert pages(lambda one: one.widest > NARROW) == []


def test_a_lesson_read_aloud_goes_from_top_to_bottom(book, page):
    """What a screen reader gets, in its order: the tree of names and roles, not the picture."""
    go(page, lesson(book, "05"))
    said = page.locator("article").aria_snapshot()
    headings = re.findall(r'- heading "(.*)" \[level=(\d)\]', said)
    (source,) = (ROOT / "source").glob("05_*.py")
    written = re.findall(r"^# (#+) (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE)
    plain = [re.sub("[`*]", "", words) for _, words in written]
    assert [words for words, _ in headings] == plain
    levels = [int(level) for _, level in headings]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))

    lines = [line.strip() for line in said.splitlines()]
    assert [one for one in lines if re.fullmatch(r'- (img|math|link|button)( "")?:?', one)] == []
    tables, heads = lines.count("- table:"), sum("- columnheader" in one for one in lines)
    assert heads >= 2 * tables > 2
    kinds = [one for one in lines if re.match(r'- group "(code|output)', one)]
    programs = page.locator(".cell_input:visible").count()  # solutions are folded
    assert sum('"code' in one for one in kinds) == programs > 20
    # An output is read after its code: no two outputs follow one another.
    assert all("code" in before for before, one in itertools.pairwise(kinds) if "output" in one)


def test_every_link_leads_somewhere(seen):
    ids = {
        path: set(re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8"))) for path in seen
    }
    broken, outside, followed = [], set(), 0
    for path, one in seen.items():
        for link in one.links:
            address, anchor = urldefrag(link)
            if not address.startswith("file:"):
                outside.add(address)
                continue
            target, anchor = Path(unquote(urlsplit(address).path)), unquote(anchor)
            followed += 1
            if target not in ids or anchor and anchor not in ids[target]:
                broken.append((path.name, link))
    assert broken == []
    assert followed > 200
    slug = "05_scaled_dot_product_attention"
    notebook = f"lessons/{slug}/{slug}.ipynb"
    colab = "https://colab.research.google.com/github/example/course/blob/main/"
    binder = "https://mybinder.org/v2/gh/example/course/main?urlpath=lab/tree/"
    assert {colab + notebook, binder + notebook} <= outside


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_axe_finds_nothing_serious(book, page, mode):
    page.emulate_media(color_scheme=mode)
    for path in (book / "index.html", book / "path.html", lesson(book, "00")):
        go(page, path)
        assert page.evaluate("document.documentElement.dataset.theme") == mode
        page.add_style_tag(content=STILL)  # a colour that is still changing has any contrast
        assert lab.axe(page, minor=False) == [], path


def test_the_keyboard_goes_through_a_lesson_and_one_sees_where_it_is(book, page):
    go(page, lesson(book, "05"))
    page.add_style_tag(content=STILL)
    stops = []
    for _ in range(300):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop is None:
            break
        stops.append(stop)
    assert [one for one in stops if not (one["name"] and one["ring"] and one["seen"])] == []
    named = [one["name"] for one in stops]
    assert named[0] == "Skip to main content"
    controls = ["Search", "Toggle primary sidebar", "Color mode"]
    places = [next(n for n, name in enumerate(named) if name.startswith(one)) for one in controls]
    assert places == sorted(places)
    folds = page.locator("article summary")
    assert [one["name"] for one in stops if one["what"] == "summary"] == folds.all_inner_texts()
    assert "right-next" in [one["what"] for one in stops]
    assert not [one for one in stops if one["what"] == "mjx-container"]  # nothing scrolls so wide


def test_hints_and_solutions_are_folded_until_asked_for(book, page):
    go(page, lesson(book, "05"))
    folds = page.locator("details.hide > summary")
    assert folds.first.inner_text().strip() == "Show a solution"
    assert page.locator("details.hide > summary[aria-label]").count() == 0  # called what they say
    solutions = page.locator(".tag_solution pre")
    hints = page.locator("details", has=page.locator("summary", has_text="Hint 2"))
    answers = page.locator("details", has=page.locator("summary", has_text="What we found"))
    assert solutions.count() == page.locator(".tag_exercise").count() == 7
    assert page.locator(".tag_exercise pre", has_text="NotImplementedError").count() == 7
    for folded in (solutions, hints.locator("p"), answers.locator("li")):
        assert folded.count()
        assert not any(one.is_visible() for one in folded.all())
    folds.first.click()
    assert solutions.first.is_visible()
    assert "products.mean()" in solutions.first.inner_text()
    hints.first.locator("summary").click()
    assert hints.first.locator("p code").first.is_visible()  # the Markdown inside is rendered


def test_the_first_mention_of_a_term_leads_to_the_glossary(book, page):
    go(page, lesson(book, "05"))
    mentions = page.locator("article a[href*='glossary.html#term-']")
    addresses = [one.get_attribute("href") for one in mentions.all()]
    assert len(addresses) > 8
    assert len(addresses) == len(set(addresses))
    elsewhere = ("em", "h2", "h3", "details", "#references", "pre")
    for place in elsewhere:
        assert page.locator(f"article {place} a[href*='glossary.html']").count() == 0
    whole = page.locator("article strong", has_text="scaled dot-product attention").first
    assert whole.locator("a").count() == 1  # a term that is all of a text
    page.locator("article a", has_text="softmax").first.click()
    assert page.locator("dt:target").inner_text().startswith("softmax")


LETTERS = "figure.translation svg:not([hidden]) g"


def test_the_first_page_writes_a_number_letter_by_letter_and_then_stands_still(book, page):
    go(page, book / "index.html")
    drawing = page.locator("figure.translation svg:not([hidden])")
    assert drawing.count() == 1
    assert page.locator(f"{LETTERS}.later").count() > 10
    moving = page.locator(f"{LETTERS}.later, {LETTERS}.now")
    until(lambda: moving.count() == 0, "the number to be written")
    assert "reads “nine hundred fifty seven” and writes" in drawing.get_attribute("aria-label")
    page.emulate_media(color_scheme="light", reduced_motion="reduce")  # whole numbers at once
    try:
        for number in ("neunhundertsiebenundfünfzig", "achthunderteinundfünfzig"):
            assert "".join(page.locator(f"{LETTERS} text").all_text_contents()) == number
            assert moving.count() == 0
            page.get_by_role("button", name="Another number").click()
    finally:
        page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    page.get_by_role("link", name="Start with lesson 00").click()
    page.wait_for_url(lesson(book, "00").as_uri())
    assert page.faults == []
