"""Wrong and right answers to the exercises of lesson 06."""

import math
import random

import torch
from torch.nn import functional as F

from attention.masked_attention import suspect
from autograder.checking.toolbox.registry import alternative, careless, mistake


@alternative("packed_mask")
def query_after_query(document, T_q):
    B, T_k = document.shape
    mask = torch.zeros(B, T_q, T_k, dtype=torch.bool, device=document.device)
    for b, of in enumerate(document.tolist()):
        for row in range(T_q):
            i = T_k - T_q + row
            for j in range(i + 1):
                mask[b, row, j] = of[i] == of[j] != 0
    return mask


@alternative("packed_mask")
def end_of_a_triangle(document, T_q):
    B, T = document.shape
    past = torch.ones(T, T, dtype=torch.bool, device=document.device).tril()
    same = torch.eq(document.unsqueeze(-1), document.unsqueeze(-2)) & (document != 0)[..., None]
    return (past & same)[:, -T_q:]


@careless("packed_mask")
def triangle_on_the_cpu(document, T_q):
    past = torch.ones(T_q, document.shape[1]).tril(document.shape[1] - T_q).bool()
    of = document[:, -T_q:, None]
    return past & (of == document[:, None]) & (of > 0)


@careless("packed_mask")
def renames_the_padding(document, T_q):
    real = document > 0
    document[~real] = -torch.arange(1, 1 + int((~real).sum()), dtype=document.dtype)
    past = torch.ones(document.shape[1], document.shape[1]).bool().tril()
    return (past & (document[:, :, None] == document[:, None]) & real[:, None])[:, -T_q:]


def _band(T, window):
    i = torch.arange(T)
    return (i[:, None] - i).abs() <= window


def _longformer(T, window, global_positions):
    mask = _band(T, window)
    for position in global_positions:
        mask[position] = mask[:, position] = True
    return mask


@alternative("longformer_mask")
def with_logical_or(T, window, global_positions, device=None):
    chosen = torch.zeros(T, dtype=torch.bool, device=device)
    chosen[global_positions] = True
    return _band(T, window).to(device) | chosen[:, None] | chosen[None, :]


@alternative("longformer_mask")
def asks_each_pair(T, window, global_positions, device=None):
    g = set(global_positions)
    rows = [[abs(i - j) <= window or i in g or j in g for j in range(T)] for i in range(T)]
    return torch.tensor(rows, device=device)


@careless("longformer_mask")
def marks_on_the_cpu(T, window, global_positions, device=None):
    return _longformer(T, window, global_positions)


@careless("longformer_mask")
def empties_the_list(T, window, global_positions, device=None):
    mask = _band(T, window).to(device)
    while global_positions:
        g = global_positions.pop()
        mask[g, :] = mask[:, g] = True
    return mask


def _attend(q, k, v, mask, return_weights, fill=-math.inf, dim=-1, repair=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, fill)
    weights = torch.softmax(scores, dim)
    if repair and mask is not None:
        weights = repair(weights, mask)
    return (weights @ v, weights) if return_weights else weights @ v


@alternative("masked_attention")
def opens_empty_rows_first(q, k, v, mask=None, return_weights=False):
    if mask is None:
        return _attend(q, k, v, None, return_weights)
    empty = mask.logical_not().all(-1, keepdim=True)
    _, weights = _attend(q, k, v, mask | empty, True)
    weights = torch.where(empty, torch.zeros_like(weights), weights)
    context = torch.einsum("...qk,...kd->...qd", weights, v)
    return [context, weights] if return_weights else context


@alternative("masked_attention")
def cleans_up_behind_masked_fill(q, k, v, mask=None, return_weights=False):
    """The NaN arises, but masked_fill stops its gradient: it sends 0 to what it has replaced."""
    return _attend(q, k, v, mask, return_weights, repair=lambda w, m: w.nan_to_num(0.0))


@alternative("masked_attention")
def divides_exponentials(q, k, v, mask=None, return_weights=False):
    scores = (q / q.shape[-1] ** 0.5) @ k.mT
    allowed = torch.ones_like(scores).bool() if mask is None else mask
    largest = (
        scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).amax(-1, keepdim=True).detach()
    )
    powers = torch.exp((scores - largest).masked_fill(~allowed, 0.0)) * allowed
    total = powers.sum(-1, keepdim=True)
    weights = powers / torch.where(total > 0, total, torch.ones_like(total))
    return (weights @ v, weights) if return_weights else weights @ v


@careless("masked_attention")
def opens_rows_in_place(q, k, v, mask=None, return_weights=False):
    if mask is None:
        return _attend(q, k, v, None, return_weights)
    empty = ~mask.any(-1, keepdim=True)
    mask |= empty
    weights = _attend(q, k, v, mask, True)[1].masked_fill(empty, 0.0)
    return (weights @ v, weights) if return_weights else weights @ v


