"""Lesson 21, long texts: what the first token is for, a cache that is cut, and a stretched base.

Texts are parts of Persuasion, which the small writer has not read.
"""

import functools
import random
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attention.experiments.language_models import tokens_of
from attention.experiments.modern_decoder import by_place, causal_weights
from attention.experiments.recorded import read
from attention.modern_decoder import ModernDecoder
from attention.provided.data import novels
from attention.provided.figures import plots, seeds
from attention.provided.models.decoders import small_writer, smollm2
from attention.provided.training_steps import fewer, one_thread
from attention.tokens_and_positions import bpe_encode

Piece = Callable[..., Any]
Past = list[Any]  # keys and values of each layer

LESSON, SEEDS = "answers", (0, 1, 2)
SMALL, PUBLISHED = "small writer", "SmolLM2"
LOOKED_AT, EARLY = 256, 16  # tokens of a text whose weights are taken; queries before are left out
FIRST = {  # what a text begins with: its own first token, or another one in its place
    SMALL: ("its own", " the", "."),
    PUBLISHED: ("its own", " the", ".", smollm2.BEGIN),
}
READ, CHUNK, BLOCK = 1536, 16, 64  # tokens of a text, of a call, and of a mean that is drawn
POSITIONS = {SMALL: 128, PUBLISHED: 256}  # that stay when a cache is cut
KEPT = {  # how many of them at the beginning; None: nothing is cut
    "all": None,
    "the last": 0,
    "1 first, the last": 1,
    "4 first, the last": 4,
    "4 others, the last": 4,
}
D_HEAD, BASE = 32, 10_000.0  # of the small writer
CHARACTERS, BRIEFLY = 150_000, 30_000  # of the text for the bases: recorded, and in the notebook


@functools.cache
def reader(model: str) -> tuple[Any, Callable[[str], list[int]]]:
    """A model by its name, and the function that cuts a text into ids."""
    if model == SMALL:
        return small_writer.load(ModernDecoder), lambda text: tokens_of(text).tolist()
    decoder, tokens = smollm2.opened(ModernDecoder, bpe_encode)
    return decoder, tokens.encode


def text_of(seed: int) -> str:
    """A part of Persuasion, long enough for READ tokens, from the beginning of a paragraph."""
    paragraphs = novels.split()[2].split("\n")
    return "\n".join(paragraphs[200 * seed :])[: 8 * READ]


# Where the weight goes


@torch.no_grad()
def first_token(model: str, first: str, seed: int) -> dict[str, Any]:
    """By layer, the median over heads and queries of the weight on the first token, and on others.

    "share" is the first token's, "other" the largest median of those of the next 15, and "even"
    what equal weights would give it.
    """
    decoder, encode = reader(model)
    ids = encode(text_of(seed))[:LOOKED_AT]
    ids = ids if first == "its own" else [*encode(first)[:1], *ids[1:]]
    layers = weights_of(decoder, torch.tensor([ids]))
    on = [weights[0, :, EARLY:, :EARLY].flatten(0, 1).median(dim=0).values for weights in layers]
    even = 1 / torch.arange(EARLY + 1.0, LOOKED_AT + 1)
    return {
        "share": [round(float(one[0]), 4) for one in on],
        "other": [round(float(one[1:].max()), 4) for one in on],
        "even": round(float(even.median()), 4),
    }


def weights_of(model: Any, ids: Tensor) -> list[Tensor]:
    """The attention weights (B, H, T, T) of each layer of a ModernDecoder."""
    found = list[Tensor]()
    hooks = [
        layer.attention.register_forward_pre_hook(
            lambda attention, given: found.append(causal_weights(attention, given[0]))
        )
        for layer in model.layers
    ]
    model(ids)
    for hook in hooks:
        hook.remove()
    return found


# A text that is read piece by piece, with a cache that is cut


@torch.no_grad()
def losses(model: Any, ids: Tensor, cut: Callable[[Past], Past]) -> Tensor:
    """Nats for each token of a text (T + 1,) but its first: (T,). Each call's cache is cut."""
    past, found = None, []
    for read_now, after in zip(ids[:-1].split(CHUNK), ids[1:].split(CHUNK), strict=True):
        scores, past = model(read_now[None], past)
        found.append(-torch.log_softmax(scores[0], dim=1).gather(1, after[:, None])[:, 0])
        past = cut(past)
    return torch.cat(found)


def cutter(kept: str, positions: int, seed: int, keep_sinks: Piece) -> Callable[[Past], Past]:
    """How a cache is cut to so many positions, by its name in KEPT."""
    n_first = KEPT[kept]
    if n_first is None:
        return lambda past: past
    window, chosen = positions - n_first, list[int]()

    def cut(past: Past) -> Past:
        length = past[0][0].shape[2]
        if kept == "4 others, the last" and length > positions and not chosen:
            # Once: other early positions take the place of the first ones, and stay there.
            chosen.extend(random.Random(seed).sample(range(n_first, length - window), n_first))
            chosen.extend(range(length - window, length))
            return [tuple(each[:, :, chosen] for each in pair) for pair in past]
        shortened: Past = keep_sinks(past, n_first, window)
        return shortened

    return cut


def stream(model: str, kept: str, seed: int, keep_sinks: Piece) -> dict[str, Any]:
    """Nats per token of a text: means of BLOCK tokens, and of all after the first cut."""
    decoder, encode = reader(model)
    ids = torch.tensor(encode(text_of(seed))[: READ + 1])
    found = losses(decoder, ids, cutter(kept, POSITIONS[model], seed, keep_sinks))
    return {
        "blocks": [round(float(one.mean()), 3) for one in found.split(BLOCK)],
        "cut": round(float(found[POSITIONS[model] + CHUNK :].mean()), 3),
    }


