"""A student's wrong answer as a card."""

from autograder.checking.toolbox import cards, registry
from autograder.explaining import as_card
from tests.autograder.explaining.here import Here

WEIGHTED = """
import torch
def weighted_average(weights, values):
    for row, total in enumerate(weights.sum(dim=1).tolist()):
        if not abs(total - 1) <= 1e-4:
            raise ValueError(f"row {row} of the weights sums to {total:.4f}, not to 1")
    return torch.stack([(one[:, None] / values).sum(0) for one in weights])
"""
KNOWN = """
def uniform_average(values):
    total = 0
    for row in values:
        total = total + row
    return total
"""
SLIP = """
import torch
def softmax(scores, dim):
    powers = torch.exp(scores - scores.amin(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)
"""


def card_of(exercise, source):
    return as_card.text(registry.find(exercise), Here(), [source], "lesson.md")


def test_a_stored_mistake_is_named():
    assert card_of("uniform_average", KNOWN).startswith("# This is getting_started.md:")


def test_an_edit_that_replies_alike_makes_a_card(tmp_path):
    said = card_of("softmax", SLIP)
    path = tmp_path / "lesson.md"
    path.write_text(said.replace("…", "A hint."), encoding="utf-8")
    (card,) = cards.read(path)
    assert "scores.amax(" in card.edits[0].old and "scores.amin(" in card.edits[0].new


def test_what_no_small_edit_replies_like_makes_none():
    assert card_of("weighted_average", WEIGHTED) == ""
