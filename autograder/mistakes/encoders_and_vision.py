"""Wrong and right answers to the exercises of lesson 16."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.encoders_and_vision import IGNORED
from attention.masked_attention import masked_attention
from attention.provided.data.tokens import PAD
from attention.tokens_and_positions import LearnedPositions
from attention.transformer import Encoder
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _everything(x):
    return torch.ones(x.shape[:-1], dtype=torch.bool, device=x.device)


def _mean(x, mask, count=None, dim=1):
    """The mean of the real tokens, divided by another count if one is given."""
    mask = _everything(x) if mask is None else mask
    total = (x * mask.unsqueeze(-1)).sum(dim)
    return total / (mask.sum(1, keepdim=True).clamp(min=1) if count is None else count(mask))


@mistake(
    "mean_pooling",
    hint="The mask is not used: the padding counts as if it were tokens.",
)
def counts_the_padding(x, mask=None):
    return x.mean(1)


@mistake(
    "mean_pooling",
    hint="The padding is set to 0, but the sum is divided by T, padding included. Divide by the "
    "number of real tokens of each sequence.",
)
def divides_by_the_length(x, mask=None):
    return _mean(x, mask, lambda mask: mask.shape[1])


@mistake(
    "mean_pooling",
    hint="The sum is not divided: a long sequence would get a longer vector. Take the mean.",
)
def only_sums(x, mask=None):
    return _mean(x, mask, lambda mask: 1)


@mistake(
    "mean_pooling",
    hint="All sequences are divided by the number of real tokens in the whole batch. Each "
    "sequence has its own.",
)
def divides_by_the_batchs_count(x, mask=None):
    return _mean(x, mask, lambda mask: mask.sum().clamp(min=1))


@mistake(
    "mean_pooling",
    hint="Under a mask all sequences are divided by the number of real tokens in the whole batch. "
    "Each sequence has its own.",
)
def divides_by_the_batchs_count_under_a_mask(x, mask=None):
    return x.mean(1) if mask is None else _mean(x, mask, lambda mask: mask.sum().clamp(min=1))


@mistake(
    "mean_pooling",
    hint="Under a mask all sequences are divided by the number of real tokens in the whole batch, "
    "which may even be 0. Each sequence has its own, and is divided by 1 at least.",
)
def divides_by_the_batchs_count_or_zero(x, mask=None):
    return x.mean(1) if mask is None else _mean(x, mask, lambda mask: mask.sum())


@mistake(
    "mean_pooling",
    hint="The counts are (B,), which would have to match the features. They should be (B, 1), "
    "so that each row is divided by its own: sum has keepdim=True.",
)
def lays_the_counts_flat(x, mask=None):
    return x.mean(1) if mask is None else _mean(x, mask, lambda mask: mask.sum(1).clamp(min=1))


@mistake(
    "mean_pooling",
    hint="The mask is (B, T) and x (B, T, d_model): their last axes do not belong together. Give "
    "the mask one more axis at its end.",
)
def forgets_the_masks_axis(x, mask=None):
    if mask is None:
        return x.mean(1)
    return (x * mask).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


@mistake(
    "mean_pooling",
    hint="The mask is (B, T) and x (B, T, d_model): their last axes do not belong together. Give "
    "the mask one more axis at its end.",
)
def fills_without_the_masks_axis(x, mask=None):
    if mask is None:
        return x.mean(1)
    return x.masked_fill(~mask, 0.0).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


@mistake("mean_pooling", hint="The mask is read the wrong way round. True is a real token.")
def keeps_the_padding(x, mask=None):
    return _mean(x, None if mask is None else ~mask)


@mistake(
    "mean_pooling",
    hint="A sequence without a real token gives 0 / 0, which is NaN. It should give zeros: divide "
    "by 1 at least.",
)
def divides_by_zero(x, mask=None):
    return _mean(x, mask, lambda mask: mask.sum(1, keepdim=True))


@mistake(
    "mean_pooling",
    hint="A sequence without a real token is divided by a count of 0, and Python raises. Such a "
    "sequence should give zeros: divide by 1 at least.",
)
def divides_by_zero_in_python(x, mask=None):
    if mask is None:
        return x.mean(1)
    return torch.stack([sum(v[kept]) / int(kept.sum()) for v, kept in zip(x, mask, strict=True)])


NOT_COUNTED = (
    "Tokens of zeros are not counted. A real token may be all zeros: only the mask says which "
    "tokens are real, and without a mask all of them are."
)


@mistake("mean_pooling", hint=NOT_COUNTED)
def counts_what_is_not_zero_without_a_mask(x, mask=None):
    return _mean(x, (x != 0).any(-1) if mask is None else mask)


@mistake("mean_pooling", hint=NOT_COUNTED)
def counts_what_is_not_zero(x, mask=None):
    x = x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)
    return x.sum(1) / (x != 0).any(-1).sum(1, keepdim=True).clamp(min=1)


@mistake(
    "mean_pooling",
    hint="squeeze() without an axis takes away every axis of size 1, such as that of a batch of "
    "one. The sum over axis 1 has no such axis to begin with.",
)
def squeezes_the_mean(x, mask=None):
    return _mean(x, mask).squeeze()


@mistake(
    "mean_pooling",
    hint="The axis of the tokens is still there, with size 1: (B, 1, d_model). The result should "
    "be (B, d_model).",
)
def keeps_the_tokens_axis(x, mask=None):
    return _mean(x, mask).unsqueeze(1)


@mistake(
    "mean_pooling",
    hint="1 is added to the number of tokens, to avoid 0 / 0. Then every mean is too small. "
    "Only a count of 0 becomes 1.",
)
def adds_one_to_the_count(x, mask=None):
    return _mean(x, mask, lambda mask: mask.sum(1, keepdim=True) + 1)


@mistake(
    "mean_pooling",
    hint="The first tokens are averaged, as many as are real. The real ones need not come first: "
    "use the mask itself, not only its sum.",
)
def takes_the_first_ones(x, mask=None):
    mask = _everything(x) if mask is None else mask
    first = torch.arange(x.shape[1], device=x.device) < mask.sum(1, keepdim=True)
    return _mean(x, first)


@mistake(
    "mean_pooling",
    hint="This is one mean for all real tokens of the batch. Each sequence needs its own.",
)
def averages_the_batch(x, mask=None):
    mask = _everything(x) if mask is None else mask
    total = (x * mask.unsqueeze(-1)).sum((0, 1)) / mask.sum().clamp(min=1)
    return total.expand(len(x), -1)


@mistake(
    "mean_pooling",
    hint="x[mask] has the real tokens of all sequences in one row, so one mean comes out for the "
    "whole batch. Each sequence has its own.",
)
def averages_all_that_is_kept(x, mask=None):
    return x.mean(1) if mask is None else x[mask].mean(0, keepdim=True)


@mistake(
    "mean_pooling",
    hint="The mean is taken over the batch. x is (B, T, d_model): which axis holds the tokens?",
)
def averages_the_sequences(x, mask=None):
    if mask is None:
        return x.mean(0)
    return (x * mask.unsqueeze(-1)).sum(0) / mask.sum(0).unsqueeze(-1).clamp(min=1)


@mistake(
    "mean_pooling",
    hint="The mean is taken over the features. Which axis holds the tokens?",
)
def averages_the_features(x, mask=None):
    mask = _everything(x) if mask is None else mask
    return (x * mask.unsqueeze(-1)).mean(2)


@mistake("mean_pooling", hint="This is the largest number of each feature, not the mean.")
def takes_the_largest(x, mask=None):
    if mask is None:
        return x.amax(1)
    largest = x.masked_fill(~mask.unsqueeze(-1), -math.inf).amax(1)
    return largest.masked_fill(~mask.any(1, keepdim=True), 0.0)


@mistake(
    "mean_pooling",
    hint="mask may be None, and None has no methods. Then all tokens are real.",
)
def needs_a_mask(x, mask=None):
    return (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


@mistake(
    "mean_pooling",
    hint="mask may be None, and None cannot be indexed. Then all tokens are real.",
)
def indexes_the_mask(x, mask=None):
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


@mistake(
    "mean_pooling",
    hint="mask may be None, and ~ needs a tensor. Then all tokens are real.",
)
def inverts_none(x, mask=None):
    hidden = ~mask
    return x.masked_fill(hidden.unsqueeze(-1), 0.0).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


@mistake(
    "mean_pooling",
    hint="x[mask] = … writes into the tensor that was handed in. masked_fill makes a new one.",
)
def erases_its_input(x, mask=None):
    if mask is None:
        return x.mean(1)
    x[~mask] = 0
    return x.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


@alternative("mean_pooling")
def averages_in_a_loop(x, mask=None):
    if mask is None:
        mask = torch.ones_like(x[..., 0], dtype=torch.bool)
    rows = [v[kept].mean(0) if kept.any() else 0 * v[0] for v, kept in zip(x, mask, strict=True)]
    return torch.stack(rows)


@alternative("mean_pooling")
def averages_as_a_product(x, mask=None):
    weights = x.new_ones(x.shape[:2]) if mask is None else mask.to(x.dtype)
    weights = weights / weights.sum(1, keepdim=True).clamp(min=1.0)
    return torch.einsum("bt,btd->bd", weights, x)


@alternative("mean_pooling")
def averages_with_where(x, mask=None):
    if mask is None:
        return x.sum(1) / x.shape[1]
    total = torch.where(mask[..., None], x, torch.zeros_like(x)).sum(1)
    count = mask.long().sum(1)
    return total / torch.where(count == 0, torch.ones_like(count), count)[:, None]


@alternative("mean_pooling")
def averages_and_repairs(x, mask=None):
    kept = x.new_ones(x.shape[:2]) if mask is None else mask.to(x.dtype)
    return (kept.unsqueeze(1) @ x).squeeze(1).div(kept.sum(1, keepdim=True).clamp_min(1))


@careless("mean_pooling")
def collects_means_in_zeros(x, mask=None):
    means = torch.zeros(x.shape[0], x.shape[2])
    for b in range(len(x)):
        real = x[b] if mask is None else x[b][mask[b]]
        if len(real):
            means[b] = real.mean(0)
    return means


@careless("mean_pooling")
def makes_a_mask_on_the_cpu(x, mask=None):
    mask = torch.ones(x.shape[:2]) if mask is None else mask
    return (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


@careless("mean_pooling")
def averages_in_numpy(x, mask=None):
    real = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
    total = (x.detach().numpy() * real.numpy()[..., None]).sum(1)
    return torch.from_numpy(total / real.numpy().sum(1, keepdims=True).clip(min=1)).to(x.dtype)


def _weigh(x, query, mask, scale=None, dim=-1, empty=0.0):
    """The weights of one query."""
    scores = (x @ query) / (math.sqrt(len(query)) if scale is None else scale(x))
    mask = _everything(x) if mask is None else mask
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim).masked_fill(~mask, 0.0)
    return weights if empty is None else weights.nan_to_num(empty)


def _sum(weights, x):
    return (weights.unsqueeze(-1) * x).sum(-2), weights


@mistake(
    "attention_pooling",
    hint="The scores are not divided by √d_model.",
)
def forgets_the_scale(x, query, mask=None):
    return _sum(_weigh(x, query, mask, lambda x: 1.0), x)


@mistake(
    "attention_pooling",
    hint="The scores are divided by d_model. It should be its square root.",
)
def divides_by_the_width(x, query, mask=None):
    return _sum(_weigh(x, query, mask, lambda x: x.shape[-1]), x)


@mistake(
    "attention_pooling",
    hint="The scores are divided by the root of T. The scale belongs to the features: √d_model.",
)
def divides_by_the_root_of_the_length(x, query, mask=None):
    return _sum(_weigh(x, query, mask, lambda x: math.sqrt(x.shape[-2])), x)


@mistake(
    "attention_pooling",
    hint="The mask is not used: the padding gets weight, too.",
)
def attends_to_the_padding(x, query, mask=None):
    return _sum(_weigh(x, query, None), x)


@mistake("attention_pooling", hint="The mask is read the wrong way round. True = may attend.")
def attends_to_the_padding_only(x, query, mask=None):
    return _sum(_weigh(x, query, None if mask is None else ~mask), x)


@mistake(
    "attention_pooling",
    hint="A sequence that may attend to nothing gives NaN. `masked_attention` of lesson 06 gives "
    "weights of 0 there.",
)
def is_not_a_number(x, query, mask=None):
    mask = _everything(x) if mask is None else mask
    scores = (x @ query) / math.sqrt(len(query))
    return _sum(scores.masked_fill(~mask, -math.inf).softmax(-1), x)


@mistake(
    "attention_pooling",
    hint="Where nothing may be attended to, every token gets the same weight, as with scores of "
    "-1e9 in all places. There the weights should be 0.",
)
def shares_out_nothing(x, query, mask=None):
    mask = _everything(x) if mask is None else mask
    scores = (x @ query) / math.sqrt(len(query))
    return _sum(scores.masked_fill(~mask, -1e9).softmax(-1), x)


FINITE = (
    "What is hidden gets a finite score, not -inf. Where all that may be seen scores lower still, "
    "the weight goes to what is hidden: only -inf is below every score."
)


def _filled(x, query, mask, low):
    mask = _everything(x) if mask is None else mask
    scores = ((x @ query) / math.sqrt(len(query))).masked_fill(~mask, low)
    return _sum(scores.softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0.0), x)


@mistake("attention_pooling", hint=FINITE)
def hides_with_a_hundred(x, query, mask=None):
    return _filled(x, query, mask, -100.0)


@mistake("attention_pooling", hint=FINITE)
def hides_with_ten_thousand(x, query, mask=None):
    return _filled(x, query, mask, -1e4)


@mistake(
    "attention_pooling",
    hint="The hidden tokens get the score 0. exp(0) is 1, not 0: the score should be -inf.",
)
def scores_the_hidden_with_zero(x, query, mask=None):
    mask = _everything(x) if mask is None else mask
    scores = (x @ query) / math.sqrt(len(query))
    return _sum(scores.masked_fill(~mask, 0.0).softmax(-1), x)


@mistake(
    "attention_pooling",
    hint="The mask comes after the softmax, so the weights no longer sum to 1. Hidden scores "
    "become -inf before it.",
)
def masks_after_the_softmax(x, query, mask=None):
    weights = _weigh(x, query, None)
    return _sum(weights if mask is None else weights * mask, x)


@mistake(
    "attention_pooling",
    hint="The result is (weights, context). The context comes first.",
)
def exchanges_the_pair(x, query, mask=None):
    return _sum(_weigh(x, query, mask), x)[::-1]


@mistake(
    "attention_pooling",
    hint="The axis of the one query is still there. squeeze(-2) takes it away, from the context "
    "and from the weights.",
)
def keeps_the_query_axis(x, query, mask=None):
    mask = None if mask is None else mask.unsqueeze(-2)
    return masked_attention(query.unsqueeze(0), x, x, mask, return_weights=True)


@mistake(
    "attention_pooling",
    hint="squeeze() without an axis takes away every axis of size 1, such as that of a batch of "
    "one. Name the axis: squeeze(-2).",
)
def squeezes_too_much(x, query, mask=None):
    mask = None if mask is None else mask.unsqueeze(-2)
    pair = masked_attention(query.unsqueeze(0), x, x, mask, return_weights=True)
    return pair[0].squeeze(), pair[1].squeeze()


NEEDS_A_MASK = "mask may be None: then all tokens are real, and None is passed on as it is."


@mistake("attention_pooling", hint=NEEDS_A_MASK)
def unsqueezes_none(x, query, mask=None):
    pair = masked_attention(query[None], x, x, mask.unsqueeze(-2), return_weights=True)
    return pair[0].squeeze(-2), pair[1].squeeze(-2)


@mistake("attention_pooling", hint=NEEDS_A_MASK)
def indexes_none(x, query, mask=None):
    pair = masked_attention(query[None], x, x, mask[..., None, :], return_weights=True)
    return pair[0].squeeze(-2), pair[1].squeeze(-2)


def _pool_with(x, query, mask, lengthen=lambda mask: mask.unsqueeze(-2), cut=None):
    """Pooling with `masked_attention`, with the mask's new axis and the cut anywhere."""
    mask = None if mask is None else lengthen(mask)
    pair = masked_attention(query.unsqueeze(0), x, x, mask, return_weights=True)
    return tuple(map(cut or (lambda part: part.squeeze(-2)), pair))


