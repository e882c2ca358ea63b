"""Lesson 21, several tokens in one call: a draft proposes tokens, and the model keeps some.

Drafts are counts of what followed the last tokens in the novels that the small writer learned
from, and for SmolLM2 the text so far, in which the last tokens are looked up.
"""

import functools
import statistics
import textwrap
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.experiments.decoder_changes import learned_from
from attention.experiments.language_models import merges, tokens_of
from attention.experiments.recorded import read
from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.provided.figures import plots, seeds
from attention.provided.models.decoders import small_writer, smollm2
from attention.provided.training_steps import fewer, one_thread
from attention.tokens_and_positions import bpe_decode, bpe_encode

Piece = Callable[..., Any]
Draft = tuple[Tensor, Tensor]  # ids (k,), and the probabilities (k, vocab_size) they come from

LESSON, SEEDS, LENGTHS = "answers", (0, 1, 2), (1, 2, 4, 8)
PROMPT = "I am"
BEGINNINGS = ("She was", "It is a truth", "Mr. Knightley")  # one for each seed
SHOWN = 12  # pairs of tokens that are told apart; all others are counted together
ASKED = {
    "repeats": "Write this again, word for word: My grandmother lived in a small house by the sea. "
    "Every morning she walked along the beach with her old dog, and every evening she sat by the "
    "fire and read a book.",
    "is new": "Tell me a short story about a fox.",
}


@torch.no_grad()
def speculate(model, propose, accept, ids, n, k, temperature, generator):  # type: ignore[no-untyped-def]
    """Write on with a draft: the model reads k drafted tokens in one call.

    propose      (ids so far, k) -> k drafted ids, and the probabilities (k, vocab_size) from which
                 they were drawn
    ids          (T,)  what stands there already
    temperature  0: the best token
    returns      n new ids, and how often the model was called
    """
    text, past, calls = ids, None, 0
    while len(text) < len(ids) + n:
        drafted, q = propose(text, k)
        known = past[0][0].shape[2] if past else 0
        scores, past = model(torch.cat([text[known:], drafted])[None], past)
        p = probabilities(scores[0, -k - 1 :], temperature)  # (k + 1, vocab_size)
        kept, after = accept(p, q, drafted, torch.rand(k, generator=generator))
        text = torch.cat([text, drafted[:kept], after.multinomial(1, generator=generator)])
        # The cache forgets what was not kept. The last token was drawn, and not yet read.
        past = [tuple(each[:, :, : len(text) - 1] for each in pair) for pair in past]
        calls += 1
    return text[len(ids) :][:n], calls


def probabilities(scores: Tensor, temperature: float) -> Tensor:
    """(…, vocab_size) scores as probabilities; at temperature 0 the best token has 1."""
    if temperature == 0:
        return F.one_hot(scores.argmax(dim=-1), scores.shape[-1]).to(scores.dtype)
    return torch.softmax(scores / temperature, dim=-1)


class Counts:
    """What followed the last tokens in a text: probabilities, and drafts drawn from them.

    ids         (T,)  the text
    order       tokens of the longest runs that are counted
    vocab_size  every id is below

    To the counts after a run come PRIOR more, shared out as the shorter run predicts.
    """

    PRIOR = 2.0

    def __init__(self, ids: Tensor, order: int = 3, vocab_size: int = small_writer.VOCABULARY):
        self.vocab_size, self.runs = vocab_size, list[tuple[Tensor, Tensor]]()
        self.single = torch.bincount(ids, minlength=vocab_size) / len(ids)
        before = torch.zeros_like(ids)  # of each token the n tokens before it, as one number
        for n in range(1, order):
            before = torch.cat([before[:1], before[:-1] * vocab_size + ids[:-1]])
            keys, place = before[n:].sort()
            self.runs.append((keys, ids[n:][place]))

    def after(self, text: Tensor) -> Tensor:
        """Probabilities (vocab_size,) of what follows a text."""
        p, key = self.single, 0
        for n, (keys, ids) in enumerate(self.runs[: len(text)]):
            key += int(text[-1 - n]) * self.vocab_size**n
            first, last = torch.searchsorted(keys, torch.tensor([key, key + 1])).tolist()
            found = torch.bincount(ids[first:last], minlength=self.vocab_size)
            p = (found + self.PRIOR * p) / (last - first + self.PRIOR)
        return p

    def draft(self, text: Tensor, k: int, temperature: float, generator: torch.Generator) -> Draft:
        """Draw k tokens, one after the other: their ids, and what each was drawn from."""
        q = []
        for _ in range(k):
            q.append(probabilities(self.after(text).log(), temperature))
            text = torch.cat([text, q[-1].multinomial(1, generator=generator)])
        return text[-k:], torch.stack(q)


@functools.cache
def counts_of_novels() -> Counts:
    """Counts of the three novels from which the small writer learned."""
    return Counts(learned_from())


