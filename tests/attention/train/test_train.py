"""`python -m attention.train`: one sentence for every error, and a kill that loses nothing."""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch

from attention.train.__main__ import main
from attention.train.core.model import load_model
from attention.train.runs.run_folder import RunFolder
from attention.train.translate_run import open_run
from tests.waiting import LONG

TINY = [
    *("--d-model", "16", "--n-heads", "2", "--d-ff", "16", "--n-layers", "1", "--warmup", "2"),
    *("--max-tokens", "512", "--every", "4", "--judged", "4", "--beam", "2", "--device", "cpu"),
]


def arguments(folder, *more):
    return ["numbers", *TINY, "--folder", str(folder), *more]


def command(*words):
    """Run it in a process of its own, where every run rounds alike.

    Another number of threads sums in another order, and so do MKL's fast products where an array
    begins at another place in memory, which differs from one process to the next.
    """
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_CBWR": "COMPATIBLE"},
        timeout=LONG,
    )


def losses(folder, steps):
    return [row["loss"] for row in RunFolder(folder).metrics(steps)]


def test_no_command_loads_the_compiler_before_it_trains():
    """PyTorch takes seconds to load it, and whoever asks for --help would wait."""
    commands = ("train", "translate", "write", "search")
    names = ", ".join(f"attention.{name}.__main__" for name in commands)
    code = f"import sys, {names}; sys.exit('torch._dynamo' in sys.modules)"
    assert command(sys.executable, "-c", code).returncode == 0


def test_a_training_leaves_all_that_is_promised(tmp_path, capsys, drawn):
    folder, exported = tmp_path / "run", tmp_path / "copy.safetensors"
    assert main([*arguments(folder, "--steps", "8"), "--export", str(exported)]) == 0
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "metrics.csv", "curves.png", "curves.svg", "state.safetensors",
        "model.safetensors", "result.json", "vocabularies.json",
        "weights-00000004.safetensors", "weights-00000008.safetensors",
    }  # fmt: skip
    assert len(losses(folder, 8)) == 8
    result = json.loads((folder / "result.json").read_text())
    model, _, _ = load_model(exported)
    assert result["parameters"] == sum(p.numel() for p in model.parameters())
    assert result["test_sentences"] == 4 and 0 <= result["test"] <= 1
    assert "step 8 of 8" in capsys.readouterr().out
    # Had it been stopped before its end, it could translate as well.
    (folder / "model.safetensors").unlink()
    (notes,) = open_run(folder, torch.device("cpu")).notes
    assert notes.startswith(f"{folder} is unfinished: these are the weights of step 8 of 8")


KILLED = """
import os, signal, sys
from attention.train.__main__ import main
from attention.train.core.trainer import Trainer

def step(self, advance=Trainer._advance):
    if self.done == 6:  # two steps after a save
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(self)

Trainer._advance = step
main(sys.argv[1:])
"""


@pytest.mark.long
def test_a_training_that_was_killed_goes_on_as_if_nothing_had_been(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train = (sys.executable, "-m", "attention.train")
    assert command(*train, *arguments(whole, "--steps", "40")).returncode == 0
    done = command(sys.executable, "-c", KILLED, *arguments(broken, "--steps", "40"))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(losses(broken, 40)) < 40
    assert command(*train, *arguments(broken, "--resume")).returncode == 0
    assert losses(broken, 40) == losses(whole, 40)
    a, b = (load_model(folder / "model.safetensors")[0].state_dict() for folder in (whole, broken))
    torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize(
    "words, says",
    [
        (["--steps", "0"], "--steps must be at least 1"),
        (["--device", "tpu"], "--device must be cuda, mps or cpu, not 'tpu'"),
        (["--max-tokens", "3"], "max_tokens=3"),
        (["--resume"], "holds no training"),
    ],
)
def test_a_wrong_option_is_one_sentence(tmp_path, capsys, words, says):
    assert main([*arguments(tmp_path / "run"), *words]) == 1
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


@pytest.mark.parametrize("words", [["poems"], ["--steps", "x"], ["--nothing"]])
def test_an_unknown_option_is_one_sentence(capsys, words):
    with pytest.raises(SystemExit) as exit:
        main(words)
    assert exit.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_corpus_is_one_sentence(tmp_path, capsys):
    assert main(["multi30k", "--data", str(tmp_path), "--folder", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert "autograder data fetch multi30k" in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_second_training_and_other_settings_are_refused(tmp_path, capsys):
    folder = tmp_path / "run"
    RunFolder(folder).begin({"corpus": "numbers", "d_ff": 16, "steps": 8})
    assert main(arguments(folder)) == 1
    assert "holds a training already" in capsys.readouterr().err
    assert main(arguments(folder, "--resume", "--steps", "9")) == 1
    assert "--" in (error := capsys.readouterr().err) and "was" in error
