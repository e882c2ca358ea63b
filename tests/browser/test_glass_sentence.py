"""The small BERT in the glass page: its pieces and numbers are the library's; who can use it."""

import math

import pytest
import torch

from attention.pages.glass_translator import EXAMPLES, OTHERS
from attention.provided.data.sentences import QUESTIONS, SENTENCES, TEXTS
from attention.provided.data.tokens import PAD
from attention.provided.models.bert import files
from attention.provided.models.bert.tokenizer import words_of
from attention.published_model import (
    PublishedEncoder,
    rename_weights,
    sentence_vectors,
    wordpiece,
)
from tests.browser import lab
from tests.browser.glass import (
    CLOSE,
    FOUND,
    assert_same,
    attention_of,
    explain_every_piece,
    run_bert,
)
from tests.browser.glass import type_in as type_into

pytestmark = [pytest.mark.browser, pytest.mark.long]

MOST = " ".join(["a"] * 24)
ODD = (
    "",
    " \t\u2003\n ",
    "Ça va? Größe: 5µm — “naïve” coöperation…",
    "ÅNGSTRÖM e\u0301 Ñandú ŁÓDŹ İstanbul ΣΑΣ ﬁne ½",
    "don't a_b x**2 <b>&amp;</b> C:\\temp {1}[2] ~`^|$+=",
    "東京 is 大きい, 한국 й 👍🏽 zero\u200bwidth soft\u00adhyphen \ufeffbom \ufffd bell\x07",
    "line\u2028next\u2029last\x85end\x0bvertical\x1cfile",
    "constructor toString __proto__ [CLS] [UNK] ##ing",
    "a" * 100 + " " + "a" * 101 + " " + "é" * 101,
)
SHOWN = f"""text => {{ {FOUND}
    const {{ pieces, encoded, vector }} = readText(text);
    walk(encoded, "");
    return {{ pieces, found, vector, ids: encoded.ids, near: neighbours(vector) }};
}}"""


@pytest.fixture
def page(glass_page):
    return glass_page


@pytest.fixture(scope="module")
def bert():
    return files.build(files.SMALL, 0, PublishedEncoder, rename_weights, wordpiece)


def said(page, part="#nearest-said"):
    return page.locator(part).inner_text()


def expected(model, ids):
    """Every matrix that the page shows for a text, from PyTorch: by its path in the page."""
    seen = into, out, *_ = run_bert(model, ids)
    found = {"start": into["embeddings.norm"], "embedded": out["embeddings.norm"]}
    for number, layer in enumerate(model.encoder.layers):
        name, path = f"encoder.layers.{number}", f"layers.{number}"
        found |= attention_of(f"{name}.attention", seen, layer.attention.n_heads, f"{path}.self")
        parts = {
            "x": into[name],
            "sum": into[f"{name}.norm_1"],
            "normed": out[f"{name}.norm_1"],
            "hidden": into[f"{name}.feed_forward.linear_2"],
            "update": out[f"{name}.feed_forward.linear_2"],
            "both": into[f"{name}.norm_2"],
            "out": out[name],
        }
        found |= {f"{path}.{part}": x for part, x in parts.items()}
    return found | {"out": out[f"encoder.layers.{len(model.encoder.layers) - 1}"]}


# What is computed


@pytest.mark.parametrize("text", [*EXAMPLES, SENTENCES[0], TEXTS[2], "東 ¿", MOST])
def test_every_number_is_pytorchs(page, bert, text):
    ids = bert.tokenizer.batch([text])
    got = page.evaluate(SHOWN, text)
    assert got["ids"] == ids[0].tolist()
    assert_same(got["found"], expected(bert.model, ids))


@pytest.mark.parametrize("text", [*EXAMPLES, *QUESTIONS, "東"])
def test_the_nearest_of_other_sentences_are_the_librarys(page, bert, text):
    ids = bert.tokenizer.batch([text, *OTHERS])
    with torch.no_grad():
        vectors = sentence_vectors(bert.model(ids), ids != PAD)
    got = page.evaluate(SHOWN, text)
    torch.testing.assert_close(torch.tensor(got["vector"]), vectors[0], **CLOSE)
    cosines, order = (vectors[1:] @ vectors[0]).sort(descending=True)
    assert [one["text"] for one in got["near"]] == [OTHERS[place] for place in order]
    torch.testing.assert_close(
        torch.tensor([one["cosine"] for one in got["near"]]), cosines, **CLOSE
    )


def test_words_and_pieces_are_the_librarys(page, bert):
    texts = [*ODD, *EXAMPLES, *OTHERS, *SENTENCES, *QUESTIONS, *TEXTS, *bert.tokenizer.vocabulary]
    assert page.evaluate("all => all.map(wordsOf)", texts) == [words_of(text) for text in texts]
    got = page.evaluate("all => all.map(text => cutText(text).pieces.slice(1, -1))", texts)
    assert got == [bert.tokenizer.pieces(text) for text in texts]