# Another base


SETTINGS = {  # by which factor the base is stretched, and the window
    "as in training": (1, None),
    "stretched by 4": (4, None),
    "stretched by 16": (16, None),
    "stretched by 1/4": (1 / 4, None),
    "as in training, window": (1, POSITIONS[SMALL]),
    "stretched by 4, window": (4, POSITIONS[SMALL]),
}


def places(base: float, window: int | None, characters: int = CHARACTERS) -> dict[str, float]:
    """Bits per token of the small writer by place in a text, with another base or a window."""
    model = small_writer.load(ModernDecoder)
    for layer in model.layers:
        layer.attention.base, layer.attention.window = base, window
    return by_place(small_writer.Scores(model), novels.split()[2][:characters])


def with_a_base(name: str, stretched_base: Piece) -> dict[str, float]:
    """Bits per token by place for one of the SETTINGS, and the base."""
    factor, window = SETTINGS[name]
    base = stretched_base(BASE, D_HEAD, factor)
    found = places(base, window)
    return {place: round(bits, 3) for place, bits in found.items()} | {"base": round(base)}


# What the lesson draws and prints


def draw_first_token() -> float:
    """Draw the share of the weight that the first token gets, by layer, three texts each.

    Grey: what even weights would give it. Dotted: the most that one of the next 15 tokens gets.
    returns  the median over texts, then over the upper half of the layers, for SmolLM2
    """
    rows, found = read(LESSON, "first token"), {}
    axes = plots.panels(1, 2, width=4.4, height=2.8)
    for ax, model in zip(axes, (PUBLISHED, SMALL), strict=True):
        for number, first in enumerate(FIRST[model]):
            some = seeds.where(rows, model=model, first=first)
            runs = [row["share"] for row in some]
            middle = [statistics.median(column) for column in zip(*runs, strict=True)]
            x = range(1, len(middle) + 1)
            name = f"begins with {first.strip()}"
            (line,) = ax.plot(x, middle, seeds.MARKERS[number] + "-", label=name, markersize=4)
            other = [max(column) for column in zip(*(row["other"] for row in some), strict=True)]
            ax.plot(x, other, ":", color=line.get_color(), linewidth=1)
            upper = middle[len(middle) // 2 :]
            told = f"upper half of the layers: {min(upper):.3f} to {max(upper):.3f}"
            print(f"{model:13} {name:26} {told}")
            found[model, first] = statistics.median(upper)
        ax.axhline(rows[0]["even"], color=plots.GREY, linestyle="--", linewidth=1)
        ax.set(title=model, xlabel="layer", ylim=(-0.04, 1.04), ylabel="weight on the first token")
        ax.set_xticks(x if len(x) < 5 else x[4::5])
    plots.legend(axes[0], fontsize=8)
    return found[PUBLISHED, "its own"]


def draw_streams() -> dict[str, float]:
    """Draw nats per token along a text, by what the cache keeps: medians of three texts.

    returns  {what is kept: the median of the nats per token after the first cut}, for SmolLM2
    """
    rows, found = read(LESSON, "streams"), {}
    axes = plots.panels(1, 2, width=4.6, height=3.0)
    for ax, model in zip(axes, (PUBLISHED, SMALL), strict=True):
        for kept in KEPT:
            some = seeds.where(rows, model=model, kept=kept)
            middle = [
                statistics.median(one) for one in zip(*(r["blocks"] for r in some), strict=True)
            ]
            ax.plot(range(BLOCK, READ + 1, BLOCK), middle, label=kept)
            means = [row["cut"] for row in some]
            print(f"{model:13} {kept:20}" + "  ".join(f"{value:.2f}" for value in means))
            found[model, kept] = statistics.median(means)
        ax.axvline(POSITIONS[model], color=plots.GREY, linestyle="--", linewidth=1)
        ax.set(title=model, xlabel="tokens read", ylabel="nats per token")
    plots.legend(axes[1], fontsize=8, loc="upper left", bbox_to_anchor=(1, 1), title="in the cache")
    return {kept: found[PUBLISHED, kept] for kept in KEPT}


def show_stream(keep_sinks: Piece) -> dict[str, float]:
    """Print nats per token of the small writer on a long text, with your way to cut its cache.

    returns  {what is kept: nats per token after the first cut}
    """
    model, length = small_writer.load(ModernDecoder), fewer(READ, 200)
    ids, found = tokens_of(text_of(0))[: length + 1], {}
    for kept in KEPT:
        with one_thread():
            each = losses(model, ids, cutter(kept, POSITIONS[SMALL], 0, keep_sinks))
        found[kept] = float(each[POSITIONS[SMALL] + CHUNK :].mean())
        print(f"{kept:20} {found[kept]:.2f} nats per token")
    return found


def draw_stretched(stretched_base: Piece) -> dict[str, float]:
    """Draw bits per token by place in texts four times as long as in training, by base and window.

    returns  {setting: bits per token at the last places}
    """
    ax, found = plots.panels(width=6.0, height=3.0), {}
    for name, (factor, window) in SETTINGS.items():
        base = stretched_base(BASE, D_HEAD, factor)
        with one_thread():
            bits = places(base, window, fewer(BRIEFLY, 4000))
        style = "--" if window else "-"
        ax.plot(list(bits), [*bits.values()], style, label=name)
        print(f"{name:26} base {base:8.0f}   " + "  ".join(f"{one:.2f}" for one in bits.values()))
        found[name] = bits["257 to 512"]
    ax.set(xlabel="place in the text", ylabel="bits per token")
    plots.legend(ax, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return found
