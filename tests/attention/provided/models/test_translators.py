"""Training, the shipped models, and what a progress bar leaves behind."""

import hashlib
import re
import sys

import pytest
import torch

from attention.provided.data.numbers import numbers
from attention.provided.models import model_file, translators
from attention.provided.models.model_file import ModelFileError
from attention.provided.progress import Bar
from attention.sequence_to_sequence import Seq2Seq, masked_cross_entropy
from attention.train import shipped
from autograder import ROOT
from autograder.building.lesson import find
from autograder.sandbox import visible_files

SHARED = [
    *("provided.data.numbers", "provided.data.tokens", "provided.demand", "provided.files"),
    *("provided.figures.palette", "provided.figures.plots"),
    *("provided.measuring.memory", "provided.measuring.summary", "provided.measuring.timing"),
    *("provided.models.model_file", "provided.models.translators"),
    *("provided.downloads", "provided.progress"),
    *("provided.training_steps", "experiments.recorded", "train.runs.curves"),
    *("train.corpora.multi30k", "train.runs.run_folder", "train.shipped"),
]


def small(corpus):
    torch.manual_seed(0)
    sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    return Seq2Seq(*sizes, d_embedding=8, d_state=16)


def test_what_all_lessons_share_needs_the_module_of_none():
    """While a lesson is graded, its own module, the later ones and who imports them are hidden."""
    library = ROOT / "attention"
    shared = {library / f"{name.replace('.', '/')}.py" for name in SHARED}
    assert all(path.exists() for path in shared)
    assert visible_files.hidden(library, find()[0].stem) & shared == set()


def test_training_lowers_the_loss_and_repeats():
    corpus = numbers()
    runs = [
        translators.train(small(corpus), corpus.batches(16, 30), 30, masked_cross_entropy)
        for _ in range(2)
    ]
    assert runs[0] == runs[1] and len(runs[0]) == 30
    assert runs[0][-1] < runs[0][0] - 0.3


def test_training_is_short_while_nbgrader_runs_the_notebook(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    corpus = numbers()
    model = small(corpus)
    assert len(translators.train(model, corpus.batches(4, 300), 300, masked_cross_entropy)) == 5
    assert not model.training


@pytest.mark.parametrize("name", shipped.MODELS)
def test_trained_models_are_reached_by_name(name):
    model, corpus = shipped.trained(name)
    losses = translators.load(model, name)
    assert len(losses) == shipped.STEPS_OF.get(name, translators.STEPS)
    assert losses[-1] < 0.2 < losses[0]
    accuracy = translators.accuracy_by_digits(model, corpus, at_most=20)
    assert list(accuracy) == [2, 3, 4, 5, 6]
    assert accuracy[3] >= 0.85


@pytest.mark.parametrize("name", shipped.MODELS)
def test_remaking_begins_as_the_shipped_training_began(name, tmp_path):
    """The first loss depends on seed, model and batch, and not yet on the number of steps."""
    losses = translators.load(shipped.trained(name)[0], name)
    shipped.remake(name, tmp_path, steps=1)
    (first,) = model_file.load(tmp_path / f"{name}.safetensors")[1]["losses"]
    assert first == pytest.approx(losses[0], abs=1e-3)


@pytest.mark.parametrize(
    "arguments, said",
    [(["seq2seq"], "no model is called 'seq2seq'"), (["--steps", "0"], "at least 1, not 0")],
)
def test_the_command_refuses_what_it_does_not_know(arguments, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        shipped.main(arguments)
    assert said in capsys.readouterr().err


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A checkpoint that may be spoilt."""
    name = "sequence_to_sequence"
    path = tmp_path / f"{name}.safetensors"
    path.write_bytes((translators.CHECKPOINTS / path.name).read_bytes())
    monkeypatch.setattr(translators, "CHECKPOINTS", tmp_path)
    return path


def test_a_checkpoint_that_cannot_be_used_gives_one_clear_sentence(copied):
    copied.unlink()
    with pytest.raises(ModelFileError) as caught:
        shipped.trained("sequence_to_sequence")
    again = "python -m attention.train.shipped sequence_to_sequence"
    assert str(caught.value) == f"{copied} is missing; `{again}` makes it again"


def test_the_model_of_the_training_command_says_how_it_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "CHECKPOINTS", tmp_path)
    with pytest.raises(ModelFileError) as caught:
        shipped.trained("numbers")
    assert "is missing; `python -m attention.train numbers --export " in str(caught.value)


@pytest.mark.long
def test_the_card_says_what_is_shipped():
    """data/README.md: parameters, measured accuracy and digest of every checkpoint."""
    card = (translators.CHECKPOINTS.parent / "README.md").read_text(encoding="utf-8")
    names = [*shipped.MODELS, "numbers"]
    assert sorted(names) == sorted(
        path.stem for path in translators.CHECKPOINTS.glob("*.safetensors")
    )
    for name in names:
        content = (translators.CHECKPOINTS / f"{name}.safetensors").read_bytes()
        assert f"`{name}.safetensors` | `{hashlib.sha256(content).hexdigest()}`" in card
        model, corpus = shipped.trained(name)
        row = re.search(rf"\| `{name}` \|.*", card).group()
        assert f"{translators.size(model):,}".replace(",", " ") in row
        at_most = 30 if name == "numbers" else 100  # it is large, and never wrong there
        measured = translators.accuracy_by_digits(model, corpus, at_most).values()
        told = [float(number) for number in re.findall(r"\d\.\d\d", row)]
        assert told == pytest.approx(list(measured), abs=0.035)


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
