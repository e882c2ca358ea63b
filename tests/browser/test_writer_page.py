"""The writer's page: what it computes and draws is what the library does; who can use it."""

import math
import re

import pytest
import torch

from attention import modern_decoder
from attention.decoding import sample_tokens, top_p_filter
from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.pages import writer_page
from attention.provided.data import novels
from attention.provided.models.decoders import small_writer
from attention.provided.training_steps import one_thread
from attention.tokens_and_positions import bpe_decode, bpe_encode, split_words
from tests.browser import lab

pytestmark = [pytest.mark.browser, pytest.mark.long]

BEGIN = writer_page.EXAMPLES[0]
ODD = (
    "",
    "It's 12 o'clock,  or not?\n\n \"Yes\"\t—  ",
    "naïve Größe ½ x² 東京 ٣٤ e\u0301 👍🏽 a_b\u00a0c\u2028d\x1ce\ufefff\x85g \u200b ",
    "  leading, trailing   ",
    "don't stop…__init__ 3rd 1,000.50",
)
READ = """ids => {
    const cache = emptyCache(model), all = ids.map((id) => readToken(model, cache, id));
    return { scores: all.map((one) => [...one.scores]), bytes: cacheBytes(cache),
        looks: all.map(({ looks }) => looks.map((heads) => heads.map((one) => [...one]))) };
}"""


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """The page, opened."""
    path = tmp_path_factory.mktemp("writer") / "writer.html"
    writer_page.write(path)
    with lab.alone(browser, path, "?pace=0&count=20") as opened:
        yield opened


@pytest.fixture(scope="module")
def merges():
    return [tuple(pair) for pair in small_writer.read()[1]["merges"]]


@pytest.fixture(scope="module")
def model():
    with one_thread(), torch.no_grad():
        yield small_writer.load(ModernDecoder)


def write(page, **settings):
    """Begin anew with these settings, and wait until it has written; returns the whole text."""
    page.goto(f"{page.address}?pace=0&" + "&".join(f"{k}={v}" for k, v in settings.items()))
    page.click("#write")
    page.locator("#said").get_by_text(" written").wait_for()
    return page.evaluate("decodeText(text.ids, tokenizer)")


def look(model, ids, monkeypatch):
    """The scores of a text, and the weights of every layer: (H, T, T) each."""
    weights = []

    def watched(q, k, v, mask):
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf)
        weights.append(scores.softmax(dim=-1)[0])
        return weights[-1] @ v

    monkeypatch.setattr(modern_decoder, "masked_attention", watched)
    return model(ids[None])[0][0], weights


# What is computed


@pytest.mark.parametrize("text", [BEGIN, novels.split()[1][1000:1300]])
def test_scores_weights_and_bytes_are_pytorchs(page, model, merges, text, monkeypatch):
    ids = torch.tensor(bpe_encode(text, merges))
    scores, weights = look(model, ids, monkeypatch)
    got = page.evaluate(READ, ids.tolist())
    torch.testing.assert_close(torch.tensor(got["scores"]), scores, rtol=0, atol=2e-4)
    for t, looks in enumerate(got["looks"]):
        for layer, heads in enumerate(looks):
            wanted = weights[layer][:, t, : t + 1]
            shown = torch.tensor(heads, dtype=torch.float32)
            torch.testing.assert_close(shown, wanted, rtol=0, atol=1e-5)
    sizes = small_writer.SIZES
    numbers = sizes["n_layers"] * sizes["n_kv_heads"] * sizes["d_model"] // sizes["n_heads"]
    assert got["bytes"] == 4 * 2 * numbers * len(ids)  # keys and values


def test_words_and_tokens_are_the_librarys(page, merges):
    texts = [*ODD, *writer_page.EXAMPLES, novels.split()[2][20_000:22_000]]
    assert page.evaluate("all => all.map(splitWords)", texts) == [*map(split_words, texts)]
    wanted = [bpe_encode(text, merges) for text in texts]
    assert page.evaluate("all => all.map((text) => encodeText(text, tokenizer))", texts) == wanted
    cut = [*wanted, wanted[2][:5], [0xE2, 0x80], [0xFF, 97]]
    decoded = page.evaluate("all => all.map((ids) => decodeText(ids, tokenizer))", cut)
    assert decoded == [bpe_decode(ids, merges) for ids in cut]


@pytest.mark.parametrize("seed", [0, 1, 999_999])
def test_random_numbers_are_pytorchs(page, seed):
    draw = torch.Generator().manual_seed(seed)
    wanted = [torch.rand(1, generator=draw).item() for _ in range(700)]  # beyond one twist
    numbers = (
        "seed => { const next = randomNumbers(seed); return Array.from({length: 700}, next); }"
    )
    assert page.evaluate(numbers, seed) == wanted


@pytest.mark.parametrize(
    ("seed", "temperature", "p"), [(0, 0.8, 0.9), (7, 1.2, 1), (3, 0.5, 0.3), (1, 2, 0.75)]
)
def test_the_same_seed_writes_the_same_text(page, model, merges, seed, temperature, p):
    draw = torch.Generator().manual_seed(seed)

    def choose(scores):
        scores = scores / temperature if p == 1 else top_p_filter(scores / temperature, p)
        return sample_tokens(scores, torch.rand(len(scores), generator=draw))

    ids = bpe_encode(BEGIN, merges)
    new = generate_with_cache(model, torch.tensor([ids]), choose, 20)[0]
    wanted = bpe_decode([*ids, *new.tolist()], merges)
    settings = {"seed": seed, "temperature": temperature, "top-p": p, "count": 20}
    assert write(page, **settings) == wanted


