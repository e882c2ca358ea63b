"""The page in which the shipped translator runs: what it shows, who can use it, what it may do."""

import pytest

from attention import decoding
from attention.multi_head_attention import split_heads
from attention.provided.data.tokens import EOS
from tests.browser import lab
from tests.browser.glass import ODD, explain_every_piece, run_watched, source_of, type_in
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def page(glass_page):
    return glass_page


NOBODY = "http://127.0.0.1:9/"


# What is typed, and what is shown


def test_a_link_chooses_the_number_or_says_why_it_cannot(page):
    page.goto(f"{page.address}?number=42")
    assert "zweiundvierzig" in page.locator("#said").inner_text()
    page.goto(f"{page.address}?number=hundert")
    assert "“hundert” is not in" in page.locator("#problem").inner_text()
    assert not page.locator("#machine").is_visible()
    page.goto(page.address)
    assert page.locator("#machine").is_visible()


@pytest.mark.parametrize("typed", ["20 000", "20,000", "20.000", "20’000", " 20000 "])
def test_thousands_may_stand_apart(page, typed):
    type_in(page, typed)
    assert "twenty thousand → by" in page.locator("#said").inner_text()


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "Type a number from 1 to 999999, or its English words."),
        ("   ", "Type a number from 1 to 999999, or its English words."),
        ("000", "The model has never seen zero: type a number from 1 on."),
        ("1 000 000", "has 7 digits"),
        ("1 00", "“1” is not in the model's vocabulary."),
        ("1000000", "has 7 digits, and the model has only seen numbers of 1 to 6 digits"),
        ("-5", "“-5” is not in the model's vocabulary: the character “-” stands in no word of it"),
        ("two hundert", "“hundert” is not in the model's vocabulary."),
        ("<eos>", "“<eos>” is not in the model's vocabulary"),
        ("<b>7", "“<b>7” is not in the model's vocabulary"),
        ("two " * 13, "These are 13 words: type at most 12."),
    ],
)
def test_what_the_model_cannot_read_gets_a_sentence(page, typed, sentence):
    type_in(page, "42")
    type_in(page, typed)
    assert sentence in page.locator("#problem").inner_text()
    assert page.locator("#number").get_attribute("aria-invalid") == "true"
    # What was shown last stands.
    assert page.locator("#said").inner_text().startswith("forty two →")
    assert page.locator("#encoder-body").is_visible()
    type_in(page, "7")
    assert page.locator("#problem").inner_text() == ""
    assert page.locator("#said").inner_text().startswith("seven →")


def test_a_cell_shows_its_arithmetic_by_mouse_and_by_keyboard(page, glass_model):
    model, corpus = glass_model
    type_in(page, "231")
    panel = page.locator("#encoder-body")
    panel.get_by_role("button", name="head 2").click()
    panel.get_by_role("row").nth(2).get_by_role("gridcell").nth(3).click()
    into, out, weights, _ = run_watched(model, source_of("two hundred thirty one", corpus))
    name = "encoder.layers.0.attention"
    q, k = (split_heads(out[f"{name}.W_{part}"][None], 4)[0, 2] for part in "qk")
    score = (q[1] @ k[3]).item()
    said = panel.locator(".arithmetic").inner_text().replace("−", "-")
    assert f"weight {weights[name][2, 1, 3]:.4f}" in said
    assert f"the sum of these 16 products is {score:.4f}" in said
    assert f"{score:.4f} / √16 = {score / 4:.4f}" in said
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    said = panel.locator(".arithmetic").inner_text()
    assert "query 2, “thirty”; key 2, “thirty”" in said
    assert f"weight {weights[name][2, 2, 2]:.4f}" in said


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_every_piece_of_a_layer_says_where_its_numbers_come_from(page, side):
    type_in(page, "42")
    explain_every_piece(page.locator(f"#{side}-body"))


def test_a_beam_search_is_followed_step_by_step(page, glass_model):
    model, corpus = glass_model
    type_in(page, ODD)
    page.select_option("#beam-K", "2")
    page.focus("#step-on")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the button keeps the focus
    assert "step 2 of" in page.locator("#beams-body").inner_text()
    rows = page.locator("#beams-body tbody tr").all_inner_texts()
    assert [row.split()[-1] for row in rows] == ["kept", "kept", "dropped", "dropped"]
    ids, _ = decoding.beam_search(model, source_of(ODD, corpus), 2, 0.6, return_scores=True)
    text = "".join(corpus.target_vocabulary.decode(ids[0]))
    assert text == page.locator("#beams-body strong").first.inner_text()
    assert EOS in ids[0]


def test_what_the_page_tells_to_try_is_there_to_be_seen(page):
    type_in(page, "931")
    page.evaluate("window.weights = result.decoded.layers[1].cross.heads[3].weights")
    looks = page.evaluate(
        """names(result.decoded.ids, data.target).map((_, t) => {
            const row = [...weights.data.slice(t * weights.cols, (t + 1) * weights.cols)];
            return row.indexOf(Math.max(...row));
        })"""
    )
    assert looks.index(3) < looks.index(2)  # one before thirty, which the source says first
    type_in(page, "106837")
    assert "✗ Wrong" in page.locator("#said").inner_text()
    for K, verdict in (("1", "✗ Wrong"), ("3", "✓ Right")):
        page.select_option("#beam-K", K)
        assert verdict in page.locator("#beams-body").inner_text()


# Who can use it, and what it may do


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, scheme):
    page.emulate_media(color_scheme=scheme)
    type_in(page, "7")
    type_in(page, "hundert")
    assert lab.axe(page, minor=False) == []


def test_nothing_is_wider_than_a_telephone(page):
    size = page.viewport_size
    page.set_viewport_size({"width": 380, "height": 800})
    type_in(page, "777777")
    page.press("#step", "End")  # the beams that have ended, with all their letters
    assert "Finished" in page.locator("#beams-body").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    for step in page.get_by_role("navigation").get_by_role("link").all():
        box = step.bounding_box()
        assert 0 <= box["x"] <= 380 - box["width"]
    page.set_viewport_size(size)


def test_the_page_may_ask_for_nothing(page):
    refused = page.evaluate("url => fetch(url).then(() => 'asked', error => error.message)", NOBODY)
    assert "fetch" in refused
    page.evaluate(
        """url => {
            const one = document.createElement("script");
            one.textContent = "window.ran = true";
            document.body.append(one, Object.assign(new Image(), { src: url }));
        }""",
        NOBODY,
    )

    def refusals():
        page.evaluate("0")  # what the page says arrives while it is asked
        return sum("Content Security Policy" in line for line in page.said)

    until(lambda: refusals() >= 3, "three refusals")
    assert page.evaluate("window.ran") is None
    assert NOBODY not in page.asked
    assert {line for line in page.said if line.endswith(f": {NOBODY}")} <= {f"csp: {NOBODY}"}
    page.said.clear()