@mistake(
    "attention_pooling",
    hint="The mask has no axis for the queries: `masked_attention` reads (..., T) as (T_q, T_k). "
    "It should be (..., 1, T).",
)
def passes_the_mask_as_it_is(x, query, mask=None):
    return _pool_with(x, query, mask, lambda mask: mask)


@mistake(
    "attention_pooling",
    hint="The mask's new axis stands after the tokens: (..., T, 1). The one query comes before "
    "them: (..., 1, T).",
)
def puts_the_query_axis_last(x, query, mask=None):
    return _pool_with(x, query, mask, lambda mask: mask.unsqueeze(-1))


SECOND = (
    "The mask's new axis is counted from the front, which is right for (B, T) only. There may be "
    "more or fewer axes in front of T: count from the end."
)


@mistake("attention_pooling", hint=SECOND)
def indexes_the_query_axis_second(x, query, mask=None):
    return _pool_with(x, query, mask, lambda mask: mask[:, None, :])


@mistake("attention_pooling", hint=SECOND)
def puts_the_query_axis_second(x, query, mask=None):
    return _pool_with(x, query, mask, lambda mask: mask.unsqueeze(1))


FROM_THE_FRONT = (
    "The axis of the one query is counted from the front, which is right for (B, T, d_model) only. "
    "There may be more or fewer axes in front: count from the end, with -2."
)


@mistake("attention_pooling", hint=FROM_THE_FRONT)
def squeezes_the_second_axis(x, query, mask=None):
    return _pool_with(x, query, mask, cut=lambda part: part.squeeze(1))


