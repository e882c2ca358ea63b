"""The published chat model: read from its file into lesson 20's layers, and its tokens."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.provided.files import ROOT
from attention.provided.models import gguf
from attention.provided.models.decoders import smollm2
from attention.provided.models.model_file import ModelFileError
from attention.tokens_and_positions import bpe_encode
from tests import small_chat_model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The file of the tiny model, open, and the model."""
    path = tmp_path_factory.mktemp("smollm2") / smollm2.NAME
    model = small_chat_model.write(path)
    return gguf.GGUF(path), model


def reference(file):
    """The tokenizers package's, with the file's vocabulary and merges."""
    ids = {name: i for i, name in enumerate(file.settings["tokenizer.ggml.tokens"])}
    pairs = [tuple(line.split(" ")) for line in file.settings["tokenizer.ggml.merges"]]
    found = Tokenizer(models.BPE(vocab=ids, merges=pairs))
    digits = pre_tokenizers.Digits(individual_digits=True)
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    found.pre_tokenizer = pre_tokenizers.Sequence([digits, letters])
    return found


def test_the_model_has_the_weights_and_settings_of_the_file(made):
    file, model = made
    loaded = smollm2.load(ModernDecoder, file)
    ids = torch.arange(3, 40).view(1, -1)
    torch.testing.assert_close(loaded(ids)[0], model(ids)[0])
    other = smollm2.load(ModernDecoder, file, base=10_000.0)
    assert (other(ids)[0] - loaded(ids)[0]).abs().max() > 1e-3


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_tokens_are_those_of_the_tokenizers_package(made, text):
    file, _ = made
    tokens = smollm2.Tokens(file, bpe_encode)
    ids = tokens.encode(text)
    assert ids == reference(file).encode(text).ids
    assert tokens.decode(ids) == text


def test_real_texts_have_the_same_tokens_too(made):
    file, _ = made
    tokens, other = smollm2.Tokens(file, bpe_encode), reference(file)
    for path in [ROOT / "README.md", ROOT / "LICENSE", ROOT / "data" / "README.md"]:
        text = path.read_text(encoding="utf-8")
        assert tokens.encode(text) == other.encode(text).ids


def test_marks_have_ids_of_their_own_and_are_nothing_in_a_text(made):
    tokens = smollm2.Tokens(made[0], bpe_encode)
    ids = tokens.encode(smollm2.prompt([("user", "the cat")], system="Be brief"))
    begin, end = (tokens.special[mark] for mark in (smollm2.BEGIN, smollm2.END))
    assert (ids.count(begin), ids.count(end), begin, end) == (3, 2, 1, 2)
    assert tokens.decode(ids) == "system\nBe brief\nuser\nthe cat\nassistant\n"


def test_a_byte_that_is_no_text_is_a_question_mark(made):
    tokens = smollm2.Tokens(made[0], bpe_encode)
    assert tokens.encode("caf\udce9 and") == tokens.encode("caf? and")


def test_without_the_file_the_command_is_said(tmp_path):
    with pytest.raises(ModelFileError, match="autograder data fetch smollm2"):
        smollm2.read(tmp_path)
    assert not smollm2.available(tmp_path)


@pytest.mark.long
@pytest.mark.skipif(not smollm2.available(), reason=f"{smollm2.NAME} is not here: fetch it")
def test_the_published_model_answers():
    file = smollm2.read()
    tokens = smollm2.Tokens(file, bpe_encode)
    text = smollm2.prompt([("user", "What is the capital of France?")])
    assert tokens.encode(text)[:3] == [1, 9690, 198]
    model = smollm2.load(ModernDecoder, file)
    ids = generate_with_cache(
        model, torch.tensor([tokens.encode(text)]), lambda scores: scores.argmax(dim=1), 20
    )
    assert tokens.decode(ids[0].tolist()) == "The capital of France is Paris."
