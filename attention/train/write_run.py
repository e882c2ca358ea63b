"""Write with a run of `python -m attention.train text`, finished or not."""

import codecs
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.provided.data.tokens import EOS
from attention.provided.models.decoders import smollm2
from attention.provided.models.model_file import put
from attention.provided.training_steps import evaluation
from attention.tokens_and_positions import bpe_encode
from attention.train import opening
from attention.train.core.model import make_writer
from attention.train.core.sampling import Sampling
from attention.train.core.trainer import Trainer
from attention.train.corpora.texts import Text, TextPieces
from attention.train.pieces import collected
from attention.train.pieces.adapters import furnish
from attention.train.runs.settings import MODERN, Settings
from attention.train.speed.writing import QuickDecoder
from autograder.terminal_output import printable

START = "\n"  # what stands before a text that begins with nothing
SAMPLE = 100  # tokens of the sample at the end of a training


@dataclass
class Run:
    """A model that writes: its vocabulary, the settings of its training, and notes to be read."""

    model: Any
    pieces: Any  # a TextPieces, or what else has `bytes`
    settings: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    quick: QuickDecoder | None = None  # the same model, if it may be read faster

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
    return Run(furnish(model).to(device), pieces, settings, found.notes)


def published(device: torch.device, change: Callable[[Any], object] | None = None) -> Run:
    """What SmolLM2 writes with: in the layers of lesson 20, or in a learner's if they are in use.

    change  what is still to be done with the model before it is used
    Raises ModelFileError if its file is missing or altered.
    """
    unpack = collected.own("unpack_q4")
    model, tokens = smollm2.opened(ModernDecoder, bpe_encode, unpack_q4=unpack)
    model = furnish(model).to(device)
    if change is not None:
        change(model)
    quick = None if collected.placed() else QuickDecoder(model)
    settings = {"length": smollm2.ROOM, "window": None}
    return Run(model, tokens, settings, quick=quick)


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
    run: Run, prompt: list[int], how: Sampling, length: int, see: Callable[[int], object]
) -> list[int]:
    """Go on with a prompt; returns the new tokens.

    prompt  ids, at least one
    length  tokens at most; EOS ends the text before, and is not among them
    see     called with each token as it comes

    A model without a window has learned to look back over a passage of its training. When there are
    as many tokens, it reads the later half of them anew, and goes on from there.
    """
    draw, written, ended = torch.Generator().manual_seed(how.seed), list[int](), False
    most = math.inf if run.settings["window"] else run.settings["length"]

    def choose(scores: Tensor) -> Tensor:
        nonlocal ended
        chosen = how.choose(scores, torch.rand(1, generator=draw))  # (1,)
        token = int(chosen)
        ended = ended or token == EOS
        if not ended:
            written.append(token)
            see(token)
        return chosen

    with evaluation(run.model):
        while not ended and (left := length - len(written)):
            read = [*prompt, *written]
            if len(read) >= most and written:
                read = read[-run.settings["length"] // 2 :]
            new = int(min(left, most - len(read) + 1))
            ids = torch.tensor([read], device=run.device)
            generate_with_cache(run.quick or run.model, ids, choose, new)
    return written


class Characters:
    """Prints tokens as they come: half a character waits for its other half.

    pieces  whose `bytes` say what each id stands for
    seen    the tokens so far
    """

    def __init__(self, pieces: Any):
        self.pieces = pieces
        self.decoder, self.seen = codecs.getincrementaldecoder("utf-8")("replace"), list[int]()

    def see(self, token: int) -> None:
        """Print what is whole with the next token."""
        self.seen.append(token)
        print(printable(self.decoder.decode(self.pieces.bytes[token])), end="", flush=True)

    def end(self) -> None:
        """End the text; half a character that is left becomes U+FFFD."""
        print(printable(self.decoder.decode(b"", final=True)), flush=True)


def judge(text: Text, settings: Settings, training: Trainer) -> dict[str, Any]:
    """What is measured of a training on a text; the sample goes on with what is held out."""
    run = Run(training.model, text.pieces, vars(settings))
    loss = training.held_out_loss().item()
    tokens = sum(map(training.task.tokens, text.ids["val"]))
    prompt = text.ids["val"][0][: min(16, settings.length)]
    written = write(run, prompt, Sampling(), SAMPLE, lambda token: None)
    return {
        "held_out_characters": text.characters,
        "held_out_tokens": tokens,
        "loss": round(loss, 4),  # nats per token
        "bits_per_character": round(loss * tokens / text.characters / math.log(2), 4),
        "prompt": text.pieces.decode(prompt),
        "sample": text.pieces.decode(written),
    }
