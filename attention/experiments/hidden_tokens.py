"""Experiments of Brunner et al. (2020), repeated on the published model of lesson 19.

They are recorded with the others of `published_model`.
"""

from collections import defaultdict
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from attention.experiments.recorded import read
from attention.interpretability import null_space_dimension, token_identifiability
from attention.provided.data import sentences
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.measuring.other_weights import effective_attention
from attention.provided.models.attention_weights import look_at
from attention.provided.models.bert.files import PUBLISHED, UNTRAINED, Piece, build

NEAR = ("cosine", "distance", "probe")


@torch.inference_mode()
def identifiability(
    model: str, seed: int, PublishedEncoder: Piece, rename_weights: Piece, wordpiece: Piece
) -> dict[str, Any]:
    """For which share of tokens the hidden vector is nearest to its own input, after each layer.

    A probe is a linear map from hidden vectors to inputs, fitted by ridge regression on other
    sentences; the nearest input is then looked for by the cosine.
    """
    bert = build(model, seed, PublishedEncoder, rename_weights, wordpiece)
    ids = sentences.sample_sentences(bert.tokenizer, seed, 100)
    others = sentences.sample_sentences(bert.tokenizer, seed + 100, 800)
    mask, real = ids != PAD, others != PAD
    hidden = bert.model(ids, return_layers=True)
    seen = [bert.model(part, return_layers=True) for part in others.split(100)]
    learned = torch.cat([one.transpose(0, 1) for one in seen]).transpose(0, 1)[:, real]
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(1, len(hidden)):
        probed = hidden[number] @ ridge(learned[number], learned[0])
        for name, x in (
            ("cosine", hidden[number]),
            ("distance", hidden[number]),
            ("probe", probed),
        ):
            own = token_identifiability(x, hidden[0], mask, cosine=name != "distance")
            found[name].append(own[mask].float().mean().item())
    return dict(found)


def ridge(x: Tensor, y: Tensor) -> Tensor:
    """The matrix W, (d, d), with the smallest |x W − y|² + |W|² · λ; λ is 0.001 of x's power."""
    x, y = x.double(), y.double()
    power = x.T @ x
    small = 1e-3 * power.diagonal().mean() * torch.eye(len(power), dtype=power.dtype)
    return torch.linalg.solve(power + small, x.T @ y).float()


LENGTHS = (8, 16, 24, 32, 40, 48, 64)  # of texts, in pieces


@torch.inference_mode()
def effective(
    model: str, seed: int, PublishedEncoder: Piece, rename_weights: Piece, wordpiece: Piece
) -> dict[str, Any]:
    """Raw beside effective attention of all heads, for 20 texts of each of LENGTHS.

    free     dimension of the null space, mean over layers, heads and texts
    share    what part of the squares of the weights lies in it
    likeness correlation of raw and effective weights
    cls      weight on [CLS], raw and effective
    length   how long its values are, as a share of the mean of all
    """
    bert = build(model, seed, PublishedEncoder, rename_weights, wordpiece)
    found: dict[str, list[Any]] = defaultdict(list)
    for T in LENGTHS:
        weights, values = looked(bert.model, sentences.excerpts(bert.tokenizer, seed, 20, T))
        shortest = effective_attention(weights, values)
        rest = (weights - shortest).square().sum() / weights.square().sum()
        found["free"].append(null_space_dimension(values).double().mean().item())
        found["share"].append(rest.item())
        both = torch.stack([weights.flatten(), shortest.flatten()])
        found["likeness"].append(torch.corrcoef(both)[0, 1].item())
        found["cls"].append([weights[..., 0].mean().item(), shortest[..., 0].mean().item()])
        long = values.norm(dim=-1)  # (B, n_layers · H, T)
        found["length"].append((long[..., 0].mean() / long.mean()).item())
    return dict(found)


