"""Training, the shipped models, and what a progress bar leaves behind."""

import sys

import pytest
import torch

from attention import measure, training
from attention.data import numbers
from attention.progress import Bar
from attention.sequence_to_sequence import Seq2Seq, masked_cross_entropy


def small(corpus):
    torch.manual_seed(0)
    sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    return Seq2Seq(*sizes, d_embedding=8, d_state=16)


def test_training_lowers_the_loss_and_repeats():
    corpus = numbers()
    runs = [
        training.train(small(corpus), corpus.batches(16, 30), 30, masked_cross_entropy)
        for _ in range(2)
    ]
    assert runs[0] == runs[1] and len(runs[0]) == 30
    assert runs[0][-1] < runs[0][0] - 0.3


def test_training_is_short_while_nbgrader_runs_the_notebook(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    corpus = numbers()
    model = small(corpus)
    assert len(training.train(model, corpus.batches(4, 300), 300)) == 5
    assert not model.training


def test_training_leaves_the_number_of_threads_alone():
    before = torch.get_num_threads()
    corpus = numbers()
    training.train(small(corpus), corpus.batches(4, 2), 2)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("name", training.MODELS)
def test_trained_models_are_reached_by_name(name):
    model, corpus = training.trained(name)
    losses = training.load(model, name)
    assert len(losses) == training.STEPS and losses[-1] < 0.2 < losses[0]
    accuracy = training.accuracy_by_digits(model, corpus, at_most=20)
    assert list(accuracy) == [2, 3, 4, 5, 6]
    assert accuracy[3] >= 0.85


def test_attention_lifts_the_bottleneck():
    shares = {
        name: training.accuracy_by_digits(*training.trained(name), at_most=40)
        for name in training.MODELS
    }
    assert shares["bahdanau_attention"][6] >= 0.9
    assert shares["sequence_to_sequence"][6] <= 0.1
    assert shares["sequence_to_sequence_reversed"][4] > shares["sequence_to_sequence"][4]


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(KeyError, match="bahdanau_attention"):
        training.trained("transformer_xxl")


def test_a_bar_without_terminal_or_notebook_is_silent(capfd, monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with Bar(2) as bar:
        bar.update(1, 0.5)
        bar.update(2, 0.25)
    assert capfd.readouterr() == ("", "")
    assert bar.line == "training: 2 of 2 steps · loss 0.250"


def test_a_bar_in_a_notebook_shows_loss_and_time_left_then_one_line(monkeypatch):
    shown = []

    class Handle:
        def update(self, text):
            shown.append(repr(text))

    bar = Bar(10)
    bar.handle = Handle()
    bar.shown = 0.0
    bar.update(5, 1.5)
    bar.__exit__(None, None, None)
    assert "5/10 · loss 1.500 ·" in shown[0] and "s left" in shown[0]
    assert shown[1] == "training: 5 of 10 steps · loss 1.500"


def test_measures():
    x = torch.zeros(1000, 250)
    assert measure.megabytes(lambda: x + 1) == 1.0
    assert measure.megabytes(lambda: x.T) == 0.0
    assert 0 < measure.milliseconds(lambda: x @ x.T, repeats=3) < 10_000
