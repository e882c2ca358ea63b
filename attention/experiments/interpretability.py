"""Lesson 17: what is measured on a trained translator beside its exercises, and the claims.

`make bench-interpretability` measures it on the translator that ships.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor, nn

from attention.experiments.recorded import Claim
from attention.multi_head_attention import MultiHeadAttention
from attention.provided import demand
from attention.provided.data.numbers import Batch
from attention.provided.data.tokens import PAD, pad
from attention.provided.models.attention_weights import watch_attention
from attention.sequence_to_sequence import shift_right
from attention.transformer import masks_from_tokens

ENGLISH = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
    ninety hundred thousand zero""".split()  # noqa: SIM905
GERMAN = """ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn
    fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig
    achtzig neunzig hundert tausend null""".split()  # noqa: SIM905
WORD = re.compile("|".join(sorted([*GERMAN, "eins", "und"], key=len, reverse=True)))


class Look(NamedTuple):
    """What one attention did: weights (B, H, T_q, T_k), and the values (B, H, T_k, d_head)."""

    weights: Tensor
    values: Tensor


def look(model: nn.Module, batch: Batch) -> dict[str, Look]:
    """Run a translator once, and return what every attention in it did, by name."""
    values: dict[str, Tensor] = {}
    hooks = []

    def keep(name: str, part: MultiHeadAttention) -> Callable[..., None]:
        def hook(_: object, args: Any, result: object) -> None:
            split = part.W_v(args[2]).unflatten(-1, (part.n_heads, part.d_head))
            values[name] = split.transpose(1, 2)

        return hook

    for name, part in attentions(model).items():
        hooks.append(part.register_forward_hook(keep(name, part)))
    try:
        with watch_attention(model) as weights, torch.no_grad():
            model(batch.source, batch.target)
    finally:
        for hook in hooks:
            hook.remove()
    return {name: Look(weights[name], values[name]) for name in weights}


def attentions(model: nn.Module) -> dict[str, MultiHeadAttention]:
    """The attentions of a model, by name."""
    return {n: m for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)}


def mean_attention(looks: Mapping[str, Look], ending: str) -> Tensor:
    """Mean over layers and heads of the weights whose name ends so: (B, T_q, T_k)."""
    chosen = [one.weights for name, one in looks.items() if name.endswith(ending)]
    return torch.stack(chosen).mean(dim=(0, 2))


