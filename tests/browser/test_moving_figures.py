"""The moving figures: every number that a script shows is the library's."""

import contextlib
import math

import numpy
import pytest
import torch

from attention import (
    decoding,
    efficient_attention,
    kernel_regression,
    masked_attention,
    scaled_dot_product_attention,
    tokens_and_positions,
    training,
    translation,
)
from attention.experiments import masked_attention as masks_drawn
from attention.provided.figures import moving
from tests.browser import lab

pytestmark = [pytest.mark.browser, pytest.mark.long]

TEN = (
    *("bandwidth", "crossing", "scale", "masks", "rotation"),
    *("warm_up", "sampling", "n_grams", "patches", "tiles"),
)
PAGE = "<!doctype html><meta charset='utf-8'><body style='margin: 8px'>{}"
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


class Shown:
    """One figure in a page: its controls by their labels, and what it shows."""

    def __init__(self, page):
        self.page = page

    @property
    def numbers(self):
        return self.page.evaluate("document.querySelector('.moving').numbers")

    @property
    def said(self):
        return self.page.locator(".moving output").inner_text()

    def slide(self, label, place):
        """Move a slider to its place, from 0, by the events that a hand gives."""
        slider = self.page.get_by_label(label, exact=True)
        slider.evaluate(
            "(one, place) => { one.value = place; one.dispatchEvent(new Event('input')); }", place
        )

    def last(self, label):
        """The last place of a slider."""
        return int(self.page.get_by_label(label, exact=True).get_attribute("max"))

    def choose(self, label, index):
        self.page.get_by_label(label, exact=True).select_option(index=index)


@pytest.fixture
def show(browser, tmp_path):
    """Opens a figure by its name, in a page of its own."""
    with contextlib.ExitStack() as stack:

        def opened(name):
            path = tmp_path / f"{name}.html"
            path.write_text(PAGE.format(getattr(moving, name)().data), encoding="utf-8")
            return Shown(stack.enter_context(lab.alone(browser, path)))

        yield opened


def equal(ours, wanted):
    ours = torch.as_tensor(ours, dtype=torch.float64)
    torch.testing.assert_close(ours, torch.as_tensor(wanted, dtype=torch.float64), **CLOSE)


