"""A chat model is taught by low-rank updates: inserted, trained, merged, kept and read again."""

import pytest
import torch

from attention.answers import LowRank, answer_loss
from attention.modern_decoder import ModernDecoder
from attention.provided.data.tokens import EOS, PAD
from attention.provided.models import model_file
from attention.provided.models.decoders import smollm2
from attention.provided.models.model_file import ModelFileError
from attention.tokens_and_positions import bpe_encode
from attention.train.core import low_rank
from tests import small_chat_model

PAIRS = [("the cat", "sat on the mat"), ("o'clock", "12")]
IDS = torch.arange(3, 40).view(1, -1)


@pytest.fixture
def model(chat_file):
    return smollm2.load(ModernDecoder, chat_file)


@pytest.fixture(scope="module")
def tokens(chat_file):
    return smollm2.Tokens(chat_file, bpe_encode)


def taught(model, tokens, seed=0, steps=6):
    torch.manual_seed(seed)
    low_rank.insert(model, LowRank, rank=3)
    return [*low_rank.teach(model, tokens, PAIRS, answer_loss, steps, rate=0.01, seed=seed)]


def kept(model):
    return {name: weight.clone() for name, weight in model.state_dict().items()}


def test_an_update_of_each_matrix_of_the_layers_learns_and_nothing_else(model):
    before = model(IDS)[0]
    low_rank.insert(model, LowRank, rank=3)
    learning = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert learning == low_rank.updates(model).keys()
    assert len(learning) == 2 * 7 * small_chat_model.SIZES["n_layers"]
    torch.testing.assert_close(model(IDS)[0], before)


def test_a_row_is_the_question_as_it_is_asked_then_the_answer_and_its_end(tokens):
    ids, lengths = low_rank.batch(tokens, PAIRS)
    for row, length, (question, answer) in zip(ids, lengths, PAIRS, strict=True):
        assert row[:length].tolist() == low_rank.asked(tokens, question)
        rest = row[length:][row[length:] != PAD].tolist()
        assert (tokens.decode(rest[:-1]), rest[-1]) == (answer, EOS)


def test_teaching_lowers_the_loss_by_the_updates_alone_and_comes_out_again(chat_file, tokens):
    models = [smollm2.load(ModernDecoder, chat_file) for _ in range(3)]
    before = kept(models[0])
    losses = [
        taught(model, tokens, seed, 30) for model, seed in zip(models, (0, 0, 1), strict=True)
    ]
    assert losses[0] == losses[1] != losses[2]
    assert losses[0][-1] < losses[0][0] - 0.5
    after = kept(models[0])
    assert not before.keys() & {name for name in after if name.endswith((".A", ".B"))}
    for name, weight in after.items():
        if not name.endswith((".A", ".B")):
            assert torch.equal(weight, before[name.replace(".linear.", ".")])


def test_merged_it_computes_the_same_with_the_parts_that_it_had(chat_file, model, tokens):
    taught(model, tokens)
    scores = model(IDS)[0]
    low_rank.merge(model)
    torch.testing.assert_close(model(IDS)[0], scores, rtol=1e-4, atol=1e-4)
    untaught = smollm2.load(ModernDecoder, chat_file)
    assert model.state_dict().keys() == untaught.state_dict().keys()
    assert (untaught(IDS)[0] - scores).abs().max() > 1e-2


def test_a_file_of_the_updates_alone_brings_back_what_was_taught(
    chat_file, model, tokens, tmp_path
):
    taught(model, tokens)
    path = tmp_path / "lora.safetensors"
    low_rank.save(path, model, rank=3)
    assert model_file.load(path)[0].keys() == low_rank.updates(model).keys()
    other = smollm2.load(ModernDecoder, chat_file)
    low_rank.load(path, other, LowRank)
    assert torch.equal(other(IDS)[0], model(IDS)[0])


def test_what_is_no_update_of_this_model_is_refused(model, tokens, tmp_path):
    taught(model, tokens)
    path = tmp_path / "lora.safetensors"
    low_rank.save(path, model, rank=3)
    larger = ModernDecoder(20, **small_chat_model.SIZES | {"n_layers": 3})
    with pytest.raises(ModelFileError, match="another model"):
        low_rank.load(path, larger, LowRank)
    model_file.save(path, {"A": torch.zeros(3)}, {"steps": 1})
    with pytest.raises(ModelFileError, match="attention.teach makes one"):
        low_rank.load(path, model, LowRank)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="damaged"):
        low_rank.load(path, model, LowRank)
