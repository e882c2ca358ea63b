"""The course's trained translator of numbers, run by PyTorch's own Transformer layers.

The weights are those that lesson 10 trains with layers of the course. Here they are copied into
PyTorch's, so that the translator can be used before any of its parts has been written.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attention.provided import demand
from attention.provided.data.numbers import in_words, numbers
from attention.provided.data.tokens import BOS, EOS
from attention.provided.models import model_file
from attention.provided.models.translators import CHECKPOINTS, SMALL, made_again

NAMES = {  # of the course's parts: PyTorch's names for them
    "cross_attention": "multihead_attn",
    "attention": "self_attn",
    "W_o": "out_proj",
    "feed_forward.linear_1": "linear1",
    "feed_forward.linear_2": "linear2",
    **{f"norm_{number}": f"norm{number}" for number in (1, 2, 3)},
}


class Translation(NamedTuple):
    """A number in words of both languages, and what the model looked at while it wrote.

    words    the English words, and then the token that ends them
    letters  the German letters, written one after the other
    weights  (letters, words)  how much each letter looked at each word, from 0 to 1: the mean of
             the attention weights of all heads in both layers; a letter's sum to 1
    """

    words: list[str]
    letters: list[str]
    weights: Tensor


class NumberTranslator(nn.Module):
    """Translates numbers from 1 to 999 999, in words, from English to German."""

    def __init__(self) -> None:
        super().__init__()
        path = CHECKPOINTS / "transformer.safetensors"
        with made_again("python -m attention.train.shipped transformer"):
            weights, _ = model_file.load(path)
        corpus = numbers()
        self.words, self.letters = corpus.source_vocabulary, corpus.target_vocabulary
        self.tables = {name: table for name, table in weights.items() if "coder" not in name}
        sizes: tuple[Any, ...] = tuple(SMALL[name] for name in ("d_model", "n_heads", "d_ff"))
        kinds: dict[str, Any] = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        norms = [nn.LayerNorm(sizes[0]) for _ in range(2)]
        reader = nn.TransformerEncoderLayer(*sizes, **kinds)
        writer = nn.TransformerDecoderLayer(*sizes, **kinds)
        n = SMALL["n_layers"]
        self.encoder = nn.TransformerEncoder(reader, n, norms[0], enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(writer, n, norms[1])
        self.load_state_dict(as_pytorch_names(weights))
        self.eval()

    @torch.no_grad()
    def translate(self, number: int) -> Translation:
        """Translate one number; ValueError for one that is not from 1 to 999 999."""
        demand.counts(1, 999_999, number=number)
        words = in_words(number, "en").split()
        memory = self.encoder(self._vectors("source", self.words.encode(words)))  # (1, T_k, d)
        written, rows = [BOS], []
        while written[-1] != EOS and len(written) < 100:
            scores, weights = self._next(written, memory)
            rows.append(weights)
            written.append(int(scores.argmax()))
        return Translation([*words, "(end)"], self.letters.decode(written), torch.stack(rows[:-1]))

    def _next(self, written: list[int], memory: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of all letters that could come next, and the mean weights (T_k,) of the source."""
        future = nn.Transformer.generate_square_subsequent_mask(len(written))
        with weights_of_attentions(self.decoder, "multihead_attn") as weights:
            states = self.decoder(self._vectors("target", written), memory, tgt_mask=future)
        scores = states[0, -1] @ self.tables["generator.weight"].T  # (vocab_size,)
        return scores, torch.stack(weights).mean(dim=0)[0, -1]

    def _vectors(self, side: str, ids: list[int]) -> Tensor:
        """Tokens as vectors that say what they are, and where: (1, T, d_model)."""
        table = self.tables[f"{side}_embedding.weight"]
        d = table.shape[1]
        waves = torch.logspace(0, 2 / d * 4 - 4, d // 2, dtype=torch.float64).repeat_interleave(2)
        turns = torch.tensor([0.0, torch.pi / 2]).repeat(d // 2)
        where = (torch.arange(len(ids)).unsqueeze(1) * waves + turns).sin().float()
        return (table[ids] * d**0.5 + where).unsqueeze(0)


@contextmanager
def weights_of_attentions(model: nn.Module, name: str) -> Iterator[list[Tensor]]:
    """Collect the weights (B, T_q, T_k), mean over heads, of PyTorch's attentions so called."""
    collected: list[Tensor] = []
    hooks = []
    for path, part in model.named_modules():
        if path.endswith(name):
            ask = part.register_forward_pre_hook(_ask_for_weights, with_kwargs=True)
            keep = part.register_forward_hook(lambda _, __, result: collected.append(result[1]))
            hooks += [ask, keep]
    try:
        yield collected
    finally:
        for hook in hooks:
            hook.remove()


def _ask_for_weights(_: nn.Module, arguments: Any, named: Any) -> tuple[Any, Any]:
    return arguments, named | {"need_weights": True}


def as_pytorch_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the course's stacks of layers, by the names that PyTorch gives to them."""
    found = {}
    for name, weight in weights.items():
        renamed = name
        for ours, theirs in NAMES.items():
            renamed = renamed.replace(f".{ours}.", f".{theirs}.")
        if ".W_q." in name:  # PyTorch keeps those of queries, keys and values in one matrix
            three = [weights[name.replace("W_q", one)] for one in ("W_q", "W_k", "W_v")]
            found[renamed.replace("W_q.", "in_proj_")] = torch.cat(three)
        elif "coder" in name and ".W_k." not in name and ".W_v." not in name:
            found[renamed] = weight
    return found