@mistake("attention_pooling", hint=FROM_THE_FRONT)
def takes_the_first_of_the_second_axis(x, query, mask=None):
    return _pool_with(x, query, mask, cut=lambda part: part[:, 0])


@mistake(
    "attention_pooling",
    hint="`masked_attention` gives the context alone unless it is asked for the pair, with "
    "return_weights=True. Here a context is unpacked into two.",
)
def unpacks_the_context(x, query, mask=None):
    mask = None if mask is None else mask.unsqueeze(-2)
    context, weights = masked_attention(query.unsqueeze(0), x, x, mask)
    return context.squeeze(-2), weights.squeeze(-2)


@mistake(
    "attention_pooling",
    hint="The query has no axis of its own: q is (d_model,), but T_q queries are (T_q, d_model). "
    "Here T_q = 1.",
)
def passes_the_query_as_it_is(x, query, mask=None):
    mask = None if mask is None else mask.unsqueeze(-2)
    context, weights = masked_attention(query, x, x, mask, return_weights=True)
    return context.squeeze(-2), weights.squeeze(-2)


@mistake(
    "attention_pooling",
    hint="Tokens of zeros are taken for padding. Only the mask says which tokens are real.",
)
def hides_tokens_of_zeros(x, query, mask=None):
    real = (x != 0).any(-1)
    return _pool_with(x, query, real if mask is None else real & mask)


@mistake("attention_pooling", hint="Only the context is returned. The weights are asked for, too.")
def returns_the_context_only(x, query, mask=None):
    return _sum(_weigh(x, query, mask), x)[0]


@mistake(
    "attention_pooling",
    hint="Each weight is a sigmoid of its own score, so they do not sum to 1. Take a softmax "
    "over the tokens.",
)
def takes_sigmoids(x, query, mask=None):
    mask = _everything(x) if mask is None else mask
    return _sum(torch.sigmoid((x @ query) / math.sqrt(len(query))) * mask, x)


@mistake(
    "attention_pooling",
    hint="All weight goes to the token with the largest score. That is hard attention, through "
    "which no gradient reaches the query. Take a softmax.",
)
def takes_the_best_only(x, query, mask=None):
    weights = _weigh(x, query, mask)
    best = F.one_hot(weights.argmax(-1), x.shape[-2]).to(x.dtype)
    return _sum(best * (weights > 0), x)


@mistake(
    "attention_pooling",
    hint="The softmax runs along the first axis, so the weights sum to 1 over the sequences. They "
    "should sum to 1 over the tokens of one sequence.",
)
def shares_among_sequences(x, query, mask=None):
    return _sum(_weigh(x, query, mask, dim=0), x)


@mistake("attention_pooling", hint="This is the plain mean: the query is not used.")
def ignores_the_query(x, query, mask=None):
    return _sum(_weigh(x, 0 * query, mask), x)


@mistake(
    "attention_pooling",
    hint="The values are right, but no gradient reaches the query: it could not be learned.",
)
def detaches_the_query(x, query, mask=None):
    return _sum(_weigh(x, query.detach(), mask), x)


@alternative("attention_pooling")
def with_the_kernel(x, query, mask=None):
    weights = _weigh(x, query, mask, empty=None)
    weights = torch.where(weights.isnan(), torch.zeros_like(weights), weights)
    return torch.einsum("...t,...td->...d", weights, x), weights


@alternative("attention_pooling")
def pools_in_a_loop(x, query, mask=None):
    if x.dim() > 2:
        masks = [None] * len(x) if mask is None else mask
        pairs = [pools_in_a_loop(one, query, some) for one, some in zip(x, masks, strict=True)]
        return torch.stack([pair[0] for pair in pairs]), torch.stack([pair[1] for pair in pairs])
    scores = (x * query).sum(-1) / len(query) ** 0.5
    kept = torch.ones_like(scores).bool() if mask is None else mask
    exps = torch.where(kept, (scores - scores.detach().max()).clamp(max=0).exp(), 0 * scores)
    if bool(kept.any()):
        top = scores.detach()[kept].max()
        exps = torch.where(kept, (scores - top).clamp(max=0).exp(), 0 * scores)
    weights = exps / exps.sum().clamp(min=1e-30)
    return weights @ x, weights


@alternative("attention_pooling")
def attends_with_the_last_axis_cut(x, query, mask=None):
    hidden = None if mask is None else mask[..., None, :]
    context, weights = masked_attention(query[None, :], x, x, hidden, True)
    return [context[..., 0, :], weights[..., 0, :]]


@careless("attention_pooling")
def allows_all_on_the_cpu(x, query, mask=None):
    mask = torch.ones(x.shape[:-1], dtype=torch.bool) if mask is None else mask
    weights = _weigh(x, query, mask)
    return _sum(weights, x)


@careless("attention_pooling")
def exponentiates_large_scores(x, query, mask=None):
    exps = torch.exp(x @ query / math.sqrt(len(query)))
    exps = exps if mask is None else exps.masked_fill(~mask, 0.0)
    return _sum(exps / exps.sum(-1, keepdim=True).clamp(min=1e-30), x)


@careless("attention_pooling")
def pools_in_float32(x, query, mask=None):
    return _sum(_weigh(x.float(), query.float(), mask), x.float())


class _Hierarchy(nn.Module):
    """A right answer in small methods; a mistake overrides what it gets wrong."""

    def __init__(self, d_model):
        super().__init__()
        self.word_query = nn.Parameter(torch.zeros(d_model))
        self.sentence_query = nn.Parameter(torch.zeros(d_model))

    def pool(self, x, query, mask):
        return _sum(_weigh(x, query, mask), x)

    def words(self, x, mask):
        return self.pool(x, self.word_query, mask)

    def real(self, mask):
        return None if mask is None else mask.any(-1)

    def sentences(self, x, real):
        return self.pool(x, self.sentence_query, real)

    def forward(self, x, mask=None):
        sentences, word_weights = self.words(x, mask)
        document, weights = self.sentences(sentences, self.real(mask))
        return document, weights, word_weights


class _Kernel(_Hierarchy):
    """The same with `masked_attention`, whose errors are other ones."""

    def pool(self, x, query, mask):
        return _pool_with(x, query, mask)


@mistake(
    "HierarchicalAttention",
    hint="Where nothing may be attended to, all get the same weight, as with scores of -1e9 in all "
    "places. There the weights should be 0.",
    earns=(
        "without a mask",
        "with padded words",
    ),
)
class SharesOutNothing(_Hierarchy):
    def pool(self, x, query, mask):
        return shares_out_nothing(x, query, mask)


@mistake(
    "HierarchicalAttention",
    hint="The sentence level has no mask, so a sentence of padding gets weight. A sentence is real "
    "if any of its words is.",
    earns=(
        "without a mask",
        "with padded words",
    ),
)
class WeighsEmptySentences(_Hierarchy):
    def real(self, mask):
        return None


@mistake(
    "HierarchicalAttention",
    hint="A sentence counts only if all of its words are real. Any real word is enough: most "
    "sentences have padding.",
    earns=(
        "without a mask",
        "with empty sentences",
    ),
)
class WantsFullSentences(_Hierarchy):
    def real(self, mask):
        return None if mask is None else mask.all(-1)


@mistake(
    "HierarchicalAttention",
    hint="A sentence counts if its first word is real. Look at all of its words: any real one is "
    "enough.",
)
class LooksAtFirstWords(_Hierarchy):
    def real(self, mask):
        return None if mask is None else mask[..., 0]


@mistake(
    "HierarchicalAttention",
    hint="The word level has no mask: padding gets weight as words.",
    earns=(
        "without a mask",
        "with empty sentences",
    ),
)
class WeighsPaddedWords(_Hierarchy):
    def words(self, x, mask):
        return self.pool(x, self.word_query, None)


@mistake(
    "HierarchicalAttention",
    hint="The two queries are swapped: word_query weighs the words of a sentence.",
)
class SwapsTheQueries(_Hierarchy):
    def words(self, x, mask):
        return self.pool(x, self.sentence_query, mask)

    def sentences(self, x, real):
        return self.pool(x, self.word_query, real)


@mistake("HierarchicalAttention", hint="word_query is used at both levels.")
class UsesOneQuery(_Hierarchy):
    def sentences(self, x, real):
        return self.pool(x, self.word_query, real)


@mistake("HierarchicalAttention", hint="sentence_query is used at both levels.")
class UsesTheOtherQuery(_Hierarchy):
    def words(self, x, mask):
        return self.pool(x, self.sentence_query, mask)


@mistake(
    "HierarchicalAttention",
    hint="Neither level divides its scores by √d_model.",
)
class NeverScales(_Hierarchy):
    def pool(self, x, query, mask):
        return super().pool(x, query * math.sqrt(len(query)), mask)


@mistake(
    "HierarchicalAttention",
    hint="The document is the mean of its sentences. Weigh them, with sentence_query.",
)
class AveragesSentences(_Hierarchy):
    def sentences(self, x, real):
        return self.pool(x, 0 * self.sentence_query, real)


