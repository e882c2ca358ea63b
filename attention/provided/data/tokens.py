"""Tokens and their ids: padding, begin and end in every vocabulary, and rows of ids as a tensor."""

from collections.abc import Iterable, Sequence

import torch

from attention.provided import demand

PAD, BOS, EOS = 0, 1, 2  # padding, begin and end of a sequence: the first ids of every vocabulary
SPECIAL = ["<pad>", "<bos>", "<eos>"]


class Vocabulary:
    """A list of tokens in a fixed order; a token's place is its id.

    >>> letters = Vocabulary(["a", "b"])
    >>> letters.encode(["b", "a"]), letters.decode([4, 3, 2, 0])
    ([4, 3, 2], ['b', 'a'])
    """

    def __init__(self, tokens: Iterable[str]):
        self.tokens = SPECIAL + sorted(set(tokens) - set(SPECIAL))
        self.ids = {token: index for index, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the tokens' ids, and EOS after them."""
        return [self.ids[token] for token in tokens] + [EOS]

    def decode(self, ids: Sequence[int] | torch.Tensor) -> list[str]:
        """Return the tokens before the first EOS, without PAD and BOS."""
        known: Sequence[int] = ids.tolist() if isinstance(ids, torch.Tensor) else ids
        known = known[: known.index(EOS)] if EOS in known else known
        return [self.tokens[index] for index in known if index not in (PAD, BOS)]


def pad(sequences: Sequence[list[int]]) -> torch.Tensor:
    """Fill lists of ids up with PAD to one tensor: (B, length of the longest).

    Raises ValueError if there are none.
    """
    demand.counts(B=len(sequences))
    longest = max(map(len, sequences))
    return torch.tensor([ids + [PAD] * (longest - len(ids)) for ids in sequences])