@careless("masked_attention")
def adds_a_table_on_the_cpu(q, k, v, mask=None, return_weights=False):
    if mask is None:
        return _attend(q, k, v, None, return_weights)
    empty = ~mask.any(-1, keepdim=True)
    added = torch.zeros(mask.shape)
    added[~(mask | empty)] = -math.inf
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]) + added, -1)
    weights = weights.masked_fill(empty, 0.0)
    return (weights @ v, weights) if return_weights else weights @ v


def _leaks(name, x, t, first=1, seen=lambda out, t: out[: t + 1], change=None):
    other = x.clone()
    future = other[t + first :]
    other[t + first :] = future + torch.randn_like(future) if change is None else change(future)
    return not torch.allclose(seen(suspect(name, x), t), seen(suspect(name, other), t))


@mistake(
    "leaks",
    hint="Where the future is 0, your change leaves it at 0, and no leak can show. Make sure that "
    "the future really changes.",
    earns=("where a leak shows at t", "where it shows only before t"),
)
def silences_the_future(name, x, t):
    silent = torch.where(torch.arange(len(x))[:, None] <= t, x, 0.0)
    pairs = list(zip(suspect(name, x), suspect(name, silent), strict=True))
    return not all(torch.allclose(one, two) for one, two in pairs[: t + 1])


@alternative("leaks")
def asks_the_gradient(name, x, t):
    with torch.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        rows = torch.autograd.functional.jacobian(lambda x: suspect(name, x)[: t + 1], leaf)
    return bool(rows[:, :, t + 1 :].abs().sum() > 0)


@alternative("leaks")
def makes_the_future_loud(name, x, t):
    return _leaks(name, x, t, change=lambda future: future + 100 * (1 + torch.arange(x.shape[1])))


@alternative("leaks")
def tries_several_futures(name, x, t):
    return any(_leaks(name, x, t) for _ in range(3))


@careless("leaks")
def seeds_the_noise(name, x, t):
    torch.manual_seed(0)
    return _leaks(name, x, t)


@careless("leaks")
def shuffles_the_seeds(name, x, t):
    random.seed(0)
    return _leaks(
        name, x, t, change=lambda future: future + random.random() + torch.arange(x.shape[1])
    )


@alternative("companions_that_matter")
def in_a_loop(translate, text, others):
    (alone,), found = translate([text]), []
    for other in others:
        beside, _ = translate([text, other])
        if beside != alone:
            found.append(other)
    return found


@alternative("companions_that_matter")
def behind_its_companion(translate, text, others):
    alone = translate([text])
    return [other for other in others if translate([other, text])[1:] != alone]


@careless("companions_that_matter")
def empties_the_list_of_others(translate, text, others):
    alone, found = translate([text])[0], []
    while others:
        other = others.pop(0)
        if translate([text, other])[0] != alone:
            found.append(other)
    return found


@careless("companions_that_matter")
def seeds_before_every_batch(translate, text, others):
    def first(texts):
        torch.manual_seed(0)
        return translate(texts)[0]

    return [other for other in others if first([text, other]) != first([text])]


def _slide(q, k, v, window, reach=None, low=None, scale=True, hide=True):
    reach = window if reach is None else reach
    offsets = range(-reach if low is None else low, reach + 1)
    i = torch.arange(q.shape[-2], device=q.device)
    places = [(i + offset).clamp(0, len(i) - 1) for offset in offsets]
    scores = torch.stack([(q * k[..., place, :]).sum(-1) for place in places], -1)
    scores = scores / (math.sqrt(q.shape[-1]) if scale else 1)
    if hide:
        wanted = torch.stack([i + offset for offset in offsets], -1)
        scores = scores.masked_fill((wanted < 0) | (wanted >= len(i)), -math.inf)
    weights = torch.softmax(scores, -1)
    return sum(weights[..., c, None] * v[..., place, :] for c, place in enumerate(places))


@mistake(
    "sliding_window_attention",
    hint="The (T, T) matrix is made and then masked: for a long sequence it does not fit into any "
    "memory. Only 2 window + 1 scores a query are needed.",
)
def makes_the_whole_matrix(q, k, v, window):
    if q.shape[-2] > 10_000:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    return F.scaled_dot_product_attention(q, k, v, attn_mask=_band(q.shape[-2], window))


@alternative("sliding_window_attention")
def picks_the_neighbours(q, k, v, window):
    return _slide(q, k, v, window)


