"""How the next token is drawn when a language model writes."""

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
