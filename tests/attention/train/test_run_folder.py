"""The folder of a training: whole files after every failure, and errors that say what to do."""

import errno
import os
import signal
import subprocess
import sys

import pytest
import torch

from attention.train.evaluation import report
from attention.train.runs.run_folder import COLUMNS, RunFolder, RunFolderError


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path / "run")
    made.begin({"steps": 3})
    return made


def test_what_is_saved_is_loaded(folder):
    tensors = {"a": torch.arange(6).view(2, 3), "b": torch.randn(4).double()}
    folder.save("x.safetensors", tensors, {"step": 7})
    loaded, about = folder.load("x.safetensors")
    torch.testing.assert_close(loaded, tensors)
    assert about == {"step": 7} and folder.config() == {"steps": 3}


def test_a_second_training_in_the_folder_is_refused(folder):
    with pytest.raises(RunFolderError, match="holds a training already.*--resume"):
        folder.begin({"steps": 4})
    assert folder.config() == {"steps": 3}


@pytest.mark.parametrize("number, says", [(errno.ENOSPC, "the disk is full"), (errno.EIO, "nput")])
def test_a_failing_disk_is_said_and_the_old_file_stays(folder, monkeypatch, number, says):
    folder.save("x.safetensors", {"a": torch.zeros(1)}, {})
    folder.write("x.json", b"old")

    def fail(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RunFolderError, match=f"{says}.*--resume"):
        folder.save("x.safetensors", {"a": torch.ones(1)}, {})
    with pytest.raises(RunFolderError, match=f"{says}.*--resume"):
        folder.write("x.json", b"new")
    assert folder.load("x.safetensors")[0]["a"] == 0
    assert (folder.path / "x.json").read_bytes() == b"old"
    assert not list(folder.path.glob("*.tmp"))


def test_a_kill_while_a_file_is_written_loses_nothing(folder):
    folder.save("x.safetensors", {"a": torch.zeros(1)}, {"step": 1})
    program = (
        "import os, signal, torch\n"
        "from pathlib import Path\n"
        "from attention.train.runs.run_folder import RunFolder\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"folder = RunFolder(Path({str(folder.path)!r}))\n"
        "folder.save('x.safetensors', {'a': torch.ones(9)}, {})\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(folder.path.glob("*.tmp"))  # it was killed in the middle
    assert folder.load("x.safetensors")[1] == {"step": 1}


def test_metrics_come_back_up_to_a_step(folder):
    rows = [dict.fromkeys(COLUMNS, 0.5) | {"step": step} for step in (1, 2, 3)]
    folder.write_metrics(rows)
    assert [row["step"] for row in folder.metrics(2)] == ["1", "2"]
    (folder.path / "metrics.csv").write_text("step,loss\nx,y\n")
    with pytest.raises(RunFolderError, match="metrics.csv is missing or damaged"):
        folder.metrics(2)


def test_a_sample_of_what_was_learned_steers_no_terminal(folder, capsys):
    report({"sample": "\x1b[31mdie\nStraße\x9b"}, folder)
    assert capsys.readouterr().out.startswith("            sample  [31mdie\nStraße\n")


def test_learning_curves_are_drawn(folder, drawn):
    rows = [
        {"step": s, "loss": 5 / s, "val_loss": "" if s % 2 else 4 / s, "learning_rate": 0.1}
        for s in range(1, 9)
    ]
    folder.draw(rows)
    assert (folder.path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert b"validation" in (folder.path / "curves.svg").read_bytes()