@mistake(
    "HierarchicalAttention",
    hint="The sentences are means of their words. Weigh the words, with word_query.",
)
class AveragesWords(_Hierarchy):
    def words(self, x, mask):
        return self.pool(x, 0 * self.word_query, mask)


@mistake(
    "HierarchicalAttention",
    hint="The vector of a sentence is the plain mean of all T words, padding included: the word "
    "weights are right but do not enter it. Take the context of the first pooling.",
)
class AveragesAllWords(_Hierarchy):
    def words(self, x, mask):
        return x.mean(2), super().words(x, mask)[1]


@mistake(
    "HierarchicalAttention",
    hint="The vector of a sentence is the plain mean of its real words: the word weights are right "
    "but do not enter it. Take the context of the first pooling.",
)
class AveragesRealWords(_Hierarchy):
    def words(self, x, mask):
        mask = _everything(x) if mask is None else mask
        count = mask.sum(-1, keepdim=True).clamp(min=1)
        return (x * mask.unsqueeze(-1)).sum(2) / count, super().words(x, mask)[1]


@mistake(
    "HierarchicalAttention",
    hint="A sentence is taken for empty because its vector is zero. Words may add up to zero: "
    "only the mask says which sentences are real.",
    earns=(
        "without a mask",
        "with padded words",
    ),
)
class TakesZerosForEmpty(_Hierarchy):
    def forward(self, x, mask=None):
        sentences, word_weights = self.words(x, mask)
        real = None if mask is None else (sentences != 0).any(-1)
        return *self.sentences(sentences, real), word_weights


@mistake(
    "HierarchicalAttention",
    hint="A sentence is taken for empty because its vector is zero, even without a mask. Words may "
    "add up to zero: only the mask says which sentences are real.",
)
class AlwaysTakesZerosForEmpty(_Hierarchy):
    def forward(self, x, mask=None):
        sentences, word_weights = self.words(x, mask)
        return *self.sentences(sentences, (sentences != 0).any(-1)), word_weights


OF_ZEROS = "Words of zeros are taken for padding. What is real only the mask says."


@mistake("HierarchicalAttention", hint=OF_ZEROS)
class HidesWordsOfZerosFromWords(_Hierarchy):
    def words(self, x, mask):
        real = (x != 0).any(-1)
        return super().words(x, real if mask is None else real & mask)


@mistake("HierarchicalAttention", hint=OF_ZEROS)
class HidesWordsOfZeros(_Hierarchy):
    def forward(self, x, mask=None):
        real = (x != 0).any(-1)
        return super().forward(x, real if mask is None else real & mask)


@mistake(
    "HierarchicalAttention",
    hint="The mask is used at neither level.",
    earns=("without a mask",),
)
class IgnoresTheMask(_Hierarchy):
    def forward(self, x, mask=None):
        return super().forward(x)


@mistake(
    "HierarchicalAttention",
    hint="The mask of the sentences is (B, T): `any` goes along the axis of the sentences. Ask "
    "along the words, the last axis, and (B, S) is left.",
)
class AsksAlongTheSentences(_Kernel):
    def real(self, mask):
        return None if mask is None else mask.any(1)


@mistake(
    "HierarchicalAttention",
    hint="The mask of the words goes into the second pooling, too. There are S sentences to weigh, "
    "so its mask is (B, S).",
)
class PassesTheWordsMask(_Kernel):
    def real(self, mask):
        return mask


@mistake(
    "HierarchicalAttention",
    hint="The second pooling goes over the words again. It weighs the vectors that the first one "
    "made of the sentences.",
)
class PoolsWordsTwice(_Hierarchy):
    def forward(self, x, mask=None):
        _, word_weights = self.words(x, mask)
        return *self.pool(x, self.sentence_query, mask), word_weights


@mistake(
    "HierarchicalAttention",
    hint="All words of the document are pooled at once. First every sentence becomes a vector, "
    "then these are weighed.",
)
class PoolsAllWords(_Hierarchy):
    def forward(self, x, mask=None):
        _, weights, word_weights = super().forward(x, mask)
        flat = None if mask is None else mask.flatten(1)
        return self.pool(x.flatten(1, 2), self.word_query, flat)[0], weights, word_weights


@mistake(
    "HierarchicalAttention",
    hint="The sentences are summed, not weighed: the sentence weights do not enter the document.",
)
class SumsSentences(_Hierarchy):
    def sentences(self, x, real):
        return x.sum(1), super().sentences(x, real)[1]


@mistake(
    "HierarchicalAttention",
    hint="The word weights are multiplied by those of the sentences. Return them as they are: they "
    "sum to 1 in each sentence.",
)
class MultipliesWeights(_Hierarchy):
    def forward(self, x, mask=None):
        document, weights, word_weights = super().forward(x, mask)
        return document, weights, word_weights * weights.unsqueeze(-1)


@mistake(
    "HierarchicalAttention",
    hint="The weights come in the wrong order: first those of the sentences, then those of the "
    "words.",
)
class ReturnsWordWeightsFirst(_Hierarchy):
    def forward(self, x, mask=None):
        document, weights, word_weights = super().forward(x, mask)
        return document, word_weights, weights


@mistake(
    "HierarchicalAttention",
    hint="Only the document is returned. Both sorts of weights are asked for, too.",
)
class ReturnsDocumentsOnly(_Hierarchy):
    def forward(self, x, mask=None):
        return super().forward(x, mask)[0]


@mistake(
    "HierarchicalAttention",
    hint="Words are pooled over the axis of the sentences. x is (B, S, T, d_model): which axis "
    "holds the words?",
)
class PoolsAcrossSentences(_Hierarchy):
    def forward(self, x, mask=None):
        return super().forward(x.transpose(1, 2), None if mask is None else mask.transpose(1, 2))


@mistake(
    "HierarchicalAttention",
    hint="mask may be None, and None has no methods. Then every sentence is real.",
    earns=(
        "with padded words",
        "with empty sentences",
    ),
)
class NeedsAMask(_Hierarchy):
    def real(self, mask):
        return mask.any(-1)


@alternative("HierarchicalAttention")
class PoolsInSmallMethods(_Hierarchy):
    """The right answer from which the mistakes are made."""


@alternative("HierarchicalAttention")
class ReadsSentenceBySentence(_Hierarchy):
    def forward(self, x, mask=None):
        mask = _everything(x) if mask is None else mask
        pairs = [self.words(x[:, s], mask[:, s]) for s in range(x.shape[1])]
        sentences = torch.stack([pair[0] for pair in pairs], 1)
        document, weights = self.sentences(sentences, mask.sum(2) > 0)
        return [document, weights, torch.stack([pair[1] for pair in pairs], 1)]


@alternative("HierarchicalAttention")
class SeesRealSentencesByTheirWeights(_Hierarchy):
    def forward(self, x, mask=None):
        sentences, word_weights = self.words(x, mask)
        return *self.sentences(sentences, word_weights.detach().sum(-1) > 0), word_weights


@careless("HierarchicalAttention")
class CollectsSentencesInZeros(_Hierarchy):
    def words(self, x, mask):
        sentences, weights = torch.zeros(x[:, :, 0].shape).to(x.dtype), []
        for s in range(x.shape[1]):
            pair = self.pool(x[:, s], self.word_query, None if mask is None else mask[:, s])
            sentences[:, s] = pair[0]
            weights.append(pair[1])
        return sentences, torch.stack(weights, 1)


@careless("HierarchicalAttention")
class TakesAllWordsForRealOnTheCpu(_Hierarchy):
    def forward(self, x, mask=None):
        mask = torch.ones(x.shape[:3]).bool() if mask is None else mask
        return super().forward(x, mask)


class _Classifier(nn.Module):
    """A right answer in small methods; a mistake overrides what it gets wrong."""

    def __init__(
        self, n_classes, max_length, d_model, n_heads, d_ff, n_layers, dropout=0.1, fused=False
    ):
        super().__init__()
        self.cls = nn.Parameter(0.02 * torch.randn(d_model))
        self.positions = LearnedPositions(1 + max_length, d_model)
        self.encoder = Encoder(n_layers, d_model, n_heads, d_ff, dropout, fused=fused)
        self.head = nn.Linear(d_model, n_classes)

    def prepend(self, x):
        return torch.cat([self.cls.expand(len(x), 1, -1), x], 1)

    def place(self, x):
        return self.positions(self.prepend(x))

    def mask(self, x, mask):
        return None if mask is None else F.pad(mask, (1, 0), value=True).unsqueeze(1)

    def encode(self, x, mask=None):
        return self.encoder(self.place(x), self.mask(x, mask))

    def read(self, encoded, mask):
        return encoded[:, 0]

    def forward(self, x, mask=None):
        return self.head(self.read(self.encode(x, mask), mask))


@mistake(
    "EncoderClassifier",
    hint="What comes out at the last token decides. It should be the first, where `cls` went in.",
)
class ReadsTheLast(_Classifier):
    def read(self, encoded, mask):
        return encoded[:, -1]


@mistake(
    "EncoderClassifier",
    hint="What comes out at index 1 decides: that is the first real token. `cls` is at index 0.",
)
class ReadsTheFirstWord(_Classifier):
    def read(self, encoded, mask):
        return encoded[:, 1]


