"""The Transformer on one page, which lesson 10's solution shows: it is the library's."""

import re
from types import SimpleNamespace

import pytest
import torch

from attention.provided.data.tokens import PAD
from attention.provided.files import ROOT
from attention.sequence_to_sequence import masked_cross_entropy
from attention.transformer import Transformer

SOURCE = ROOT / "source" / "10_transformer.py"
SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 3, "dropout": 0.0}


@pytest.fixture(scope="module")
def page():
    shown = SOURCE.read_text(encoding="utf-8").partition("# ### The whole Transformer on one page")[
        2
    ]
    (code, *_) = re.findall(r"^# ```python\n(.*?)^# ```$", shown, re.DOTALL | re.MULTILINE)
    made = {}
    exec(re.sub(r"^# ?", "", code, flags=re.MULTILINE), made)
    return SimpleNamespace(**made)


def ids(B, T, size, lengths):
    drawn = torch.randint(3, size, (B, T))
    return drawn.masked_fill(torch.arange(T) >= torch.tensor(lengths)[:, None], PAD)


def test_the_same_weights_give_the_same_scores_and_gradients(page):
    torch.manual_seed(0)
    ours = Transformer(9, 11, **SIZES).double()
    theirs = page.Transformer(9, 11, **SIZES).double()
    assert theirs.state_dict().keys() == ours.state_dict().keys()
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    theirs.load_state_dict(ours.state_dict())
    source, target = ids(4, 7, 9, [7, 4, 1, 0]), ids(4, 5, 11, [5, 2, 3, 4])
    for model in (ours, theirs):
        masked_cross_entropy(model(source, target), target).backward()
    torch.testing.assert_close(theirs(source, target), ours(source, target))
    expected = dict(ours.named_parameters())
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name].grad, msg=name)
