"""The page in which the shipped translator runs: its numbers are PyTorch's, and all can use it."""

import base64
import math

import pytest
import torch

from attention import decoding
from attention.multi_head_attention import split_heads
from attention.provided import translators
from attention.provided.data import BOS, EOS, PAD, in_words
from attention.provided.sublayers import watch_attention
from attention.tokens_and_positions import sinusoidal_positions
from attention.transformer import masks_from_tokens
from autograder.building import glass
from tests import needs

pytestmark = pytest.mark.browser

CLOSE = {"rtol": 0, "atol": 1e-4}
ODD = "thousand thousand two"  # no number: the model is in doubt, and beams differ
TEXTS = [in_words(number, "en") for number in (7, 231, 777777)] + [ODD, "zero " * 12]
SERIOUS = ("serious", "critical")
NOBODY = "http://127.0.0.1:9/"
# Every matrix of a result, by its path in it: rows, columns, and float64 numbers in base64.
MATRICES = """words => {
    const text = numbers => btoa(Array.from(new Uint8Array(numbers.buffer),
        byte => String.fromCharCode(byte)).join(""));
    const found = {}, walk = (one, path) => {
        if (one === null || typeof one !== "object") return;
        if (one.data instanceof Float64Array) {
            found[path] = [one.rows, one.cols, text(one.data)];
        } else for (const key of Object.keys(one)) walk(one[key], path ? path + "." + key : key);
    };
    const { encoded, decoded } = translate(words, 1, 0);
    walk({ encoded, decoded }, "");
    return found;
}"""
SEARCHED = """([words, K, alpha]) => {
    const { greedy, beams } = translate(words, K, alpha);
    const steps = beams.steps.map(({ beams }) => beams.map(({ total, ids }) => [total, ids]));
    return { greedy: [greedy.total, greedy.ids], beams: [beams.total, beams.ids], steps };
}"""


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """The page, opened; what it asks for and what it complains of is in .asked and .said."""
    path = tmp_path_factory.mktemp("glass") / "glass.html"
    glass.write(path)
    with browser() as opened:
        opened.asked, opened.said = [], []
        opened.on("requestfinished", lambda request: opened.asked.append(request.url))
        opened.on("requestfailed", lambda one: opened.said.append(f"{one.failure}: {one.url}"))
        opened.on("console", lambda message: opened.said.append(message.text))
        opened.on("pageerror", lambda error: opened.said.append(str(error)))
        opened.goto(path.as_uri())
        opened.address = path.as_uri()
        yield opened


@pytest.fixture(scope="module")
def trained():
    model, corpus = translators.trained(glass.MODEL)
    with translators.one_thread(), torch.no_grad():
        yield model, corpus


def type_in(page, text):
    page.fill("#number", text)
    page.press("#number", "Enter")


def source_of(text, corpus):
    return torch.tensor([corpus.source_vocabulary.encode(text.split())])


# The same numbers as PyTorch's


def run_watched(model, source):
    """What goes into and comes out of every module, and the weights, in the greedy translation."""
    into, out, hooks = {}, {}, []
    read = torch.cat([torch.tensor([[BOS]]), decoding.greedy(model, source)[:, :-1]], dim=1)

    def watch(name, module):
        def after(_, arguments, result):
            into[name] = arguments[0][0]
            out[name] = (result[0] if isinstance(result, tuple) else result)[0]

        hooks.append(module.register_forward_hook(after))

    source_mask, target_mask = masks_from_tokens(source, read)
    with watch_attention(model) as weights:
        for name, module in model.named_modules():
            watch(name, module)
        model.decode(read, model.encode(source, source_mask), target_mask, source_mask)
    for hook in hooks:
        hook.remove()
    return into, out, {name: found[0] for name, found in weights.items()}, read


def attention_of(name, seen, n_heads, path):
    """The matrices of one attention, as the page names them."""
    into, out, all_weights, _ = seen
    weights, causal = all_weights[name], name.startswith("decoder") and "cross" not in name
    heads = {part: split_heads(out[f"{name}.W_{part}"][None], n_heads)[0] for part in "qkv"}
    context = split_heads(into[f"{name}.W_o"][None], n_heads)[0]
    scores = heads["q"] @ heads["k"].transpose(1, 2)
    scaled = scores / math.sqrt(context.shape[2])
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(1) & causal
    masked = scaled.masked_fill(hidden, -math.inf)
    heads |= {"scores": scores, "scaled": scaled, "masked": masked}
    heads |= {"weights": weights, "context": context}
    found = {f"{path}.heads.{h}.{part}": x[h] for part, x in heads.items() for h in range(n_heads)}
    return found | {f"{path}.merged": into[f"{name}.W_o"], f"{path}.output": out[f"{name}.W_o"]}