def looked_up(text: Tensor, k: int, vocab_size: int, longest: int = 3) -> Draft:
    """Copy the k tokens that followed where the last tokens stood before; else repeat the last."""
    drafted = text[-1:].repeat(k)
    for n in range(1, min(longest, len(text) - 1) + 1):
        same = (text[:-1].unfold(0, n, 1) == text[-n:]).all(dim=1).nonzero()
        if len(same):
            begin = int(same[-1]) + n
            drafted = torch.cat([text[begin : begin + k], drafted])[:k]
    return drafted, F.one_hot(drafted, vocab_size).float()


def write(
    model: Any,
    accept: Piece,
    prompt: str,
    n: int,
    k: int,
    temperature: float,
    generator: torch.Generator,
) -> tuple[Tensor, int]:
    """The small writer goes on with a text, with drafts from counts: n ids, and calls."""
    draft = counts_of_novels().draft
    propose = functools.partial(draft, temperature=temperature, generator=generator)
    ids = tokens_of(prompt)
    new, calls = speculate(model, propose, accept, ids, n, k, temperature, generator)
    return new, calls


# The measurements


def small_writer_with_counts(
    k: int, temperature: float, seed: int, accept: Piece, n: int = 240
) -> dict[str, Any]:
    """Tokens for each call of the small writer, on a beginning for each seed."""
    model = small_writer.load(ModernDecoder)
    noise = torch.Generator().manual_seed(seed)
    _, calls = write(model, accept, BEGINNINGS[seed], n, k, temperature, noise)
    return {"tokens": n, "calls": calls}


def smollm2_with_copies(answer: str, k: int, accept: Piece) -> dict[str, Any]:
    """SmolLM2's best answer, with drafts that are copied from the text so far; k = 0: without."""
    model, tokens = smollm2.opened(ModernDecoder, bpe_encode)
    ids = torch.tensor(tokens.encode(smollm2.prompt([("user", ASKED[answer])])))
    begin = time.process_time()
    best = generate_with_cache(model, ids[None], lambda scores: scores.argmax(dim=1), 100)[0]
    alone, begin = time.process_time() - begin, time.process_time()
    draft = functools.partial(looked_up, vocab_size=len(tokens.bytes))
    generator = torch.Generator().manual_seed(0)
    new, calls = speculate(model, draft, accept, ids, len(best), k, 0, generator)
    return {
        "tokens": len(best),
        "calls": calls,
        "same": torch.equal(new, best),
        "seconds": round(time.process_time() - begin, 1),
        "seconds alone": round(alone, 1),
        "text": tokens.decode(best.tolist()),
    }


def pairs(model: Any, prompt: Tensor) -> Tensor:
    """The exact probabilities (vocab_size, vocab_size) of the next two tokens."""
    with torch.no_grad():
        first = probabilities(model(prompt[None])[0][0, -1], 1.0)
        every = torch.arange(len(first))[:, None]
        texts = torch.cat([prompt.expand(len(first), -1), every], dim=1)
        second = probabilities(model(texts)[0][:, -1], 1.0)
    return first[:, None] * second


def drawn_from_p(accept: Piece) -> Piece:
    """A wrong rule: after a rejection the next token is drawn from p itself."""

    def wrong(p: Tensor, q: Tensor, drafted: Tensor, noise: Tensor) -> tuple[int, Tensor]:
        kept, _ = accept(p, q, drafted, noise)
        return kept, p[kept]

    return wrong


class Classes:
    """Pairs of tokens that are expected FEW times or more in so many draws; the others are one."""

    FEW = 5

    def __init__(self, exact: Tensor, draws: int):
        self.draws, self.width = draws, len(exact)
        p, order = exact.flatten().sort(descending=True)
        count = int((p * draws >= self.FEW).sum())
        self.pairs = order[:count]
        self.p = torch.cat([p[:count], p[count:].sum()[None]])

    def shares(self, drawn: Tensor) -> Tensor:
        """How often each class is among pairs (draws, 2), divided by their number."""
        same = (drawn[:, :1] * self.width + drawn[:, 1:]) == self.pairs
        found = same.float().mean(dim=0)
        return torch.cat([found, 1 - found.sum()[None]])

    def far(self, shares: Tensor) -> Tensor:
        """Total variation: half of the summed differences from the exact probabilities."""
        return (shares - self.p).abs().sum(dim=-1) / 2

    def by_chance(self, repeated: int = 1000) -> float:
        """The total variation that 95 of 100 samples of as many draws from the model stay below."""
        generator = torch.Generator().manual_seed(0)
        rows = self.p.expand(repeated, -1)
        drawn = rows.multinomial(self.draws, replacement=True, generator=generator)
        counts = torch.zeros_like(rows).scatter_add(1, drawn, torch.ones(drawn.shape))
        return float(self.far(counts / self.draws).quantile(0.95))