def doubles(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


KERNELS = ("gaussian", "boxcar", "epanechnikov", "constant")


def test_bandwidth(show):
    one, recorded = show("bandwidth"), moving._recorded()["bandwidth"]
    x_train, y_train = doubles(recorded["hours"]), doubles(recorded["levels"])
    for index, kernel in enumerate(KERNELS):
        one.choose("kernel", index)
        for bandwidth, query in ((0, 84), (30, 0), (60, 120)):
            one.slide("bandwidth", bandwidth)
            one.slide("query at", query)
            shown = one.numbers
            x, h = doubles([*shown["places"], shown["at"]]), shown["bandwidth"]
            fit, weights = kernel_regression.kernel_regression(x, x_train, y_train, kernel, h)
            equal(shown["fit"], fit[:-1])
            equal(shown["weights"], weights[-1])
            equal(shown["said"], fit[-1])
            assert f"{fit[-1]:.2f} dm" in one.said


def test_crossing(show):
    one, recorded = show("crossing"), moving._recorded()["crossing"]
    for index, alignment in enumerate(recorded):
        one.choose("number", index)
        last = one.last("letters written")
        assert last == len(alignment["letters"]) - 1
        for letter in (0, last):
            one.slide("letters written", letter)
            equal(one.numbers["weights"], doubles(alignment["weights"][letter]) / 1000)
            assert one.numbers["letters"] == alignment["letters"][: letter + 1]


def test_scale(show):
    one = show("scale")
    for index, undo in enumerate((False, True)):
        one.choose("scores", index)
        for place in (0, 5, 10):
            one.slide("d", place)
            shown = one.numbers
            d, q, keys = shown["d"], doubles([shown["q"]]), doubles(shown["keys"])
            assert keys.shape == (10, 2**place) and d == 2**place
            q = q * math.sqrt(d) if undo else q
            equal(shown["scores"], (q @ keys.T / math.sqrt(d))[0])
            _, weights = scaled_dot_product_attention.scaled_dot_product_attention(
                q, keys, keys, return_weights=True
            )
            equal(shown["weights"], weights[0])
    numbers = numpy.array(shown["keys"])
    assert abs(numbers.mean()) < 0.05 and abs(numbers.std() - 1) < 0.05


def test_masks(show):
    one, T = show("masks"), 24
    masks = {
        "local": lambda n: masked_attention.longformer_mask(T, n, []),
        "causal": lambda n: masked_attention.causal_mask(T),
        "padding": lambda n: (torch.arange(T) < n).expand(T, T),
        "Longformer, global 0": lambda n: masked_attention.longformer_mask(T, n, [0]),
        "BigBird, blocks of 2": lambda n: masks_drawn.bigbird(),
        "full": lambda n: torch.ones(T, T, dtype=torch.bool),
    }
    for index, (name, mask) in enumerate(masks.items()):
        one.choose("mask", index)
        for size, layers in ((2, 1), (5, 4)):
            if one.page.get_by_label("size", exact=True).is_enabled():
                one.slide("size", size)
            one.slide("layers", layers - 1)
            shown, wanted = one.numbers, mask(size).double()
            assert shown["mask"] == name and shown["layers"] == layers
            equal(shown["sees"], wanted)
            equal(shown["reach"], torch.linalg.matrix_power(wanted, layers) > 0)
            powers = [torch.linalg.matrix_power(wanted, n) > 0 for n in range(1, T + 1)]
            meet = next((n for n, reach in enumerate(powers, start=1) if reach.all()), None)
            assert shown["meet"] == meet


def test_rotation(show):
    one = show("rotation")
    for later in (0, 17):
        one.slide("m, of the query", 7)
        one.slide("n, of the key", 3)
        one.slide("both later by", later)
        shown = one.numbers
        assert (shown["at"], shown["to"]) == (7 + later, 3 + later)
        both = doubles([shown["Q"], shown["K"]])
        turned = tokens_and_positions.rotary(both, doubles([shown["at"], shown["to"]]))
        equal([shown["q"], shown["k"]], turned)
        equal(shown["product"], turned[0] @ turned[1])
        equal(shown["products"][24 + 4], shown["product"])
    one.choose("positions", 1)
    shown = one.numbers
    encoded = tokens_and_positions.sinusoidal_positions(doubles([shown["at"], shown["to"]]), 8)
    equal([shown["q"], shown["k"]], encoded)
    equal(shown["products"][24 + 4], encoded[0] @ encoded[1])


def test_warm_up(show):
    one = show("warm_up")
    for warm, size in ((0, 0), (5, 3), (7, 4)):
        one.slide("warm-up", warm)
        one.slide("d_model", size)
        one.slide("read at step", 9)
        shown = one.numbers
        sizes = shown["d_model"], shown["warmup"]
        rate = training.noam_learning_rate
        rates = doubles([rate(step, *sizes) for step in shown["steps"]])
        torch.testing.assert_close(doubles(shown["rates"]), rates, rtol=1e-9, atol=0)
        assert shown["now"] == pytest.approx(rate(shown["step"], *sizes), rel=1e-9)
        assert shown["peak"] == pytest.approx(rate(shown["warmup"], *sizes), rel=1e-9)
        papers = doubles([rate(step, 512, 4000) for step in shown["steps"]])
        torch.testing.assert_close(doubles(shown["papers"]), papers, rtol=1e-9, atol=0)


def test_sampling(show):
    one, scores = show("sampling"), doubles([moving._recorded()["sampling"]["scores"]])
    last = {label: one.last(label) for label in ("top-k", "top-p")}
    for temperature, k, p in ((9, None, None), (19, 2, None), (4, None, 15), (29, 6, 13)):
        one.slide("temperature", temperature)
        one.slide("top-k", last["top-k"] if k is None else k)
        one.slide("top-p", last["top-p"] if p is None else p)
        shown = one.numbers
        logits = scores / shown["temperature"]
        logits = logits if k is None else decoding.top_k_filter(logits, shown["k"])
        logits = logits if p is None else decoding.top_p_filter(logits, shown["p"])
        equal(shown["shares"], torch.softmax(logits, dim=1)[0])
        assert one.said.startswith(f"{logits.isfinite().sum()} of 24 tokens")


def test_n_grams(show):
    one = show("n_grams")
    pairs = [None, None, None, None, ("a b a b a b c", "a b a b c d e f g"), ("", "a"), ("a", "")]
    for index, pair in enumerate(pairs):
        if pair is None:
            one.choose("pair", index)
        else:
            for label, text in zip(("hypothesis", "reference"), pair, strict=True):
                one.page.get_by_label(label, exact=True).fill(text)
        one.slide("n", index % 4)
        shown = one.numbers
        matches, totals = translation.ngram_matches(shown["hypothesis"], shown["reference"])
        assert (shown["matches"], shown["totals"]) == (matches, totals)
        texts = [" ".join(shown[side]) for side in ("hypothesis", "reference")]
        equal(
            shown["bleu"],
            translation.score_of(*translation.corpus_statistics(texts[:1], texts[1:])),
        )
        assert one.page.locator(".moving li").count() == totals[index % 4]
        assert one.page.locator(".moving li", has_text="✓").count() == matches[index % 4]


def test_patches(show):
    one, recorded = show("patches"), moving._recorded()["patches"]
    for index, image in enumerate(recorded):
        one.choose("image", index)
        for blank in (0, 6, 16):
            one.slide("blank patch", blank)
            shown, pixels = one.numbers, doubles(image["ink"]) / 16
            if blank:
                row, column = divmod(blank - 1, 4)
                pixels[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = 0
            equal(shown["rows"], pixels)
            shares = doubles(image["shares"]) / 10_000
            equal(shown["shares"], shares[blank])
            equal(shown["drops"], shares[0, image["label"]] - shares[1:, image["label"]])


def test_tiles(show):
    one = show("tiles")
    for place, block in enumerate((1, 2, 3, 4, 6, 12)):
        one.slide("keys in a tile", place)
        one.slide("tiles seen", one.last("tiles seen"))
        shown = one.numbers
        assert shown["block"] == block and len(shown["steps"]) == 12 // block
        scores, values = doubles(shown["scores"]), doubles(shown["values"])
        context, total = doubles([[0.0]]), doubles([0.0])
        maximum = doubles([-math.inf])
        tiles = zip(scores.split(block), values.split(block), strict=True)
        for step, (some, v) in zip(shown["steps"], tiles, strict=True):
            context, total, maximum = efficient_attention.online_softmax(
                context, total, maximum, some[None], v[:, None]
            )
            equal([step["context"], step["total"], step["maximum"]], [context, total, maximum])
        equal(shown["shares"], scores.softmax(0))
        equal([shown["output"], shown["whole"]], [scores.softmax(0) @ values] * 2)


@pytest.mark.parametrize("name", TEN)
def test_a_key_moves_the_first_slider(show, name):
    one = show(name)
    before = one.said
    slider = one.page.locator(".moving input[type=range]").first
    # JupyterLab listens on the document, and would take the arrows to move between cells.
    one.page.evaluate("document.addEventListener('keydown', ({key}) => { window.heard = key; })")
    slider.focus()
    slider.press("ArrowRight" if slider.input_value() != slider.get_attribute("max") else "Home")
    assert one.said != before
    assert one.page.evaluate("window.heard ?? null") is None
    slider.press("Control+s")
    assert one.page.evaluate("window.heard") == "s"


@pytest.mark.parametrize("name", TEN)
def test_a_narrow_page_is_not_widened_and_everything_has_a_name(show, name):
    one = show(name)
    one.page.set_viewport_size({"width": 375, "height": 700})
    one.page.wait_for_function("document.querySelector('.moving svg').clientWidth < 375")
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 375
    for theme in ("light", "dark"):
        one.page.emulate_media(color_scheme=theme)
        assert lab.axe(one.page, context=".moving") == []


def test_two_figures_in_one_page_do_not_meet(browser, tmp_path):
    path = tmp_path / "both.html"
    both = moving.tiles().data + moving.scale().data
    path.write_text(PAGE.format(both), encoding="utf-8")
    with browser() as page:
        page.goto(path.as_uri())
        page.get_by_label("d", exact=True).press("ArrowRight")
        first, second = page.locator(".moving output").all_inner_texts()
    assert first.startswith("After 3 of 12 keys") and second.startswith("d = 128")


def test_without_scripts_a_sentence_stands_in_its_place(browser):
    with browser() as page:
        page.context.route("**", lambda route: route.abort())
        page.set_content(moving.tiles().data.split("<script")[0] + "</div>")
        assert "open the notebook in JupyterLab" in page.locator(".moving").inner_text()