@mistake(
    "EncoderClassifier",
    hint="The mean of all outputs decides. Here it is the output at the extra token alone.",
)
class ReadsTheMean(_Classifier):
    def read(self, encoded, mask):
        return encoded.mean(1)


OF_TOKENS = "The mean of what comes out at the tokens decides. Here it is the output at index 0."


@mistake("EncoderClassifier", hint=OF_TOKENS)
class ReadsTheMeanOfTokens(_Classifier):
    def read(self, encoded, mask):
        return encoded[:, 1:].mean(1)


@mistake("EncoderClassifier", hint=OF_TOKENS)
class ReadsTheMeanOfRealTokens(_Classifier):
    def read(self, encoded, mask):
        return _mean(encoded[:, 1:], mask)


@mistake(
    "EncoderClassifier",
    hint="The mean of the outputs at `cls` and at the real tokens decides. Here it is the output "
    "at the extra token alone.",
)
class ReadsTheMeanOfAllReal(_Classifier):
    def read(self, encoded, mask):
        return _mean(encoded, None if mask is None else F.pad(mask, (1, 0), value=True))


@mistake(
    "EncoderClassifier",
    hint="What comes out at the last real token decides. It should be the first output, where "
    "`cls` went in.",
)
class ReadsTheLastReal(_Classifier):
    def read(self, encoded, mask):
        if mask is None:
            return encoded[:, -1]
        places = torch.arange(1, encoded.shape[1], device=encoded.device)
        last = (mask * places).amax(1)  # 0, that is `cls`, where nothing is real
        return encoded[torch.arange(len(encoded), device=encoded.device), last]


@mistake(
    "EncoderClassifier",
    hint="The largest outputs of all places decide. Here it is the output at the extra token "
    "alone.",
)
class ReadsTheLargest(_Classifier):
    def read(self, encoded, mask):
        return encoded.amax(1)


@mistake(
    "EncoderClassifier",
    hint="Index 0 is taken along the batch, which gives all tokens of the first sequence. Take the "
    "first token of every sequence.",
)
class ReadsTheFirstSequence(_Classifier):
    def read(self, encoded, mask):
        return encoded[0]


@mistake(
    "EncoderClassifier",
    hint="The output is read before the encoder's final norm. A pre-norm encoder ends with one: "
    "call the encoder as a whole.",
)
class ReadsBeforeTheNorm(_Classifier):
    def encode(self, x, mask=None):
        x, mask = self.place(x), self.mask(x, mask)
        for layer in self.encoder.layers:
            x = layer(x, mask)
        return x


@mistake(
    "EncoderClassifier",
    hint="The final norm is applied twice. It is the encoder's last step already.",
)
class NormsTwice(_Classifier):
    def read(self, encoded, mask):
        return self.encoder.norm(encoded[:, 0])


@mistake(
    "EncoderClassifier",
    hint="The head is not used: the output at `cls` is returned as it is, (B, d_model).",
)
class ForgetsTheHead(_Classifier):
    def forward(self, x, mask=None):
        return self.read(self.encode(x, mask), mask)


@mistake(
    "EncoderClassifier",
    hint="A softmax makes probabilities of the scores. Return the scores themselves: the loss "
    "takes them.",
)
class ReturnsProbabilities(_Classifier):
    def forward(self, x, mask=None):
        return super().forward(x, mask).softmax(-1)


REPEAT = "`cls` stands in one row only. Each of the B sequences needs it: (B, 1, d_model)."


@mistake("EncoderClassifier", hint=REPEAT)
class PrependsToOneSequence(_Classifier):
    def prepend(self, x):
        return torch.cat([self.cls.view(1, 1, -1), x], 1)


@mistake("EncoderClassifier", hint=REPEAT)
class PrependsOneVector(_Classifier):
    def prepend(self, x):
        return torch.cat([self.cls, x], 1)


@mistake(
    "EncoderClassifier",
    hint="`cls` has no axis of tokens: (B, d_model) cannot be joined with (B, T, d_model). It "
    "should be (B, 1, d_model).",
)
class PrependsWithoutTheAxis(_Classifier):
    def prepend(self, x):
        return torch.cat([self.cls.expand(len(x), -1), x], 1)


@mistake(
    "EncoderClassifier",
    hint="`cls` and the first token both have position 0, and the others are one place early: the "
    "positions of the tokens begin with 1.",
)
class PlacesTheWordsFromZero(_Classifier):
    def place(self, x):
        first = (self.cls + self.positions.table[0]).expand(len(x), 1, -1)
        return torch.cat([first, self.positions(x)], 1)


@mistake(
    "EncoderClassifier",
    hint="`cls` has the last position of the table, and the tokens begin with 0. Position 0 is "
    "that of `cls`.",
)
class PlacesClsLast(_Classifier):
    def place(self, x):
        first = (self.cls + self.positions.table[-1]).expand(len(x), 1, -1)
        return torch.cat([first, self.positions(x)], 1)


@mistake(
    "EncoderClassifier",
    hint="The tokens have their positions, from 1 on, but `cls` has none. Its own is 0.",
)
class PlacesAllButCls(_Classifier):
    def place(self, x):
        return self.prepend(x + self.positions.table[1 : 1 + x.shape[1]])


@mistake(
    "EncoderClassifier",
    hint="`cls` and the first token both have position 1. That of `cls` is 0.",
)
class PlacesClsWithTheFirst(_Classifier):
    def place(self, x):
        first = (self.cls + self.positions.table[1]).expand(len(x), 1, -1)
        return torch.cat([first, x + self.positions.table[1 : 1 + x.shape[1]]], 1)


@mistake(
    "EncoderClassifier",
    hint="All positions are one too large: they begin with 1, and the last one is missing where "
    "the sequence is as long as max_length. `cls` has position 0.",
)
class PlacesFromOne(_Classifier):
    def place(self, x):
        return self.prepend(x) + self.positions.table[1 : 2 + x.shape[1]]


@mistake("EncoderClassifier", hint="The positions are added twice.")
class PlacesTwice(_Classifier):
    def place(self, x):
        return self.positions(super().place(x))


@mistake(
    "EncoderClassifier",
    hint="Tokens of zeros are taken for padding. Only the mask says which tokens are real.",
)
class HidesTokensOfZeros(_Classifier):
    def mask(self, x, mask):
        real = (x != 0).any(-1)
        return super().mask(x, real if mask is None else real & mask)


@mistake(
    "EncoderClassifier",
    hint="Every token gets scores: (B, 1 + T, n_classes). Only the output at index 0 goes into "
    "the head.",
)
class ScoresEveryToken(_Classifier):
    def read(self, encoded, mask):
        return encoded


@mistake(
    "EncoderClassifier",
    hint="`cls` stands at the end, and the output at index 0 is read. Put it in front.",
)
class Appends(_Classifier):
    def prepend(self, x):
        return torch.cat([x, self.cls.expand(len(x), 1, -1)], 1)

    def mask(self, x, mask):
        return None if mask is None else F.pad(mask, (0, 1), value=True).unsqueeze(1)


BEHIND = (
    "`cls` has the position after the last token, T, as if it stood at the end, and the tokens "
    "begin with 0. It stands in front, where position 0 is its own."
)


@mistake("EncoderClassifier", hint=BEHIND)
class AppendsAndReadsTheEnd(Appends):
    def read(self, encoded, mask):
        return encoded[:, -1]


@mistake("EncoderClassifier", hint=BEHIND)
class PlacesClsBehind(_Classifier):
    def place(self, x):
        first = (self.cls + self.positions.table[x.shape[1]]).expand(len(x), 1, -1)
        return torch.cat([first, self.positions(x)], 1)


@mistake(
    "EncoderClassifier",
    hint="The positions are not added. self.positions does it.",
    earns=(
        "cls in front",
        "with a mask",
    ),
)
class ForgetsThePositions(_Classifier):
    def place(self, x):
        return self.prepend(x)


@mistake(
    "EncoderClassifier",
    hint="The positions are added before `cls` comes in front, so `cls` has none and the tokens "
    "have those of their left neighbours. First put it in front.",
    earns=(
        "cls in front",
        "with a mask",
    ),
)
class PlacesTheWordsOnly(_Classifier):
    def place(self, x):
        return self.prepend(self.positions(x))


@mistake("EncoderClassifier", hint="`cls` is not used: zeros stand in front.")
class PrependsZeros(_Classifier):
    def prepend(self, x):
        return F.pad(x, (0, 0, 1, 0))


@mistake(
    "EncoderClassifier",
    hint="`cls` is copied without its gradient, so it would never be learned: no .data, no "
    "detach() and no new tensor.",
    earns=("cls in front",),
)
class PrependsACopy(_Classifier):
    def prepend(self, x):
        return torch.cat([self.cls.detach().expand(len(x), 1, -1), x], 1)


@mistake(
    "EncoderClassifier",
    hint="The mask does not reach the encoder: it sees the padding.",
    earns=(
        "cls in front",
        "the positions",
    ),
)
class ForgetsTheMask(_Classifier):
    def mask(self, x, mask):
        return None