def gradients(model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """Derivatives of each target token's log-probability by each source token's vector.

    returns  two (B, T_q, T_k): |gradient · vector|, and the gradient's length
    """
    seen, read_mask = masks_from_tokens(batch.source, shift_right(batch.target))
    x = model.embed(batch.source, model.source_embedding).detach().requires_grad_()
    memory = model.encoder(x, seen)
    logits = model.decode(shift_right(batch.target), memory, read_mask, seen)
    log_p = logits.log_softmax(-1).gather(2, batch.target.unsqueeze(2)).squeeze(2)
    products, norms = [], []
    for one in log_p.unbind(dim=1):  # a sentence depends on itself alone
        (gradient,) = torch.autograd.grad(one.sum(), x, retain_graph=True)
        products.append((gradient * x).sum(-1).abs())
        norms.append(gradient.norm(dim=-1))
    return torch.stack(products, 1).detach(), torch.stack(norms, 1)


@torch.no_grad()
def prefix_effects(model: Any, batch: Batch) -> Tensor:
    """What each letter read loses if an earlier one may not be looked at: (B, T_q, T_q).

    Entry (t, j): log p of target token t, less what it is when nobody but itself sees what the
    decoder read at position j. Above the diagonal it is 0.
    """
    seen, read_mask = masks_from_tokens(batch.source, shift_right(batch.target))
    memory = model.encode(batch.source, seen)
    T, effects = batch.target.shape[1], []

    def log_p(mask: Tensor) -> Tensor:
        logits = model.decode(shift_right(batch.target), memory, mask, seen)
        scores: Tensor = logits.log_softmax(-1).gather(2, batch.target.unsqueeze(2)).squeeze(2)
        return scores

    whole = log_p(read_mask)
    for j in range(T):
        unread = read_mask.clone()
        unread[:, :, j] = False
        unread[:, j, j] = True
        effects.append(whole - log_p(unread))
    return torch.stack(effects, dim=-1)


def agreement(a: Tensor, b: Tensor, lengths: Sequence[Sequence[int]]) -> list[float]:
    """Kendall's τ between the rows of two (B, T_q, T_k), mean over the rows of each sentence.

    lengths  for each sentence, how many keys count in each of its rows; rows of fewer than 2, and
             rows in which all are equal, do not count
    """
    found = []
    for x, y, counts in zip(a, b, lengths, strict=True):
        taus = [tau(x[t, :n], y[t, :n]) for t, n in enumerate(counts) if n > 1]
        found.append(float(numpy.nanmean(taus)))
    return found


def tau(x: Tensor, y: Tensor) -> float:
    """Kendall's τ (b, for ties) of two rows (T,): the pairs they agree on, less the others.

    >>> tau(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 30.0, 20.0]))
    0.3333333333333333
    """
    one, other = ((row[:, None] - row).sign().double() for row in (x, y))
    length = (one.square().sum() * other.square().sum()).sqrt()
    return ((one * other).sum() / length).item()


def bootstrap(numbers: Sequence[float], draws: int = 2000, seed: int = 0) -> tuple[float, ...]:
    """Mean of some numbers, and the bounds of its 95 % interval: drawn again, with replacement.

    Raises ValueError if there are no numbers, or no draws.
    """
    demand.counts(numbers=len(numbers), draws=draws)
    values = numpy.asarray(numbers)
    places = numpy.random.default_rng(seed).integers(len(values), size=(draws, len(values)))
    low, high = numpy.quantile(values[places].mean(axis=1), (0.025, 0.975))
    return float(values.mean()), float(low), float(high)


def largest_change(
    weights: Tensor, values: Tensor, starts: int = 4, rounds: int = 8, seed: int = 0
) -> Tensor:
    """Search for the weights farthest from some, with the same output and sum, none negative.

    weights  (T,) float64
    values   (T, d)
    returns  (T,)  the best found; to find the best of all takes much longer

    From a random direction on: a linear programme finds the weights farthest in a direction, and
    the next direction is the signs of their change. Each round gets at least as far as the last.
    """
    from scipy.optimize import linprog  # slow to import

    both = torch.cat([values, torch.ones_like(values[:, :1])], dim=1).numpy()
    old, best = weights.numpy(), weights.numpy()
    random = numpy.random.default_rng(seed)
    for _ in range(starts):
        direction = random.choice([-1.0, 1.0], size=len(old))
        for _ in range(rounds):
            found = linprog(-direction, A_eq=both.T, b_eq=old @ both, bounds=(0, 1))
            if not found.success:
                break
            if abs(found.x - old).sum() > abs(best - old).sum():
                best = found.x
            signs = numpy.where(found.x >= old, 1.0, -1.0)
            if (signs == direction).all():
                break
            direction = signs
    return torch.from_numpy(numpy.ascontiguousarray(best))


@contextmanager
def rearranged(model: nn.Module, source: Tensor, how: str, seed: int = 0) -> Iterator[None]:
    """Let every cross-attention give its weights to other tokens, or the same to all.

    how  "shuffled": each sentence's values change places, so each weight meets another token's,
         never its own;
         "uniform": every value becomes the mean of the real ones, as if all weights were equal
    """
    draw, real = torch.Generator().manual_seed(seed), source != PAD
    order = torch.stack([_shuffled(row, draw) for row in real])  # (B, T_k)

    def hook(_: object, args: Any, kwargs: Any) -> Any:
        query, key, value, *others = args
        if how == "uniform":
            mean = (value * real.unsqueeze(2)).sum(1, keepdim=True) / real.sum(1)[:, None, None]
            value = mean.expand_as(value)
        else:
            value = value.gather(1, order.unsqueeze(2).expand_as(value))
        return (query, key, value, *others), kwargs

    hooks = [
        part.register_forward_pre_hook(hook, with_kwargs=True)
        for name, part in attentions(model).items()
        if name.endswith("cross_attention")
    ]
    try:
        yield
    finally:
        for one in hooks:
            one.remove()


def _shuffled(real: Tensor, draw: torch.Generator) -> Tensor:
    """A random order of the real places in which none stays where it was; the others stay."""
    order, places = torch.arange(len(real)), real.nonzero().squeeze(1)
    ring = places[torch.randperm(len(places), generator=draw)]  # each takes the place of the next
    order[ring] = ring.roll(1)
    return order


@torch.no_grad()
def right_letters(model: nn.Module, batch: Batch) -> Tensor:
    """Which target tokens have the largest score, given the true ones before: bool (B, T_q)."""
    right: Tensor = (model(batch.source, batch.target).argmax(-1) == batch.target) | (
        batch.target == PAD
    )
    return right


Head = tuple[str, int]  # name of an attention, number of a head


def exact_without(model: nn.Module, batch: Batch, off: Sequence[Head]) -> float:
    """Share of sentences of which every token is right, given the true ones before, without heads.

    Greedy translation gives the same sentence exactly where this is so.
    """
    parts = attentions(model)
    gates = {name: torch.ones(part.n_heads) for name, part in parts.items()}
    for name, head in off:
        gates[name][head] = 0.0
    with watch_attention(model, gates):
        right = right_letters(model, batch)
    return right.all(dim=1).double().mean().item()


@torch.no_grad()
def translated(model: Any, source: Any, target: Any, texts: Sequence[str]) -> Batch:
    """Some texts with the model's own translations, for a model of `attention.train`.

    source, target  its vocabularies, from `load_model`
    """
    ids = pad([source.encode(text) for text in texts])
    written = model.translate(ids)
    again = pad([target.encode(target.decode(row.tolist())) for row in written])
    return Batch(ids, (ids != PAD).sum(dim=1), again)


def alignment(source: str, target: str) -> list[int | None]:
    """Say of each German letter which English word it belongs to; "und" has none.

    >>> alignment("twenty one", "einundzwanzig")[:7]
    [1, 1, 1, None, None, None, 0]
    """
    words = source.split()
    free: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        free.setdefault(word, []).append(number)
    letters: list[int | None] = []
    for piece in WORD.findall(target):
        place: int | None = None
        if piece != "und":
            place = free[ENGLISH[GERMAN.index("ein" if piece == "eins" else piece)]].pop(0)
        letters += [place] * len(piece)
    return letters


def offset_role(mask: Tensor, offset: int) -> Tensor:
    """Where a head looks that looks so many positions further: -1 is the previous token.

    mask     bool (B, T_q, T_q)  True = may attend
    returns  bool (B, T_q, T_q)

    Raises ValueError for a mask that is not bool.
    """
    demand.masks(mask=mask)
    places = torch.arange(mask.shape[-1])
    return (places[:, None] + offset == places) & mask


def uniform(mask: Tensor) -> Tensor:
    """Equal weights on all that may be looked at, as of one head: (B, 1, T_q, T_k).

    mask  bool (B, T_q, T_k)

    Raises ValueError for a mask that is not bool.
    """
    demand.masks(mask=mask)
    return (mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)).unsqueeze(1)