def looked(model: nn.Module, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (B, n_layers · H, T, T) and values (B, n_layers · H, T, d_head), float64."""
    looks = look_at(model, ids).values()
    weights, values = (torch.cat(parts, dim=1) for parts in zip(*looks, strict=True))
    return weights.double(), values.double()


PROBES = 32  # random directions of a hidden vector


def attribution(
    model: str, seed: int, PublishedEncoder: Piece, rename_weights: Piece, wordpiece: Piece
) -> dict[str, Any]:
    """The own token's share of each hidden vector, after each layer, for 6 texts of 12 pieces.

    own    mean share of the token at the same place, all of them summing to 1
    first  for which share of the places it is the largest
    """
    bert = build(model, seed, PublishedEncoder, rename_weights, wordpiece)
    ids = sentences.excerpts(bert.tokenizer, seed, 6, 12)
    found: dict[str, list[float]] = defaultdict(list)
    for depth in range(1, len(bert.model.encoder.layers) + 1):
        shares = attributed(bert.model.encoder.layers[:depth], bert.model.embeddings(ids), seed)
        found["own"].append(shares.diagonal(dim1=1, dim2=2).mean().item())
        largest = shares.argmax(dim=-1) == torch.arange(shares.shape[1])
        found["first"].append(largest.float().mean().item())
    return dict(found)


def attributed(layers: Any, x: Tensor, seed: int) -> Tensor:
    """What lesson 17's HiddenTokenAttribution gives, estimated: (B, T, d) to (B, T, T).

    The sum of the squares of a derivative, (d, d), is the mean of those along random signs.
    """
    hidden = x = x.detach().requires_grad_()
    for layer in layers:
        hidden = layer(hidden)
    random = torch.Generator().manual_seed(seed)
    rows = []
    for vector in hidden.unbind(dim=1):  # (B, d)
        signs = torch.randint(2, (PROBES, *vector.shape), generator=random) * 2.0 - 1.0
        (along,) = torch.autograd.grad(vector, x, signs, retain_graph=True, is_grads_batched=True)
        rows.append(along.square().sum(dim=-1).mean(dim=0).sqrt())  # (B, T)
    sizes = torch.stack(rows, dim=1)  # (B, T, T)
    return sizes / sizes.sum(dim=-1, keepdim=True)


def recorded(experiment: str, **wanted: Any) -> list[dict[str, Any]]:
    """The recorded points of an experiment with these settings."""
    return [dict(row) for row in seeds.where(read("published_model", experiment), **wanted)]


def _by_layer(experiment: str, key: str, ax: Any, name: str, model: str, colour: str) -> None:
    """Draw one measure after each layer, a line for each sample; print medians and the last."""
    samples = [row[key] for row in recorded(experiment, model=model)]
    for number, sample in enumerate(samples):
        label = None if number else name
        ax.plot(sample, "o-", color=colour, alpha=0.7, markersize=3, label=label)
    middle = " ".join(f"{median(layer):.2f}" for layer in zip(*samples, strict=True))
    last = seeds.span(sample[-1] for sample in samples)
    print(f"{key:10} {name:20} medians {middle}; last {last}")
    ax.set(xlabel="after layer", ylim=(-0.04, 1.04), yticks=[0, 0.5, 1])


def draw_identifiability() -> float:
    """Draw for which share of tokens the nearest input is their own; print the control's, too.

    returns  the share after the last layer of the published model, by distance: the median sample
    """
    ax = plots.panels(width=5.2, height=2.8)
    names = "by cosine", "by distance", "after a linear map"
    colours = plots.BLUE, plots.VERMILION, plots.GREEN
    for key, name, colour in zip(NEAR, names, colours, strict=True):
        _by_layer("identifiability", key, ax, name, PUBLISHED, colour)
    control = [row[key] for row in recorded("identifiability", model=UNTRAINED) for key in NEAR]
    print(f"untrained, all three, after every layer: {seeds.span(sum(control, []))}")
    ax.set(title="share of tokens nearest to their own input")
    plots.legend(ax, fontsize=9, loc="lower left")
    rows = recorded("identifiability", model=PUBLISHED)
    return float(median(row["distance"][-1] for row in rows))


def draw_effective() -> None:
    """Draw how much attention lies in the null space, and the weight on [CLS], by length."""
    left, right = plots.panels(1, 2, width=4.2, share=False)
    titles = "in null space", "[CLS], raw", "effective", "values' length"
    print(f"{'40 to 64 pieces':20}", *(f"{title:>16}" for title in titles))
    for model, colour in ((PUBLISHED, plots.BLUE), (UNTRAINED, plots.GREY)):
        rows = recorded("effective", model=model)
        for number, row in enumerate(rows):
            style = {"color": colour, "alpha": 0.7, "markersize": 3}
            left.plot(LENGTHS, row["share"], "o-", label=None if number else model, **style)
            if model == PUBLISHED:
                for which, line, weights in zip(
                    ("raw", "effective"), ("o-", "o:"), zip(*row["cls"], strict=True), strict=True
                ):
                    right.plot(LENGTHS, weights, line, label=None if number else which, **style)
        share, on_cls, length = (
            [row[key][n] for row in rows for n, T in enumerate(LENGTHS) if T > 32]
            for key in ("share", "cls", "length")
        )
        columns = share, *zip(*on_cls, strict=True), length
        print(f"{model:20}", *(f"{seeds.span(column):>16}" for column in columns))
    for ax, title in ((left, "in the null space"), (right, "on [CLS]")):
        ax.axvline(32, color=plots.BLACK, linewidth=0.8, zorder=0)
        ax.set(title=title, xlabel="pieces", ylim=(-0.04, 1.04), yticks=[0, 0.5, 1])
        plots.legend(ax, fontsize=9, loc="upper left" if ax is left else "upper right")


def draw_attribution() -> None:
    """Draw the own token's share of each hidden vector, and how often it is the largest."""
    panels = plots.panels(1, 2, width=3.4)
    for ax, key, title in zip(
        panels, ("own", "first"), ("own share", "own is the largest"), strict=True
    ):
        for model, colour in ((PUBLISHED, plots.BLUE), (UNTRAINED, plots.GREY)):
            _by_layer("attribution", key, ax, model, model, colour)
        ax.set(title=title)
    plots.legend(panels[0], fontsize=8, loc="lower left")