def test_every_letter_of_latin_scripts_is_read_alike(page):
    letters = [
        chr(code) for code in (*range(0x250), *range(0x1E00, 0x1F00), *range(0x2000, 0x2070))
    ]
    texts = [f"a{letter}b" for letter in letters]
    assert page.evaluate("all => all.map(wordsOf)", texts) == [words_of(text) for text in texts]


def test_a_gelu_far_out_is_a_share_of_a_normal_distribution(page):
    x = torch.linspace(-12, 12, 2401, dtype=torch.float64)
    got = torch.tensor(page.evaluate("all => all.map(shareBelow)", x.tolist()), dtype=torch.float64)
    torch.testing.assert_close(got, (1 + torch.erf(x / math.sqrt(2))) / 2, rtol=0, atol=1e-12)


# What is typed, and what is shown


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "Type a sentence."),
        (" \u200b ", "Type a sentence."),
        (f"{MOST} b", "These are 25 word pieces: type at most 24."),
    ],
)
def test_what_is_not_shown_gets_a_sentence(page, typed, sentence):
    type_into(page, MOST, "#sentence")
    type_into(page, typed, "#sentence")
    assert said(page, "#sentence-problem") == sentence
    assert page.locator("#sentence").get_attribute("aria-invalid") == "true"
    assert "has 24 word pieces" in said(page)  # what was shown last stands
    type_into(page, "<b>Compress</b>", "#sentence")
    assert said(page, "#sentence-problem") == ""
    assert said(page).startswith("“<b>Compress</b>” has ")


def test_layer_head_and_weight_are_chosen_by_keyboard_alone(page, bert):
    type_into(page, "turn a string into a date", "#sentence")
    page.focus("#reader-layer-1")
    page.keyboard.press("Enter")
    page.focus("#reader-head-3")
    page.keyboard.press("Space")
    panel = page.locator("#reader-body")
    panel.locator("td[tabindex='0']").focus()
    for key in ("Home", "PageUp", "ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    _, _, weights, _ = run_bert(bert.model, bert.tokenizer.batch(["turn a string into a date"]))
    weight = weights["encoder.layers.1.attention"][3, 1, 2]
    line = panel.locator(".arithmetic p").first
    assert line.inner_text() == f"query 1, “t”; key 2, “##urn”: weight {weight:.4f}"
    assert line.get_attribute("aria-live") == "polite"
    chosen = page.locator("#reader-body td:focus")
    assert chosen.get_attribute("title") == f"query t, key ##urn: {weight:.4f}"


def test_every_piece_of_a_layer_says_where_its_numbers_come_from(page):
    type_into(page, "Compress the data.", "#sentence")
    panel = page.locator("#reader-body")
    panel.get_by_role("button", name="layer 0").click()
    explain_every_piece(panel)
    panel.locator(".pieces button").first.click()
    text = panel.locator(".arithmetic").inner_text()
    assert "√(variance + 0.000000000001)" in text
    assert "row 2 of words" in text and "row 0 of types" in text


def test_what_the_page_tells_to_try_is_there_to_be_seen(page):
    weights = page.evaluate(
        """["turn a string into a date", "turn a date into a string"].map(text => {
            const { pieces, encoded, vector } = readText(text);
            const x = encoded.layers[0].self.heads[0].weights;
            const rows = pieces.map((_, t) => [...x.data.slice(t * x.cols, (t + 1) * x.cols)]);
            return { pieces, rows, nearest: neighbours(vector)[0].text };
        })"""
    )
    pieces, rows = weights[0]["pieces"], torch.tensor(weights[0]["rows"])
    first, second = [place for place, piece in enumerate(pieces) if piece == "a"]
    assert pieces[rows[first].argmax()] == pieces[rows[second].argmax()] == "dat"
    assert (rows[first] - rows[second]).abs().max() < 0.06 and rows[first].max() > 0.8
    assert (
        weights[0]["nearest"] == weights[1]["nearest"] == "Convert a string to a datetime object."
    )


# Who can use it


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, scheme):
    page.emulate_media(color_scheme=scheme)
    for text in (EXAMPLES[1], ""):
        type_into(page, text, "#sentence")
        assert lab.axe(page, context="#bert") == []


def test_nothing_is_wider_than_a_telephone(page):
    size = page.viewport_size
    page.set_viewport_size({"width": 375, "height": 800})
    for text in (MOST, "subclasses environment processes " * 8, "é" * 101):
        type_into(page, text, "#sentence")
        assert said(page, "#sentence-problem") == ""
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.set_viewport_size(size)