def aligned_role(pairs: Sequence[Any], batch: Batch, first: bool) -> Tensor:
    """Where a head looks that looks at the word which is being written: bool (B, T_q, T_k).

    first  True: only at the first letters of a word; False: only at the others
    """
    role = torch.zeros(*batch.target.shape, batch.source.shape[1], dtype=torch.bool)
    for b, (_, source, target) in enumerate(pairs):
        words = alignment(source, target)
        for t, word in enumerate(words):
            if word is not None and first == (t == 0 or words[t - 1] != word):
                role[b, t, word] = True
    return role


CLAIMS = [
    Claim(
        claim="At the first letter of a word three of four heads look at its English word; "
        "no head of the self-attentions is positional",
        control="a head with equal weights",
        seeds="one model",
        where="What do the heads look at?",
    ),
    Claim(
        claim="Attention agrees with leave-one-out better than gradient · input, less than "
        "the length of the gradient",
        control="random weights; the same sentences",
        seeds="200 sentences, 95 % intervals",
        where="Does it matter?",
    ),
    Claim(
        claim="Where T is larger than the rank, other weights give the same output",
        control="a random direction; rows short enough to have no null space",
        seeds="one model, 200 sentences",
        where="Could the weights be different?",
    ),
    Claim(
        claim="The token can be read from every layer; what the layers bring in is the "
        "token before",
        control="the same model untrained; the most frequent answer",
        seeds="one model, held-out sentences",
        where="Is it still that word?",
    ),
    Claim(
        claim="All heads of the encoder can be silenced; in the decoder the order by "
        "importance is a trap",
        control="random orders, and a greedy one",
        seeds="one model, 500 numbers",
        where="Which heads are needed?",
    ),
]
