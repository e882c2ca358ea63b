"""What lesson 02 shows: numbers read out of the record, and what a state forgets."""

import pytest

from attention.experiments import sequence_to_sequence as experiments
from attention.provided.data.numbers import numbers
from attention.sequence_to_sequence import Seq2Seq, gru_step
from attention.train import shipped


def test_half_of_a_state_is_gone_when_the_gate_says(capsys):
    assert experiments.fading(gru_step) == 69  # 0.99 to the power of 69 is the first below a half
    assert "1 (z = 0.5), 7 (z = 0.9), 69 (z = 0.99)" in capsys.readouterr().out


def test_numbers_that_are_cut_do_not_reach_the_decoder():
    made = []

    def build(*sizes, **options):
        made.append(Seq2Seq(*sizes, **options))
        return made[-1]

    experiments.train_one(8, 1, 0, build, through=3)
    batch = numbers().batch(numbers().test[:5])
    encoding = made[0].encoding(batch.source, batch.lengths)
    assert (encoding[:, :3] != 0).all()
    assert (encoding[:, 3:] == 0).all()


def test_what_the_notebook_shows_of_its_model_is_drawn(capsys):
    model, corpus = shipped.trained("sequence_to_sequence")
    experiments.pairs_and_ids(corpus)
    experiments.translations(model, corpus)
    said = capsys.readouterr().out
    assert "    46  right  sechsundvierzig" in said
    assert experiments.reach() == pytest.approx(1.13, abs=0.01)
    assert len(experiments.reversed_source().lines) == 2
    ax = experiments.losses_of([3.0, 2.0, 1.0], corpus)
    assert len(ax.lines) == 2
