"""Published decoders in lesson 20: the logits of transformers, or a sentence that says why not."""

import pytest
import torch

from attention.modern_decoder import ModernDecoder, pair_up
from attention.provided.data.tokens import PAD
from attention.provided.models.decoders import llama

CLOSE = 1e-5


def loaded(kind):
    stored = llama.stored(kind)
    return llama.load_llama(ModernDecoder(**stored.sizes), stored.weights, pair_up), stored


@pytest.mark.parametrize("pieces", [[11], [5, 1, 3, 1, 1]], ids=str)
@pytest.mark.parametrize("side", llama.PADDING)
@pytest.mark.parametrize("kind", llama.KINDS)
@torch.no_grad()
def test_the_logits_are_those_of_transformers(kind, side, pieces):
    model, stored = loaded(kind)
    ids = stored.ids[side]
    past, scores, read = None, [], 0
    for piece in ids.split(pieces, dim=1):
        read += piece.shape[1]
        some, past = model(piece, past, None if side == "none" else (ids != PAD)[:, :read])
        scores.append(some)
    far = torch.cat(scores, dim=1) - stored.logits[side]
    assert far[ids != PAD].abs().max() < CLOSE


def test_each_setting_is_felt():
    """Left out one at a time, the logits differ; a window only where it hides something."""
    for kind, name in (("llama3", "base"), ("mistral", "window")):
        stored = llama.stored(kind)
        others = {key: value for key, value in stored.sizes.items() if key != name}
        model = llama.load_llama(ModernDecoder(**others), stored.weights, pair_up)
        far = (model(stored.ids["none"])[0] - stored.logits["none"]).abs().amax(dim=(0, 2))  # (T,)
        assert far[:1].max() < CLOSE < 0.01 < far[4:].max()
    stored = llama.stored("llama")
    unpaired = llama.load_llama(ModernDecoder(**stored.sizes), stored.weights, lambda w, _: w)
    assert (unpaired(stored.ids["none"])[0] - stored.logits["none"]).abs().max() > 0.1


def test_a_table_that_the_file_has_twice_is_taken_once():
    stored = llama.stored("qwen3")
    model = ModernDecoder(**stored.sizes)
    table = stored.weights[llama.TABLE]
    llama.load_llama(model, stored.weights | {llama.OUTPUT: table.clone()}, pair_up)
    assert torch.equal(model.embedding.weight, table)
    with pytest.raises(ValueError, match=r"lm_head\.weight is not model\.embed_tokens\.weight"):
        llama.load_llama(model, stored.weights | {llama.OUTPUT: table + 1}, pair_up)


def test_what_does_not_fit_is_refused_by_its_name():
    stored = llama.stored("qwen3")
    plain = ModernDecoder(**{**stored.sizes, "qk_norm": False})
    said = r"^layers\.0\.attention\.norm_\w\.weight of the file has no place"
    with pytest.raises(ValueError, match=said):
        llama.load_llama(plain, stored.weights, pair_up)
    few = {name: w for name, w in stored.weights.items() if name != "model.norm.weight"}
    model = ModernDecoder(**stored.sizes)
    with pytest.raises(ValueError, match=r"^norm\.weight of the model is not in the file"):
        llama.load_llama(model, few, pair_up)
    other = stored.weights | {"model.norm.weight": torch.ones(5)}
    with pytest.raises(ValueError, match=r"norm\.weight is \(5,\) in the file, and \(24,\)"):
        llama.load_llama(model, other, pair_up)
