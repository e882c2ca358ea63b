"""How the next token is drawn when a language model writes."""

import argparse
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention.decoding import sample_tokens, top_k_filter, top_p_filter
from attention.provided.data.tokens import BOS, PAD


@dataclass(frozen=True)
class Sampling:
    """From scores to tokens.

    temperature  divides the scores; 0: always the best token
    top_k        how many of the best tokens may be drawn; 0: all
    top_p        the fewest tokens that have this probability together may be drawn; 1: all
    seed         of the draws
    """

    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 0.9
    seed: int = 0

    def choose(self, scores: Tensor, noise: Tensor) -> Tensor:
        """Pick a token for each row: (B, vocab_size) and uniform noise (B,) -> (B,).

        PAD and BOS, which are no part of a text, are never picked.
        """
        scores = scores.float().clone()
        scores[:, [PAD, BOS]] = -torch.inf
        if self.temperature == 0:
            return scores.argmax(dim=1)
        best = scores.amax(dim=1, keepdim=True)  # less it first: no temperature makes it infinite
        scores = (scores - best) / max(self.temperature, torch.finfo(scores.dtype).tiny)
        if self.top_k:
            scores = top_k_filter(scores, self.top_k)
        if self.top_p < 1:
            scores = top_p_filter(scores, self.top_p)
        return torch.as_tensor(sample_tokens(scores, noise.to(scores.device)))


def add_options(parser: argparse.ArgumentParser, length: int, temperature: float) -> None:
    """Give a command its options of a draw, with these defaults."""
    add = parser.add_argument
    add("--length", type=int, default=length, help="tokens at most (default: %(default)s)")
    add(
        "--temperature",
        type=float,
        default=temperature,
        help="0: always the best token (default: %(default)s)",
    )
    add(
        "--top-k",
        type=int,
        default=0,
        metavar="K",
        help="draw from the K best (default: 0, all)",
    )
    add(
        "--top-p",
        type=float,
        default=0.9,
        metavar="P",
        help="draw from the fewest tokens that have this probability (default: 0.9; 1: all)",
    )
    add("--seed", type=int, default=0, help="of the draws (default: 0)")


def check(options: argparse.Namespace) -> None:
    """Raise ValueError, with one sentence, for options that make no sense."""
    for name, least in (("length", 1), ("top_k", 0)):
        value = getattr(options, name)
        if value < least:
            raise ValueError(f"--{name.replace('_', '-')} must be at least {least}, not {value}")
    if not 0 <= options.temperature < math.inf:
        raise ValueError(f"--temperature must be at least 0, not {options.temperature}")
    if not 0 < options.top_p <= 1:
        raise ValueError(f"--top-p must be above 0 and at most 1, not {options.top_p}")
    check_seed(options.seed)


def check_seed(seed: int) -> None:
    """Raise ValueError, with one sentence, for a seed that is none."""
    if not 0 <= seed < 2**62:
        raise ValueError(f"--seed must be at least 0 and below 2^62, not {seed}")
