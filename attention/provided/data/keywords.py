"""A summary that can be checked exactly: the topic words of a long text, in alphabetical order.

A text is a row of filler words with a few topic words among them, at random places. Which words are
topics never changes. So the task needs a reader who finds a word wherever it stands, and no more.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from attention.provided import demand

SEP = 3  # the id that stands between a text and its summary
FIRST_TOPIC = 4
TOPICS = [
    *("apple", "bridge", "candle", "dragon", "engine", "forest"),
    *("garden", "harbour", "island", "jungle", "kitchen", "lantern"),
]
FILLERS = [
    *("a", "about", "and", "as", "at", "but", "by", "for", "from", "in"),
    *("is", "it", "of", "on", "or", "so", "that", "the", "to", "with"),
]
WORDS = ["<pad>", "<bos>", "<eos>", "<sep>", *TOPICS, *FILLERS]
KEYS = 4  # topic words in a text


class Keywords(NamedTuple):
    """Texts (B, M) and their summaries (B, KEYS + 1), which end with EOS; ids are int64."""

    texts: Tensor
    summaries: Tensor


def make(count: int, length: int, draw: torch.Generator) -> Keywords:
    """Draw texts of ``length`` words, each with KEYS different topic words.

    Raises ValueError for fewer words than that, or for less than one text.

    >>> texts, summaries = make(2, 9, torch.Generator().manual_seed(0))
    >>> texts.shape, summaries.shape
    (torch.Size([2, 9]), torch.Size([2, 5]))
    """
    demand.counts(count=count)
    demand.counts(KEYS, length=length)
    first = FIRST_TOPIC + len(TOPICS)
    texts = torch.randint(first, len(WORDS), (count, length), generator=draw)
    topics = torch.rand(count, len(TOPICS), generator=draw).argsort(dim=1)[:, :KEYS] + FIRST_TOPIC
    places = torch.rand(count, length, generator=draw).argsort(dim=1)[:, :KEYS]
    texts.scatter_(1, places, topics)
    end = torch.full((count, 1), 2)
    return Keywords(texts, torch.cat([topics.sort(dim=1).values, end], dim=1))


def scores(written: Tensor, summaries: Tensor) -> tuple[float, float]:
    """Say how good summaries are: the share of topic words found, and the share without error.

    written  (B, any number)  ids
    """
    topics = summaries[:, :KEYS]
    found = (written[:, :KEYS, None] == topics[:, None, :]).any(dim=1).double().mean().item()
    if written.shape[1] < summaries.shape[1]:
        return found, 0.0
    exact = (written[:, : summaries.shape[1]] == summaries).all(dim=1).double().mean().item()
    return found, exact


def text(ids: Tensor) -> str:
    """Ids as words."""
    return " ".join(WORDS[i] for i in ids.tolist())
