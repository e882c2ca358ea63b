"""Oracles for layers: weights by name, PyTorch's layers that hold them, and what dropout can do.

``sizes`` are d_model, n_heads, d_ff. The names are those of the course's layers.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from autograder.checking.toolbox import expect
from autograder.checking.toolbox.inputs import Draw

F64 = torch.float64
PROJECTIONS = ("W_q", "W_k", "W_v", "W_o")
ATTENTIONS = {"attention": "self_attn", "cross_attention": "multihead_attn"}  # ours: PyTorch's
TIGHT = 1e-5  # how near to one of its possible outcomes a result is: 1 / (1 - p) may be float32
SHARE = 0.15  # how far the share of what is dropped may be from p: seven standard deviations


def linear(draw: Draw, name: str, features_in: int, features_out: int) -> dict[str, torch.Tensor]:
    """Weights that keep the size of what passes through, so that every part counts."""
    weight = draw.normal(features_out, features_in, scale=1.5 / math.sqrt(features_in))
    return {f"{name}.weight": weight, f"{name}.bias": draw.normal(features_out, scale=0.5)}


def norm(draw: Draw, name: str, d_model: int) -> dict[str, torch.Tensor]:
    """A scale and a shift."""
    scale = draw.uniform(d_model, low=0.5, high=2.0)
    return {f"{name}.weight": scale, f"{name}.bias": draw.normal(d_model, scale=0.5)}


def layer(
    draw: Draw, sizes: tuple[int, int, int], prefix: str = "", cross: bool = False
) -> dict[str, torch.Tensor]:
    """Parameters of an EncoderLayer or, with ``cross``, of a DecoderLayer."""
    d_model, _, d_ff = sizes
    values: dict[str, torch.Tensor] = {}
    for attention in list(ATTENTIONS)[: 1 + cross]:
        for name in PROJECTIONS:
            values |= linear(draw, f"{prefix}{attention}.{name}", d_model, d_model)
    values |= linear(draw, f"{prefix}feed_forward.linear_1", d_model, d_ff)
    values |= linear(draw, f"{prefix}feed_forward.linear_2", d_ff, d_model)
    for number in range(1, 3 + cross):
        values |= norm(draw, f"{prefix}norm_{number}", d_model)
    return values


def pytorch_layer(
    values: dict[str, torch.Tensor],
    sizes: tuple[int, int, int],
    prefix: str = "",
    cross: bool = False,
    pre_norm: bool = False,
) -> nn.Module:
    """PyTorch's encoder or decoder layer with these weights, in evaluation."""
    kind: Any = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    made = kind(*sizes, dropout=0.0, batch_first=True, norm_first=pre_norm, dtype=F64).eval()
    state = {}
    for part in ("weight", "bias"):
        for ours, theirs in list(ATTENTIONS.items())[: 1 + cross]:
            three = [values[f"{prefix}{ours}.{name}.{part}"] for name in PROJECTIONS[:3]]
            state[f"{theirs}.in_proj_{part}"] = torch.cat(three)
            state[f"{theirs}.out_proj.{part}"] = values[f"{prefix}{ours}.W_o.{part}"]
        for number in (1, 2):
            state[f"linear{number}.{part}"] = values[f"{prefix}feed_forward.linear_{number}.{part}"]
        for number in range(1, 3 + cross):
            state[f"norm{number}.{part}"] = values[f"{prefix}norm_{number}.{part}"]
    made.load_state_dict(state)
    return made.requires_grad_(False)


def forbidden(mask: Any, n_heads: int, *shape: int) -> torch.Tensor:
    """A mask as PyTorch's layers read it: True is forbidden, (B * H, T_q, T_k) of (B, T_q, T_k).

    (To hand over a key_padding_mask makes PyTorch import sympy, which takes seconds.)
    """
    return ~mask.expand(shape).repeat_interleave(n_heads, 0)