@mistake(
    "EncoderClassifier",
    hint="The mask hides the extra token. It may be seen: the new first column is True.",
    earns=(
        "cls in front",
        "the positions",
    ),
)
class HidesTheExtraToken(_Classifier):
    def mask(self, x, mask):
        return None if mask is None else F.pad(mask, (1, 0), value=False).unsqueeze(1)


@mistake(
    "EncoderClassifier",
    hint="The True for the extra token is put at the end of the mask. It stands in front.",
)
class PadsTheMaskBehind(_Classifier):
    def mask(self, x, mask):
        return None if mask is None else F.pad(mask, (0, 1), value=True).unsqueeze(1)


@mistake(
    "EncoderClassifier",
    hint="The mask is as long as the sequence was, but `cls` makes it longer by one. Put a True in "
    "front of every row.",
)
class KeepsTheMaskShort(_Classifier):
    def mask(self, x, mask):
        return None if mask is None else mask.unsqueeze(1)


@mistake(
    "EncoderClassifier",
    hint="The mask is (B, 1 + T), which the encoder reads as (T_q, T_k). It takes (B, 1, 1 + T): "
    "the axis of length 1 stands for the queries.",
)
class ForgetsTheQueryAxis(_Classifier):
    def mask(self, x, mask):
        return None if mask is None else F.pad(mask, (1, 0), value=True)


@mistake(
    "EncoderClassifier",
    hint="The mask's new axis stands after the tokens, so it silences queries in place of keys. "
    "The encoder takes (B, 1, 1 + T).",
)
class PutsTheQueryAxisLast(_Classifier):
    def mask(self, x, mask):
        return None if mask is None else F.pad(mask, (1, 0), value=True).unsqueeze(-1)


@mistake("EncoderClassifier", hint="The mask is read the wrong way round. True = may attend.")
class InvertsTheMask(_Classifier):
    def mask(self, x, mask):
        return None if mask is None else F.pad(~mask, (1, 0), value=True).unsqueeze(1)


@mistake(
    "EncoderClassifier",
    hint="mask may be None: then nothing is padded, and None is passed.",
    earns=("with a mask",),
)
class PadsNone(_Classifier):
    def mask(self, x, mask):
        return F.pad(mask, (1, 0), value=True).unsqueeze(1)


@mistake("EncoderClassifier", hint="x is classified as it came in: the encoder is not used.")
class SkipsTheEncoder(_Classifier):
    def encode(self, x, mask=None):
        return self.place(x)


@alternative("EncoderClassifier")
class ClassifiesInSmallMethods(_Classifier):
    """The right answer from which the mistakes are made."""


@alternative("EncoderClassifier")
class WithAMaskAlways(_Classifier):
    def mask(self, x, mask):
        seen = x.new_ones(len(x), 1 + x.shape[1], dtype=torch.bool)
        if mask is not None:
            seen[:, 1:] = mask
        return seen[:, None, :]


@alternative("EncoderClassifier")
class WithRepeat(_Classifier):
    def prepend(self, x):
        first = self.cls.view(1, 1, -1).repeat(x.shape[0], 1, 1)
        return torch.cat((first, x), dim=-2)

    def mask(self, x, mask):
        if mask is not None:
            mask = torch.cat([torch.ones_like(mask[:, :1]), mask], 1)
            return mask[:, None].expand(-1, mask.shape[1], -1)
        return None


@alternative("EncoderClassifier")
class ClassifiesAllAndReadsOne(_Classifier):
    def forward(self, x, mask=None):
        return self.head(self.encode(x, mask)).select(1, 0)


@alternative("EncoderClassifier")
class RefusesInItsOwnWords(_Classifier):
    def place(self, x):
        T, max_length = x.shape[1], len(self.positions.table) - 1
        if max_length < T:
            raise ValueError(f"{T} tokens, at most {max_length} fit")
        return self.prepend(x) + self.positions.table[: 1 + T]


@alternative("EncoderClassifier")
class DoesAllInForward(_Classifier):
    def encode(self, x, mask=None):
        raise NotImplementedError

    def forward(self, x, mask=None):
        x = self.positions(torch.hstack([self.cls.repeat(len(x), 1, 1), x]))
        return self.head(self.encoder(x, self.mask(x, mask))[:, 0])


@careless("EncoderClassifier")
class LengthensTheMaskOnTheCpu(_Classifier):
    def mask(self, x, mask):
        if mask is None:
            return None
        return torch.cat([torch.ones(len(x), 1, dtype=torch.bool), mask], 1)[:, None]


@careless("EncoderClassifier")
class WritesIntoZeros(_Classifier):
    def prepend(self, x):
        longer = torch.zeros(x.shape[0], 1 + x.shape[1], x.shape[2], dtype=x.dtype)
        longer[:, 0], longer[:, 1:] = self.cls, x
        return longer


