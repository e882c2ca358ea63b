"""Wrong and right answers to the exercises of lesson 18."""

import math
from fractions import Fraction

import numpy
import torch
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from autograder.checking.toolbox.registry import alternative, careless, mistake

INF = math.inf


def _merge(context, total, maximum, scores, v, largest=None, shrink=None, guard=True):
    """One step, with another maximum or another way to shrink the old sums."""
    new = torch.maximum(maximum, scores.amax(-1))
    reference = (largest or (lambda maximum, new, scores: new))(maximum, new, scores)
    reference = reference.masked_fill(reference == -INF, 0.0) if guard else reference
    powers = torch.exp(scores - reference[..., None])
    factor = (shrink or (lambda maximum, reference: torch.exp(maximum - reference)))(
        maximum, reference
    )
    context = factor[..., None] * context + powers @ v
    return context, factor * total + powers.sum(-1), new


@mistake(
    "online_softmax",
    hint="The old sums are taken over as they are. They were made with the old maximum: when the "
    "maximum grows, both must shrink by exp(old maximum - new maximum).",
)
def never_shrinks(context, total, maximum, scores, v):
    return _merge(context, total, maximum, scores, v, shrink=lambda m, r: torch.ones_like(m))


@mistake(
    "online_softmax",
    hint="The old sums grow where they should shrink: the factor is exp(old maximum - new "
    "maximum), which is at most 1.",
)
def grows_where_it_should_shrink(context, total, maximum, scores, v):
    def factor(m, r):
        return torch.exp(r - m).masked_fill(m == -INF, 0.0)

    return _merge(context, total, maximum, scores, v, shrink=factor)


@mistake(
    "online_softmax",
    hint="Only the total shrinks with the new maximum. The context is a sum of the same powers, so "
    "it must shrink, too.",
)
def shrinks_only_the_total(context, total, maximum, scores, v):
    right = _merge(context, total, maximum, scores, v)
    return (
        _merge(context, total, maximum, scores, v, shrink=lambda m, r: torch.ones_like(m))[0],
        *right[1:],
    )


@mistake(
    "online_softmax",
    hint="Only the context shrinks with the new maximum. The total is a sum of the same powers, so "
    "it must shrink, too.",
    earns=("the gradients",),
)
def shrinks_only_the_context(context, total, maximum, scores, v):
    right = _merge(context, total, maximum, scores, v)
    wrong = _merge(context, total, maximum, scores, v, shrink=lambda m, r: torch.ones_like(m))
    return right[0], wrong[1], right[2]


@mistake(
    "online_softmax",
    hint="NaN where a query has seen nothing but -inf: -inf - (-inf) is NaN. While the maximum is "
    "-inf, subtract some finite number instead.",
    earns=("with all keys visible",),
)
def is_not_a_number(context, total, maximum, scores, v):
    return _merge(context, total, maximum, scores, v, guard=False)


@mistake(
    "online_softmax",
    hint="The NaN of a block that is hidden as a whole is replaced by 0, and with it what was "
    "summed before. Avoid the NaN: while the maximum is -inf, subtract some finite number.",
)
def erases_with_the_nan(context, total, maximum, scores, v):
    block = scores.amax(-1)
    powers = torch.exp(scores - block[..., None])
    new = torch.maximum(maximum, block)
    old, fresh = torch.exp(maximum - new), torch.exp(block - new)
    context = old[..., None] * context + fresh[..., None] * (powers @ v)
    return context.nan_to_num(0.0), (old * total + fresh * powers.sum(-1)).nan_to_num(0.0), new


@mistake(
    "online_softmax",
    hint="The new maximum is that of this block alone. A larger score may have come before: take "
    "the larger of the two.",
)
def forgets_the_old_maximum(context, total, maximum, scores, v):
    def own(maximum, new, scores):
        return scores.amax(-1)

    context, total, _ = _merge(context, total, maximum, scores, v, largest=own)
    return context, total, scores.amax(-1)


@mistake(
    "online_softmax",
    hint="The maximum is not updated: it stays at the value that came in.",
)
def keeps_the_old_maximum(context, total, maximum, scores, v):
    def old(maximum, new, scores):
        return maximum

    context, total, _ = _merge(context, total, maximum, scores, v, largest=old)
    return context, total, maximum


DIVIDED = (
    "The context is divided by the total already. More keys will come: here both stay sums, "
    "and the division comes after the last block."
)


@mistake("online_softmax", hint=DIVIDED)
def divides_too_early(context, total, maximum, scores, v):
    context, total, maximum = _merge(context, total, maximum, scores, v)
    return context / total.clamp(min=1e-300)[..., None], total, maximum


@mistake("online_softmax", hint=DIVIDED)
def divides_in_each_step(context, total, maximum, scores, v):
    context, total, maximum = _merge(context, total, maximum, scores, v)
    return context / total[..., None], total, maximum


@mistake("online_softmax", hint=DIVIDED)
def keeps_an_average(context, total, maximum, scores, v):
    context, new, maximum = _merge(context * total[..., None], total, maximum, scores, v)
    return context / new[..., None], new, maximum


@mistake(
    "online_softmax",
    hint="One maximum for all queries. Each query has its own: amax along the last axis.",
)
def shares_one_maximum(context, total, maximum, scores, v):
    def shared(maximum, new, scores):
        return new.max().expand_as(new)

    context, total, new = _merge(context, total, maximum, scores, v, largest=shared)
    return context, total, new.max().expand_as(new).clone()


@mistake(
    "online_softmax",
    hint="Nothing is subtracted from the scores. exp of a large score is infinite: the powers are "
    "exp(score - maximum).",
)
def subtracts_nothing(context, total, maximum, scores, v):
    powers = torch.exp(scores)
    context = context + powers @ v
    return context, total + powers.sum(-1), torch.maximum(maximum, scores.amax(-1))


@mistake(
    "online_softmax",
    hint="The old sums are dropped: only this block counts. They should be added, after they have "
    "shrunk.",
)
def forgets_what_came_before(context, total, maximum, scores, v):
    return _merge(context, total, maximum, scores, v, shrink=lambda m, r: torch.zeros_like(m))


@mistake(
    "online_softmax",
    hint="The total counts the mean of the powers of this block, not their sum.",
    earns=("the gradients",),
)
def averages_the_powers(context, total, maximum, scores, v):
    new, _, largest = _merge(context, total, maximum, scores, v)
    reference = largest.masked_fill(largest == -INF, 0.0)
    powers = torch.exp(scores - reference[..., None])
    return new, torch.exp(maximum - reference) * total + powers.mean(-1), largest


@mistake(
    "online_softmax",
    hint="The order of the results: context, total, maximum, as they came in.",
)
def returns_another_order(context, total, maximum, scores, v):
    return _merge(context, total, maximum, scores, v)[::-1]


@mistake(
    "online_softmax",
    hint="The total is (..., T_q, 1): without keepdim the sum has the shape (..., T_q) that came "
    "in.",
)
def keeps_an_axis(context, total, maximum, scores, v):
    context, total, maximum = _merge(context, total, maximum, scores, v)
    return context, total[..., None], maximum[..., None]


STANDS_IN = (
    "A query that has seen nothing but -inf should keep the maximum -inf. A finite number may only "
    "stand in for it within the step: kept, it would be too large for scores that come later."
)


@mistake("online_softmax", hint=STANDS_IN)
def keeps_a_zero_for_the_maximum(context, total, maximum, scores, v):
    context, total, maximum = _merge(context, total, maximum, scores, v)
    return context, total, maximum.masked_fill(maximum == -INF, 0.0)


@mistake(
    "online_softmax",
    hint=STANDS_IN,
    earns=(
        "with all keys visible",
        "the gradients",
    ),
)
def keeps_a_low_maximum(context, total, maximum, scores, v):
    context, total, maximum = _merge(context, total, maximum, scores, v)
    return context, total, maximum.clamp(min=-1e9)


@mistake("online_softmax", hint=STANDS_IN)
def takes_in_a_low_maximum(context, total, maximum, scores, v):
    maximum = maximum.clamp(min=-1e9)
    return _merge(context, total, maximum, scores, v)


HIDDEN_IS_LOW = (
    "-1e9 stands for -inf: where all keys of a block are hidden, each of them counts as "
    "exp(0) = 1. exp(-inf) is 0: keep -inf, and subtract a finite number from it."
)


@mistake(
    "online_softmax",
    hint=HIDDEN_IS_LOW,
    earns=("with all keys visible",),
)
def takes_a_low_score_for_hidden(context, total, maximum, scores, v):
    return _merge(context, total, maximum, scores.masked_fill(scores == -INF, -1e9), v)


@mistake("online_softmax", hint=HIDDEN_IS_LOW)
def takes_low_numbers_for_hidden(context, total, maximum, scores, v):
    scores = scores.masked_fill(scores == -INF, -1e9)
    return _merge(context, total, maximum.masked_fill(maximum == -INF, -1e9), scores, v)


CUT_FROM_BELOW = (
    "What is subtracted is never below some finite number. Real scores may be lower still, and "
    "then all powers vanish: only a maximum of -inf itself may be replaced."
)


@mistake(
    "online_softmax",
    hint=CUT_FROM_BELOW,
    earns=(
        "with all keys visible",
        "the gradients",
    ),
)
def cuts_the_maximum_at_ten_thousand(context, total, maximum, scores, v):
    return _merge(context, total, maximum, scores, v, largest=lambda m, new, s: new.clamp(min=-1e4))


@mistake("online_softmax", hint=CUT_FROM_BELOW)
def cuts_the_maximum_at_a_billion(context, total, maximum, scores, v):
    return _merge(context, total, maximum, scores, v, largest=lambda m, new, s: new.clamp(min=-1e9))


@mistake("online_softmax", hint=CUT_FROM_BELOW)
def cuts_the_maximum_at_1e30(context, total, maximum, scores, v):
    return _merge(
        context, total, maximum, scores, v, largest=lambda m, new, s: new.clamp(min=-1e30)
    )


@mistake(
    "online_softmax",
    hint="The total is kept above 0, against 0 / 0. It should be 0 for a query that has seen "
    "nothing: what was added is counted among the keys that come later.",
)
def keeps_the_total_above_zero(context, total, maximum, scores, v):
    context, total, maximum = _merge(context, total, maximum, scores, v)
    return context, total.clamp(min=1e-9), maximum


@mistake(
    "online_softmax",
    hint="The sums are right, but their gradients are NaN where a query has seen nothing: NaN is "
    "made on the way and replaced afterwards, which does not help the way back. Avoid it: while "
    "the maximum is -inf, subtract some finite number.",
    earns=(
        "with all keys visible",
        "with hidden keys",
    ),
)
def repairs_the_nan(context, total, maximum, scores, v):
    new = torch.maximum(maximum, scores.amax(-1))
    shrink = torch.exp(maximum - new).nan_to_num(0.0)
    powers = torch.exp(scores - new[..., None]).nan_to_num(0.0)
    context = shrink[..., None] * context + powers @ v
    return context, shrink * total + powers.sum(-1), new


