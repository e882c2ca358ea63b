"""What lesson 02 shows: numbers read out of the record, and what a state forgets."""

import pytest

from attention.experiments import sequence_to_sequence as experiments
from attention.provided.data.numbers import numbers
from attention.sequence_to_sequence import Seq2Seq, gru_step
from attention.train import shipped


def test_half_of_a_state_is_gone_when_the_gate_says(capsys):
    assert experiments.fading(gru_step) == 69  # 0.99 to the power of 69 is the first below a half
    assert "1 (z = 0.5), 7 (z = 0.9), 69 (z = 0.99)" in capsys.readouterr().out


def test_the_record_is_read_with_one_factor_changed(capsys):
    share = experiments.size_and_steps(Seq2Seq, numbers())
    said = capsys.readouterr().out
    assert share == pytest.approx(0.53)
    assert "64, 1000 steps   at five digits, seeds 0, 1, 2:  0.53   0.60   0.43" in said
    assert "64, 3000 steps   at five digits, seed 0 alone:   1.00, and at six 0.15" in said


def test_what_the_notebook_shows_of_its_model_is_drawn(capsys):
    model, corpus = shipped.trained("sequence_to_sequence")
    experiments.pairs_and_ids(corpus)
    experiments.translations(model, corpus)
    experiments.beside_companions(model, corpus)
    said = capsys.readouterr().out
    assert "    46  right  sechsundvierzig" in said
    assert said.count("vierundsiebzig") >= 3  # beside any companion: the true ends are read
    assert experiments.reach(Seq2Seq, model, corpus).get_yscale() == "log"
    assert len(experiments.reversed_source().lines) == 2
    ax = experiments.losses_of([3.0, 2.0, 1.0], corpus)
    assert len(ax.lines) == 2