# What is shown


def test_a_chosen_token_shows_what_could_stand_there(page, model):
    write(page, seed=2, count=20)
    typed = page.locator("#text .typed").count()
    page.locator("#text [role=option]").nth(typed + 4).click()
    ids = page.evaluate("text.ids")
    p = (model(torch.tensor([ids[: typed + 4]]))[0][0, -1] / 0.8).softmax(dim=0)
    left = (top_p_filter((p.log())[None], 0.9) > -math.inf)[0]
    said = page.locator("#place-said").inner_text()
    assert f"Place {typed + 4}: " in said and f"Its probability was {p[ids[typed + 4]]:.4f}" in said
    assert f"keeps {left.sum()} of 1\u00a0024 tokens, which have {p[left].sum():.4f}" in said
    rows = [
        [cell.strip() for cell in row.split("\t")]
        for row in page.locator("#place tbody tr").all_inner_texts()
    ]
    best = p.topk(3)
    assert [row[2] for row in rows[:3]] == [f"{value:.4f}" for value in best.values]
    assert rows[0][3] == f"{best.values[0] / p[left].sum():.4f}"
    assert sum("written" in row[1] for row in rows) == 1
    assert rows[-1][0].endswith("others") and rows[-1][3] == "cut"
    shares = [float(row[2]) for row in rows if not row[2].startswith("<")]
    assert sum(shares) == pytest.approx(1, abs=0.001)


def test_tokens_layer_and_head_are_chosen_by_keyboard(page, model, monkeypatch):
    write(page, seed=2, count=80)
    page.locator("#text [tabindex='0']").focus()
    page.keyboard.press("Home")
    above = page.evaluate("document.activeElement.getClientRects()[0].top")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getClientRects()[0].top") > above
    for key in ("Home", "PageDown", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.evaluate("[chosen, document.activeElement.place]") == [10, 10]
    page.focus("#layer-1")
    page.keyboard.press("Enter")
    page.focus("#head-3")
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.id") == "head-3"
    ids = torch.tensor(page.evaluate("text.ids"))
    _, weights = look(model, ids, monkeypatch)
    row = weights[1][3, 9]
    shown = page.locator("#looks tbody tr").first.inner_text().split("\t")
    assert shown[2] == f"{row.max():.4f}"
    assert shown[1] == ("itself" if row.argmax() == 9 else f"{9 - row.argmax()} before")
    tokens = page.locator("#text [role=option]")
    colours = [tokens.nth(t).get_attribute("style") or "" for t in range(12)]
    assert "background" in colours[int(row.argmax())] and "background" not in colours[10]


def test_it_stops_goes_on_and_says_little(page):
    page.goto(f"{page.address}?pace=4&count=160")
    page.click("#write")
    page.locator("#write", has_text="Stop").wait_for()
    assert page.locator("#place-said").get_attribute("aria-live") == "off"
    page.locator(".candidates .taken", has_text="written").wait_for()
    page.keyboard.press("Escape")
    page.locator("#said").get_by_text(" written").wait_for()
    first = page.evaluate("text.ids")
    assert page.evaluate("document.activeElement.id") == "write"
    page.select_option("#pace", "0")
    page.click("#write-on")
    page.locator("#said").get_by_text("160 tokens written").wait_for()
    page.click("#write-on")
    page.locator("#said").get_by_text("up to 256, which is the most").wait_for()
    assert page.locator("#write-on").get_attribute("aria-disabled") == "true"
    page.press("#write-on", "Enter")  # it keeps the focus, and does nothing
    ids = page.evaluate("text.ids")
    assert ids[: len(first)] == first and len(ids) == 256
    write(page, count=20)  # in one go
    assert page.evaluate("text.ids") == ids[: page.evaluate("text.ids.length")]


def test_what_the_page_tells_to_try_is_there_to_be_seen(page):
    words = write(page, temperature=0.1, count=80).split()
    runs = [tuple(words[i : i + 5]) for i in range(len(words) - 4)]
    assert len(set(runs)) < len(runs)  # five words that come again
    known = set(re.findall(r"[a-z]+", " ".join(novels.split()).lower()))

    def strange(**settings):
        new = re.findall(r"[a-z]+", write(page, temperature=2, **settings).lower())
        return sum(word not in known for word in new)

    assert strange(**{"top-p": 1}) > 2 * strange(**{"top-p": 0.5})


@pytest.mark.parametrize(
    ("typed", "seed", "sentence"),
    [
        ("", "1", "Type a beginning."),
        ("word " * 64, "1", "tokens: type at most 64."),
        ("Emma", "-1", "The seed is a whole number from 0 to 999999."),
        ("Emma", "0.5", "The seed is a whole number from 0 to 999999."),
    ],
)
def test_what_cannot_be_read_gets_a_sentence(page, typed, seed, sentence):
    write(page, count=20)
    before = page.evaluate("text.ids")
    page.fill("#seed", seed)
    page.fill("#begin", typed)
    page.press("#begin", "Enter")
    assert sentence in page.locator("#problem").inner_text()
    assert page.evaluate("text.ids") == before  # what was shown last stands
    page.fill("#seed", "3")
    page.fill("#begin", "<b>é")
    page.locator("#text").get_by_text("⟨c3⟩").wait_for()
    assert page.locator("#problem").inner_text() == ""


# Who can use it


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, scheme):
    page.emulate_media(color_scheme=scheme)
    write(page, count=20)
    page.locator("#text [role=option]").nth(12).click()
    assert lab.axe(page) == []