def _cut(images, size, order=(0, 2, 4, 1, 3, 5)):
    """Patches, with the six axes (B, C, rows, P, columns, P) in any order."""
    B, C, height, width = images.shape
    if height % size or width % size:
        raise ValueError(f"size={size} does not divide an image of {height} × {width}")
    x = images.reshape(B, C, height // size, size, width // size, size)
    return x.permute(order).reshape(B, height // size * (width // size), C * size * size)


@mistake(
    "mask_tokens",
    hint="Padding is hidden, too, and the encoder has to guess it. Only a real token can be "
    "hidden: one that is not PAD.",
)
def hides_padding(tokens, noise, share, mask_id):
    hidden = noise < share
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(~hidden, IGNORED)


@mistake(
    "mask_tokens",
    hint="All tokens are to be guessed. Where nothing is hidden the encoder reads the answer: only "
    "what is hidden should count in the loss.",
)
def asks_for_everything(tokens, noise, share, mask_id):
    hidden = (noise < share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), tokens


@mistake(
    "mask_tokens",
    hint="All real tokens are to be guessed. Where nothing is hidden the encoder reads the answer: "
    "only what is hidden should count in the loss.",
)
def asks_for_all_real_ones(tokens, noise, share, mask_id):
    hidden = (noise < share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(tokens == PAD, IGNORED)


@mistake(
    "mask_tokens",
    hint="What is hidden is left out of the loss, and what is not is to be guessed. It should be "
    "the other way round.",
)
def asks_for_what_it_shows(tokens, noise, share, mask_id):
    hidden = (noise < share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(hidden, IGNORED)


@mistake(
    "mask_tokens",
    hint="Where a token is hidden, mask_id is to be guessed. Take the true id, from before the "
    "token was hidden.",
)
def asks_for_the_mask(tokens, noise, share, mask_id):
    hidden = (noise < share) & (tokens != PAD)
    read = tokens.masked_fill(hidden, mask_id)
    return read, read.masked_fill(~hidden, IGNORED)


@mistake(
    "mask_tokens",
    hint="Tokens are hidden where their noise is not below share, so the larger part is hidden.",
)
def hides_the_other_ones(tokens, noise, share, mask_id):
    hidden = (noise >= share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(~hidden, IGNORED)


@mistake(
    "mask_tokens",
    hint="A token is hidden where its noise *is* share. With share=0 none should be, and noise can "
    "be 0: below means <.",
)
def hides_at_the_share(tokens, noise, share, mask_id):
    hidden = (noise <= share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(~hidden, IGNORED)


@mistake(
    "mask_tokens",
    hint="Where nothing is hidden, PAD is to be guessed. F.cross_entropy leaves out IGNORED, and "
    "no other id.",
)
def asks_for_padding(tokens, noise, share, mask_id):
    hidden = (noise < share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(~hidden, PAD)


@mistake(
    "mask_tokens",
    hint="The result says which tokens are hidden, True or False. It should hold the ids to be "
    "guessed, with IGNORED elsewhere.",
)
def returns_what_is_hidden(tokens, noise, share, mask_id):
    hidden = (noise < share) & (tokens != PAD)
    return tokens.masked_fill(hidden, mask_id), hidden


@alternative("mask_tokens")
def masks_with_where(tokens, noise, share, mask_id):
    hidden = torch.where(tokens == PAD, 1.0, noise) < share
    ignored = torch.full_like(tokens, IGNORED)
    return torch.where(hidden, mask_id, tokens), torch.where(hidden, tokens, ignored)


@alternative("mask_tokens")
def masks_by_index(tokens, noise, share, mask_id):
    read, wanted = tokens.clone(), torch.full_like(tokens, IGNORED)
    rows, columns = ((noise < share) & (tokens != PAD)).nonzero(as_tuple=True)
    wanted[rows, columns] = tokens[rows, columns]
    read[rows, columns] = mask_id
    return [read, wanted]


@careless("mask_tokens")
def masks_in_its_argument(tokens, noise, share, mask_id):
    hidden = (noise < share) & (tokens != PAD)
    wanted = tokens.masked_fill(~hidden, IGNORED)
    tokens[hidden] = mask_id
    return tokens, wanted


@careless("mask_tokens")
def masks_on_the_cpu(tokens, noise, share, mask_id):
    wanted = torch.full(tokens.shape, IGNORED)
    read = torch.zeros(tokens.shape, dtype=torch.int64)
    for b, row in enumerate(tokens.tolist()):
        for t, token in enumerate(row):
            hidden = noise[b, t] < share and token != PAD
            read[b, t] = mask_id if hidden else token
            wanted[b, t] = token if hidden else IGNORED
    return read, wanted


@mistake(
    "patchify",
    hint="The number of patches side by side is taken from the height. The width decides it: there "
    "are height / P rows of width / P patches.",
)
def cuts_by_the_height(images, size):
    side, found = images.shape[2] // size, []
    for number in range(side * side):
        top, left = number // side * size, number % side * size
        found.append(images[:, :, top : top + size, left : left + size].flatten(1))
    return torch.stack(found, dim=1)


@mistake(
    "break_patchify",
    hint="The only patch is the whole image, and so the image is a square.",
    where=lambda images, size: images.shape[2] == images.shape[3] == size,
)
def one_patch():
    return torch.rand(2, 3, 4, 4), 4


@mistake(
    "break_patchify",
    hint="Every patch is a single pixel, and the image is still a square.",
    where=lambda images, size: size == 1 and images.shape[2] == images.shape[3],
)
def single_pixels():
    return torch.rand(2, 1, 3, 3), 1


@mistake(
    "break_patchify",
    hint="The image is a square: height and width say the same.",
    where=lambda images, size: images.shape[2] == images.shape[3],
)
def a_square():
    return torch.rand(1, 3, 4, 4), 2


@alternative("break_patchify")
def taller_than_wide():
    return torch.rand(2, 3, 6, 4), 2


@alternative("break_patchify")
def cannot_be_cut():
    return torch.rand(1, 1, 5, 5), 2


@mistake(
    "patchify",
    hint="A reshape alone keeps the order in memory: each “patch” is a run of pixels from the "
    "image's rows. Give rows and columns of patches their own axes, then permute.",
)
def only_reshapes(images, size):
    return _cut(images, size, (0, 1, 2, 3, 4, 5))


@mistake(
    "patchify",
    hint="Each channel is cut into runs of P · P pixels, which follow each other in memory: a run "
    "is no square. Give rows and columns of patches their own axes, then permute.",
)
def cuts_runs(images, size):
    B, C, height, width = images.shape
    _cut(images, size)
    return images.reshape(B, C, -1, size * size).transpose(1, 2).flatten(2)


@mistake(
    "patchify",
    hint="The axes are exchanged by a reshape of F.unfold's (B, C · P · P, N), which keeps the "
    "order in memory. A transpose exchanges them.",
)
def reshapes_what_unfold_gives(images, size):
    _cut(images, size)
    unfolded = F.unfold(images, size, stride=size)
    return unfolded.reshape(len(images), -1, unfolded.shape[1])


@mistake(
    "patchify",
    hint="The batch is mixed in: the axis B comes after those of the patches, so a row holds "
    "patches of several images. B stays the first axis.",
)
def mixes_the_batch_in(images, size):
    return _cut(images, size, (2, 4, 0, 1, 3, 5))


@mistake(
    "patchify",
    hint="The patches of all images stand in one row: (B · N, C · P · P). Each image keeps its "
    "own: (B, N, C · P · P).",
)
def joins_the_batch(images, size):
    return _cut(images, size).flatten(0, 1)


@mistake(
    "patchify",
    hint="The patches stand on the first axis: (N, B, …). The result should be (B, N, …), each "
    "image with its own patches.",
)
def puts_the_patches_first(images, size):
    return _cut(images, size).transpose(0, 1)


def _cut_the_other_way(images, size, order):
    """The axes are cut into (P, patches) instead of (patches, P)."""
    patches = _cut(images, size)
    B, C, height, width = images.shape
    x = images.reshape(B, C, size, height // size, size, width // size)
    return x.permute(order).reshape(patches.shape)


THE_OTHER_WAY = (
    "The axes are cut into (P, rows) and (P, columns): then neighbours are spread over the "
    "patches. The P pixels of a patch stand side by side: (rows, P) and (columns, P)."
)


@mistake("patchify", hint=THE_OTHER_WAY)
def takes_far_pixels(images, size):
    return _cut_the_other_way(images, size, (0, 3, 5, 1, 2, 4))


@mistake("patchify", hint=THE_OTHER_WAY)
def takes_far_pixels_in_the_same_order(images, size):
    return _cut_the_other_way(images, size, (0, 2, 4, 1, 3, 5))


@mistake(
    "patchify",
    hint="The image is transposed: the patches are counted column by column, and the pixels in "
    "them, too. Both should be read row by row.",
)
def reads_down_the_columns(images, size):
    return _cut(images, size, (0, 4, 2, 1, 5, 3))


@mistake(
    "patchify",
    hint="The channels stand between the rows and the columns of a patch. The order is channel by "
    "channel: C comes before both.",
)
def puts_the_channels_between(images, size):
    return _cut(images, size, (0, 2, 4, 3, 1, 5))


@mistake(
    "patchify",
    hint="The channels stand before the rows and columns of patches, so a row does not hold all "
    "channels of one patch. The axes to join are (B, rows, columns, C, P, P).",
)
def leaves_the_channels_in_front(images, size):
    return _cut(images, size, (0, 1, 2, 4, 3, 5))


@mistake(
    "patchify",
    hint="The mean of the channels is cut. A patch holds all channels of its place.",
)
def averages_the_channels(images, size):
    return _cut(images.mean(1, keepdim=True), size)


@mistake(
    "patchify",
    hint="The channel is the fastest axis: each pixel's channels stand side by side. The order is "
    "channel by channel: C comes before the rows and columns of the patch.",
)
def puts_the_channels_last(images, size):
    return _cut(images, size, (0, 2, 4, 3, 5, 1))


@mistake(
    "patchify",
    hint="The patches are counted column by column. They should be counted row by row.",
)
def counts_down_the_columns(images, size):
    return _cut(images, size, (0, 4, 2, 1, 3, 5))


@mistake(
    "patchify",
    hint="Each patch is transposed: its pixels are read column by column. Read them row by row.",
)
def transposes_the_patches(images, size):
    return _cut(images, size, (0, 2, 4, 1, 5, 3))


@mistake(
    "patchify",
    hint="Patches and the pixels in them have changed places: each vector holds one pixel of every "
    "patch. The axes of the patches' rows and columns come first, those of the pixels last.",
)
def takes_one_pixel_of_each(images, size):
    return _cut(images, size, (0, 3, 5, 1, 2, 4))


@mistake(
    "patchify",
    hint="Every channel has patches of its own. A patch holds all channels of its place.",
)
def cuts_each_channel(images, size):
    C = images.shape[1]
    return _cut(images, size).unflatten(2, (C, -1)).transpose(1, 2).flatten(1, 2)


@mistake(
    "patchify",
    hint="Only the first channel is kept. A patch holds all channels of its place.",
)
def keeps_one_channel(images, size):
    return _cut(images[:, :1], size)


@mistake(
    "patchify",
    hint="The axes are (B, C · P · P, N), as F.unfold gives them. Exchange the last two.",
)
def leaves_features_in_front(images, size):
    return _cut(images, size).transpose(1, 2)


@mistake(
    "patchify",
    hint="The patches overlap: they move by one pixel. The next one begins where the last one "
    "ended, P pixels on.",
)
def slides(images, size):
    _cut(images, size)
    windows = images.unfold(2, size, 1).unfold(3, size, 1)  # (B, C, rows, columns, P, P)
    return windows.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


@mistake(
    "patchify",
    hint="The patches are joined to one vector for each image. Each patch stays a vector.",
)
def joins_the_patches(images, size):
    return _cut(images, size).flatten(1)


@alternative("patchify")
def cuts_in_loops(images, size):
    height, width = images.shape[2:]
    if height % size or width % size:
        raise ValueError(f"size={size}, but the image has {height} × {width}")
    patches = [
        images[:, :, top : top + size, left : left + size].flatten(1)
        for top in range(0, height, size)
        for left in range(0, width, size)
    ]
    return torch.stack(patches, 1)


@alternative("patchify")
def cuts_with_unfold(images, size):
    height, width = images.shape[2:]
    if height % size or width % size:
        raise ValueError(f"{height} × {width} is no multiple of {size}")
    windows = images.unfold(2, size, size).unfold(3, size, size)
    windows = windows.permute(0, 2, 3, 1, 4, 5)
    return windows.reshape(len(images), -1, images.shape[1] * size**2)


@alternative("patchify")
def cuts_with_split(images, size):
    if images.shape[2] % size or images.shape[3] % size:
        raise ValueError(f"P = {size}: {tuple(images.shape)}")
    rows = [piece for band in images.split(size, 2) for piece in band.split(size, 3)]
    return torch.cat([piece.reshape(len(images), 1, -1) for piece in rows], dim=1)


@careless("patchify")
def cuts_into_zeros(images, size):
    cut = _cut(images, size)
    patches = torch.zeros(cut.shape)
    for n in range(cut.shape[1]):
        patches[:, n] = cut[:, n]
    return patches


@careless("patchify")
def cuts_in_numpy(images, size):
    return torch.tensor(_cut(images.detach(), size).numpy())


def _corners(images, size):
    height, width = images.shape[2:]
    return [(top, left) for top in range(0, height, size) for left in range(0, width, size)]


def _copies(images, size, blank, corners=_corners, dim=1):
    """A copy for each corner, changed by ``blank(copy, rows, columns)``."""
    made = []
    for top, left in corners(images, size):
        copy = images.clone()
        copy = blank(copy, slice(top, top + size), slice(left, left + size))
        made.append(copy)
    return torch.stack(made, dim)


def _erased(copy, rows, columns):
    copy[:, :, rows, columns] = 0
    return copy


@mistake(
    "blank_each_patch",
    hint="The patches that were blanked before stay blank: each copy is made from the last one. "
    "Every copy starts from the image.",
)
def blanks_more_and_more(images, size):
    made, copy = [], images.clone()
    for top, left in _corners(images, size):
        copy[:, :, top : top + size, left : left + size] = 0
        made.append(copy.clone())
    return torch.stack(made, 1)


@mistake(
    "blank_each_patch",
    hint="Every copy lacks all patches, as if all copies were one tensor in which patch after "
    "patch was blanked. Each one needs a clone() of the image for itself.",
)
def blanks_one_memory(images, size):
    made, copy = [], images.clone()
    for top, left in _corners(images, size):
        copy[:, :, top : top + size, left : left + size] = 0
        made.append(copy)
    return torch.stack(made, 1)


@mistake(
    "blank_each_patch",
    hint="The images that were handed in are changed, and all copies are this one tensor, blank "
    "all over. Every copy is a clone() of its own.",
)
def blanks_without_a_clone(images, size):
    made = []
    for top, left in _corners(images, size):
        images[:, :, top : top + size, left : left + size] = 0
        made.append(images)
    return torch.stack(made, 1)


@mistake(
    "blank_each_patch",
    hint="The patches to the left, in the same row, are blank as well, as when a clone is made for "
    "each row of patches only. Every copy starts from the image.",
)
def blanks_more_along_a_row(images, size):
    return _copies(
        images, size, lambda copy, rows, columns: _erased(copy, rows, slice(columns.stop))
    )


@mistake("blank_each_patch", hint="Only the patch is left, and all around it is blank.")
def keeps_the_patch(images, size):
    def alone(copy, rows, columns):
        kept = torch.zeros_like(copy)
        kept[:, :, rows, columns] = copy[:, :, rows, columns]
        return kept

    return _copies(images, size, alone)


@mistake(
    "blank_each_patch",
    hint="The patches are counted column by column. They should be counted row by row, as in "
    "`patchify`.",
)
def blanks_down_the_columns(images, size):
    def down(images, size):
        return sorted(_corners(images, size), key=lambda corner: corner[::-1])

    return _copies(images, size, _erased, down)


@mistake(
    "blank_each_patch",
    hint="The copies stand on the first axis: (N, B, …). The result should be (B, N, …): stack "
    "along axis 1.",
)
def stacks_in_front(images, size):
    return _copies(images, size, _erased, dim=0)


@mistake(
    "blank_each_patch",
    hint="In each copy a whole row of patches is blank, from the left to the right. A patch has "
    "columns, too, and each copy is a clone() of its own.",
)
def blanks_whole_rows(images, size):
    return _copies(images, size, lambda copy, rows, _: _erased(copy, rows, slice(None)))


@mistake(
    "blank_each_patch",
    hint="Only the first channel is blank. A patch holds all channels of its place.",
)
def blanks_one_channel(images, size):
    def first(copy, rows, columns):
        copy[:, 0, rows, columns] = 0
        return copy

    return _copies(images, size, first)


@mistake(
    "blank_each_patch",
    hint="The axis of the channels is forgotten: a range of channels and of rows is blank, with "
    "all columns. The images are (B, C, height, width).",
)
def forgets_the_channels(images, size):
    def blank(copy, rows, columns):
        copy[:, rows, columns] = 0
        return copy

    return _copies(images, size, blank)


@mistake(
    "blank_each_patch",
    hint="A patch is blank only in the first image of the batch. It should be so in every image.",
)
def blanks_the_first_image(images, size):
    def first(copy, rows, columns):
        copy[0, :, rows, columns] = 0
        return copy

    return _copies(images, size, first)


@mistake(
    "blank_each_patch",
    hint="Height and width are exchanged in what is blank: the axis before the last is that of "
    "the rows.",
)
def exchanges_height_and_width(images, size):
    return _copies(images, size, lambda copy, rows, columns: _erased(copy, columns, rows))


@mistake(
    "blank_each_patch",
    hint="The blank part ends at P in every copy. A patch that begins at `top` ends at top + P.",
)
def ends_at_the_size(images, size):
    def short(copy, rows, columns):
        return _erased(copy, slice(rows.start, size), slice(columns.start, size))

    return _copies(images, size, short)


@mistake(
    "blank_each_patch",
    hint="The number of a patch is taken for the pixel where it begins. Patch number i begins at "
    "pixel i · P.",
)
def takes_numbers_for_pixels(images, size):
    def by_number(copy, rows, columns):
        top, left = rows.start // size, columns.start // size
        return _erased(copy, slice(top, top + size), slice(left, left + size))

    return _copies(images, size, by_number)


@mistake(
    "blank_each_patch",
    hint="The copies are counted from the last patch to the first. Patch 0 is the one at the top "
    "left.",
)
def counts_backwards(images, size):
    return _copies(images, size, _erased, lambda *given: _corners(*given)[::-1])


@mistake(
    "blank_each_patch",
    hint="The copies are joined to one long batch, (N · B, C, height, width): stack gives them an "
    "axis of their own, cat does not.",
)
def joins_the_copies(images, size):
    return _copies(images, size, _erased, dim=0).flatten(0, 1)


@mistake(
    "blank_each_patch",
    hint="One pixel is blank, the first of the patch. The whole patch should be.",
)
def blanks_a_pixel(images, size):
    def corner(copy, rows, columns):
        copy[:, :, rows.start, columns.start] = 0
        return copy

    return _copies(images, size, corner)


@mistake(
    "blank_each_patch",
    hint="The patch is filled with its mean. It should be 0.",
)
def fills_with_the_mean(images, size):
    def grey(copy, rows, columns):
        copy[:, :, rows, columns] = copy[:, :, rows, columns].mean((2, 3), keepdim=True)
        return copy

    return _copies(images, size, grey)


@mistake(
    "blank_each_patch",
    hint="There is a copy for every pixel where a patch could begin. Patches do not overlap: go on "
    "by P pixels.",
)
def blanks_at_every_pixel(images, size):
    def every(images, size):
        height, width = images.shape[2:]
        return [(i, j) for i in range(height - size + 1) for j in range(width - size + 1)]

    return _copies(images, size, _erased, every)


@mistake(
    "blank_each_patch",
    hint="The images that were handed in are changed. Write into a copy: images.clone().",
)
def blanks_the_images(images, size):
    made = _copies(images, size, _erased)
    for top, left in _corners(images, size):
        images[:, :, top : top + size, left : left + size] = 0
    return made


@alternative("blank_each_patch")
def blanks_in_order(images, size):
    return _copies(images, size, _erased)


@alternative("blank_each_patch")
def blanks_with_a_mask(images, size):
    height, width = images.shape[-2:]
    rows = torch.arange(height, device=images.device) // size
    columns = torch.arange(width, device=images.device) // size
    number = rows[:, None] * (width // size) + columns
    n = torch.arange((height // size) * (width // size), device=images.device)
    keep = number[None] != n[:, None, None]  # (N, height, width)
    return images[:, None] * keep[:, None].to(images.dtype)


@alternative("blank_each_patch")
def blanks_with_fold(images, size):
    B, C, height, width = images.shape
    patches = F.unfold(images, size, stride=size)  # (B, C · P · P, N)
    N = patches.shape[2]
    keep = 1 - torch.eye(N, dtype=images.dtype, device=images.device)
    many = (patches[:, None] * keep[:, None]).flatten(0, 1)  # (B · N, C · P · P, N)
    return F.fold(many, (height, width), size, stride=size).view(B, N, C, height, width)


@careless("blank_each_patch")
def collects_copies_in_zeros(images, size):
    corners = _corners(images, size)
    copies = torch.zeros(len(images), len(corners), *images.shape[1:])
    for n, (top, left) in enumerate(corners):
        copies[:, n] = images
        copies[:, n, :, top : top + size, left : left + size] = 0
    return copies


@careless("blank_each_patch")
def multiplies_by_a_mask_on_the_cpu(images, size):
    made = []
    for top, left in _corners(images, size):
        kept = torch.ones(images.shape[2:])
        kept[top : top + size, left : left + size] = 0
        made.append(images * kept)
    return torch.stack(made, 1)


EQUIVALENT = {
    "mask_tokens: whose result is cut off from the gradient: return (tokens.masked_fill(hidden, "
    "mask_id).detach(), tokens.masked_fill(~hidden, IGNORED).detach())": "ids have no gradient",
}
