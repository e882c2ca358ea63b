"""The translator of lesson 00: lesson 10's model, run by PyTorch's layers, says the same."""

import pytest
import torch

from attention.provided.data.numbers import in_words
from attention.provided.models import translators
from attention.provided.models.attention_weights import watch_attention
from attention.provided.models.number_translator import NumberTranslator
from attention.train import shipped


@pytest.fixture(scope="module")
def translator():
    return NumberTranslator()


@pytest.mark.parametrize("number", [1, 20, 731, 21_654, 797_927, 999_999])
def test_it_writes_what_the_model_of_lesson_10_writes(translator, number):
    model, corpus = shipped.trained("transformer")
    pair = (number, in_words(number, "en"), "")
    found = translator.translate(number)
    assert ["".join(found.letters)] == translators.translations(model, corpus, [pair])

    batch = corpus.batch([(*pair[:2], "".join(found.letters))])
    with watch_attention(model) as weights, torch.no_grad():
        model(batch.source, batch.target)
    maps = [one[0] for name, one in weights.items() if "cross_attention" in name]
    assert len(maps) == 2
    expected = torch.cat(maps).mean(dim=0)[:-1]  # (letters, words); the last row writes EOS
    torch.testing.assert_close(found.weights, expected, rtol=0, atol=1e-5)
    assert found.weights.shape == (len(found.letters), len(found.words))


@pytest.mark.parametrize("number", [0, 1_000_000, 2.5])
def test_another_number_is_refused(translator, number):
    with pytest.raises(ValueError, match="is no whole number from 1 to 999999"):
        translator.translate(number)
