"""`python -m attention.train --mine`: a student's pieces in the library's places."""

import dataclasses
import inspect
import json
import re
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch

import attention
from attention import multi_head_attention, transformer
from attention.train import show_pieces
from attention.train.__main__ import main
from attention.train.core.model import make_model
from attention.train.mine import using
from attention.train.mine.trial import Trial
from attention.train.pieces import collected
from attention.train.pieces.adapters import furnish
from attention.train.runs.run_folder import RunFolder
from attention.translate.__main__ import main as translate
from autograder.mistakes import training
from autograder.mistakes import transformer as transformer_mistakes
from autograder.pieces import RECORD, MineError, Piece, brief, read

LIBRARY = Path(attention.__file__).parent
LESSONS = {
    "masked_attention": ("06", ["masked_attention"]),
    "multi_head_attention": ("07", ["MultiHeadAttention", "head_updates"]),
    "tokens_and_positions": ("08", ["sinusoidal_positions"]),
    "transformer_blocks": (
        "09",
        ["LayerNorm", "FeedForward", "EncoderLayer", "DecoderLayer"],
    ),
    "transformer": ("10", ["masks_from_tokens", "Translator", "Encoder"]),
    "training": (
        "11",
        ["adamw_step", "label_smoothed_loss", "TrainStep", "Evaluation", "batch_by_tokens"]
        + ["clip_gradients"],
    ),
}
STEPS = 4
TINY = [
    *("--d-model", "16", "--n-heads", "2", "--d-ff", "16", "--n-layers", "1", "--warmup", "2"),
    *("--max-tokens", "512", "--every", "2", "--judged", "2", "--beam", "2", "--device", "cpu"),
    *("--steps", str(STEPS)),
]


def record(folder, lessons):
    """Write down in a folder that all of these exercises are the student's."""
    pieces = [
        dataclasses.asdict(Piece(name, lesson, f"{number}_{lesson}.ipynb"))
        for lesson, (number, names) in lessons.items()
        for name in names
    ]
    (folder / RECORD).write_text(json.dumps({"pieces": pieces}))


def written(folder, lesson, name, text):
    """A folder with one piece of this text."""
    folder.mkdir(exist_ok=True)
    (folder / f"{lesson}.py").write_text(text)
    record(folder, {lesson: (LESSONS[lesson][0], [name])})
    return folder