def normed(x: torch.Tensor, values: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    """``x`` behind the norm of this name."""
    return F.layer_norm(x, x.shape[-1:], values[f"{name}.weight"], values[f"{name}.bias"])


def silent(values: dict[str, torch.Tensor], but: Sequence[str] = ()) -> dict[str, torch.Tensor]:
    """The same weights, but no sublayer adds anything: its last map is 0; save those of ``but``."""
    last = ("W_o.weight", "W_o.bias", "linear_2.weight", "linear_2.bias")
    return {
        name: 0 * value if name.endswith(last) and name.split(".")[0] not in but else value
        for name, value in values.items()
    }


def elementwise(got: Any, whole: torch.Tensor, p: float, what: str) -> None:
    """Every entry of ``got`` is 0 or that of ``whole`` / (1 - p), and about a share p of them is 0.

    An entry of ``whole`` that is 0 says nothing.
    """
    expect.shape(got, whole.shape)
    there = whole != 0
    factors = got[there] / whole[there]
    is_dropped = factors.abs() < TIGHT
    other = factors[~is_dropped & ((factors * (1 - p) - 1).abs() > TIGHT)]
    if len(other):
        got = f"{other[0].item():.4g} times the number before dropout, in {len(other)} places"
        expect.true(False, what, got, f"0, or 1 / (1 - {p}) = {1 / (1 - p):.4g} times that number")
    by_chance(there.double().masked_scatter(there, is_dropped.double()), there, p, what)


def by_chance(dropped: torch.Tensor, there: torch.Tensor, p: float, what: str) -> None:
    """About a share p of ``dropped``, 0 or 1 each, is 1, and each number is dropped by itself.

    Then two numbers beside each other are alike as often as chance wants it. Only those that are
    ``there`` count.
    """
    share = dropped[there].mean().item()
    expect.true(abs(share - p) < SHARE, what, f"{share:.2f} of it dropped", f"about {p}")
    for axis in range(dropped.dim()):
        alike = (dropped == dropped.roll(1, axis))[there & there.roll(1, axis)].double().mean()
        got = f"numbers beside each other, along axis {axis}, share their fate"
        chance = p**2 + (1 - p) ** 2
        expect.true(abs(alike - chance) < SHARE, what, got, "each number dropped by itself")


def one_of(got: Any, outcomes: torch.Tensor, masks: torch.Tensor, p: float, what: str) -> None:
    """Each vector of ``got``, (N, d), is one of its own ``outcomes``, (N, M, d) or (M, d).

    ``masks`` (M, d) says what each outcome keeps; about a share p should be dropped.
    """
    expect.shape(got, (len(got), outcomes.shape[-1]))
    far = ((got[:, None] - outcomes).abs() / (1 + outcomes.abs())).amax(-1)  # (N, M)
    nearest, which = far.min(1)
    strange = int((nearest > TIGHT).sum())
    found = f"{strange} of {len(got)} vectors are none of those that dropout can make"
    expect.true(strange == 0, what, found, "each entry dropped, or divided by 1 - p, once")
    dropped = 1 - masks[which].double()
    by_chance(dropped, torch.ones_like(dropped).bool(), p, what)


def kept(count: int) -> torch.Tensor:
    """All ways to keep some of ``count`` entries: bool (2 ** count, count)."""
    return (torch.arange(2**count)[:, None] >> torch.arange(count)) % 2 == 1


def sublayer_outcomes(
    values: dict[str, torch.Tensor],
    name: str,
    x: torch.Tensor,
    asks: torch.Tensor,
    heard: torch.Tensor,
    n_heads: int,
    p: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What dropout can make of x plus the update of one sublayer, of positions that stand alone.

    x, asks  (N, d_model)       the stream, and what the sublayer has for a query
    heard    (N, T_k, d_model)  what an attention has for keys and values
    returns  outcomes (N, M, d_model), and what of the update each one keeps: bool (M, d_model)
    """
    if name == "feed_forward":
        units = _mapped(asks, values, "feed_forward.linear_1").relu()
        parts, out = torch.diag_embed(units), "linear_2"  # each by itself: (N, d_ff, d_ff)
    else:
        parts, out = _heads(values, name, asks, heard, n_heads), "W_o"
    inside = kept(parts.shape[1]).double() / (1 - p)  # (I, parts)
    update = torch.einsum("iu,nud->nid", inside, parts @ values[f"{name}.{out}.weight"].T)
    update = update + values[f"{name}.{out}.bias"]  # (N, I, d_model)
    masks = kept(x.shape[1])
    made = x[:, None, None] + update[:, :, None] * masks / (1 - p)  # (N, I, M / I, d_model)
    return made.flatten(1, 2), masks.repeat(inside.shape[0], 1)


def _heads(
    values: dict[str, torch.Tensor],
    name: str,
    asks: torch.Tensor,
    heard: torch.Tensor,
    n_heads: int,
) -> torch.Tensor:
    """What each head takes from each key, each by itself: (N, H * T_k, d_model)."""
    q, k, v = (
        _mapped(vectors, values, f"{name}.{part}").unflatten(2, (n_heads, -1))
        for vectors, part in ((asks[:, None], "W_q"), (heard, "W_k"), (heard, "W_v"))
    )
    weights = (torch.einsum("nqhd,nkhd->nhk", q, k) / math.sqrt(q.shape[-1])).softmax(-1)
    taken = torch.einsum("nhk,nkhd,hg->nhkgd", weights, v, torch.eye(n_heads, dtype=F64))
    return taken.flatten(3).flatten(1, 2)


def _mapped(x: torch.Tensor, values: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    return F.linear(x, values[f"{name}.weight"], values[f"{name}.bias"])
