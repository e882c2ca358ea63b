"""Take the word that a letter translates away from it, and see whether the letter still comes."""

from typing import Any

import torch

from attention.provided import translators
from attention.provided.additive import attend
from attention.provided.data import BOS, Corpus
from attention.provided.points import frames, turned_around


@torch.no_grad()
def without_their_word(model: Any, corpus: Corpus) -> dict[str, tuple[float, float]]:
    """Say how many letters a translator of lesson 03 gets right with their word, and without it.

    At one letter at a time the word gets the weight 0, and the others share what it had; all
    earlier steps stay as they were. The letters are those of `points.turned_around`, without "und".

    returns  "first letters" and "later letters": shares that are right with the word and without
    """
    pairs = turned_around(corpus.test)
    batch = corpus.batch(pairs)
    own = torch.full_like(batch.target, -1)  # (B, T_q): the index of the word, or -1
    first = torch.zeros_like(own, dtype=torch.bool)
    for row, parts in enumerate(frames(pairs)):
        for part, begin, end, word in parts:
            own[row, begin : end - 3 * (part == "ones")] = word
            first[row, begin] = True
    with translators.one_thread():
        right = _right(model, batch, own)  # (2, B, T_q)
    found = {}
    for name, chosen in (("first letters", first), ("later letters", (own >= 0) & ~first)):
        with_word, without = right[:, chosen].float().mean(dim=1).tolist()
        found[name] = (round(with_word, 3), round(without, 3))
    return found


def _right(model: Any, batch: Any, own: torch.Tensor) -> torch.Tensor:
    """Whether each letter is predicted, with its word and without: (2, B, T_q)."""
    annotations, state = model.encode(batch.source, batch.lengths)
    keys, v = model.attention.W_k(annotations), model.attention.v.weight[0]
    read = torch.cat([torch.full_like(own[:, :1], BOS), batch.target[:, :-1]], dim=1)
    rows, right = torch.arange(len(own)), []
    for step in range(own.shape[1]):
        x, wanted = model.target_embedding(read[:, step]), batch.target[:, step]
        query = model.attention.W_q(state)[:, None]
        weights = attend(query, keys, v, annotations, batch.lengths)[1]  # (B, 1, T_k)
        less = weights.clone()
        less[rows, 0, own[:, step].clamp(min=0)] = 0
        states, hits = [], []
        for shares in (weights, less / less.sum(dim=2, keepdim=True)):
            context = (shares @ annotations)[:, 0]  # (B, 2 d_state)
            states.append(model.decoder(torch.cat([x, context], dim=1), state))
            logits = model.output(torch.cat([states[-1], context], dim=1))
            hits.append(logits.argmax(dim=1) == wanted)
        right.append(torch.stack(hits))
        state = states[0]
    return torch.stack(right, dim=2)
