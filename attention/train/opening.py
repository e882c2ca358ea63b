"""A run is opened to be used: the weights of its folder, or of a file, and what is said of them."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attention.provided.models.model_file import Weights, load
from attention.train.mine import using
from attention.train.runs.run_folder import VOCABULARIES, RunFolder, RunFolderError
from attention.train.runs.settings import MODERN, TRANSFORMER
from autograder.pieces import Piece

# By model: what is kept of it, what it is called, what uses it, and what trains it.
KEYS = {TRANSFORMER: ("source", "target"), MODERN: ("pieces",)}
CALLED = {TRANSFORMER: "translator", MODERN: "language model"}
USED_BY = {TRANSFORMER: "attention.translate", MODERN: "attention.write"}
TRAINED_BY = {TRANSFORMER: "numbers", MODERN: "text FILES…"}


@dataclass
class Opened:
    """What is in a run.

    file   where the weights were read
    about  dict: settings, and the descriptions of the vocabularies
    notes  sentences that whoever uses it should read first
    kept   the student's pieces with which it was trained; they are in use now
    """

    file: Path
    weights: Weights
    about: dict[str, Any]
    notes: list[str]
    kept: list[Piece]


def read(path: Path, model: str) -> Opened:
    """Read the folder of a training, or a file of weights that it exported.

    model  which model it has to be of: TRANSFORMER or MODERN
    Of a training that has not ended, it is the last save.
    Raises RunFolderError, ModelFileError or ValueError for what is missing or cannot be used.
    """
    notes = []
    if path.is_file():
        file = path
        weights, about = load(file)
        _refuse_other(path, about.get("settings", {}), model)
        if not {"settings", *KEYS[model]} <= about.keys():
            raise RunFolderError(f"{path} is no {CALLED[model]} of `python -m attention.train`")
    elif (path / "model.safetensors").exists():
        file = path / "model.safetensors"
        weights, about = load(file)
        _refuse_other(path, about["settings"], model)
    else:
        file = _last_save(path, model)
        weights, about = load(file)
        notes.append(
            f"{path} is unfinished: these are the weights of step {about['step']} of "
            f"{RunFolder(path).config().get('steps')}; `{_resume(path)}` goes on"
        )
        about = _of_the_folder(path)
    if kept := using.use_kept(path):
        notes.append(f"with yours: {', '.join(piece.name for piece in kept)}")
    return Opened(file, weights, about, notes, kept)


def _refuse_other(path: Path, settings: dict[str, Any], model: str) -> None:
    """Say which program uses a run of another model."""
    other = settings.get("model", TRANSFORMER)  # which files of earlier versions do not say
    if settings and other != model:
        raise RunFolderError(
            f"{path} is a {CALLED.get(other, other)}, no {CALLED[model]}: use "
            f"`python -m {USED_BY.get(other, other)} {shlex.quote(str(path))}`"
        )


def _last_save(folder: Path, model: str) -> Path:
    """The newest weights of a training that has not ended; RunFolderError if there are none."""
    if not (folder / "config.json").exists():
        raise RunFolderError(
            f"{folder} holds no training: `python -m attention.train {TRAINED_BY[model]} --folder "
            f"{folder}` begins one there"
        )
    _refuse_other(folder, RunFolder(folder).config(), model)
    saves = sorted(folder.glob("weights-*.safetensors"))
    if not saves:
        every = RunFolder(folder).config().get("every")
        raise RunFolderError(
            f"the training in {folder} has saved no weights yet, which it does every {every} "
            f"steps: wait, or go on with `{_resume(folder)}`"
        )
    return saves[-1]


def _resume(folder: Path) -> str:
    """The command that goes on with the training in a folder."""
    corpus = RunFolder(folder).config().get("corpus")
    return f"python -m attention.train {corpus} --resume --folder {shlex.quote(str(folder))}"


def _of_the_folder(folder: Path) -> dict[str, Any]:
    """What the folder of a training says of its model, as model.safetensors does at the end."""
    described = RunFolder(folder).vocabularies()
    if not described:
        raise RunFolderError(
            f"{folder / VOCABULARIES} is missing, without which nothing can be read or written"
        )
    return {"settings": RunFolder(folder).config(), **described}
