"""The translator that grows from lesson to lesson, and the learner's pieces in it."""

import pytest
import torch

from attention.experiments import translator_so_far
from attention.multi_head_attention import MultiHeadAttention
from attention.provided.data.numbers import numbers
from attention.scaled_dot_product_attention import scaled_dot_product_attention
from attention.tokens_and_positions import sinusoidal_positions
from attention.transformer_blocks import EncoderLayer

LESSONS = ("05", "07", "08", "09", "10")
BOTH = {"MultiHeadAttention": MultiHeadAttention, "sinusoidal_positions": sinusoidal_positions}


@pytest.mark.parametrize(
    ("lesson", "pieces"),
    [
        ("05", {"scaled_dot_product_attention": scaled_dot_product_attention}),
        pytest.param("07", {"MultiHeadAttention": MultiHeadAttention}, marks=pytest.mark.long),
        pytest.param("08", BOTH, marks=pytest.mark.long),
        pytest.param("09", {**BOTH, "EncoderLayer": EncoderLayer}, marks=pytest.mark.long),
    ],
)
def test_the_library_s_pieces_give_the_recorded_losses(lesson, pieces, capsys):
    translator_so_far.up_to(lesson, **pieces)
    assert "the same as recorded" in capsys.readouterr().out.splitlines()[-1]


def test_a_wrong_piece_gives_others(capsys):
    def unscaled(q, k, v, mask):
        return scaled_dot_product_attention(q * q.shape[-1] ** 0.5, k, v, mask)

    translator_so_far.up_to("05", scaled_dot_product_attention=unscaled)
    assert "not the same as recorded" in capsys.readouterr().out


def test_each_lesson_adds_its_stages():
    for lesson in LESSONS:
        ax = translator_so_far.up_to(lesson)
        shown = [label.get_text() for label in ax.get_yticklabels()]
        stages = translator_so_far.STAGES.items()
        assert shown == [name for stage, name in stages if stage[:2] <= lesson]
        numbers_in_cells = [text.get_text().split() for text in ax.texts]
        assert [len(runs) for runs in numbers_in_cells] == [3] * 3 * len(shown)


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(stage, marks=[pytest.mark.long] * (stage in ("05", "07", "08")))
        for stage in ("05", "06 no mask", "07", "08", "09")
    ],
)
def test_padding_changes_a_translation_only_where_it_is_not_hidden(stage):
    torch.manual_seed(0)
    pieces = {**BOTH, "EncoderLayer": EncoderLayer}
    model = translator_so_far.build(stage, numbers(), **pieces).eval()
    short, long = numbers().test[0], max(numbers().test, key=lambda pair: len(pair[1]))
    alone, beside = numbers().batch([short]), numbers().batch([short, long])
    width = alone.target.shape[1]
    one = model(alone.source, alone.lengths, alone.target)[0]
    two = model(beside.source, beside.lengths, beside.target)[0, :width]
    assert torch.allclose(one, two, atol=1e-5) == (stage != "06 no mask")


def test_a_matrix_that_is_left_out_leaves_the_others_start():
    whole, less = (
        translator_so_far.Looks(scaled_dot_product_attention, of=of, divided=divided)
        for of, divided in (("qkv", True), ("qk", False))
        if torch.manual_seed(0)
    )
    assert torch.equal(whole.W_k.weight, less.W_k.weight)
    state, annotations, lengths = torch.randn(2, 1, 64), torch.randn(2, 5, 64), torch.tensor([5, 3])
    context, _ = less(state, less.keys(annotations), annotations, lengths)
    q, k = 8 * less.W_q(state), less.W_k(annotations)
    mask = torch.arange(5) < lengths[:, None, None]
    torch.testing.assert_close(context, scaled_dot_product_attention(q, k, annotations, mask))
