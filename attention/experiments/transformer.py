"""Lesson 10: positions of several kinds or none, tied tables, heads, and the order of the words."""

import functools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from attention.experiments import recorded
from attention.experiments.recorded import Experiment, seeded
from attention.provided.data.numbers import Batch, Corpus, Pair, in_words, numbers
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.figures import plots, seeds
from attention.provided.measuring.summary import summary
from attention.provided.models import translators
from attention.provided.models.attention_weights import watch_attention
from attention.provided.models.key_value_cache import CachedDecoder
from attention.provided.training_steps import evaluation
from attention.sequence_to_sequence import masked_cross_entropy, shift_right
from attention.tokens_and_positions import LearnedPositions, rotary, sinusoidal_positions

ANSWERS = "transformer"  # `positioned` says how Translator embeds tokens

Model = Callable[..., Any]  # a class like Transformer, or what makes one

SEEDS = (0, 1, 2)
STEPS = translators.STEPS
DIGITS = (2, 3, 4, 5, 6)  # of one digit hardly any number is held out
SHORT = 30  # steps of the point that a test runs again
KINDS = ("sinusoidal", "learned", "rotary", "none")  # of positions
MOST = 100  # positions that learned tables have, and tokens of a translation


def positioned(base: Any, source: str = "sinusoidal", target: str = "sinusoidal") -> Any:
    """Return a subclass of a Transformer's class with other positions on each side.

    base            the class, whose `embed` is replaced
    source, target  "sinusoidal" or "learned": added to the embedded tokens; "rotary": turns the
                    queries and keys of all self-attentions of that side; "none"

    Raises ValueError for another kind. All else is that of ``base``, its random start included.
    """
    for kind in (source, target):
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")

    class Positioned(base):
        def __init__(self, *sizes: Any, **options: Any):
            super().__init__(*sizes, **options)
            d_model = self.source_embedding.weight.shape[1]
            self.positions = nn.ModuleDict()
            for side, kind in (("source", source), ("target", target)):
                stack = self.encoder if side == "source" else self.decoder
                if kind == "learned":
                    self.positions[side] = LearnedPositions(MOST, d_model)
                elif kind == "rotary":
                    turn_attentions(stack)

        def embed(self, tokens: Tensor, embedding: nn.Embedding) -> Tensor:
            side = "source" if embedding is self.source_embedding else "target"
            x = embedding(tokens) * embedding.weight.shape[1] ** 0.5  # (B, T, d_model)
            if side in self.positions:
                x = self.positions[side](x)
            elif (source if side == "source" else target) == "sinusoidal":
                x = x + sinusoidal_positions(_positions(x), x.shape[2]).to(x.dtype)
            return self.dropout(x)

    return Positioned


def turn_attentions(stack: nn.Module) -> None:
    """Let the queries and keys of every self-attention in a stack of layers be turned."""
    for name, attention in stack.named_modules():
        if name.split(".")[-1] == "attention":
            for projection in (attention.W_q, attention.W_k):
                projection.register_forward_hook(_turning(attention.d_head))


def _turning(d_head: int) -> Any:
    def turn(_: nn.Module, __: Any, x: Tensor) -> Tensor:
        heads = x.unflatten(-1, (-1, d_head)).transpose(1, 2)  # (B, H, T, d_head)
        turned: Tensor = rotary(heads, _positions(x)).transpose(1, 2).flatten(2)
        return turned  # (B, T, d_model)

    return turn


