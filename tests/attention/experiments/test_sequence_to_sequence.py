"""What lesson 02 shows: numbers read out of the record, and what a state forgets."""

import pytest

from attention.experiments import recorded
from attention.experiments import sequence_to_sequence as experiments
from attention.provided.data.numbers import numbers
from attention.provided.figures import seeds
from attention.sequence_to_sequence import Seq2Seq, gru_step
from attention.train import shipped


def test_half_of_a_state_is_gone_when_the_gate_says(capsys):
    assert experiments.fading(gru_step) == 69  # 0.99 to the power of 69 is the first below a half
    assert "1 (z = 0.5), 7 (z = 0.9), 69 (z = 0.99)" in capsys.readouterr().out


def test_the_record_is_read_with_one_factor_changed(capsys):
    share = experiments.vector_network_and_steps(Seq2Seq, numbers())
    said = capsys.readouterr().out
    assert share == pytest.approx(0.53)
    assert "64 of 128 numbers    0.93   0.89   0.87" in said
    assert "64 of 64 numbers     0.43   0.30   0.45" in said
    assert "1000 steps           0.53   0.60   0.43" in said
    assert "3000 steps, seed 0 alone: 1.00, six digits 0.15" in said


def test_every_run_is_better_than_those_with_half_the_vector_or_half_the_network():
    rows = [
        row
        for name in ("steps", "vector and network")
        for row in recorded.read("sequence_to_sequence", name)
    ]

    def four_digits(d_state, through):
        through = None if through == d_state else through
        return seeds.at_digits(seeds.where(rows, d_state=d_state, through=through, steps=300), 4)

    for d_state, through in ((64, 64), (64, 32), (128, 128), (128, 64), (128, 32)):
        assert min(four_digits(d_state, through)) > max(four_digits(d_state, through // 2))
    for through in (16, 32, 64):
        assert min(four_digits(128, through)) > max(four_digits(64, through))


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
    experiments.beside_companions(model, corpus)
    said = capsys.readouterr().out
    assert "    46  right  sechsundvierzig" in said
    assert said.count("vierundsiebzig") >= 3  # beside any companion: the true ends are read
    assert experiments.reach() == pytest.approx(1.13, abs=0.01)
    assert set(experiments.letters_and_numbers(model, corpus)) == {2, 3, 4, 5, 6}
    assert len(experiments.reversed_source().lines) == 2
    ax = experiments.losses_of([3.0, 2.0, 1.0], corpus)
    assert len(ax.lines) == 2
