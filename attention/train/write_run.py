"""Write with a run of `python -m attention.train text`, finished or not."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention.modern_decoder import generate_with_cache
from attention.provided.data.tokens import EOS
from attention.provided.models.model_file import put
from attention.provided.training_steps import evaluation
from attention.train import opening
from attention.train.core.model import make_writer
from attention.train.core.sampling import Sampling
from attention.train.core.trainer import Trainer
from attention.train.corpora.texts import Text, TextPieces
from attention.train.pieces import collected
from attention.train.pieces.adapters import furnish
from attention.train.runs.settings import MODERN, Settings
from attention.train.speed.cached_decoder import CachedDecoder

START = "\n"  # what stands before a text that begins with nothing
SAMPLE = 100  # tokens of the sample at the end of a training
See = Callable[[int, int], object]  # is told each token as it comes: number of the text, and id


@dataclass
class Run:
    """A model that writes: its vocabulary, the settings of its training, and notes to be read.

    own  whether pieces that somebody else wrote are a part of it
    """

    model: Any
    pieces: TextPieces
    settings: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    own: bool = False

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(iter(self.model.parameters())).device


def open_run(path: Path, device: torch.device) -> Run:
    """Return what the folder of a training, or a file of weights that it exported, writes with.

    Raises what `opening.read` does.
    """
    found = opening.read(path, MODERN)
    settings, pieces = found.about["settings"], TextPieces(found.about["pieces"]["merges"])
    model = make_writer(settings, pieces).eval()
    put(found.weights, model, found.file)
    own = bool(found.kept)
    return Run(furnish(model).to(device), pieces, settings, found.notes, own)


def encode(run: Run, prompt: str) -> list[int]:
    """The ids of a prompt; ValueError if there are more than a passage of the training has."""
    ids, most = run.pieces.encode(prompt or START), run.settings["length"]
    if len(ids) > most:
        raise ValueError(
            f"the prompt has {len(ids)} tokens, more than the {most} that the model has learned to "
            "read at once: shorten it"
        )
    return ids


def write(
    run: Run, prompt: list[int], how: Sampling, count: int, length: int, see: See
) -> list[list[int]]:
    """Go on with a prompt in several ways, side by side; returns the new tokens of each.

    prompt  ids, at least one
    count   how many texts
    length  tokens of each at most; EOS ends one before, and is not among them
    see     called with each token as it comes

    A model without a window has learned to look back over a passage of its training. When there are
    as many tokens, it reads the later half of them anew, and goes on from there.
    """
    draws, written = how.generators(count), [list[int]() for _ in range(count)]
    going, most = list(range(count)), math.inf if run.settings["window"] else run.settings["length"]

    def choose(scores: Tensor) -> Tensor:
        noise = torch.stack([torch.rand((), generator=draws[text]) for text in rows])
        chosen = how.choose(scores, noise)
        for text, token in zip(rows, chosen.tolist(), strict=True):
            if text in going and token == EOS:
                going.remove(text)
            elif text in going:
                written[text].append(token)
                see(text, token)
        return chosen

    with evaluation(run.model):
        fast = run.device.type == "cpu" and not run.own
        model = CachedDecoder(run.model) if fast else run.model
        while going and (left := length - len(written[going[0]])):
            rows = list(going)
            read = [[*prompt, *written[text]] for text in rows]
            if len(read[0]) >= most and written[rows[0]]:
                read = [ids[-run.settings["length"] // 2 :] for ids in read]
            new = int(min(left, most - len(read[0]) + 1))
            generate_with_cache(model, torch.tensor(read, device=run.device), choose, new)
    return written


def judge(text: Text, settings: Settings, training: Trainer) -> dict[str, Any]:
    """What is measured of a training on a text; the sample goes on with what is held out."""
    own = bool(collected.placed())
    run = Run(training.model, text.pieces, vars(settings), own=own)
    loss = training.held_out_loss().item()
    tokens = sum(map(training.task.tokens, text.ids["val"]))
    prompt = text.ids["val"][0][: min(16, settings.length)]
    (written,) = write(run, prompt, Sampling(), 1, SAMPLE, lambda *_: None)
    return {
        "held_out_characters": text.characters,
        "held_out_tokens": tokens,
        "loss": round(loss, 4),  # nats a token
        "bits_per_character": round(loss * tokens / text.characters / math.log(2), 4),
        "prompt": text.pieces.decode(prompt),
        "sample": text.pieces.decode(written),
    }
