"""What a notebook shows of the pieces that are collected, and of a run made of them."""

import os
from pathlib import Path

import torch

from attention.provided.files import ROOT
from attention.train.pieces.collected import FOLDER, RECORD, read, take_back
from attention.train.translate_run import draw, translate_with


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
        draw(*translate_with(run, [text], torch.device("cpu")))
    finally:
        take_back()
