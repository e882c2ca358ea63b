"""What translators with recurrent networks share: a GRU without padding, and writing greedily."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention.provided import demand
from attention.provided.data.tokens import BOS, EOS, PAD

ANSWERS = "sequence_to_sequence"


def run_packed(gru: nn.Module, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Run a GRU over a padded batch without spending a step on the padding.

    gru      an ``nn.GRU`` with batch_first=True
    x        (B, T, d_x)
    lengths  (B,)
    returns  all states (B, T, d), or (B, T, 2d) if it reads in both directions, 0 in the padding;
             and the last state of each direction
    """
    packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
    states, last = gru(packed)
    return pad_packed_sequence(states, batch_first=True)[0], last


class GreedyTranslator(nn.Module):
    """A translator that always writes the likeliest token. A subclass defines two methods.

    encode(source, lengths)                    -> annotations, and the decoder's first state
    write(tokens, state, annotations, lengths) -> logits (B, vocab_size), the new state, and more
    """

    encode: Any
    write: Any

    @torch.no_grad()
    def translate(self, source: Tensor, lengths: Tensor, max_length: int = 100) -> Tensor:
        """Return the greedy translation: ids (B, T), filled up with PAD after EOS.

        Raises ValueError for a max_length below 1, or for no sentence.
        """
        demand.counts(B=len(source), max_length=max_length)
        annotations, state = self.encode(source, lengths)
        tokens, written = torch.full_like(lengths, BOS), list[Tensor]()
        ended = torch.zeros_like(tokens, dtype=torch.bool)
        while len(written) < max_length and not ended.all():
            logits, state, *_ = self.write(tokens, state, annotations, lengths)
            tokens = logits.argmax(dim=1).masked_fill(ended, PAD)
            written.append(tokens)
            ended = ended | (tokens == EOS)
        return torch.stack(written, dim=1)

    def step_weights(self) -> dict[str, Tensor]:
        """Return the weights of one step of the decoder, under the names that lesson 03 uses."""
        modules: Any = self
        cell, attention = modules.decoder, modules.attention
        gates = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
        return {
            "embedding": modules.target_embedding.weight,
            **dict(zip(("W_x", "W_h", "b_x", "b_h"), gates, strict=True)),
            "W_out": modules.output.weight,
            "b_out": modules.output.bias,
            "W_q": attention.W_q.weight,
            "W_k": attention.W_k.weight,
            "v": attention.v.weight[0],
        }