@mistake(
    "online_softmax",
    hint="No gradient flows through: somewhere the result is cut off from scores and values.",
    earns=(
        "with all keys visible",
        "with hidden keys",
    ),
)
def detaches_the_sums(context, total, maximum, scores, v):
    return tuple(x.detach() for x in _merge(context, total, maximum, scores, v))


@alternative("online_softmax")
def cuts_the_maximum_off(context, total, maximum, scores, v):
    with torch.no_grad():
        new = torch.maximum(maximum, scores.amax(-1))
        anchor = new.masked_fill(new == -INF, 0.0)
    powers, shrink = torch.exp(scores - anchor[..., None]), torch.exp(maximum - anchor)
    return shrink[..., None] * context + powers @ v, shrink * total + powers.sum(-1), new


@alternative("online_softmax")
def joins_two_softmaxes(context, total, maximum, scores, v):
    own = scores.max(dim=-1, keepdim=True).values
    safe = torch.where(own == -INF, torch.zeros_like(own), own)
    powers = (scores - safe).exp()
    new = torch.maximum(maximum[..., None], own)
    anchor = torch.where(new == -INF, torch.zeros_like(new), new)
    old, fresh = (maximum[..., None] - anchor).exp(), (own - anchor).exp()
    context = context * old + (powers @ v) * fresh
    total = total * old[..., 0] + powers.sum(-1) * fresh[..., 0]
    return context, total, new.squeeze(-1)


@alternative("online_softmax")
def goes_key_by_key(context, total, maximum, scores, v):
    for n in range(scores.shape[-1]):
        score = scores[..., n]
        new = torch.where(score > maximum, score, maximum)
        finite = torch.where(torch.isinf(new), torch.zeros_like(new), new)
        old, power = torch.exp(maximum - finite), torch.exp(score - finite)
        context = old[..., None] * context + power[..., None] * v[..., n, None, :]
        total, maximum = old * total + power, new
    return [context, total, maximum]


@alternative("online_softmax")
def clamps_the_maximum(context, total, maximum, scores, v):
    new = torch.stack([maximum, scores.amax(-1)]).amax(0)
    anchor = new.clamp(min=torch.finfo(scores.dtype).min)
    old = torch.exp(maximum - anchor)
    powers = torch.exp(scores - anchor.unsqueeze(-1))
    context = torch.einsum("...q,...qd->...qd", old, context) + torch.matmul(powers, v)
    return context, torch.sum(powers, -1) + total * old, new


@alternative("online_softmax")
def prepends_the_sums_as_a_key(context, total, maximum, scores, v):
    new = torch.cat([maximum.unsqueeze(-1), scores], -1).amax(-1)
    anchor = new.masked_fill(new.isneginf(), 0)
    exps = torch.cat([maximum.unsqueeze(-1), scores], -1).sub(anchor.unsqueeze(-1)).exp()
    first, rest = exps[..., :1], exps[..., 1:]
    return first * context + rest @ v, (first.squeeze(-1) * total) + rest.sum(-1), new


@careless("online_softmax")
def anchors_on_the_cpu(context, total, maximum, scores, v):
    new = torch.maximum(maximum, scores.amax(-1))
    anchor = torch.where(new == -INF, torch.zeros(new.shape), new)
    return *_merge(context, total, maximum, scores, v, lambda *_: anchor)[:2], new


@careless("online_softmax")
def seeks_the_maximum_on_the_cpu(context, total, maximum, scores, v):
    largest = torch.full(maximum.shape, -INF)
    for score in scores.unbind(-1):
        largest = torch.maximum(largest, score)
    new = torch.maximum(maximum, largest)
    return *_merge(context, total, maximum, scores, v, lambda *_: new)[:2], new