def layer_of(name, seen, n_heads, path):
    """The matrices of one layer, as the page names them."""
    into, out, *_ = seen
    crosses, last = name.startswith("decoder"), "norm_3" if name.startswith("decoder") else "norm_2"
    fed = {
        "normed": out[f"{name}.{last}"],
        "hidden": into[f"{name}.feed_forward.linear_2"],
        "update": out[f"{name}.feed_forward.linear_2"],
        "out": out[name],
    }
    found = {f"fed.{part}": x for part, x in fed.items()}
    found |= {"x": into[name], "normed": out[f"{name}.norm_1"], "out": out[name]}
    found |= {"sum": into[f"{name}.norm_2"]}
    if crosses:
        found |= {"asking": out[f"{name}.norm_2"], "both": into[f"{name}.norm_3"]}
    found = {f"{path}.{part}": x for part, x in found.items()}
    found |= attention_of(f"{name}.attention", seen, n_heads, f"{path}.self")
    if crosses:
        found |= attention_of(f"{name}.cross_attention", seen, n_heads, f"{path}.cross")
    return found


def expected(model, source):
    """Every matrix that the page shows for a source, from PyTorch: by its path in the page."""
    seen = run_watched(model, source)
    into, out, _, read = seen
    found = {}
    for path, side, ids in (("encoded", "encoder", source), ("decoded", "decoder", read)):
        table = model.source_embedding if side == "encoder" else model.target_embedding
        d_model = table.embedding_dim
        positions = sinusoidal_positions(torch.arange(ids.shape[1], dtype=torch.float32), d_model)
        found[f"{path}.scaled"] = table(ids[0]) * math.sqrt(d_model)
        found[f"{path}.positions"] = positions
        found[f"{path}.x"] = into[f"{side}.layers.0"]
        for number, layer in enumerate(getattr(model, side).layers):
            n_heads = layer.attention.n_heads
            name = f"{side}.layers.{number}"
            found |= layer_of(name, seen, n_heads, f"{path}.layers.{number}")
    logits = out["generator"]
    words = logits.clone()
    words[:, [PAD, BOS]] = -math.inf
    found |= {"encoded.memory": out["encoder.norm"], "decoded.output": out["decoder.norm"]}
    return found | {"decoded.logits": logits, "decoded.probabilities": words.softmax(dim=1)}


@pytest.mark.parametrize("text", TEXTS)
def test_every_number_is_pytorchs(page, trained, text):
    model, corpus = trained
    wanted = expected(model, source_of(text, corpus))
    got = page.evaluate(MATRICES, text.split())
    assert set(got) == set(wanted)
    for path, (rows, cols, numbers) in got.items():
        shown = torch.frombuffer(bytearray(base64.b64decode(numbers)), dtype=torch.float64)
        shown = shown.view(rows, cols).float()
        torch.testing.assert_close(shown, wanted[path], **CLOSE, msg=lambda m, p=path: f"{p}: {m}")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("beam", "alpha"), [(1, 0.0), (3, 0.6), (8, 1.0)])
def test_the_searches_are_those_of_decoding(page, trained, text, beam, alpha):
    model, corpus = trained
    source = source_of(text, corpus)
    got = page.evaluate(SEARCHED, [text.split(), beam, alpha])
    assert got["greedy"][1] == decoding.greedy(model, source)[0].tolist()
    ids, totals = decoding.beam_search(model, source, beam, alpha, return_scores=True)
    assert got["beams"][1] == ids[0].tolist()
    assert got["beams"][0] == pytest.approx(totals.item(), abs=1e-4)


@pytest.mark.parametrize("text", ["seven", ODD])
def test_every_step_keeps_the_beams_of_the_plain_search(page, trained, text):
    model, corpus = trained
    source = source_of(text, corpus)
    source_mask, _ = masks_from_tokens(source, source)
    memory = model.encode(source, source_mask)

    def next_log_probs(ids):
        logits = model.decode(torch.tensor([ids]), memory, None, source_mask)[0, -1]
        logits[[PAD, BOS]] = -math.inf
        return logits.log_softmax(dim=0)

    steps = page.evaluate(SEARCHED, [text.split(), 3, 0.6])["steps"]
    for length in range(1, min(len(steps), 10) + 1):
        wanted = decoding.plain_beam_search(next_log_probs, 3, length)
        assert [ids for _, ids in steps[length - 1]] == [ids for _, ids in wanted]
        totals = [total for total, _ in steps[length - 1]]
        assert totals == pytest.approx([total for total, _ in wanted], abs=1e-4)