def stored(folder, lesson, name, answer):
    """A folder with one piece, which is a stored answer."""
    module, alias = inspect.getmodule(answer).__name__, answer.__name__
    return written(folder, lesson, name, f"from {module} import {alias} as {name}\n")


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """A folder with all pieces of a training, in the library's own words."""
    folder = tmp_path_factory.mktemp("every")
    for lesson in LESSONS:
        shutil.copy(LIBRARY / f"{lesson}.py", folder)
    record(folder, LESSONS)
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A run of the library's pieces."""
    folder = tmp_path_factory.mktemp("library") / "run"
    assert main(["numbers", *TINY, "--folder", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def losses_of_the_library(library):
    return losses(library)


@pytest.fixture(autouse=True)
def on_one_thread():
    """Each part runs on one thread, and the library's pieces are back at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    collected.take_back()


def yours(said):
    """The names of the pieces that are said to be in use."""
    (line,) = re.findall(r"^Yours, of .*?: (.*)\.$", said, re.MULTILINE)
    return {one.split()[0] for one in line.split(", ")}


def losses(folder):
    return [float(row["loss"]) for row in RunFolder(folder).metrics(STEPS)]


def train(folder, run, *more):
    return main(["numbers", *TINY, "--mine", str(folder), "--folder", str(run), *more])


@pytest.mark.long
def test_all_pieces_of_ones_own_have_the_losses_of_the_library(
    every, losses_of_the_library, tmp_path, capsys
):
    run = tmp_path / "run"
    assert train(every, run) == 0
    assert losses(run) == pytest.approx(losses_of_the_library, rel=1e-4)
    said = capsys.readouterr().out
    names = {name for _, names in LESSONS.values() for name in names}
    assert {*using.NEEDED} == names - {"head_updates"} == yours(said)  # no training calls it
    assert "No part of a training: 1 more of your pieces." in said
    assert "A step on a whole batch: " in said

    # What it was trained with is kept: to go on and to translate.
    assert {piece.name for piece in read(run / using.COPY)} == set(using.NEEDED)
    text = tmp_path / "text"
    text.write_text("two hundred one\ntwo dogs\n")
    assert translate([str(run), str(text), "--device", "cpu"]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("with yours: masked_attention, ") and said.out.count("\n") == 2
    assert "the run never read 'dogs'" in said.err
    assert collected.own("MultiHeadAttention") is not None
    assert main(["numbers", "--folder", str(run), "--device", "cpu", "--resume"]) == 0
    assert "with yours: masked_attention, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lesson", "name", "answer"),
    [
        ("transformer", "masks_from_tokens", transformer_mistakes.fills_in_loops),
        pytest.param(
            *("training", "label_smoothed_loss", training.loops_over_tokens),
            marks=pytest.mark.long,
        ),
    ],
)
def test_loops_are_right(lesson, name, answer, losses_of_the_library, tmp_path, capsys):
    run = tmp_path / "run"
    assert train(stored(tmp_path / "mine", lesson, name, answer), run) == 0
    assert losses(run) == pytest.approx(losses_of_the_library, rel=1e-3)
    assert yours(capsys.readouterr().out) == {name}


ATTENTION = "def masked_attention(q, k, v, mask=None, return_weights=False):\n    "
WRONG = {
    "raises": (
        ATTENTION + "return [][1]\n",
        "it raises IndexError: list index out of range (mine/masked_attention.py, line 2)",
    ),
    "shape": (ATTENTION + "return v[:, :, :1, :1], None\n", "it raises RuntimeError: "),
    "values": (
        ATTENTION + "return q * 0, None\n",
        "with it, the training step gives other results: losses ",
    ),
}
UNREADABLE = {
    "syntax": ("def masked_attention(:\n", "cannot be imported: SyntaxError: "),
    "gone": ("", "masked_attention.py is missing"),
    "number": ("masked_attention = 3\n", "masked_attention.py cannot be called"),
}


@pytest.mark.parametrize(
    "kind", ["raises", pytest.param("shape", marks=pytest.mark.long), "values"]
)
def test_a_wrong_piece_is_named_and_left_to_the_library(kind, every, tmp_path):
    text, sentence = WRONG[kind]
    folder = written(tmp_path / "mine", "masked_attention", "masked_attention", text)
    shutil.copy(every / "multi_head_attention.py", folder)
    record(
        folder,
        {
            "multi_head_attention": LESSONS["multi_head_attention"],
            "masked_attention": ("06", ["masked_attention"]),
        },
    )
    pieces = collected.load(folder)
    using.choose(Trial(*small(), pieces))
    assert sentence in pieces.why["masked_attention"]
    assert "\n" not in pieces.why["masked_attention"]
    assert collected.own("masked_attention") is None
    assert collected.own("MultiHeadAttention") is not None  # the wrong one costs no other


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_is_no_piece_is_left_to_the_library(kind, tmp_path):
    text, sentence = UNREADABLE[kind]
    pieces = collected.load(written(tmp_path, "masked_attention", "masked_attention", text))
    assert sentence in pieces.why["masked_attention"]
    assert pieces.own == {}


def small():
    """Settings, pairs and device of a tiny training."""
    from attention.train.corpora import token_ids
    from attention.train.runs.settings import Settings

    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1}
    chosen = Settings(**sizes, max_tokens=512, steps=4, warmup=2, beam=2)
    return chosen, token_ids.numbers(), torch.device("cpu")


def test_an_error_in_the_middle_of_a_training_is_one_sentence(tmp_path, capsys):
    text = (
        "from attention.multi_head_attention import merge_heads\n"
        "CALLS = []\n\n\ndef causal_mask(T, device=None):\n    CALLS.append(T)\n"
        "    if len(CALLS) > 60:\n        raise KeyError('late')\n"
        "    return merge_heads.__globals__['torch'].ones(T, T, dtype=bool, device=device).tril()\n"
    )
    folder = written(tmp_path / "mine", "masked_attention", "causal_mask", text)
    assert train(folder, tmp_path / "run", "--steps", "60") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "your causal_mask failed: it raises KeyError: 'late' (mine/masked_attention.py" in error
    assert "mend it in 06_masked_attention.ipynb, run `autograder collect` again" in error


def test_pieces_are_put_in_place_and_taken_back(every):
    before = (transformer.Translator, multi_head_attention.MultiHeadAttention)
    pieces = collected.load(every)
    collected.put(pieces, list(pieces.own))
    theirs = pieces.own["Translator"]
    assert transformer.Translator is theirs is not before[0]
    assert issubclass(transformer.Transformer, theirs)
    made = transformer.Transformer(9, 9, 8, 2, 8, 1)
    assert type(made.encoder) is pieces.own["Encoder"]
    inner = made.decoder.layers[0].attention
    assert type(inner) is pieces.own["MultiHeadAttention"]
    other = collected.load(every)  # another look at the same folder finds the library again
    assert other.library["Translator"] is before[0]
    collected.put(other, ["head_updates"])
    assert transformer.Translator is before[0]
    assert transformer.Transformer.__bases__ == (before[0],)
    # Within the student's own modules, too, what is not chosen is the library's.
    mha = other.own["MultiHeadAttention"].forward.__globals__
    assert mha["head_updates"] is other.own["head_updates"]
    assert mha["MultiHeadAttention"] is other.library["MultiHeadAttention"]
    collected.take_back()
    assert (transformer.Translator, multi_head_attention.MultiHeadAttention) == before


@pytest.mark.parametrize("drop_hidden", [True, False])
def test_hidden_units_of_ones_own_are_dropped_as_the_settings_say(every, drop_hidden):
    pieces, (settings, pairs, _) = collected.load(every), small()
    collected.put(pieces, ["FeedForward"])
    settings = dataclasses.replace(settings, dropout=0.5, drop_hidden=drop_hidden)
    made = furnish(make_model(dataclasses.asdict(settings), pairs.source, pairs.target))
    feed_forward, x = made.encoder.layers[0].feed_forward, torch.ones(5, 16)
    assert type(feed_forward) is pieces.own["FeedForward"]
    assert torch.equal(feed_forward.train()(x), feed_forward.eval()(x)) is not drop_hidden


def test_what_cannot_be_used_is_one_sentence(every, tmp_path, capsys):
    def said(*words):
        assert main(["numbers", *TINY, "--folder", str(tmp_path / "run"), *words]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    assert "holds no collected pieces: `autograder collect`" in said("--mine", str(tmp_path))
    assert not (tmp_path / "run").exists()
    assert "--mine trains in one process and without --compile" in said(
        "--mine", str(every), "--compile"
    )
    (tmp_path / RECORD).write_text("[]")
    assert "cannot be read: run `autograder collect` again" in said("--mine", str(tmp_path))
    with pytest.raises(MineError):
        read(tmp_path)
    (tmp_path / using.COPY).mkdir()  # a run that lost the record of its pieces
    with pytest.raises(MineError, match="mine holds no collected pieces"):
        using.use_kept(tmp_path)


def test_an_error_that_is_cut_says_so():
    assert brief(ValueError("x" * 300)) == f"ValueError: {186 * 'x'} …"


def test_a_run_that_began_without_goes_on_without(every, library, capsys):
    words = ["numbers", "--device", "cpu", "--folder", str(library), "--resume"]
    assert main([*words, "--mine", str(every)]) == 1
    assert "began without --mine" in capsys.readouterr().err


def test_a_notebook_is_told_what_there_is(every, library, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(show_pieces, "ROOT", tmp_path)
    for name in ("AUTOGRADER_SEED", "NBGRADER_EXECUTION"):
        monkeypatch.delenv(name, raising=False)
    none = "None of your pieces are collected: `autograder collect` does it.\n"
    show_pieces.show_pieces()
    assert capsys.readouterr().out == none
    shutil.copytree(every, tmp_path / "mine")
    show_pieces.show_pieces()
    said = capsys.readouterr().out
    assert re.match(r"(\d+) of \1 pieces are yours: masked_attention, ", said)
    assert said.endswith("--mine --folder runs/mine\n")
    shutil.copytree(library, tmp_path / "runs" / "mine")
    using.keep(collected.load(every), RunFolder(tmp_path / "runs" / "mine"))
    show_pieces.show_pieces("seven")
    assert "seven -> " in capsys.readouterr().out
    assert plt.get_fignums()
    plt.close("all")
    assert collected.placed() is None
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    show_pieces.show_pieces()
    assert capsys.readouterr().out == none
