"""The page in which the shipped translator runs: all its numbers are PyTorch's."""

import math

import pytest
import torch

from attention import decoding
from attention.provided.data.numbers import in_words
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.models.beam_search import penalty
from attention.tokens_and_positions import sinusoidal_positions
from attention.transformer import masks_from_tokens
from tests.browser.glass import FOUND, ODD, assert_same, attention_of, run_watched, source_of

pytestmark = pytest.mark.browser


@pytest.fixture
def page(glass_page):
    return glass_page


TEXTS = [in_words(number, "en") for number in (7, 231, 777777)] + [ODD, "zero " * 12]
MATRICES = f"""words => {{ {FOUND}
    const {{ encoded, decoded }} = translate(words, 1, 0);
    walk({{ encoded, decoded }}, "");
    return found;
}}"""
SEARCHED = """([words, K, alpha]) => {
    const { greedy, beams } = translate(words, K, alpha);
    const steps = beams.steps.map(({ beams }) => beams.map(({ total, ids }) => [total, ids]));
    return { greedy: [greedy.total, greedy.ids], beams: [beams.total, beams.ids], steps,
        value: beams.value };
}"""


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
def test_every_number_is_pytorchs(page, glass_model, text):
    model, corpus = glass_model
    found = page.evaluate(MATRICES, text.split())
    assert_same(found, expected(model, source_of(text, corpus)))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("beam", "alpha"), [(1, 0.0), (3, 0.6), (8, 1.0)])
def test_the_searches_are_those_of_decoding(page, glass_model, text, beam, alpha):
    model, corpus = glass_model
    source = source_of(text, corpus)
    got = page.evaluate(SEARCHED, [text.split(), beam, alpha])
    assert got["greedy"][1] == decoding.greedy(model, source)[0].tolist()
    ids, totals = decoding.beam_search(model, source, beam, alpha, return_scores=True)
    assert got["beams"][1] == ids[0].tolist()
    assert got["beams"][0] == pytest.approx(totals.item(), abs=1e-4)
    value = totals / penalty((ids != PAD).sum(1), alpha)
    assert got["value"] == pytest.approx(value.item(), abs=1e-5)


@pytest.mark.parametrize("text", ["seven", ODD])
def test_every_step_keeps_the_beams_of_the_plain_search(page, glass_model, text):
    model, corpus = glass_model
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
        # All that have ended up to this step, best first, then the beams that go on.
        so_far = [one for step in steps[:length] for one in step if one[1][-1] == EOS]
        ended = {tuple(ids): [total, ids] for total, ids in so_far}.values()
        going_on = [one for one in steps[length - 1] if one[1][-1] != EOS]
        got = [*sorted(ended, reverse=True), *going_on][:3]
        assert [ids for _, ids in got] == [ids for _, ids in wanted]
        totals = [total for total, _ in got]
        assert totals == pytest.approx([total for total, _ in wanted], abs=1e-4)


def test_numbers_are_written_as_in_the_corpus(page, glass_model):
    _, corpus = glass_model
    numbers = [*range(1, 1200), *(pair[0] for pair in corpus.test), 100_000, 101_001, 999_999, 0]
    got = page.evaluate("all => all.map(n => [inEnglish(n), inGerman(n)])", numbers)
    assert got == [[in_words(n, "en"), in_words(n, "de")] for n in numbers]
