"""`--mine`: talk with what a learner has built, and say what is theirs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attention import answers, modern_decoder, tokens_and_positions
from attention.provided.models.decoders import smollm2
from attention.provided.models.gguf import GGUF
from attention.train.core.writing import written
from attention.train.mine.trial import Trial
from attention.train.mine.using import choose, report
from attention.train.pieces import collected
from attention.train.pieces.adapters import furnish
from attention.train.pieces.collected import Pieces

# What an answer calls, by the order of the lessons.
NEEDED = (
    *("masked_attention", "rotary", "bpe_encode", "sample_tokens", "top_p_filter"),
    *("rms_norm", "SwiGLU", "ModernAttention", "ModernDecoderLayer", "ModernDecoder"),
    *("generate_with_cache", "unpack_q4"),
)
TEXT = "It's 12 o'clock: how does naïveté differ from a déjà vu?\n"
SMALL = {
    "vocab_size": 500,
    "d_model": 96,
    "n_heads": 6,
    "n_kv_heads": 2,
    "d_ff": 128,
    "n_layers": 2,
}
LENGTH = 8


class ChatTrial(Trial):
    """The parts of an answer, by a decoder that is smaller than the published one."""

    tolerance = 1e-3

    def __init__(self, file: GGUF, pieces: Pieces):
        self.file, self.pieces, self.device = file, pieces, torch.device("cpu")
        self.merges = smollm2.Tokens(file, tokens_and_positions.bpe_encode).merges
        kinds = (stored.rows for stored in file.tensors.values() if stored.type == "Q4_1")
        self.blocks = torch.from_numpy(next(kinds)[:1000].copy())  # (n, 20)
        draw = torch.Generator().manual_seed(0)
        self.ids = torch.randint(3, SMALL["vocab_size"], (1, LENGTH), generator=draw)
        torch.manual_seed(0)
        self.weights = self._untrained().state_dict()

    def _untrained(self) -> Any:
        return furnish(modern_decoder.ModernDecoder(**smollm2.sizes(self.file) | SMALL))

    def parts(self) -> dict[str, Callable[[], Any]]:
        """What is to be run, by name; the model is made here."""
        model, cut = self.model(), smollm2.PIECE.findall
        return {
            "unpacking": lambda: answers.unpack_q4(self.blocks),
            "tokens": lambda: tokens_and_positions.bpe_encode(TEXT, self.merges, cut),
            "writing": lambda: written(model, self.ids, LENGTH),
        }


def use(folder: Path, file: GGUF) -> None:
    """Put a learner's pieces in use, as far as they are right, and print whose is what.

    Raises MineError, a ValueError, if there are none.
    """
    pieces = collected.load(folder)
    used = choose(ChatTrial(file, pieces))
    print(report(pieces, used, NEEDED, "an answer"), file=sys.stderr)