def _scores(q, k, causal=False, scale=None, strict=False, seen=None):
    scores = q @ k.transpose(-2, -1) / (math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        query = torch.arange(q.shape[-2], device=q.device)[:, None]
        key = torch.arange(k.shape[-2], device=q.device)
        hidden = key >= query if strict else key > query
        hidden = seen(query, key) if seen else hidden
        scores = scores.masked_fill(hidden, -INF)
    return scores


def _finish(scores, v):
    """Context and lse from all scores at once."""
    lse = scores.logsumexp(-1)
    return torch.exp(scores - lse[..., None]) @ v, lse


def _in_tiles(q, k, v, block, causal=False, merge=None, tile=None):
    """Tiles, with another way to merge or another tile."""
    contexts, sums = [], []
    tile = tile or _tile
    for i in range(0, q.shape[-2], block):
        rows = q[..., i : i + block, :]
        lse = rows.new_full(rows.shape[:-1], -INF)
        context = rows.new_zeros((*rows.shape[:-1], v.shape[-1]))
        for j in range(0, k.shape[-2], block):
            scores = tile(q, k, i, j, block, causal)
            context, lse = merge(context, lse, scores, v[..., j : j + block, :])
        contexts.append(context)
        sums.append(lse)
    return torch.cat(contexts, -2), torch.cat(sums, -1)


def _tile(q, k, i, j, block, causal):
    scores = _scores(q[..., i : i + block, :], k[..., j : j + block, :])
    if causal:
        query = torch.arange(i, i + scores.shape[-2], device=q.device)[:, None]
        key = torch.arange(j, j + scores.shape[-1], device=q.device)
        scores = scores.masked_fill(key > query, -INF)
    return scores


def _right(context, lse, scores, v):
    new = torch.logaddexp(lse, scores.logsumexp(-1))
    shrunk = torch.exp(lse - new)[..., None] * context
    return shrunk + torch.exp(scores - new[..., None]) @ v, new


@mistake(
    "flash_attention",
    hint="Each tile has a softmax of its own and the results are added up: the weights of a query "
    "sum to the number of its tiles. What came before must shrink when more is seen.",
    earns=("lse",),
)
def adds_up_softmaxes(q, k, v, block, causal=False):
    def merge(context, lse, scores, v):
        new = torch.logaddexp(lse, scores.logsumexp(-1))
        own = scores.logsumexp(-1, keepdim=True)
        return context + torch.exp(scores - own).nan_to_num(0.0) @ v, new

    return _in_tiles(q, k, v, block, causal, merge)


@mistake(
    "flash_attention",
    hint="The context of the tiles before is taken over as it is. It was made with a smaller sum: "
    "it must shrink by exp(old lse - new lse).",
)
def never_shrinks_the_context(q, k, v, block, causal=False):
    def merge(context, lse, scores, v):
        new = torch.logaddexp(lse, scores.logsumexp(-1))
        return context + torch.exp(scores - new[..., None]) @ v, new

    return _in_tiles(q, k, v, block, causal, merge)


@mistake(
    "flash_attention",
    hint="The new lse is the sum of two logarithms, so a logarithm of a product. The sums under "
    "the logarithms should be added: torch.logaddexp.",
)
def adds_logarithms(q, k, v, block, causal=False):
    def merge(context, lse, scores, v):
        own = scores.logsumexp(-1)
        new = torch.where(lse == -INF, own, lse + own)
        new = torch.where(own == -INF, lse, new)
        shrunk = torch.exp(lse - new)[..., None] * context
        return shrunk + torch.exp(scores - new[..., None]) @ v, new

    return _in_tiles(q, k, v, block, causal, merge)


@mistake(
    "flash_attention",
    hint="Only the first tile of keys is seen. Every block of queries meets every block of keys.",
)
def sees_the_first_tile_only(q, k, v, block, causal=False):
    k, v = k[..., :block, :], v[..., :block, :]
    return _finish(_scores(q, k, causal), v)


@mistake(
    "flash_attention",
    hint="Each block of queries sees only the block of keys at the same place. Every block of "
    "queries meets every block of keys.",
)
def stays_on_the_diagonal(q, k, v, block, causal=False):
    T_q, T_k = q.shape[-2], k.shape[-2]
    scores = _scores(q, k, causal)
    query = torch.arange(T_q, device=q.device)[:, None].clamp(max=T_k - 1) // block
    other = query != torch.arange(T_k, device=q.device) // block
    return _finish(scores.masked_fill(other, -INF), v)


@mistake(
    "flash_attention",
    hint="`causal` is not used: queries see what comes after them. tile_scores takes it.",
    earns=(
        "the context",
        "with shorter last tiles and large scores",
        "lse",
    ),
)
def ignores_causal(q, k, v, block, causal=False):
    return _finish(_scores(q, k), v)


@mistake(
    "flash_attention",
    hint="Within each tile the mask begins anew, as if every tile began at position 0. It depends "
    "on the positions in the whole sequence: i and j.",
    earns=(
        "the context",
        "with shorter last tiles and large scores",
        "lse",
    ),
)
def masks_each_tile_anew(q, k, v, block, causal=False):
    def tile(q, k, i, j, block, causal):
        return _scores(q[..., i : i + block, :], k[..., j : j + block, :], causal)

    return _in_tiles(q, k, v, block, causal, _right, tile)


@mistake(
    "flash_attention",
    hint="With causal, a query does not even see itself, and query 0 sees nothing.",
)
def hides_the_query_itself(q, k, v, block, causal=False):
    context, lse = _finish(_scores(q, k, causal, strict=True), v)
    return context.nan_to_num(0.0), lse


@mistake(
    "flash_attention",
    hint="For causal attention the keys are hidden by tiles as a whole: within the tile on the "
    "diagonal, too, each query sees only what is not after it.",
)
def masks_whole_tiles(q, k, v, block, causal=False):
    def seen(query, key):
        return key // block > query // block

    return _finish(_scores(q, k, causal, seen=seen), v)


@mistake("flash_attention", hint="The scores are not divided by √d_k.")
def forgets_the_scale(q, k, v, block, causal=False):
    return _finish(_scores(q, k, causal, 1.0), v)


@mistake(
    "flash_attention",
    hint="The scores are divided by √d_k twice: tile_scores has done it already.",
)
def scales_twice(q, k, v, block, causal=False):
    return _finish(_scores(q, k, causal, q.shape[-1]), v)


SHORT_LAST = (
    "A last tile with fewer positions is left out: block need not divide T_q and T_k. A slice "
    "that reaches beyond the end simply ends there."
)


@mistake(
    "flash_attention",
    hint=SHORT_LAST,
    earns=(
        "the context",
        "lse",
        "with causal=True",
    ),
)
def drops_the_rest(q, k, v, block, causal=False):
    T_q, T_k = q.shape[-2] // block * block, k.shape[-2] // block * block
    if not T_q or not T_k:
        shape = (*q.shape[:-2], T_q)
        return q.new_zeros(*shape, v.shape[-1]), q.new_zeros(shape)
    return _finish(_scores(q[..., :T_q, :], k[..., :T_k, :], causal), v[..., :T_k, :])


@mistake(
    "flash_attention",
    hint="lse is the sum of the exponentials. Return its logarithm, which does not overflow.",
    earns=(
        "the context",
        "with shorter last tiles and large scores",
        "with causal=True",
    ),
)
def returns_the_sum(q, k, v, block, causal=False):
    context, lse = _finish(_scores(q, k, causal), v)
    return context, lse.exp()


@mistake(
    "flash_attention",
    hint="lse is the largest score. Return the logarithm of the sum of all exponentials.",
    earns=(
        "the context",
        "with shorter last tiles and large scores",
        "with causal=True",
    ),
)
def returns_the_maximum(q, k, v, block, causal=False):
    scores = _scores(q, k, causal)
    return _finish(scores, v)[0], scores.amax(-1)


@mistake(
    "flash_attention",
    hint="The context alone is returned. lse belongs to it.",
    earns=(
        "the context",
        "with shorter last tiles and large scores",
        "with causal=True",
    ),
)
def forgets_lse(q, k, v, block, causal=False):
    return _finish(_scores(q, k, causal), v)[0]


@mistake("flash_attention", hint="The results are exchanged: the context comes first, then lse.")
def exchanges_the_pair(q, k, v, block, causal=False):
    return _finish(_scores(q, k, causal), v)[::-1]


@mistake(
    "flash_attention",
    hint="exp is taken of the scores as they are, which overflows for large ones. logsumexp and "
    "logaddexp subtract the maximum first.",
    earns=(
        "the context",
        "lse",
        "with causal=True",
    ),
)
def overflows(q, k, v, block, causal=False):
    powers = torch.exp(_scores(q, k, causal))
    total = powers.sum(-1)
    return powers @ v / total[..., None], total.log()


@mistake(
    "flash_attention",
    hint="Something is added to the total, against 0 / 0. The largest score counts as exp(0) = 1, "
    "so the total is never 0: divide by it as it is.",
)
def adds_to_the_total(q, k, v, block, causal=False):
    scores = _scores(q, k, causal)
    largest = scores.amax(-1, keepdim=True)
    powers = torch.exp(scores - largest)
    total = powers.sum(-1, keepdim=True)
    return powers @ v / (total + 1e-6), (largest + total.log()).squeeze(-1)


@mistake(
    "flash_attention",
    hint="lse has an axis too many: (..., T_q, 1). squeeze(-1) takes it away.",
)
def keeps_the_axis_of_lse(q, k, v, block, causal=False):
    context, lse = _finish(_scores(q, k, causal), v)
    return context, lse.unsqueeze(-1)


def _by_maximum(q, k, v, block, causal, start, update):
    """Tiles with maximum and total, with another start or another way to update the maximum."""
    parts = []
    for i in range(0, q.shape[-2], block):
        largest = torch.full_like(q[..., i : i + block, :1], start)
        total = context = 0.0
        for j in range(0, k.shape[-2], block):
            scores = _tile(q, k, i, j, block, causal)
            old, largest = largest, update(largest, scores.amax(-1, keepdim=True))
            powers, shrink = torch.exp(scores - largest), torch.exp(old - largest)
            total = shrink * total + powers.sum(-1, keepdim=True)
            context = shrink * context + powers @ v[..., j : j + block, :]
        parts.append((context / total, (largest + total.log()).squeeze(-1)))
    return parts


def _running(q, k, v, block, causal=False, before=None, after=None, rows=None, columns=None):
    """The loops as most write them: ``rows`` and ``columns`` are where the tiles begin.

    ``before`` changes the context that is taken over, ``after`` the one that is kept.
    """
    parts = []
    for i in rows if rows is not None else range(0, q.shape[-2], block):
        largest = torch.full_like(q[..., i : i + block, 0], -INF)
        total = torch.zeros_like(largest)
        context = q.new_zeros(*largest.shape, v.shape[-1])
        for j in columns if columns is not None else range(0, k.shape[-2], block):
            scores = _tile(q, k, i, j, block, causal)
            context = before(context, total) if before else context
            values = v[..., j : j + block, :]
            context, total, largest = _merge(context, total, largest, scores, values)
            context = after(context, total) if after else context
        parts.append((context if after else context / total[..., None], largest + total.log()))
    return _join(parts)


IN_EACH_TILE = (
    "The context is divided by the total in each tile, and what was divided is taken over as a "
    "sum. Keep sums, and divide once: after the last tile of keys."
)


@mistake("flash_attention", hint=IN_EACH_TILE)
def divides_in_each_tile(q, k, v, block, causal=False):
    return _running(q, k, v, block, causal, after=lambda context, total: context / total[..., None])


@mistake("flash_attention", hint=IN_EACH_TILE)
def divides_before_each_tile(q, k, v, block, causal=False):
    def before(context, total):
        return torch.where(total[..., None] > 0, context / total[..., None], context)

    return _running(q, k, v, block, causal, before)


@mistake(
    "flash_attention",
    hint="Each tile has a softmax of its own, and the results are averaged, as if all tiles "
    "weighed the same. How much a tile weighs depends on the sum of its exponentials.",
)
def averages_softmaxes(q, k, v, block, causal=False):
    scores, tiles = _scores(q, k, causal), range(0, k.shape[-2], block)
    parts = [scores[..., j : j + block].softmax(-1) @ v[..., j : j + block, :] for j in tiles]
    return sum(parts) / len(parts), scores.logsumexp(-1)


def _whole(length, block):
    return range(0, length - block + 1, block)


@mistake("flash_attention", hint=SHORT_LAST)
def drops_the_last_keys(q, k, v, block, causal=False):
    return _running(q, k, v, block, causal, columns=_whole(k.shape[-2], block))


@mistake("flash_attention", hint=SHORT_LAST)
def drops_the_last_queries(q, k, v, block, causal=False):
    return _running(q, k, v, block, causal, rows=_whole(q.shape[-2], block))


@mistake("flash_attention", hint=SHORT_LAST)
def drops_both_rests(q, k, v, block, causal=False):
    rows, columns = _whole(q.shape[-2], block), _whole(k.shape[-2], block)
    return _running(q, k, v, block, causal, rows=rows, columns=columns)


@mistake(
    "flash_attention",
    hint="The inner loop runs over the blocks of T_q. It should go through the keys, and "
    "there are T_k of them.",
)
def counts_keys_by_the_queries(q, k, v, block, causal=False):
    return _running_over(q, k, v, block, causal, q.shape[-2])


def _running_over(q, k, v, block, causal, length):
    """The columns up to a length: where there are no more keys, there is nothing to take in."""
    columns = [j for j in range(0, length, block) if j < k.shape[-2]]
    return _running(q, k, v, block, causal, columns=columns)


def _join(parts):
    return torch.cat([part[0] for part in parts], -2), torch.cat([part[1] for part in parts], -1)


@mistake(
    "flash_attention",
    hint="The maximum is that of each tile alone. In a tile that is hidden as a whole it is -inf, "
    "and before a tile of small scores the old sums overflow: keep the larger of old and new.",
)
def takes_each_tiles_maximum(q, k, v, block, causal=False):
    return _join(_by_maximum(q, k, v, block, causal, -INF, lambda old, new: new))


BEGINS_FINITE = (
    "The maximum begins at a finite number, such as 0. Where all scores are far below it, all "
    "powers vanish: begin at -inf."
)


@mistake("flash_attention", hint=BEGINS_FINITE)
def begins_at_zero(q, k, v, block, causal=False):
    return _join(_by_maximum(q, k, v, block, causal, 0.0, torch.maximum))


@mistake(
    "flash_attention",
    hint=BEGINS_FINITE,
    earns=(
        "the context",
        "lse",
        "with causal=True",
    ),
)
def begins_at_minus_a_hundred(q, k, v, block, causal=False):
    return _join(_by_maximum(q, k, v, block, causal, -100.0, torch.maximum))


HIDES_FINITE = (
    "With causal, what is hidden gets a finite score, not -inf. Where all that a query sees scores "
    "lower still, the weight goes to what is hidden: only -inf is below every score."
)


def _tiles_filled(q, k, v, block, causal, low):
    def tile(q, k, i, j, block, causal):
        scores = _tile(q, k, i, j, block, causal)
        return scores.masked_fill(scores == -INF, low)

    return _in_tiles(q, k, v, block, causal, _right, tile)


@mistake(
    "flash_attention",
    hint=HIDES_FINITE,
    earns=(
        "the context",
        "with shorter last tiles and large scores",
        "lse",
    ),
)
def hides_with_a_hundred(q, k, v, block, causal=False):
    return _tiles_filled(q, k, v, block, causal, -100.0)


@mistake("flash_attention", hint=HIDES_FINITE)
def hides_with_ten_thousand(q, k, v, block, causal=False):
    return _tiles_filled(q, k, v, block, causal, -1e4)


@mistake(
    "flash_attention",
    hint="Only the last block of queries is returned. Keep what each block gives, and join all of "
    "them along the positions.",
)
def returns_the_last_block(q, k, v, block, causal=False):
    return _by_maximum(q, k, v, block, causal, -INF, torch.maximum)[-1]


def _tiles(q, k, v, block, causal, shrink=(True, True), finish=None, fresh=True, outer=None):
    """The two loops with running maximum, total and context, and steps that can be changed.

    ``shrink`` says whether total and context shrink, ``finish`` makes (context, lse) of the three
    numbers, ``fresh`` whether they begin anew for each block of queries.
    """
    contexts, sums, numbers = [], [], None
    for i in range(0, q.shape[-2], block):
        if fresh or numbers is None:
            numbers = torch.full_like(q[..., i : i + block, :1], -INF), 0.0, 0.0
        for j in range(0, k.shape[-2], block):
            if causal and outer and j > 0 and outer(i, j):
                break
            scores, (old, total, context) = _tile(q, k, i, j, block, causal), numbers
            new = old.maximum(scores.amax(-1, keepdim=True))
            powers, factor = torch.exp(scores - new), torch.exp(old - new)
            total = (factor if shrink[0] else 1) * total + powers.sum(-1, keepdim=True)
            context = (factor if shrink[1] else 1) * context + powers @ v[..., j : j + block, :]
            numbers = new, total, context
        found = (finish or _finished)(*numbers, scores)
        contexts.append(found[0])
        sums.append(found[1].squeeze(-1))
    return torch.cat(contexts, -2), torch.cat(sums, -1)


def _finished(largest, total, context, scores):
    return context / total, largest + total.log()


@mistake(
    "flash_attention",
    hint="Total and context are taken over as they are. They were made with the old maximum: when "
    "it grows, both must shrink by exp(old maximum - new maximum).",
)
def shrinks_nothing(q, k, v, block, causal=False):
    return _tiles(q, k, v, block, causal, (False, False))


@mistake(
    "flash_attention",
    hint="Only the context shrinks with the new maximum. The total is a sum of the same powers: it "
    "must shrink, too.",
)
def shrinks_only_the_running_context(q, k, v, block, causal=False):
    return _tiles(q, k, v, block, causal, (False, True))


@mistake(
    "flash_attention",
    hint="Only the total shrinks with the new maximum. The context is a sum of the same powers: it "
    "must shrink, too.",
)
def shrinks_only_the_running_total(q, k, v, block, causal=False):
    return _tiles(q, k, v, block, causal, (True, False))


@mistake(
    "flash_attention",
    hint="For lse the maximum is subtracted. The total is a sum of exp(score - maximum): multiply "
    "it by exp(maximum), then take the logarithm.",
)
def subtracts_the_maximum_from_lse(q, k, v, block, causal=False):
    def finish(largest, total, context, scores):
        return context / total, total.log() - largest

    return _tiles(q, k, v, block, causal, finish=finish)


@mistake(
    "flash_attention",
    hint="lse is the logarithm of the total alone. The total is a sum of exp(score - maximum), so "
    "the maximum is missing.",
)
def forgets_the_maximum_in_lse(q, k, v, block, causal=False):
    def finish(largest, total, context, scores):
        return context / total, total.log()

    return _tiles(q, k, v, block, causal, finish=finish)


@mistake(
    "flash_attention",
    hint="For lse, maximum and logarithm are multiplied. The logarithm of a product is a sum.",
)
def multiplies_for_lse(q, k, v, block, causal=False):
    def finish(largest, total, context, scores):
        return context / total, largest * total.log()

    return _tiles(q, k, v, block, causal, finish=finish)


@mistake(
    "flash_attention",
    hint="What is returned as lse is the total as it is: neither multiplied by exp(maximum), nor "
    "its logarithm.",
)
def returns_the_total(q, k, v, block, causal=False):
    def finish(largest, total, context, scores):
        return context / total, total

    return _tiles(q, k, v, block, causal, finish=finish)


@mistake(
    "flash_attention",
    hint="lse is the maximum plus the total. It is the total's logarithm that belongs there.",
)
def adds_the_total_to_the_maximum(q, k, v, block, causal=False):
    def finish(largest, total, context, scores):
        return context / total, largest + total

    return _tiles(q, k, v, block, causal, finish=finish)


@mistake(
    "flash_attention",
    hint="lse is the logarithm of exp(maximum) · total, computed as it stands: exp overflows for "
    "large scores. The logarithm of a product is a sum of logarithms.",
)
def overflows_in_lse(q, k, v, block, causal=False):
    def finish(largest, total, context, scores):
        return context / total, (largest.exp() * total).log()

    return _tiles(q, k, v, block, causal, finish=finish)


@mistake("flash_attention", hint="lse is that of the last tile of keys. All keys belong to it.")
def takes_lse_of_the_last_tile(q, k, v, block, causal=False):
    def finish(largest, total, context, scores):
        return context / total, scores.logsumexp(-1, keepdim=True)

    return _tiles(q, k, v, block, causal, finish=finish)


@mistake(
    "flash_attention",
    hint="The context is never divided by the total: it is a sum, not an average.",
)
def never_divides(q, k, v, block, causal=False):
    def finish(largest, total, context, scores):
        return context, largest + total.log()

    return _tiles(q, k, v, block, causal, finish=finish)


@mistake(
    "flash_attention",
    hint="The context is divided by lse. Divide by the total, the sum of the powers themselves.",
)
def divides_by_lse(q, k, v, block, causal=False):
    def finish(largest, total, context, scores):
        lse = largest + total.log()
        return context / lse, lse

    return _tiles(q, k, v, block, causal, finish=finish)


@mistake(
    "flash_attention",
    hint="With causal, the tile on the diagonal is skipped: only the tiles wholly before the "
    "queries are seen, and the first. A query sees itself, and what its own tile has before it.",
)
def skips_the_diagonal(q, k, v, block, causal=False):
    return _tiles(q, k, v, block, causal, outer=lambda i, j: j >= i)


@mistake(
    "flash_attention",
    hint="Maximum, total and context begin once for all. Each block of queries begins with its "
    "own.",
)
def begins_only_once(q, k, v, block, causal=False):
    return _tiles(q, k, v, block, causal, fresh=False)


@mistake(
    "flash_attention",
    hint="The maximum, the total or the context are made for `block` queries. The last block may "
    "have fewer: a slice of q knows how many.",
)
def begins_with_whole_blocks(q, k, v, block, causal=False):
    parts = []
    for i in range(0, q.shape[-2], block):
        largest = q.new_full((*q.shape[:-2], block), -INF)
        numbers = q.new_zeros(*largest.shape, v.shape[-1]), torch.zeros_like(largest), largest
        for j in range(0, k.shape[-2], block):
            scores = _tile(q, k, i, j, block, causal)
            numbers = _merge(*numbers, scores, v[..., j : j + block, :])
        parts.append((numbers[0] / numbers[1][..., None], numbers[2] + numbers[1].log()))
    return _join(parts)


@mistake(
    "flash_attention",
    hint="The context begins with d_k features. It is made of values, which have d_v.",
)
def begins_with_the_features_of_q(q, k, v, block, causal=False):
    parts = []
    for i in range(0, q.shape[-2], block):
        rows = q[..., i : i + block, :]
        largest = torch.full_like(rows[..., 0], -INF)
        numbers = torch.zeros_like(rows), torch.zeros_like(largest), largest
        for j in range(0, k.shape[-2], block):
            scores = _tile(q, k, i, j, block, causal)
            numbers = _merge(*numbers, scores, v[..., j : j + block, :])
        parts.append((numbers[0] / numbers[1][..., None], numbers[2] + numbers[1].log()))
    return _join(parts)


@mistake(
    "flash_attention",
    hint="A part is kept for every tile. Divide and keep after the inner loop: once for each "
    "block of queries.",
)
def keeps_every_tile(q, k, v, block, causal=False):
    parts = []
    for i in range(0, q.shape[-2], block):
        for stop in range(block, k.shape[-2] + block, block):
            seen = _tiles(q[..., : i + block, :], k[..., :stop, :], v, block, causal)
            parts.append((seen[0][..., i:, :], seen[1][..., i:]))
    return _join(parts)


@mistake(
    "flash_attention",
    hint="The keys go as far as there are queries: those from position T_q on are never seen. "
    "There are T_k keys.",
)
def cuts_the_keys_to_the_queries(q, k, v, block, causal=False):
    T_q = q.shape[-2]
    return _tiles(q, k[..., :T_q, :], v[..., :T_q, :], block, causal)


@mistake(
    "flash_attention",
    hint="causal is used the wrong way around: False hides what comes later, True does not.",
)
def inverts_causal(q, k, v, block, causal=False):
    return _tiles(q, k, v, block, not causal)


@alternative("flash_attention")
def keeps_sum_and_maximum(q, k, v, block, causal=False):
    parts = []
    for i in range(0, q.shape[-2], block):
        rows = q[..., i : i + block, :]
        largest = torch.full_like(rows[..., :1], -INF)
        total = torch.zeros_like(rows[..., :1])
        context = torch.zeros_like(rows[..., :1]) * v[..., :1, :]
        for j in range(0, k.shape[-2], block):
            scores = _tile(q, k, i, j, block, causal)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            old, powers = torch.exp(largest - new), torch.exp(scores - new)
            total = old * total + powers.sum(-1, keepdim=True)
            context = old * context + powers @ v[..., j : j + block, :]
            largest = new
        parts.append(torch.cat([context / total, largest + total.log()], -1))
    both = torch.cat(parts, -2)
    return both[..., :-1], both[..., -1]


@alternative("flash_attention")
def goes_down_the_columns(q, k, v, block, causal=False):
    lse = (q[..., 0] * 0).masked_fill(torch.ones_like(q[..., 0], dtype=torch.bool), -INF)
    context = q.new_zeros((*q.shape[:-1], v.shape[-1]))
    for j in range(0, k.shape[-2], block):
        scores = torch.einsum("...qd,...kd->...qk", q, k[..., j : j + block, :])
        scores = scores * q.shape[-1] ** -0.5
        if causal:
            T_q, n = scores.shape[-2:]
            seen = torch.ones(T_q, n, dtype=torch.bool, device=q.device).tril(-j)
            scores = scores.masked_fill(~seen, -INF)
        context, lse = _right(context, lse, scores, v[..., j : j + block, :])
    return context, lse


@alternative("flash_attention")
def skips_hidden_tiles(q, k, v, block, causal=False):
    contexts, sums = [], []
    for i in range(0, q.shape[-2], block):
        tiles = [
            (_tile(q, k, i, j, block, causal), v[..., j : j + block, :])
            for j in range(0, k.shape[-2], block)
            if not causal or j < i + block
        ]
        lse = torch.stack([scores.logsumexp(-1) for scores, _ in tiles]).logsumexp(0)
        contexts.append(sum(torch.exp(scores - lse[..., None]) @ v for scores, v in tiles))
        sums.append(lse)
    return [torch.cat(contexts, -2), torch.cat(sums, -1)]


@alternative("flash_attention")
def all_at_once(q, k, v, block, causal=False):
    return _finish(_scores(q, k, causal), v)


@careless("flash_attention")
def begins_on_the_cpu(q, k, v, block, causal=False):
    context, lse = torch.zeros(*q.shape[:-1], v.shape[-1]), torch.full(q.shape[:-1], -INF)
    for j in range(0, k.shape[-2], block):
        values, scores = v[..., j : j + block, :], _scores(q, k, causal)[..., j : j + block]
        context, lse = _right(context, lse, scores, values)
    return context, lse


@careless("flash_attention")
def writes_blocks_into_zeros(q, k, v, block, causal=False):
    context, lse = torch.zeros(*q.shape[:-1], v.shape[-1]), torch.zeros(q.shape[:-1])
    whole = _in_tiles(q, k, v, block, causal, _right)
    for i in range(0, q.shape[-2], block):
        context[..., i : i + block, :] = whole[0][..., i : i + block, :]
        lse[..., i : i + block] = whole[1][..., i : i + block]
    return context, lse


def _back(q, k, v, context, lse, grad_context, scale=None, shared=None, weigh=None, outer=None):
    """Gradients from all scores at once, with one formula replaced."""
    scores = _scores(q, k)
    weights = torch.exp(scores - lse[..., None]) if weigh is None else weigh(scores, lse)
    grad_weights = grad_context @ v.transpose(-2, -1)
    shared = (context * grad_context).sum(-1, keepdim=True) if shared is None else shared
    grad_scores = weights * (grad_weights - shared) if outer is None else outer(weights)
    grad_scores = grad_scores / (math.sqrt(q.shape[-1]) if scale is None else scale)
    return (
        grad_scores @ k,
        grad_scores.transpose(-2, -1) @ q,
        weights.transpose(-2, -1) @ grad_context,
    )


@mistake(
    "flash_attention_backward",
    hint="The softmax is forgotten on the way back: from the gradient of each weight, what the "
    "row's weights share is subtracted, (context · grad_context) summed over the features.",
    earns=("grad_v",),
)
def subtracts_nothing_shared(q, k, v, context, lse, grad_context, block):
    return _back(q, k, v, context, lse, grad_context, shared=torch.zeros_like(lse)[..., None])


@mistake(
    "flash_attention_backward", hint="What the weights of a row share is added, not subtracted."
)
def adds_what_is_shared(q, k, v, context, lse, grad_context, block):
    shared = -(context * grad_context).sum(-1, keepdim=True)
    return _back(q, k, v, context, lse, grad_context, shared=shared)


@mistake(
    "flash_attention_backward",
    hint="What the weights share is the mean of context · grad_context over the features. It is "
    "their sum.",
)
def averages_what_is_shared(q, k, v, context, lse, grad_context, block):
    shared = (context * grad_context).mean(-1, keepdim=True)
    return _back(q, k, v, context, lse, grad_context, shared=shared)


@mistake(
    "flash_attention_backward",
    hint="The gradients of q and k are not divided by √d_k. The scores were.",
    earns=("grad_v",),
)
def forgets_the_scale_of_gradients(q, k, v, context, lse, grad_context, block):
    return _back(q, k, v, context, lse, grad_context, scale=1.0)


@mistake(
    "flash_attention_backward",
    hint="Each tile is scaled by a softmax of its own. The weights are exp(score - lse), with the "
    "lse of all keys: that is what it was kept for.",
)
def takes_a_softmax_of_each_tile(q, k, v, context, lse, grad_context, block):
    def own(scores, lse):
        return torch.cat([part.softmax(-1) for part in scores.split(block, -1)], -1)

    return _back(q, k, v, context, lse, grad_context, weigh=own)


@mistake(
    "flash_attention_backward",
    hint="The gradient of the scores is not multiplied by the weights.",
)
def forgets_the_weights(q, k, v, context, lse, grad_context, block):
    def bare(weights):
        grad_weights = grad_context @ v.transpose(-2, -1)
        return grad_weights - (context * grad_context).sum(-1, keepdim=True)

    return _back(q, k, v, context, lse, grad_context, outer=bare)


@mistake(
    "flash_attention_backward",
    hint="The gradients of q and k are exchanged.",
)
def exchanges_q_and_k(q, k, v, context, lse, grad_context, block):
    grad_q, grad_k, grad_v = _back(q, k, v, context, lse, grad_context)
    return grad_k, grad_q, grad_v


@mistake("flash_attention_backward", hint="The order of the results: grad_q, grad_k, grad_v.")
def returns_them_backwards(q, k, v, context, lse, grad_context, block):
    return _back(q, k, v, context, lse, grad_context)[::-1]


@mistake(
    "flash_attention_backward",
    hint="In the gradients of k and v only the last block of queries is left: each tile overwrites "
    "what was there. Every block of queries adds its part: +=.",
    earns=("grad_q",),
)
def overwrites_k_and_v(q, k, v, context, lse, grad_context, block):
    last = slice((q.shape[-2] - 1) // block * block, None)
    full = _back(q, k, v, context, lse, grad_context)
    rows = q[..., last, :], k, v, context[..., last, :], lse[..., last], grad_context[..., last, :]
    return full[0], *_back(*rows)[1:]


@mistake(
    "flash_attention_backward",
    hint="In the gradient of q only the last block of keys is left: each tile overwrites what was "
    "there. Every block of keys adds its part: +=.",
    earns=(
        "grad_v",
        "grad_k",
    ),
)
def overwrites_q(q, k, v, context, lse, grad_context, block):
    last = slice((k.shape[-2] - 1) // block * block, None)
    full = _back(q, k, v, context, lse, grad_context)
    part = _back(q, k[..., last, :], v[..., last, :], context, lse, grad_context)
    return part[0], *full[1:]


@mistake(
    "flash_attention_backward",
    hint="grad_v is multiplied by the values. It is the weights, transposed, times grad_context, "
    "and no more.",
    earns=(
        "grad_k",
        "grad_q",
    ),
)
def sends_the_context_to_v(q, k, v, context, lse, grad_context, block):
    grad_q, grad_k, grad_v = _back(q, k, v, context, lse, grad_context)
    return grad_q, grad_k, grad_v * v


def _back_in_tiles(q, k, v, context, lse, grad_context, block, T_q=None, T_k=None, share=None):
    """Tile by tile, up to other lengths, or with another term that the weights share."""
    grad_q, grad_k, grad_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    whole = (context * grad_context).sum(-1, keepdim=True)
    for i in range(0, q.shape[-2] if T_q is None else T_q, block):
        rows = slice(i, i + block)
        for j in range(0, k.shape[-2] if T_k is None else T_k, block):
            columns = slice(j, j + block)
            scores = _scores(q[..., rows, :], k[..., columns, :])
            weights = torch.exp(scores - lse[..., rows, None])
            grad_weights = grad_context[..., rows, :] @ v[..., columns, :].transpose(-2, -1)
            shared = whole[..., rows, :] if share is None else share(weights, grad_weights)
            grad_scores = weights * (grad_weights - shared) / math.sqrt(q.shape[-1])
            grad_q[..., rows, :] += grad_scores @ k[..., columns, :]
            grad_k[..., columns, :] += grad_scores.transpose(-2, -1) @ q[..., rows, :]
            grad_v[..., columns, :] += weights.transpose(-2, -1) @ grad_context[..., rows, :]
    return grad_q, grad_k, grad_v


@mistake(
    "flash_attention_backward",
    hint="What the weights of a row share is summed within each tile. It is a sum over all tiles "
    "of the row: take context · grad_context, which is known beforehand.",
    earns=("grad_v",),
)
def shares_within_the_tile(*arguments):
    return _back_in_tiles(*arguments, share=lambda w, grad: (w * grad).sum(-1, keepdim=True))


@mistake(
    "flash_attention_backward",
    hint="The inner loop runs over the blocks of T_q. It should go through the keys, and "
    "there are T_k of them.",
)
def counts_keys_by_queries(q, *rest):
    return _back_in_tiles(q, *rest, T_k=q.shape[-2])


@mistake(
    "flash_attention_backward",
    hint="The outer loop runs over the blocks of T_k. It should go through the queries, and "
    "there are T_q of them.",
)
def counts_queries_by_keys(q, k, *rest):
    return _back_in_tiles(q, k, *rest, T_q=k.shape[-2])


UNGUARDED = (
    "exp is taken of the scores, perhaps of lse as well, as they are, which overflows for large "
    "ones. Subtract first: the weights are exp(score - lse)."
)


@mistake("flash_attention_backward", hint=UNGUARDED)
def divides_exponentials(q, k, v, context, lse, grad_context, block):
    def weigh(scores, lse):
        return torch.exp(scores) / torch.exp(lse)[..., None]

    return _back(q, k, v, context, lse, grad_context, weigh=weigh)


@mistake("flash_attention_backward", hint=UNGUARDED)
def normalises_exponentials(q, k, v, context, lse, grad_context, block):
    def weigh(scores, lse):
        powers = torch.exp(scores)
        return powers / powers.sum(-1, keepdim=True)

    return _back(q, k, v, context, lse, grad_context, weigh=weigh)


@mistake(
    "flash_attention_backward",
    hint="The gradients are float32 whatever comes in. torch.zeros alone makes float32; "
    "torch.zeros_like takes the precision of q, k and v.",
)
def returns_float32(*arguments):
    return tuple(one.float() for one in _back(*arguments[:6]))


@alternative("flash_attention_backward")
def sums_the_shared_first(q, k, v, context, lse, grad_context, block):
    shared = torch.zeros_like(lse)[..., None]
    for j in range(0, k.shape[-2], block):
        weights = torch.exp(_scores(q, k[..., j : j + block, :]) - lse[..., None])
        grad_weights = grad_context @ v[..., j : j + block, :].transpose(-2, -1)
        shared = shared + (weights * grad_weights).sum(-1, keepdim=True)
    return _back(q, k, v, context, lse, grad_context, shared=shared)


@alternative("flash_attention_backward")
def all_scores_at_once(q, k, v, context, lse, grad_context, block):
    return _back(q, k, v, context, lse, grad_context)


@alternative("flash_attention_backward")
def columns_only(q, k, v, context, lse, grad_context, block):
    scale, shared = q.shape[-1] ** -0.5, torch.einsum("...d,...d->...", context, grad_context)
    grad_q, of_k, of_v = 0, [], []
    for keys, values in zip(k.split(block, -2), v.split(block, -2), strict=True):
        weights = torch.exp(scale * torch.einsum("...qd,...kd->...qk", q, keys) - lse[..., None])
        grad = torch.einsum("...qd,...kd->...qk", grad_context, values) - shared.unsqueeze(-1)
        grad = scale * grad * weights
        grad_q = grad_q + grad @ keys
        of_k.append(torch.einsum("...qk,...qd->...kd", grad, q))
        of_v.append(torch.einsum("...qk,...qd->...kd", weights, grad_context))
    return grad_q, torch.cat(of_k, -2), torch.cat(of_v, -2)


@alternative("flash_attention_backward")
def asks_autograd(q, k, v, context, lse, grad_context, block):
    with torch.enable_grad():
        leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
        result = _finish(_scores(*leaves[:2]), leaves[2])[0]
        return torch.autograd.grad(result, leaves, grad_context)


@careless("flash_attention_backward")
def scales_the_queries_in_place(q, k, v, context, lse, grad_context, block):
    q /= math.sqrt(k.shape[-1])
    weights = torch.exp(q @ k.mT - lse[..., None])
    shared = (context * grad_context).sum(-1, keepdim=True)
    grad = weights * (grad_context @ v.mT - shared)
    return grad @ k / math.sqrt(k.shape[-1]), grad.mT @ q, weights.mT @ grad_context


@careless("flash_attention_backward")
def sums_what_is_shared_on_the_cpu(q, k, v, context, lse, grad_context, block):
    shared = torch.zeros(*lse.shape, 1)
    for n in range(v.shape[-1]):
        shared = shared + (context[..., n] * grad_context[..., n])[..., None]
    return _back(q, k, v, context, lse, grad_context, shared=shared)


def _phi(x):
    return torch.where(x > 0, x + 1, torch.exp(x.clamp(max=0)))


def _linear(q, k, v, features=_phi, epsilon=0.0):
    q, k = features(q), features(k)
    return (q @ (k.transpose(-2, -1) @ v)) / ((q @ k.sum(-2).unsqueeze(-1)) + epsilon)


@mistake(
    "linear_attention",
    hint="The average is not divided by the sum of the similarities, so that the weights do not "
    "sum to 1.",
)
def never_normalises(q, k, v):
    return _phi(q) @ (_phi(k).transpose(-2, -1) @ v)


@mistake(
    "linear_attention",
    hint="The sums are divided by the number of keys. The weights should sum to 1: divide by the "
    "sum of the similarities.",
)
def divides_by_the_number_of_keys(q, k, v):
    return never_normalises(q, k, v) / k.shape[-2]


@mistake(
    "linear_attention",
    hint="The features are not used: the dot product of q and k may be negative, and then it is no "
    "similarity. Pass both through positive_features.",
)
def takes_bare_dot_products(q, k, v):
    return _linear(q, k, v, lambda x: x)


@mistake(
    "linear_attention",
    hint="Only the queries pass through positive_features. The keys have to as well.",
)
def maps_the_queries_only(q, k, v):
    q = _phi(q)
    return (q @ (k.transpose(-2, -1) @ v)) / (q @ k.sum(-2).unsqueeze(-1))


@mistake(
    "linear_attention",
    hint="Only the keys pass through positive_features. The queries have to as well.",
)
def maps_the_keys_only(q, k, v):
    k = _phi(k)
    return (q @ (k.transpose(-2, -1) @ v)) / (q @ k.sum(-2).unsqueeze(-1))


@mistake(
    "linear_attention",
    hint="The features are elu(x) without the + 1: they may be negative.",
)
def forgets_the_one(q, k, v):
    return _linear(q, k, v, F.elu)


@mistake(
    "linear_attention",
    hint="The features are relu(x). They are 0 for half of the numbers; use elu(x) + 1, "
    "which is positive_features.",
)
def takes_relu(q, k, v):
    return _linear(q, k, v, torch.relu)


@mistake(
    "linear_attention",
    hint="The features are exp(x). Use elu(x) + 1, which is positive_features.",
)
def takes_exp(q, k, v):
    return _linear(q, k, v, torch.exp)


@mistake(
    "linear_attention",
    hint="This is softmax attention. Here the similarity is the dot product of the features.",
)
def takes_softmax(q, k, v):
    if max(q.shape[-2], k.shape[-2]) > 10_000:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    return F.scaled_dot_product_attention(q, k, v)


@mistake(
    "linear_attention",
    hint="The similarities go through a softmax. They are positive already: divide by their sum.",
)
def takes_the_softmax_of_similarities(q, k, v):
    if max(q.shape[-2], k.shape[-2]) > 10_000:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    return (_phi(q) @ _phi(k).transpose(-2, -1)).softmax(-1) @ v


@mistake(
    "linear_attention",
    hint="A (T_q, T_k) matrix of similarities is made: right for short sequences, impossible for "
    "long ones. First multiply what does not have T_q among its axes: the keys and the values.",
)
def makes_the_matrix(q, k, v):
    if max(q.shape[-2], k.shape[-2]) > 10_000:  # as it would be: a terabyte
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    similarity = _phi(q) @ _phi(k).transpose(-2, -1)
    return similarity / similarity.sum(-1, keepdim=True) @ v


@mistake(
    "linear_attention",
    hint="Something is added to the denominator, against 0 / 0. Where all similarities are small, "
    "it outweighs them. They are positive: divide by their sum as it is.",
)
def adds_an_epsilon(q, k, v):
    return _linear(q, k, v, epsilon=1e-6)


@mistake(
    "linear_attention",
    hint="The result is divided by the sum over the queries, not over the keys.",
)
def normalises_the_columns(q, k, v):
    q, k = _phi(q), _phi(k)
    share = k / (k @ q.sum(-2).unsqueeze(-1))
    return q @ (share.transpose(-2, -1) @ v)


@mistake(
    "linear_attention",
    hint="The keys are normalised before they meet the queries: each feature sums to 1 over the "
    "keys. The weights of a query sum to 1 only if it is divided by its own sum.",
)
def normalises_the_features(q, k, v):
    q, k = _phi(q), _phi(k)
    return q @ ((k / k.sum(-2, keepdim=True)).transpose(-2, -1) @ v)


@mistake(
    "linear_attention",
    hint="The queries are divided by √d_k before they pass through positive_features. Here nothing "
    "is scaled.",
)
def scales_the_queries(q, k, v):
    return _linear(q / math.sqrt(q.shape[-1]), k, v)


@mistake(
    "linear_attention",
    hint="This is causal: a query sees only the keys up to its own position. Here every query sees "
    "all keys.",
)
def looks_back_only(q, k, v):
    q, k = _phi(q), _phi(k)
    if max(q.shape[-2], k.shape[-2]) > 10_000:
        sums = torch.cumsum(k * v, -2) * q
        return sums / (q * k.cumsum(-2))
    similarity = (q @ k.transpose(-2, -1)).tril()
    return similarity / similarity.sum(-1, keepdim=True) @ v


@alternative("linear_attention")
def appends_a_column_of_ones(q, k, v):
    v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
    sums = _phi(q) @ torch.einsum("...kd,...kv->...dv", _phi(k), v)
    return sums[..., :-1] / sums[..., -1:]


@alternative("linear_attention")
def sums_with_einsum(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.einsum("...nd,...nv->...dv", k, v)
    total = torch.einsum("...qd,...d->...q", q, k.sum(-2))
    return torch.einsum("...qd,...dv->...qv", q, state) / total[..., None]


@alternative("linear_attention")
def one_feature_at_a_time(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    sums, total = 0, 0
    for n in range(q.shape[-1]):
        sums = sums + q[..., n, None] * (k[..., n, None] * v).sum(-2, keepdim=True)
        total = total + q[..., n] * k[..., n].sum(-1, keepdim=True)
    return sums / total.unsqueeze(-1)


@careless("linear_attention")
def appends_ones_of_the_cpu(q, k, v):
    sums = _phi(q) @ (_phi(k).mT @ torch.cat([v, torch.ones(*v.shape[:-1], 1)], -1))
    return sums[..., :-1] / sums[..., -1:]


@careless("linear_attention")
def averages_in_numpy(q, k, v):
    q, k, v = (x.detach().numpy() for x in (_phi(q), _phi(k), v))
    sums = q @ (numpy.swapaxes(k, -2, -1) @ v)
    return torch.from_numpy(sums / (q @ k.sum(-2)[..., None]))


def _one_step(q, k, v, state, normaliser, features=_phi, read=None):
    q, k = features(q), features(k)
    before = state, normaliser
    state, normaliser = state + k[..., :, None] * v[..., None, :], normaliser + k
    seen = (state, normaliser) if read is None else read(before, (state, normaliser), (k, v))
    context = (q[..., :, None] * seen[0]).sum(-2) / (q * seen[1]).sum(-1, keepdim=True)
    return context, state, normaliser


@mistake(
    "linear_attention_step",
    hint="The context is read before the new position is taken in: a position should see itself.",
    earns=(
        "the new sums",
        "with axes in front",
    ),
)
def reads_before_writing(q, k, v, state, normaliser):
    return _one_step(q, k, v, state, normaliser, read=lambda before, after, new: before)


@mistake(
    "linear_attention_step",
    hint="The context uses the old normaliser and the new state: both should have the new "
    "position in them.",
)
def forgets_itself_in_the_normaliser(q, k, v, state, normaliser):
    return _one_step(
        q, k, v, state, normaliser, read=lambda before, after, new: (after[0], before[1])
    )


@mistake(
    "linear_attention_step",
    hint="The context uses the old state and the new normaliser: both should have the new "
    "position in them.",
)
def forgets_itself_in_the_state(q, k, v, state, normaliser):
    return _one_step(
        q, k, v, state, normaliser, read=lambda before, after, new: (before[0], after[1])
    )


@mistake(
    "linear_attention_step",
    hint="The state is replaced, not added to: all that was read before is lost.",
)
def replaces_the_state(q, k, v, state, normaliser):
    return _one_step(q, k, v, torch.zeros_like(state), torch.zeros_like(normaliser))


@mistake(
    "linear_attention_step",
    hint="The old state is returned: the next step will not know of this position.",
    earns=(
        "the context",
        "with axes in front",
    ),
)
def returns_the_old_state(q, k, v, state, normaliser):
    return _one_step(q, k, v, state, normaliser)[0], state, normaliser


@mistake(
    "linear_attention_step",
    hint="The state and the normaliser that came in are changed in place. The caller may "
    "need them again: state + …, not state += ….",
)
def writes_into_the_state(q, k, v, state, normaliser):
    context, new, total = _one_step(q, k, v, state, normaliser)
    state.copy_(new)
    normaliser.copy_(total)
    return context, state, normaliser


@mistake(
    "linear_attention_step",
    hint="The context is not divided by query features · normaliser.",
    earns=(
        "the new sums",
        "with axes in front",
    ),
)
def forgets_to_divide(q, k, v, state, normaliser):
    _, state, normaliser = _one_step(q, k, v, state, normaliser)
    return (_phi(q)[..., :, None] * state).sum(-2), state, normaliser


@mistake(
    "linear_attention_step",
    hint="The context is divided by the sum of the normaliser. How much each feature counts "
    "depends on the query: query features · normaliser.",
)
def divides_by_the_sum(q, k, v, state, normaliser):
    _, state, normaliser = _one_step(q, k, v, state, normaliser)
    context = (_phi(q)[..., :, None] * state).sum(-2)
    return context / normaliser.sum(-1, keepdim=True), state, normaliser


@mistake(
    "linear_attention_step",
    hint="The features are not used. Pass query and key through positive_features.",
)
def steps_without_features(q, k, v, state, normaliser):
    return _one_step(q, k, v, state, normaliser, lambda x: x)


@mistake(
    "linear_attention_step",
    hint="The key goes into the state as it is. Pass it through positive_features, as the query.",
)
def stores_the_bare_key(q, k, v, state, normaliser):
    state, normaliser = state + k[..., :, None] * v[..., None, :], normaliser + k
    context = (_phi(q)[..., :, None] * state).sum(-2)
    return context / (_phi(q) * normaliser).sum(-1, keepdim=True), state, normaliser


@mistake(
    "linear_attention_step",
    hint="The query is used as it is. Pass it through positive_features, as the key.",
    earns=(
        "the new sums",
        "with axes in front",
    ),
)
def asks_with_the_bare_query(q, k, v, state, normaliser):
    _, state, normaliser = _one_step(q, k, v, state, normaliser)
    context = (q[..., :, None] * state).sum(-2)
    return context / (q * normaliser).sum(-1, keepdim=True), state, normaliser


@mistake(
    "linear_attention_step",
    hint="The normaliser counts the positions. It should sum the features of their keys.",
    earns=(
        "the context",
        "with axes in front",
    ),
)
def counts_positions(q, k, v, state, normaliser):
    context, state, _ = _one_step(q, k, v, state, normaliser)
    return context, state, normaliser + 1


@mistake(
    "linear_attention_step",
    hint="The normaliser sums keys as they are. It should sum their features.",
)
def sums_bare_keys(q, k, v, state, normaliser):
    _, state, _ = _one_step(q, k, v, state, normaliser)
    normaliser = normaliser + k
    context = (_phi(q)[..., :, None] * state).sum(-2)
    return context / (_phi(q) * normaliser).sum(-1, keepdim=True), state, normaliser


@mistake(
    "linear_attention_step",
    hint="The order of the results: context, state, normaliser.",
)
def returns_the_state_first(q, k, v, state, normaliser):
    context, state, normaliser = _one_step(q, k, v, state, normaliser)
    return state, normaliser, context


@mistake(
    "linear_attention_step",
    hint="Something is added to the denominator, against 0 / 0. Where all similarities are small, "
    "it outweighs them. They are positive: divide by their sum as it is.",
)
def steps_with_an_epsilon(q, k, v, state, normaliser):
    _, state, normaliser = _one_step(q, k, v, state, normaliser)
    sums = (_phi(q)[..., :, None] * state).sum(-2)
    return sums / ((_phi(q) * normaliser).sum(-1, keepdim=True) + 1e-6), state, normaliser


@mistake(
    "linear_attention_step",
    hint="This is right for a single vector. There may be axes in front, of sequences and heads, "
    "and torch.outer takes none: let (..., d_k, 1) times (..., 1, d_v) broadcast.",
    earns=(
        "the new sums",
        "the context",
    ),
)
def takes_the_outer_product(q, k, v, state, normaliser):
    q, k = _phi(q), _phi(k)
    state, normaliser = state + torch.outer(k, v), normaliser + k
    return q @ state / (q @ normaliser), state, normaliser


@alternative("linear_attention_step")
def steps_with_einsum(q, k, v, state, normaliser):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.add(state, torch.einsum("...d,...v->...dv", k, v))
    normaliser = torch.add(normaliser, k)
    sums = torch.einsum("...d,...dv->...v", q, state)
    return sums / torch.einsum("...d,...d->...", q, normaliser)[..., None], state, normaliser


@alternative("linear_attention_step")
def steps_in_one_matrix(q, k, v, state, normaliser):
    both = torch.cat([state, normaliser.unsqueeze(-1)], -1)
    both = (
        both + _phi(k).unsqueeze(-1) @ torch.cat([v, torch.ones_like(v[..., :1])], -1)[..., None, :]
    )
    sums = (_phi(q).unsqueeze(-2) @ both).squeeze(-2)
    return [sums[..., :-1] / sums[..., -1:], both[..., :-1], both[..., -1]]


@alternative("linear_attention_step")
def steps_feature_by_feature(q, k, v, state, normaliser):
    q, k = _phi(q), _phi(k)
    rows = [state[..., n, :] + k[..., n, None] * v for n in range(k.shape[-1])]
    normaliser = normaliser + k
    sums = sum(q[..., n, None] * row for n, row in enumerate(rows))
    context = sums / (q * normaliser).sum(-1).unsqueeze(-1)
    return context, torch.stack(rows, -2), normaliser


@careless("linear_attention_step")
def reads_into_zeros(q, k, v, state, normaliser):
    right, read = _one_step(q, k, v, state, normaliser), torch.zeros(v.shape)
    for n in range(v.shape[-1]):
        read[..., n] = right[0][..., n]
    return read, *right[1:]


@careless("linear_attention_step")
def sums_from_a_zero_of_the_cpu(q, k, v, state, normaliser):
    _, state, normaliser = _one_step(q, k, v, state, normaliser)
    total = torch.zeros(q.shape[:-1])
    for n in range(q.shape[-1]):
        total = total + _phi(q)[..., n] * normaliser[..., n]
    return (_phi(q)[..., None, :] @ state).squeeze(-2) / total[..., None], state, normaliser


def _shared(q, k, v, mask, spread):
    """All heads at once, after each head of keys was spread to those of the queries."""
    _refuse(q, k)
    group = q.shape[1] // k.shape[1]
    return masked_attention(q, spread(k, group), spread(v, group), mask)


def _refuse(q, k):
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"H_kv={k.shape[1]} does not divide H={q.shape[1]}")


@mistake(
    "grouped_query_attention",
    hint="Query heads that share are not neighbours: head h looks at head h % H_kv. It should be "
    "h // (H / H_kv); repeat_interleave puts copies side by side, repeat and tile do not.",
)
def deals_them_out(q, k, v, mask=None):
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"{k.shape[1]} heads of keys do not divide {q.shape[1]} of queries")
    times = q.shape[1] // k.shape[1]
    return masked_attention(q, torch.cat([k] * times, dim=1), torch.cat([v] * times, dim=1), mask)


def _one_or_all(q, k, v, mask=None):
    return k.shape[1] in (1, q.shape[1])


@mistake(
    "break_grouped_query_attention",
    hint="With one head of keys and values all share it, and with as many as there are queries' "
    "heads nobody shares: neither depends on who shares with whom.",
    where=_one_or_all,
)
def only_one_head_of_keys():
    return torch.randn(1, 4, 2, 3), torch.randn(1, 1, 5, 3), torch.randn(1, 1, 5, 3)


@mistake(
    "break_grouped_query_attention",
    hint="All heads have the same keys and the same values, so it does not matter which is looked "
    "at.",
    where=lambda q, k, v, mask=None: bool((k == k[:, :1]).all() and (v == v[:, :1]).all()),
)
def the_same_in_all_heads():
    return torch.randn(1, 4, 2, 3), torch.ones(1, 2, 5, 3), torch.ones(1, 2, 5, 3)


@mistake(
    "break_grouped_query_attention",
    hint="All values of a sequence are the same, so their mean is that, whatever the weights are: "
    "which keys are looked at does not show.",
    where=lambda q, k, v, mask=None: bool((v == v[:, :1, :1]).all()),
)
def only_the_keys_differ():
    k = torch.arange(20.0).view(1, 2, 5, 2)
    return torch.ones(1, 4, 3, 2), k, torch.ones(1, 2, 5, 3)


@mistake(
    "break_grouped_query_attention",
    hint="All queries are zeros, so every key gets the same weight, and all heads have the same "
    "values: neither shows which head is looked at.",
    where=lambda q, k, v, mask=None: not q.any() and bool((v == v[:, :1]).all()),
)
def queries_of_zeros():
    v = torch.arange(10.0).view(1, 1, 5, 2).expand(1, 2, 5, 2)
    return torch.zeros(1, 4, 3, 2), torch.arange(20.0).view(1, 2, 5, 2), v


@mistake(
    "break_grouped_query_attention",
    hint="No query may attend to anything, so every result is 0.",
    where=lambda q, k, v, mask=None: mask is not None and not mask.any(),
)
def hides_everything():
    k = torch.arange(20.0).view(1, 2, 5, 2)
    return torch.ones(1, 4, 1, 2), k, k + 1, torch.zeros(1, 5, dtype=torch.bool)


@alternative("break_grouped_query_attention")
def three_groups_of_two():
    return torch.randn(2, 6, 4, 3), torch.randn(2, 3, 5, 3), torch.randn(2, 3, 5, 7)


@alternative("break_grouped_query_attention")
def only_the_values_differ():
    v = torch.arange(16.0).view(1, 2, 4, 2)
    mask = torch.ones(3, 4, dtype=torch.bool).tril()
    return torch.ones(1, 4, 3, 2), torch.ones(1, 2, 4, 2), v, mask


@mistake(
    "grouped_query_attention",
    hint="PyTorch's function refuses a mask with one axis. A mask of shape (T_k,) broadcasts over "
    "the queries too: give it an axis for them.",
)
def hands_on_any_mask(q, k, v, mask=None):
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"{k.shape[1]} heads of keys do not divide {q.shape[1]} of queries")
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


@mistake(
    "grouped_query_attention",
    hint="All query heads look at the first head of keys and values.",
)
def uses_the_first_head(q, k, v, mask=None):
    return _shared(q, k, v, mask, lambda x, g: x[:, :1].expand(-1, g * x.shape[1], -1, -1))


@mistake(
    "grouped_query_attention",
    hint="The heads of keys and values are averaged into one. Each group of query heads has one of "
    "its own.",
)
def averages_the_heads(q, k, v, mask=None):
    return _shared(
        q, k, v, mask, lambda x, g: x.mean(1, keepdim=True).expand(-1, g * x.shape[1], -1, -1)
    )


@mistake(
    "grouped_query_attention",
    hint="The mask is not used.",
)
def ignores_the_mask(q, k, v, mask=None):
    return _shared(q, k, v, None, lambda x, group: x.repeat_interleave(group, 1))


@mistake(
    "grouped_query_attention",
    hint="The mask is read the wrong way round. True = may attend.",
)
def inverts_the_mask(q, k, v, mask=None):
    mask = None if mask is None else ~mask
    return _shared(q, k, v, mask, lambda x, group: x.repeat_interleave(group, 1))


@mistake(
    "grouped_query_attention",
    hint="A query that may attend to nothing gives NaN. It should give zeros, as "
    "masked_attention of lesson 06 does.",
)
def fails_on_empty_rows(q, k, v, mask=None):
    _refuse(q, k)
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT / math.sqrt(q.shape[-1])
    scores = scores if mask is None else scores.masked_fill(~mask, -INF)
    return scores.softmax(-1) @ v.repeat_interleave(group, 1)


@mistake(
    "grouped_query_attention",
    hint="Only the keys are shared out by groups of neighbours; the values are dealt out in turn. "
    "A key and its value stay together.",
)
def separates_keys_from_values(q, k, v, mask=None):
    _refuse(q, k)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat(1, group, 1, 1)
    return masked_attention(q, k, v, mask)


@mistake(
    "grouped_query_attention",
    hint="The two axes of heads are still there: (B, H_kv, H / H_kv, T_q, d_v). flatten(1, 2) "
    "joins them.",
)
def keeps_the_groups(q, k, v, mask=None):
    _refuse(q, k)
    q = q.unflatten(1, (k.shape[1], -1))
    return masked_attention(q, k.unsqueeze(2), v.unsqueeze(2), mask)


@mistake(
    "grouped_query_attention",
    hint="The heads come out in the order (H / H_kv, H_kv), the wrong way round. In that of "
    "(H_kv, H / H_kv) neighbours share a head of keys and values.",
)
def groups_the_wrong_way(q, k, v, mask=None):
    _refuse(q, k)
    q = q.unflatten(1, (k.shape[1], -1))
    return masked_attention(q, k.unsqueeze(2), v.unsqueeze(2), mask).transpose(1, 2).flatten(1, 2)


@mistake(
    "grouped_query_attention",
    hint="The scores are not divided by √d_k.",
)
def groups_without_the_scale(q, k, v, mask=None):
    return _shared(
        q * math.sqrt(q.shape[-1]), k, v, mask, lambda x, group: x.repeat_interleave(group, 1)
    )


@mistake(
    "grouped_query_attention",
    hint="The mask is taken to be (T_q, T_k). It may have fewer axes, or axes of size 1: anything "
    "that broadcasts to (T_q, T_k).",
)
def repeats_the_mask(q, k, v, mask=None):
    _refuse(q, k)
    B, H, T_q, d = q.shape
    group = H // k.shape[1]
    rows = q.reshape(B, k.shape[1], group * T_q, d)
    mask = None if mask is None else mask.repeat(group, 1)
    return masked_attention(rows, k, v, mask).reshape(B, H, T_q, v.shape[-1])


FINITE = (
    "What is hidden gets a finite score, not -inf. Where all that may be seen scores lower still, "
    "the weight goes to what is hidden: only -inf is below every score."
)


def _filled(q, k, v, mask, low):
    _refuse(q, k)
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is None:
        return scores.softmax(-1) @ v
    weights = scores.masked_fill(~mask, low).softmax(-1)
    return (weights * mask.any(-1, keepdim=True)) @ v


@mistake("grouped_query_attention", hint=FINITE)
def hides_keys_with_a_hundred(q, k, v, mask=None):
    return _filled(q, k, v, mask, -100.0)


@mistake("grouped_query_attention", hint=FINITE)
def hides_keys_with_ten_thousand(q, k, v, mask=None):
    return _filled(q, k, v, mask, -1e4)


@mistake(
    "grouped_query_attention",
    hint="Something is added to the sum of the exponentials, against 0 / 0: the weights no longer "
    "sum to 1. Use masked_attention, or divide by the sum as it is.",
)
def adds_to_the_sum(q, k, v, mask=None):
    _refuse(q, k)
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT / math.sqrt(q.shape[-1])
    seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    powers = torch.exp(scores - scores.where(seen, scores.amin()).amax(-1, keepdim=True))
    powers = powers.where(seen, 0.0)
    weights = powers / (powers.sum(-1, keepdim=True) + 1e-6)
    return weights @ v.repeat_interleave(group, 1)


@mistake(
    "grouped_query_attention",
    hint="Heads that do not divide evenly should raise a ValueError, not another exception.",
)
def asserts_that_it_divides(q, k, v, mask=None):
    assert q.shape[1] % k.shape[1] == 0
    return _shared(q, k, v, mask, lambda x, group: x.repeat_interleave(group, 1))


@mistake(
    "grouped_query_attention",
    hint="Keys and values are repeated along the positions, not along the heads. q and k are "
    "(B, heads, T, d): the heads are axis 1.",
)
def repeats_the_positions(q, k, v, mask=None):
    _refuse(q, k)
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 2) for x in (k, v))
    return masked_attention(q, k, v, mask)