def frequencies(seed: int, runs: int, accept: Piece) -> dict[str, Any]:
    """How far the first two tokens of many runs are from the exact probabilities, by the rule."""
    model, ids = small_writer.load(ModernDecoder), tokens_of(PROMPT)
    classes = Classes(pairs(model, ids), runs)
    found: dict[str, Any] = {"classes": len(classes.p), "chance": round(classes.by_chance(), 4)}
    for name, rule in (("accept", accept), ("from p", drawn_from_p(accept))):
        shares = classes.shares(drawn_pairs(model, rule, seed, runs))
        found[name] = round(float(classes.far(shares)), 4)
    return found


def drawn_pairs(model: Any, accept: Piece, seed: int, runs: int) -> Tensor:
    """The first two new tokens of so many runs: (runs, 2)."""
    noise = torch.Generator().manual_seed(seed)
    return torch.stack([write(model, accept, PROMPT, 2, 2, 1.0, noise)[0] for _ in range(runs)])


# What the lesson draws and prints


def show_same_text(accept: Piece, k: int = 4) -> bool:
    """Print a text of the small writer's best tokens, and whether drafts leave it as it is."""
    model, n = small_writer.load(ModernDecoder), fewer(36)
    begin = tokens_of(BEGINNINGS[0])[None]
    best = generate_with_cache(model, begin, lambda scores: scores.argmax(dim=1), n)[0]
    new, calls = write(model, accept, BEGINNINGS[0], n, k, 0, torch.Generator().manual_seed(0))
    print(textwrap.fill(BEGINNINGS[0] + bpe_decode(new.tolist(), merges()), 96))
    print(f"the same tokens: {torch.equal(new, best)}; {n} tokens in {calls} calls of the model")
    return torch.equal(new, best)


def draw_frequencies(accept: Piece, runs: int = 1000) -> dict[str, float]:
    """Draw how often the first two tokens are drawn with drafts, beside their exact probabilities.

    The wrong rule draws from p itself after a rejection. Printed is the total variation.
    returns  {rule: total variation}
    """
    runs, model = fewer(runs, 20), small_writer.load(ModernDecoder)
    classes = Classes(pairs(model, tokens_of(PROMPT)), runs)
    shown = classes.pairs[:SHOWN].tolist()
    ax, found = plots.panels(width=7.2, height=3.0), {}
    ax.plot(classes.p[:SHOWN], "_", color=plots.BLACK, markersize=16, label="exact")
    rules = {"your rule": accept, "wrong: from p after a rejection": drawn_from_p(accept)}
    for (name, rule), mark in zip(rules.items(), seeds.MARKERS, strict=False):
        with one_thread():
            shares = classes.shares(drawn_pairs(model, rule, 0, runs))
        ax.plot(shares[: len(shown)], mark, label=name, alpha=0.8)
        found[name] = float(classes.far(shares))
        print(f"{name:32} total variation {found[name]:.3f}")
    print(f"{'plain sampling, 95 of 100 times':32} at most {classes.by_chance():.3f}")
    texts = [bpe_decode([*divmod(pair, classes.width)], merges()) for pair in shown]
    ax.set_xticks(range(len(texts)), [text.replace(" ", "␣") for text in texts], rotation=60)
    ax.set(title=f"the first two tokens after “{PROMPT}”, {runs} runs", ylabel="frequency")
    plots.legend(ax, fontsize=8)
    return found


def draw_tokens_per_call() -> float:
    """Draw tokens for each call of the model against the length of a draft.

    returns  those of the small writer at temperature 1 with the best length, the median
    """
    left, right = plots.panels(1, 2, width=3.6, height=2.8)
    counted, copied, best = read(LESSON, "drafts from counts"), read(LESSON, "copied drafts"), 0.0
    for number, temperature in enumerate((0, 1)):
        middle = []
        for k in LENGTHS:
            rows = seeds.where(counted, k=k, temperature=temperature)
            found = [row["tokens"] / row["calls"] for row in rows]
            left.plot([k] * len(found), found, ".", color=(plots.BLUE, plots.VERMILION)[number])
            middle.append(statistics.median(found))
        _line(left, middle, f"temperature {temperature}", number)
        best = max(middle)
    for number, answer in enumerate(ASKED):
        rows = seeds.where(copied, answer=answer)
        name = f"the answer {answer}"
        _line(right, [row["tokens"] / row["calls"] for row in rows], name, number)
        print(f"{answer}: the same tokens at every length: {all(row['same'] for row in rows)}")
        print(textwrap.indent(textwrap.fill(rows[0]["text"], 90), "    "))
    for ax, title in ((left, "small writer, counts"), (right, "SmolLM2, copies")):
        ax.set(title=title, xlabel="drafted tokens", ylabel="tokens per call")
        ax.set_xticks(LENGTHS)
        plots.legend(ax, fontsize=8)
    return best


def _line(ax: Any, values: list[float], name: str, number: int) -> None:
    """Draw and print tokens for each call at every length of a draft."""
    ax.plot(LENGTHS, values, seeds.MARKERS[number] + "-", label=name)
    print(f"{name:36}" + "  ".join(f"{value:.2f}" for value in values))