def test_numbers_are_written_as_in_the_corpus(page, trained):
    _, corpus = trained
    numbers = [*range(1, 1200), *(pair[0] for pair in corpus.test), 100_000, 101_001, 999_999, 0]
    got = page.evaluate("all => all.map(n => [inEnglish(n), inGerman(n)])", numbers)
    assert got == [[in_words(n, "en"), in_words(n, "de")] for n in numbers]


# What is typed, and what is shown


def test_a_typed_number_is_translated_and_judged(page):
    page.fill("#number", "931")  # without Enter: it waits for the last key
    page.locator("#said").get_by_text("neunhunderteinunddreißig", exact=True).wait_for()
    said = page.locator("#said").inner_text()
    assert "nine hundred thirty one" in said
    assert "Right" in said
    assert page.locator("#machine").is_visible()


def test_a_link_chooses_the_number(page):
    page.goto(f"{page.address}?number=42")
    assert "zweiundvierzig" in page.locator("#said").inner_text()
    page.goto(page.address)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "Type a number from 0 to 999999, or its English words."),
        ("   ", "Type a number from 0 to 999999, or its English words."),
        ("1000000", "has 7 digits, and the model has only seen numbers of 1 to 6 digits"),
        ("-5", "“-5” is not in the model's vocabulary: the character “-” stands in no word of it"),
        ("two hundert", "“hundert” is not in the model's vocabulary."),
        ("<eos>", "“<eos>” is not in the model's vocabulary"),
        ("<b>7", "“<b>7” is not in the model's vocabulary"),
        ("two " * 13, "These are 13 words: type at most 12."),
    ],
)
def test_what_the_model_cannot_read_gets_a_sentence(page, typed, sentence):
    type_in(page, typed)
    assert sentence in page.locator("#said").inner_text()
    assert not page.locator("#machine").is_visible()
    assert page.locator("#number").get_attribute("aria-invalid") == "true"


def test_a_cell_shows_its_arithmetic_by_mouse_and_by_keyboard(page, trained):
    model, corpus = trained
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


def test_the_future_is_shown_as_masked(page):
    type_in(page, "7")
    panel = page.locator("#decoder-body")
    panel.get_by_role("button", name="self-attention", exact=False).first.click()
    panel.get_by_role("button", name="masked").click()
    cell = panel.get_by_role("row").nth(1).get_by_role("gridcell").nth(2)
    assert cell.inner_text() == "−∞"
    cell.click()
    said = panel.locator(".arithmetic").inner_text()
    assert "key 2 is in the future of query 0: the score becomes −∞" in said
    assert "weight 0" in said


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_every_piece_of_a_layer_says_where_its_numbers_come_from(page, trained, side):
    type_in(page, "42")
    panel = page.locator(f"#{side}-body")
    for number, piece in enumerate(panel.locator(".pieces button").all_inner_texts()):
        panel.locator(".pieces button").nth(number).click()
        if panel.locator(".heads").count():
            panel.get_by_role("button", name="context").click()
        drawn = panel.locator(".panel canvas[tabindex]")
        for key in ("Home", "PageUp", "ArrowRight"):
            drawn.press(key)
        lines = panel.locator(".arithmetic").inner_text().splitlines()
        assert "[0, 1] = " in lines[0] and len(lines) > 1, piece


def test_a_beam_search_is_followed_step_by_step(page, trained):
    model, corpus = trained
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
    needs.skip_without("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=scheme)
    type_in(page, "7")
    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in SERIOUS] == []


def test_nothing_is_wider_than_a_telephone(page):
    size = page.viewport_size
    page.set_viewport_size({"width": 380, "height": 800})
    type_in(page, "777777")
    page.press("#step", "End")  # the beams that have ended, with all their letters
    assert "Finished" in page.locator("#beams-body").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    page.set_viewport_size(size)


def test_the_page_asks_for_nothing_and_may_not(page):
    assert {url.partition("?")[0] for url in page.asked} == {page.address}
    assert page.said == []
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
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert NOBODY not in page.asked
    assert sum("Content Security Policy" in line for line in page.said) >= 3
    assert {line for line in page.said if line.endswith(f": {NOBODY}")} <= {f"csp: {NOBODY}"}