@alternative("grouped_query_attention")
def repeats_the_heads(q, k, v, mask=None):
    return _shared(q, k, v, mask, lambda x, group: x.repeat_interleave(group, 1))


@alternative("grouped_query_attention")
def loops_over_the_heads(q, k, v, mask=None):
    H, H_kv = q.shape[1], k.shape[1]
    if H % H_kv != 0:
        raise ValueError(f"{H} heads of queries cannot share {H_kv} heads of keys")
    group = H // H_kv
    heads = [masked_attention(q[:, h], k[:, h // group], v[:, h // group], mask) for h in range(H)]
    return torch.stack(heads, 1)


@alternative("grouped_query_attention")
def folds_the_group_into_the_queries(q, k, v, mask=None):
    _refuse(q, k)
    B, H, T_q, d = q.shape
    group = H // k.shape[1]
    rows = q.reshape(B, k.shape[1], group * T_q, d)
    mask = None if mask is None else mask.broadcast_to(T_q, k.shape[2]).repeat(group, 1)
    return masked_attention(rows, k, v, mask).reshape(B, H, T_q, v.shape[-1])


@alternative("grouped_query_attention")
def groups_with_einsum(q, k, v, mask=None):
    _refuse(q, k)
    q = q.unflatten(1, (k.shape[1], q.shape[1] // k.shape[1]))
    scores = torch.einsum("bhgqd,bhkd->bhgqk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        seen = mask | ~mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~seen, -INF)
    weights = scores.softmax(-1)
    weights = weights if mask is None else weights * mask
    return torch.einsum("bhgqk,bhkd->bhgqd", weights, v).flatten(1, 2)


@careless("grouped_query_attention")
def writes_heads_into_zeros(q, k, v, mask=None):
    _refuse(q, k)
    group, heads = q.shape[1] // k.shape[1], torch.zeros(*q.shape[:-1], v.shape[-1])
    for h in range(q.shape[1]):
        heads[:, h] = masked_attention(q[:, h], k[:, h // group], v[:, h // group], mask)
    return heads


@careless("grouped_query_attention")
def allows_all_on_the_cpu(q, k, v, mask=None):
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool) if mask is None else mask
    return repeats_the_heads(q, k, v, mask)


def _refuse_group(d_model, group):
    if d_model % group:
        raise ValueError(f"group={group} does not divide d_model={d_model}")


@mistake(
    "operations_per_byte",
    hint="A product is one operation, and adding it up another: two for each.",
)
def counts_a_product_once(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model
    numbers = matrices + batch * 2 * n_cached * d_model // group
    return batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="The matrices are read once for the whole batch. Here every sequence reads them anew.",
)
def reads_matrices_for_each_sequence(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model
    numbers = batch * (matrices + 2 * n_cached * d_model // group)
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="Every sequence has a cache of its own. Here one is counted for the whole batch.",
)
def reads_one_cache(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model
    numbers = matrices + 2 * n_cached * d_model // group
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="A new position looks at the new positions, too, itself among them: n_cached + n_new.",
)
def looks_at_the_cache_only(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * n_cached * d_model
    numbers = matrices + batch * 2 * n_cached * d_model // group
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="W_k and W_v are smaller where heads share keys and values: d_model · d_model / "
    "group each.",
)
def projects_as_if_nothing_were_shared(
    n_new, n_cached, batch, d_model, group=1, bytes_per_number=2
):
    _refuse_group(d_model, group)
    matrices = 4 * d_model**2
    products = matrices + 2 * (n_cached + n_new) * d_model
    numbers = matrices + batch * 2 * n_cached * d_model // group
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="The cache is smaller where heads share keys and values: d_model / group numbers for "
    "a key.",
)
def caches_as_if_nothing_were_shared(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model
    numbers = matrices + batch * 2 * n_cached * d_model
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="Sharing saves bytes, not scores: every query head still has scores of its own.",
)
def shares_the_scores(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model // group
    numbers = matrices + batch * 2 * n_cached * d_model // group
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="These are operations for each number. A number takes bytes_per_number bytes.",
)
def divides_by_numbers(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model
    numbers = matrices + batch * 2 * n_cached * d_model // group
    return 2 * batch * n_new * products / numbers


@mistake(
    "operations_per_byte",
    hint="The weighted average is missing: each score is d_model products, and so is adding "
    "its value.",
)
def leaves_out_the_average(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + (n_cached + n_new) * d_model
    numbers = matrices + batch * 2 * n_cached * d_model // group
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="A cache holds keys and values. This counts one of them.",
)
def caches_keys_only(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model
    numbers = matrices + batch * n_cached * d_model // group
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="The keys and values of new positions are counted as if they were read from the "
    "cache. There are n_cached in it.",
)
def reads_the_new_ones(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model
    numbers = matrices + batch * 2 * (n_cached + n_new) * d_model // group
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@mistake(
    "operations_per_byte",
    hint="This is bytes for each operation, the other way round.",
)
def divides_the_other_way_round(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = matrices + 2 * (n_cached + n_new) * d_model
    numbers = matrices + batch * 2 * n_cached * d_model // group
    return numbers * bytes_per_number / (2 * batch * n_new * products)


@mistake(
    "operations_per_byte",
    hint="Only the scores and averages are counted. The four projections are products, too.",
)
def leaves_out_the_projections(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    matrices = 2 * d_model**2 + 2 * d_model**2 // group
    products = 2 * (n_cached + n_new) * d_model
    numbers = matrices + batch * 2 * n_cached * d_model // group
    return 2 * batch * n_new * products / (numbers * bytes_per_number)


@alternative("operations_per_byte")
def counts_piece_by_piece(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    d_key = d_model // group
    weights = sum(rows * d_model for rows in (d_model, d_key, d_key, d_model))
    operations = 2 * batch * n_new * weights
    operations += 2 * batch * n_new * (n_cached + n_new) * 2 * d_model
    bytes_read = bytes_per_number * (weights + batch * n_cached * 2 * d_key)
    return operations / bytes_read


@alternative("operations_per_byte")
def counts_in_loops(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    operations = numbers = 0
    for rows in (d_model, d_model, d_model // group, d_model // group):
        operations += 2 * rows * d_model * batch * n_new
        numbers += rows * d_model
    for _ in range(batch):
        for _ in ("keys", "values"):
            operations += 2 * n_new * (n_cached + n_new) * d_model
            numbers += n_cached * d_model // group
    return operations / (numbers * bytes_per_number)


@alternative("operations_per_byte")
def divides_with_fractions(n_new, n_cached, batch, d_model, group=1, bytes_per_number=2):
    _refuse_group(d_model, group)
    kv_width = Fraction(d_model, group)
    matrices = 2 * d_model * (d_model + kv_width)
    numbers = matrices + 2 * batch * n_cached * kv_width
    products = batch * n_new * (matrices + 2 * d_model * (n_cached + n_new))
    return float(2 * products / numbers / bytes_per_number)


_DIVIDES = "group divides d_model"
_GRADIENTS = "gradients come out, which are not differentiated again"
_EITHER = "the larger of two numbers does not depend on which comes first"
_EMPTY = "both lists are empty"
_WIDTH = "queries and keys have one length"
_ROWS = "there are as many contexts as queries"
_COLUMNS = "there are as many values as keys"
EQUIVALENT = {
    "operations_per_byte: with `/` once where `//` belongs: matrices = 2 * d_model ** 2 + "
    "2 * d_model ** 2 / group": _DIVIDES,
    "operations_per_byte: with `/` once where `//` belongs: numbers = matrices + batch * 2 * "
    "n_cached * d_model / group": _DIVIDES,
    "online_softmax: with two arguments of one call of `maximum` exchanged: largest = "
    "torch.maximum(scores.amax(dim=-1), maximum)": _EITHER,
    "flash_attention: with the two items of a pair exchanged: contexts, sums = ([], [])": _EMPTY,
    "flash_attention: with `v` once where `k` belongs: for j in range(0, v.shape[-2], "
    "block): scores = tile_scores(q, k, i, j, block, causal) old, maximum = (maximum, "
    "maximum…": _COLUMNS,
    "flash_attention_backward: with `context` once where `q` belongs: for i in range(0, "
    "context.shape[-2], block): rows = slice(i, i + block) for j in range(0, k.shape[-2], "
    "block): columns …": _ROWS,
    "flash_attention_backward: with `grad_context` once where `q` belongs: for i in "
    "range(0, grad_context.shape[-2], block): rows = slice(i, i + block) for j in range(0, "
    "k.shape[-2], block): col…": _ROWS,
    "flash_attention_backward: whose result is cut off from the gradient: return "
    "(grad_q.detach(), grad_k.detach(), grad_v.detach())": _GRADIENTS,
    "flash_attention_backward: with `v` once where `k` belongs: for j in range(0, "
    "v.shape[-2], block): columns = slice(j, j + block) scores = tile_scores(q, k, i, j, "
    "block) weights = …": _COLUMNS,
    "flash_attention_backward: with `k` once where `q` belongs: grad_scores = weights * "
    "(grad_weights - shared[..., rows, :]) / math.sqrt(k.shape[-1])": _WIDTH,
}