def _positions(x: Tensor) -> Tensor:
    """The positions 0.0, 1.0, … of (B, T, d_model), in float32 or wider."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return torch.arange(x.shape[1], dtype=wide, device=x.device)


def same_words(number: int, german: str) -> bool:
    """Say whether a German text is a number, and its English words those of ``number`` permuted.

    >>> same_words(896, "sechshundertachtundneunzig"), same_words(896, "achthundert")
    (True, False)
    """
    written = number_of(german)
    if written is None:
        return False
    return sorted(in_words(written, "en").split()) == sorted(in_words(number, "en").split())


def number_of(german: str) -> int | None:
    """Read a number below a million in German words; None if the text is none.

    >>> number_of("zweihunderteinunddreißig"), number_of("zweiund")
    (231, None)
    """
    head, thousands, rest = german.rpartition("tausend")
    below, above = _groups()
    if not thousands:
        return below.get(german)
    if head + thousands not in above or (rest and not below.get(rest)):
        return None
    return above[head + thousands] + (below[rest] if rest else 0)


@functools.cache
def _groups() -> tuple[dict[str, int], dict[str, int]]:
    """German words of all numbers below a thousand, and of all whole thousands."""
    below = {in_words(n, "de"): n for n in range(1000)}
    return below, {in_words(1000 * n, "de"): 1000 * n for n in range(1, 1000)}


def train_positions(
    source: str, target: str, seed: int, Transformer: Model, steps: int = STEPS
) -> dict[str, Any]:
    """Train a Transformer with these positions; also how its errors look."""
    kind = positioned(Transformer, source, target)
    result, wrong = _train(kind, translators.SMALL, seed, steps)
    alike = [(number, text) for number, text in wrong if same_words(number, text)]
    result |= {"wrong": len(wrong), "same words": len(alike)}
    result["some"] = [[number, text] for number, text in alike if 100 <= number < 1000][:3]
    return result


def train_depth(n_layers: int, seed: int, Transformer: Model, steps: int = STEPS) -> dict[str, Any]:
    """Train a Transformer with so many layers in each stack."""
    return _train(Transformer, translators.SMALL | {"n_layers": n_layers}, seed, steps)[0]


def train_tables(
    generator: str, start: float, seed: int, Transformer: Model, steps: int = STEPS
) -> dict[str, Any]:
    """Train with a generator whose table is "its own", or "tied" to the target embedding.

    start  the rows of both tables begin so many times as long as three tables of their own do

    Also how often the untrained model says the letter that it has just read.
    """
    untrained, corpus = _with_tables(Transformer, generator, start, seed)
    some = corpus.batch(corpus.train[-64:])
    read, real = shift_right(some.target), some.target != PAD
    with torch.no_grad():
        says = untrained.eval()(some.source, some.target).argmax(dim=2)
    parrot = round((says == read)[real].float().mean().item(), 2)
    result, _ = _train(
        lambda *_, **__: _with_tables(Transformer, generator, start, seed)[0], {}, seed, steps
    )
    return {"parrot": parrot} | result


def _with_tables(Transformer: Model, generator: str, start: float, seed: int) -> tuple[Any, Corpus]:
    """A Transformer of which only the two target tables differ, and its corpus."""
    model, corpus = _untrained(Transformer, seed)
    begins = model.state_dict()
    for name in ("target_embedding.weight", "generator.weight"):
        begins[name] = start * begins[name]
    if generator == "tied":
        model, _ = _untrained(Transformer, seed, tied="target")
        begins["generator.weight"] = begins["target_embedding.weight"]
    model.load_state_dict(begins)
    return model, corpus


def _untrained(Transformer: Model, seed: int, tied: str = "none") -> tuple[Any, Corpus]:
    """A Transformer for the numbers, and their corpus."""
    torch.manual_seed(seed)
    corpus = numbers()
    vocabularies = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    return Transformer(*vocabularies, **translators.SMALL | {"tied": tied}), corpus


def _train(
    kind: Model, sizes: dict[str, Any], seed: int, steps: int
) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """Train, then translate numbers of all lengths; the result, and what went wrong."""
    torch.manual_seed(seed)
    corpus = numbers()
    model = kind(len(corpus.source_vocabulary), len(corpus.target_vocabulary), **sizes)
    batches = corpus.batches(translators.BATCH, steps, seed)
    losses = translators.train(model, batches, steps, masked_cross_entropy)
    by_digits: dict[int, float] = {}
    wrong: list[tuple[int, str]] = []
    for digits, pairs in corpus.test_by_digits(100 if steps == STEPS else 10).items():
        written = translators.translations(model, corpus, pairs)
        missed = [
            (pair[0], text) for pair, text in zip(pairs, written, strict=True) if text != pair[2]
        ]
        by_digits[digits] = round(1 - len(missed) / len(pairs), 3)
        wrong += missed
    result = {
        "by digits": [by_digits[digits] for digits in DIGITS],
        "losses": [round(sum(losses[i : i + 10]) / 10, 4) for i in range(0, steps, 10)],
    }
    return result, wrong


def _three_numbers(corpus: Corpus) -> Batch:
    """A batch of the number with the longest German text, and of two others."""
    longest = max(corpus.train, key=lambda pair: len(pair[2]))
    return corpus.batch([longest, corpus.train[5], corpus.train[500]])


def _pair_of(number: int, corpus: Corpus) -> Pair:
    """A number of the corpus, its English words and its German word."""
    return next(pair for pair in corpus.train + corpus.test if pair[0] == number)


def steps_in_a_row() -> None:
    """Print how many steps wait for each other to train on one batch, recurrent or Transformer."""
    corpus = numbers()
    batch = _three_numbers(corpus)
    _, english, german = max(corpus.train, key=lambda pair: len(pair[2]))
    T_k, T_q = batch.source.shape[1], batch.target.shape[1]
    print(f"{english}\n{german}\nwords, with EOS: {T_k}   letters, with EOS: {T_q}")
    print(f"steps one after the other, recurrent: {T_k} + {T_q} = {T_k + T_q}")
    print("layers one after the other, a Transformer with N = 2: 2 + 2 = 4")


def masks_of_a_batch(masks_from_tokens: Callable[..., tuple[Tensor, Tensor]]) -> None:
    """Draw both masks of the number 12 in a batch beside 21: dark is what may be looked at."""
    corpus = numbers()
    batch = corpus.batch([_pair_of(12, corpus), _pair_of(21, corpus)])
    read = shift_right(batch.target)
    source_mask, target_mask = masks_from_tokens(batch.source, read)
    words = [corpus.source_vocabulary.tokens[i] for i in batch.source[0].tolist()]
    names = [corpus.target_vocabulary.tokens[i] for i in read[0].tolist()]
    words, names = ([_name(token) for token in tokens] for tokens in (words, names))
    axes = plots.panels(columns=2, width=3.6, height=3.6, share=False)
    for ax, mask, keys, title in zip(
        axes,
        (source_mask[0].expand(len(names), -1), target_mask[0]),
        (words, names),
        ("source_mask", "target_mask"),
        strict=True,
    ):
        plots.heatmap(mask.float(), ax, title, names, keys, colorbar=False)
        ax.tick_params(axis="both", labelsize=8)
        ax.tick_params(axis="x", rotation=90)
        ax.set_aspect("equal")
        for line in range(len(names)):
            ax.axhline(line - 0.5, color="white", linewidth=1)
        for line in range(len(keys)):
            ax.axvline(line - 0.5, color="white", linewidth=1)


def _name(token: str) -> str:
    """A token as the text names it: "<pad>" is PAD."""
    return token.strip("<>").upper() if token.startswith("<") else token


def shapes(Transformer: Model) -> None:
    """Print the shape of what leaves each module of the small model, and its parameters."""
    model, corpus = _untrained(Transformer, translators.SEED)
    batch = _three_numbers(corpus)
    (B, T_k), T_q = batch.source.shape, batch.target.shape[1]
    print({name: value for name, value in translators.SMALL.items() if name != "fused"})
    print(f"batch of {B}: {T_k} words, {T_q} letters\n")
    print(summary(model, batch.source, batch.target))


def three_tests(Transformer: Model) -> None:
    """Try three things: no look into the future, no effect of padding, one batch by heart."""
    model, corpus = _untrained(Transformer, translators.SEED)
    batch = _three_numbers(corpus)
    other = batch.target.clone()
    other[:, 5:] = other[:, 5:].roll(1, dims=0)  # other letters from position 5 on
    wider = torch.cat([batch.source, batch.source.new_full((len(other), 4), PAD)], dim=1)
    with evaluation(model):
        before, after = model(batch.source, batch.target), model(batch.source, other)
        padded = model(wider, batch.target)
    pairs = corpus.train[-8:]
    losses = translators.train(model, 60 * [corpus.batch(pairs)], 60, masked_cross_entropy)
    written = translators.translations(model, corpus, pairs)
    right = sum(text == pair[2] for text, pair in zip(written, pairs, strict=True))
    close = functools.partial(torch.allclose, atol=1e-5)
    first, later = (before[:, :6], after[:, :6]), (before[:, 6:], after[:, 6:])
    for text, passed in (
        ("other letters from position 5 on: scores up to it unchanged", close(*first)),
        ("                                  scores after it changed  ", not close(*later)),
        ("4 more PAD after the source:      scores unchanged         ", close(before, padded)),
    ):
        print(f"{text}  {'yes' if passed else 'no'}")
    print(f"one batch of 8: loss {losses[0]:.2f} to {losses[-1]:.3f} after 60 steps; {right} right")


def weights_for(number: int, model: Any) -> tuple[dict[str, Tensor], list[str], list[str]]:
    """Watch every attention while the model reads a number and its translation; print the shapes.

    returns  {attention: weights (1, H, T_q, T_k)}; the words and the letters, with EOS
    """
    corpus = numbers()
    _, english, german = pair = _pair_of(number, corpus)
    batch = corpus.batch([pair])
    with watch_attention(model) as weights, torch.no_grad():
        model(batch.source, batch.target)
    for name, table in weights.items():
        print(f"{name:<36} (B, H, T_q, T_k) = {tuple(table.shape)}")
    return weights, [*english.split(), "EOS"], [*german, "EOS"]


def _e_of_ein(letters: list[str]) -> int:
    return "".join(letters).index("tein") + 1


def every_head(weights: dict[str, Tensor], words: list[str], letters: list[str]) -> None:
    """Draw the cross-attention of both layers, head by head; print the row of the “e” of ein.

    The arguments are what `weights_for` returns, for 931.
    """
    axes = plots.panels(rows=2, columns=4, width=2.5, height=4.6)
    e_of_ein = _e_of_ein(letters)
    print("the “e” of ein, weight on:", *words)
    for layer, row in enumerate(axes):
        heads = weights[f"decoder.layers.{layer}.cross_attention"][0]  # (H, T_q, T_k)
        for head, ax in enumerate(row):
            title = f"layer {layer}, head {head}"
            plots.heatmap(heads[head], ax, title, letters, words, colorbar=False)
            ax.set(xlabel="", ylabel="")
            ax.tick_params(axis="x", rotation=60)
            plots.mark(ax, (e_of_ein, e_of_ein), (0, len(words) - 1))
            print(f"{title}:", *(f"{share:.2f}" for share in heads[head, e_of_ein].tolist()))
    mean = heads[:, e_of_ein].mean(dim=0).tolist()
    print("layer 1, mean:  ", *(f"{share:.2f}" for share in mean))


def without_the_shift(Transformer: Model, Peeking: Model) -> None:
    """Train both classes for 25 steps; print the losses of three seeds, and one translation.

    Data, steps and seeds are kept.
    """
    corpus = numbers()
    few, shown = corpus.test_by_digits(1)[3], list[str]()
    for kind, label in ((Transformer, "with the shift"), (Peeking, "without the shift")):
        ends = []
        for seed in SEEDS:
            model, _ = _untrained(kind, seed)
            batches = corpus.batches(16, 25, seed)
            ends.append(translators.train(model, batches, 25, masked_cross_entropy)[-1])
        shown.append(
            f"{label:<18} loss after 25 steps, three seeds: "
            + " ".join(f"{end:.3f}" for end in ends)
        )
    written = translators.translations(model, corpus, few)[0]
    print(*shown, sep="\n")  # below the bars of all trainings
    print("wanted:", few[0][2], "  written:", written[:40])


def three_uses(weights: dict[str, Tensor], words: list[str], letters: list[str]) -> list[Axes]:
    """Draw head 3 of layer 1 in each of the three attentions, and frame the “e” of ein.

    The arguments are what `weights_for` returns, for 931.
    """
    reads = ["BOS", *letters[:-1]]
    axes: list[Any] = [*plots.panels(columns=3, width=3.6, height=5.4, share=False)]
    drawn = (
        ("encoder.layers.1.attention", "encoder", words, words),
        ("decoder.layers.1.attention", "decoder, causal", reads, reads),
        ("decoder.layers.1.cross_attention", "cross-attention", letters, words),
    )
    for ax, (name, title, queries, keys) in zip(axes, drawn, strict=True):
        plots.heatmap(weights[name][0, 3], ax, f"{title}\n", queries, keys, colorbar=ax is axes[-1])
        ax.set(xlabel="", ylabel="")
        ax.tick_params(axis="x", rotation=60)
    e_of_ein = _e_of_ein(letters)
    plots.mark(axes[2], (e_of_ein, e_of_ein), (0, len(words) - 1))
    axes[1].get_gridspec().set_width_ratios((1, 2, 1))
    axes[1].set(xticks=[], xlabel="the same letters")
    return axes


def kinds_of_positions() -> dict[str, list[float]]:
    """Draw how many numbers of each length are right, by kind of positions; print how many are.

    returns  {kind: share of all held-out numbers that are right, one for each seed}
    """
    rows = [row for row in recorded.read("transformer", "positions") if "steps" not in row]
    held_out = sum(map(len, numbers().test_by_digits(100).values()))
    ax, right = plots.panels(width=6.0, height=3.2), dict[str, list[float]]()
    for number, kind in enumerate(KINDS):
        of = seeds.where(rows, source=kind)
        right[kind] = [1 - row["wrong"] / held_out for row in of]
        mean = torch.tensor([row["by digits"] for row in of]).mean(dim=0)
        (line,) = ax.plot(DIGITS, mean, label="none on the source" if kind == "none" else kind)
        for row in of:
            x = [digit + 0.05 * (number - 1.5) for digit in DIGITS]
            ax.plot(x, row["by digits"], "o", color=line.get_color(), markersize=4)
        print(f"{kind:<11} right: {'  '.join(f'{share:.3f}' for share in right[kind])}")
    ax.set(xlabel="digits of the number", ylabel="share without error")
    ax.set(ylim=(-0.04, 1.06), xticks=DIGITS)
    plots.legend(ax, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    without = seeds.where(rows, source="none")
    for row in without:
        print(f"of {row['wrong']} errors, the same words in another order: {row['same words']}")
    for some, text in without[0]["some"]:
        print(f"  {some} → {text}")
    return right


def tied_tables() -> Axes:
    """Draw the loss with tied tables and with tables apart, begun long and short; print the rest.

    "long": rows as long as those of three tables begin; "short": a tenth of that.
    """
    rows = [row for row in recorded.read("transformer", "tied tables") if "steps" not in row]
    ax = plots.panels(width=5.6, height=3.2)
    print("generator, rows   repeats what it read   right, with 2 to 6 digits")
    for row in rows:
        short, tied = row["start"] < 1, row["generator"] == "tied"
        label = f"{row['generator']}, {'short' if short else 'long'}"
        colour, style = plots.VERMILION if tied else plots.GREY, "--" if short else "-"
        name = label if row["seed"] == 0 else None
        ax.plot(range(10, 301, 10), row["losses"], style, color=colour, label=name)
        shares = "  ".join(f"{share:.2f}" for share in row["by digits"])
        print(f"{label:<16}  {row['parrot']:20.2f}   {shares}")
    ax.set(yscale="log", xlabel="step", ylabel="loss, nats per letter")
    plots.legend(ax, fontsize=9)
    return ax


def without_heads(seed: int, Transformer: Model) -> dict[str, float]:
    """Of the trained model: the share right without one head of the cross-attention, or a layer."""
    model, corpus, pairs = _trained(Transformer, seed)
    result = {"whole": _share(model, corpus, pairs)}
    for layer, part in enumerate(model.decoder.layers):
        heads = range(part.cross_attention.n_heads)
        left_out = {f"head {head}": [head] for head in heads} | {"all heads": [*heads]}
        for what, some in left_out.items():
            with _silenced(part.cross_attention, some):
                share = _share(model, corpus, pairs)
            result[f"without layer {layer}, {what}"] = share
    return result


@contextmanager
def _silenced(attention: Any, heads: Iterable[int]) -> Iterator[None]:
    """Let nothing of these heads reach the output: their columns of W_o are 0."""
    weight = attention.W_o.weight
    before = weight.detach().clone()
    with torch.no_grad():
        for head in heads:
            weight[:, head * attention.d_head : (head + 1) * attention.d_head] = 0
    try:
        yield
    finally:
        with torch.no_grad():
            weight.copy_(before)


def reverse_the_source(seed: int, Transformer: Model) -> dict[str, int]:
    """Of the trained model: the share right when the English words come in reverse order."""
    model, corpus, pairs = _trained(Transformer, seed)
    turned = [(number, " ".join(source.split()[::-1]), german) for number, source, german in pairs]
    written = translators.translations(model, corpus, turned)
    right = sum(text == pair[2] for text, pair in zip(written, pairs, strict=True))
    alike = sum(same_words(pair[0], text) for text, pair in zip(written, pairs, strict=True))
    return {"right": right, "other numbers of the same words": alike - right}


def _trained(Transformer: Model, seed: int) -> tuple[Any, Corpus, list[Pair]]:
    """The model that ships, the corpus, and 100 held-out numbers."""
    model, corpus = _untrained(Transformer, seed)
    translators.load(model, "transformer")
    return model, corpus, random.Random(seed).sample(corpus.test, 100)


def _share(model: Any, corpus: Corpus, pairs: Sequence[Pair]) -> float:
    """The share of pairs whose greedy translation is right; with a cache it takes seconds."""
    source, written = corpus.batch(pairs).source, list[Tensor]()
    with evaluation(model):
        decoder, tokens = CachedDecoder(model, source), source.new_full((len(source),), BOS)
        ended = torch.zeros_like(tokens, dtype=torch.bool)
        while len(written) < MOST and not ended.all():
            tokens = decoder.step(tokens).argmax(dim=1)
            written.append(tokens)
            ended |= tokens == EOS
    texts = translators.texts_of(corpus, torch.stack(written, dim=1))
    return translators.share_right(texts, [german for _, _, german in pairs])


PLACES = [
    ("sinusoidal", "sinusoidal"),
    ("none", "sinusoidal"),
    ("learned", "learned"),
    ("rotary", "rotary"),
]
GENERATORS = ("its own", "tied")
SHORT_POINT = {"source": "none", "target": "sinusoidal", "seed": 0, "steps": SHORT}
STARTS = (1.0, 0.1)
SHORT_TIED = {"generator": "tied", "start": 1.0, "seed": 0, "steps": SHORT}

EXPERIMENTS = {
    "positions": Experiment(
        points=[point for one, other in PLACES for point in seeded(SEEDS, source=one, target=other)]
        + [SHORT_POINT],
        run=train_positions,
        again=SHORT_POINT,
    ),
    "one layer": Experiment(
        points=[*seeded(SEEDS, n_layers=1), {"n_layers": 1, "seed": 0, "steps": SHORT}],
        run=train_depth,
        again={"n_layers": 1, "seed": 0, "steps": SHORT},
    ),
    "tied tables": Experiment(
        points=[
            point
            for kind in GENERATORS
            for start in STARTS
            for point in seeded(SEEDS, generator=kind, start=start)
        ]
        + [SHORT_TIED],
        run=train_tables,
        again=SHORT_TIED,
    ),
    "heads switched off": Experiment(
        points=seeded(SEEDS),
        run=without_heads,
        again={"seed": 0},
    ),
    "words reversed": Experiment(
        points=seeded(SEEDS),
        run=reverse_the_source,
        again={"seed": 0},
    ),
}
