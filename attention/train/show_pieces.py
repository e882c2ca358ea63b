"""What a notebook shows of the pieces that are collected, and of a run made of them."""

import os
from pathlib import Path

import torch

from attention.provided.files import ROOT
from attention.train.pieces.collected import FOLDER, take_back
from attention.train.translate_run import draw, encode, open_run, translate, translated
from autograder.pieces import RECORD, read


def show_pieces(text: str = "two hundred thirty one") -> None:
    """Say in a notebook which pieces are collected; translate and draw with a run made of them.

    The run is that of `python -m attention.train numbers --mine --folder runs/mine`. The notebook
    goes on with the library's pieces. Where it is built or graded, only a line is printed.
    """
    folder, run = ROOT / FOLDER, ROOT / "runs" / FOLDER
    nobody_reads = "NBGRADER_EXECUTION" in os.environ or "AUTOGRADER_SEED" in os.environ
    if nobody_reads or not (folder / RECORD).exists():
        print("None of your pieces are collected: `autograder collect` does it.")
        return
    try:
        every = read(folder)
        names = [piece.name for piece in every if piece.yours]
        print(f"{len(names)} of {len(every)} pieces are yours: {', '.join(names)}")
        if (run / "model.safetensors").exists():
            _translate_and_draw(run, text)
        else:
            print("Train with them: python -m attention.train numbers --mine --folder runs/mine")
    except (ValueError, RuntimeError) as error:  # their classes say what to do
        print(error)


def _translate_and_draw(run: Path, text: str) -> None:
    try:
        opened = open_run(run, torch.device("cpu"))
        print(*opened.notes, sep="\n")
        read = encode(opened, text)
        (written,) = translate(opened, [read], opened.settings["beam"], opened.settings["alpha"])
        print(f"{text} -> {opened.target.decode(written)}")
        draw(translated(opened, read, written))
    finally:
        take_back()