@alternative("sliding_window_attention")
def unfolds_the_windows(q, k, v, window):
    T, width = q.shape[-2], 2 * window + 1
    pad = (0, 0, window, window)
    k, v = (F.pad(x, pad).unfold(-2, width, 1) for x in (k, v))  # (..., T, d, width)
    inside = F.pad(torch.ones(T, device=q.device), (window, window)).unfold(0, width, 1).bool()
    scores = torch.einsum("...td,...tdw->...tw", q, k) * q.shape[-1] ** -0.5
    weights = torch.softmax(torch.where(inside, scores, -math.inf), -1)
    return torch.einsum("...tw,...tdw->...td", weights, v)


@careless("sliding_window_attention")
def window_on_the_cpu(q, k, v, window):
    T, width = q.shape[-2], 2 * window + 1
    k, v = F.pad(k, (0, 0, window, window)), F.pad(v, (0, 0, window, window))
    scores = torch.stack([(q * k[..., c : c + T, :]).sum(-1) for c in range(width)], -1)
    place = torch.arange(T)[:, None] + torch.arange(width) - window
    scores = scores.masked_fill((place < 0) | (place >= T), -math.inf)
    weights = torch.softmax(scores / math.sqrt(q.shape[-1]), -1)
    return sum(weights[..., c, None] * v[..., c : c + T, :] for c in range(width))


@careless("sliding_window_attention")
def slides_in_single_precision(q, k, v, window):
    return _slide(q.float(), k.float(), v.float(), window)


_BOOL = "True and False have no gradient"
_ERASED = (
    "a row that is hidden as a whole becomes NaN, which the second masked_fill erases, and its "
    "gradient with it; the first sends 0 to the scores that it replaced"
)
_CHANGED = "it changes the future all the same, and no layer here overlooks a change of this kind"
_TOGETHER = "all arguments live on one device"
EQUIVALENT = {
    "packed_mask: whose result is cut off from the gradient: "
    "return ((key <= query) & own & real).detach()": _BOOL,
    "companions_that_matter: with one whole number off by one: "
    "alone = translate([text])[-1]": "a batch of one text has one translation",
    "longformer_mask: whose result is cut off from the gradient: return mask.detach()": _BOOL,
    "masked_attention: with one `&` left out: hidden = ~mask": _ERASED,
    "masked_attention: without `dim` in one call of `any`: "
    "hidden = ~mask & mask.any(keepdim=True)": _ERASED,
    "leaks: with `-` once where `+` belongs: "
    "other[t + 1:] += 1 - torch.arange(x.shape[1])": _CHANGED,
    "leaks: with one term left out: other[t + 1:] += 1": _CHANGED,
    "leaks: with one whole number off by one: "
    "other[t + 1:] += 2 + torch.arange(x.shape[1])": _CHANGED,
    "leaks: with one call of `arange` left out: other[t + 1:] += 1 + x.shape[1]": _CHANGED,
    "leaks: with the two items of a pair exchanged: before, after = "
    "(suspect(name, other)[:t + 1], suspect(name, x)[:t + 1])": (
        "whether two tensors are close does not depend on which comes first"
    ),
    "sliding_window_attention: with `k` once where `q` belongs: "
    "scores = torch.stack(scores, dim=-1) / math.sqrt(k.shape[-1])": (
        "queries and keys have one length"
    ),
    **{
        "sliding_window_attention: with `{}` once where `q` belongs: position = torch.arange(T, "
        "device={}.device)[:, None] + torch.arange(width, device={}.device)".format(*names): (
            _TOGETHER
        )
        for names in ("kqk", "vqv", "kkq", "vvq")
    },
}


LEAKY = "BCDFG"


@mistake(
    "break_leaks",
    hint="This layer does not leak, and both tests say so. Which of the seven do?",
    where=lambda name, x, t: name not in LEAKY,
)
def with_a_causal_layer():
    return "A", torch.zeros(5, 3), 2


@mistake(
    "break_leaks",
    hint="Nothing comes after this t, so there is no future that could leak.",
    where=lambda name, x, t: t >= len(x) - 1,
)
def at_the_last_position():
    return "B", torch.zeros(5, 3), 4


@mistake(
    "break_leaks",
    hint="The future of this x is not 0, so setting it to 0 changes something. For which x does "
    "it change nothing?",
    where=lambda name, x, t: bool((x[t + 1 :] != 0).all()),
)
def with_an_ordinary_sequence():
    return "B", torch.arange(1.0, 16.0).view(5, 3), 2


@alternative("break_leaks")
def with_zeros_everywhere():
    return "G", torch.zeros(6, 2), 0


@alternative("break_leaks")
def with_a_mean():
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(1)).double()
    x[3:] = 0.0
    return "D", x, 2
