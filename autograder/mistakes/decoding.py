"""Wrong and right answers to the exercises of lesson 13."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.multi_head_attention import merge_heads
from autograder.checking.toolbox.registry import alternative, careless, mistake

PAD, BOS, EOS = 0, 1, 2


def _drawn(probabilities, noise):
    return (probabilities.cumsum(1) <= noise[:, None]).sum(1)


def _drawn_on_the_whole_line(probabilities, noise):
    return _drawn(probabilities, noise * probabilities.cumsum(1)[:, -1])


@mistake(
    "sample_tokens",
    hint="The scores are multiplied by the temperature. Divide: a high temperature brings them "
    "closer together.",
)
def multiplies_by_the_temperature(logits, noise, temperature=1.0):
    return _drawn((logits * temperature).softmax(1), noise)


@mistake("sample_tokens", hint="The temperature is not used.")
def ignores_the_temperature(logits, noise, temperature=1.0):
    return _drawn(logits.softmax(1), noise)


@mistake(
    "sample_tokens",
    hint="The temperature changes nothing: it is not used, or divides the probabilities. Divide "
    "the scores by it, before the softmax.",
)
def ignores_the_temperature_on_the_whole_line(logits, noise, temperature=1.0):
    return _drawn_on_the_whole_line(logits.softmax(1), noise)


@mistake(
    "sample_tokens",
    hint="The temperature divides the probabilities, so that they no longer sum to 1. It divides "
    "the scores, before the softmax.",
)
def cools_the_probabilities(logits, noise, temperature=1.0):
    return _drawn(logits.softmax(1) / temperature, noise).clamp(max=logits.shape[1] - 1)


@mistake(
    "sample_tokens",
    hint="The largest score of all rows is subtracted. Beside a row of loud scores another's "
    "exponentials become 0: each row has its own maximum.",
)
def subtracts_the_maximum_of_all_rows(logits, noise, temperature=1.0):
    sums = ((logits - logits.max()) / temperature).exp().cumsum(1)
    return (sums <= noise[:, None] * sums[:, -1:]).sum(1)


@mistake(
    "sample_tokens",
    hint="The best token is taken each time, whatever the noise says. That is greedy.",
)
def takes_the_best(logits, noise, temperature=1.0):
    return logits.argmax(1)


@mistake(
    "sample_tokens",
    hint="The first token is found whose own probability exceeds the noise. Add the probabilities "
    "up first: each token owns a piece of the line from 0 to 1.",
)
def does_not_add_up(logits, noise, temperature=1.0):
    probabilities = (logits / temperature).softmax(1)
    return (probabilities > noise[:, None]).int().argmax(1)


@mistake(
    "sample_tokens",
    hint="One token too far: a draw belongs to the first token whose sum exceeds the noise.",
)
def draws_the_next(logits, noise, temperature=1.0):
    drawn = _drawn((logits / temperature).softmax(1), noise)
    return (drawn + 1).clamp(max=logits.shape[1] - 1)


@mistake(
    "sample_tokens",
    hint="One token too early: this is the last token whose sum does not exceed the noise. The "
    "draw belongs to the one after it.",
)
def draws_the_one_before(logits, noise, temperature=1.0):
    return (_drawn((logits / temperature).softmax(1), noise) - 1).clamp(min=0)


@mistake(
    "sample_tokens",
    hint="The sums that exceed the noise are counted. Count those that do not: that is how many "
    "tokens come before the one drawn.",
)
def counts_the_other_side(logits, noise, temperature=1.0):
    sums = (logits / temperature).softmax(1).cumsum(1)
    return (sums > noise[:, None]).sum(1) - 1


@mistake(
    "sample_tokens",
    hint="The sums that exceed the noise are counted. Count those that do not: that is how many "
    "tokens come before the one drawn.",
)
def counts_those_beyond(logits, noise, temperature=1.0):
    probabilities = (logits / temperature).softmax(1)
    return logits.shape[1] - _drawn_on_the_whole_line(probabilities, noise)


@mistake(
    "sample_tokens",
    hint="This is the rank of a token, not its id: the probabilities were sorted. They are added "
    "up in the order of the ids.",
)
def returns_the_rank(logits, noise, temperature=1.0):
    return _drawn((logits / temperature).softmax(1).sort(dim=1, descending=True).values, noise)


@mistake(
    "sample_tokens",
    hint="With noise 0 a token of probability 0 is drawn: its sum, 0, reaches the noise but does "
    "not exceed it.",
)
def lets_the_impossible_through(logits, noise, temperature=1.0):
    return ((logits / temperature).softmax(1).cumsum(1) < noise[:, None]).sum(1)


@mistake("sample_tokens", hint="The ids are (B, 1). One id per row is (B,).")
def keeps_an_axis(logits, noise, temperature=1.0):
    return _drawn((logits / temperature).softmax(1), noise)[:, None]


@mistake(
    "sample_tokens",
    hint="Random numbers of its own are drawn. Use `noise`, so that a draw can be repeated.",
)
def draws_noise_of_its_own(logits, noise, temperature=1.0):
    draw = torch.Generator().manual_seed(0)
    return torch.multinomial((logits / temperature).softmax(1), 1, generator=draw)[:, 0]


@mistake(
    "sample_tokens",
    hint="The softmax runs down the batch. Each row is a distribution of its own.",
)
def divides_by_columns(logits, noise, temperature=1.0):
    return _drawn((logits / temperature).softmax(0), noise).clamp(max=logits.shape[1] - 1)


@mistake(
    "sample_tokens",
    hint="The pieces lie in order of size. Keep the order of the ids.",
)
def lays_the_largest_first(logits, noise, temperature=1.0):
    probabilities, order = (logits / temperature).softmax(1).sort(dim=1, descending=True)
    return order.gather(1, _drawn(probabilities, noise)[:, None].clamp(max=order.shape[1] - 1))[
        :, 0
    ]


@mistake(
    "sample_tokens",
    hint="The pieces lie in order of size. Keep the order of the ids.",
)
def lays_the_largest_first_on_the_whole_line(logits, noise, temperature=1.0):
    probabilities, order = (logits / temperature).softmax(1).sort(dim=1, descending=True)
    rank = _drawn_on_the_whole_line(probabilities, noise)
    return order.gather(1, rank[:, None])[:, 0]


@mistake(
    "sample_tokens",
    hint="The pieces lie in order of size, the smallest first. Keep the order of the ids.",
)
def lays_the_smallest_first(logits, noise, temperature=1.0):
    probabilities, order = (logits / temperature).softmax(1).sort(dim=1)
    return order.gather(1, _drawn(probabilities, noise)[:, None].clamp(max=order.shape[1] - 1))[
        :, 0
    ]


@mistake(
    "sample_tokens",
    hint="Each number of the noise is compared with a column, not with its row. The noise has one "
    "number per row: compare it as (B, 1).",
)
def compares_with_columns(logits, noise, temperature=1.0):
    return ((logits / temperature).softmax(1).cumsum(1) <= noise).sum(1)


@mistake(
    "sample_tokens",
    hint="No token is found, and the number of tokens comes back, which is no id: the rounded sums "
    "end below 1 here, and the noise lies beyond them. The line is as long as its last sum.",
)
def trusts_the_line_to_end_at_one(logits, noise, temperature=1.0):
    return _drawn((logits / temperature).softmax(1), noise)


@mistake(
    "sample_tokens",
    hint="No sum exceeds the noise, and argmax of nothing but False is 0: the rounded sums end "
    "below 1 here. The line is as long as its last sum.",
)
def takes_the_first_for_none(logits, noise, temperature=1.0):
    sums = (logits / temperature).softmax(1).cumsum(1)
    return (sums > noise[:, None]).int().argmax(1)


@mistake(
    "sample_tokens",
    hint="Where no sum exceeds the noise the last id is taken, even if its score is -inf. The "
    "rounded sums end below 1 here: the line is as long as its last sum.",
)
def takes_the_last_for_none(logits, noise, temperature=1.0):
    return _drawn((logits / temperature).softmax(1), noise).clamp(max=logits.shape[1] - 1)


@mistake(
    "sample_tokens",
    hint="The noise is kept away from 1, so a token at the very end of the line is never drawn. "
    "The line is as long as its last sum: measure the noise by that.",
)
def keeps_the_noise_away_from_one(logits, noise, temperature=1.0):
    return _drawn((logits / temperature).softmax(1), noise.clamp(max=1 - 1e-6))


@alternative("sample_tokens")
def searches_the_sums(logits, noise, temperature=1.0):
    sums = torch.softmax(logits / temperature, dim=1).cumsum(dim=1)
    noise = noise * sums[:, -1]
    return torch.searchsorted(sums, noise.unsqueeze(1).contiguous(), right=True).squeeze(1)


@alternative("sample_tokens")
def walks_along_the_line(logits, noise, temperature=1.0):
    drawn = []
    for row, u in zip(logits, noise.tolist(), strict=True):
        token, probabilities = 0, torch.softmax(row.double() / temperature, 0).tolist()
        left = u
        while token < len(probabilities) - 1 and left >= probabilities[token]:
            left -= probabilities[token]
            token += 1
        drawn.append(token)
    return torch.tensor(drawn, device=logits.device)


@alternative("sample_tokens")
def finds_the_first_beyond(logits, noise, temperature=1.0):
    sums = torch.cumsum(F.softmax(logits / temperature, -1), -1)
    sums = sums / sums[:, -1:]
    return torch.argmax((sums > noise[:, None]).long(), dim=-1)


@careless("sample_tokens")
def fills_ids_in_on_the_cpu(logits, noise, temperature=1.0):
    tokens = torch.zeros(len(logits), dtype=torch.int64)
    for b, sums in enumerate((logits / temperature).softmax(1).cumsum(1)):
        tokens[b] = (sums <= noise[b] * sums[-1]).sum()
    return tokens


@careless("sample_tokens")
def divides_the_scores_it_was_given(logits, noise, temperature=1.0):
    logits /= temperature
    return _drawn_on_the_whole_line(logits.softmax(1), noise)


@careless("sample_tokens")
def adds_up_in_numpy(logits, noise, temperature=1.0):
    sums = (logits / temperature).softmax(1).numpy().cumsum(1)
    return torch.tensor((sums <= noise.numpy()[:, None] * sums[:, -1:]).sum(1))


def _top(logits, k):
    return logits.topk(min(k, logits.shape[1]), dim=1).values


@mistake("top_k_filter", hint="The k smallest scores are kept. Keep the largest.")
def keeps_the_smallest(logits, k):
    largest = logits.topk(min(k, logits.shape[1]), dim=1, largest=False).values[:, -1:]
    return logits.masked_fill(logits > largest, -math.inf)


@mistake(
    "top_k_filter",
    hint="The scores come back as they came in: nothing is dropped. masked_fill, without _, leaves "
    "its tensor alone and makes a new one; is that what is returned?",
)
def drops_nothing(logits, k):
    return logits


@mistake(
    "top_k_filter",
    hint="Only k - 1 are kept: the k-th best score is not smaller than itself, so compare with <.",
)
def drops_the_kth(logits, k):
    return logits.masked_fill(logits <= _top(logits, k)[:, -1:], -math.inf)


@mistake(
    "top_k_filter",
    hint="k + 1 scores are kept. Counting from 0, the k-th best stands at place k - 1.",
)
def keeps_one_too_many(logits, k):
    return logits.masked_fill(logits < _top(logits, k + 1)[:, -1:], -math.inf)


@mistake(
    "top_k_filter",
    hint="What is dropped becomes 0, and exp(0) = 1 is a fair share. A score of -inf has "
    "probability 0.",
)
def fills_with_zero(logits, k):
    return logits.masked_fill(logits < _top(logits, k)[:, -1:], 0.0)


@mistake(
    "top_k_filter",
    hint="These are the k best scores alone, and nobody knows whose they are. Every token keeps "
    "its place.",
)
def returns_the_best_only(logits, k):
    return _top(logits, k)


@mistake(
    "top_k_filter",
    hint="One bar for the whole batch: each row has a k-th best score of its own.",
)
def compares_with_the_first_row(logits, k):
    return logits.masked_fill(logits < _top(logits, k)[:1, -1:], -math.inf)


@mistake(
    "top_k_filter",
    hint="One bar for the whole batch: each row has a k-th best score of its own.",
)
def compares_with_the_lowest_bar(logits, k):
    return logits.masked_fill(logits < _top(logits, k).min(), -math.inf)


@mistake(
    "top_k_filter",
    hint="The bars are (B,), one for each row, and PyTorch compares them with the columns. As (B, "
    "1) each bar meets its own row.",
)
def loses_an_axis(logits, k):
    return logits.masked_fill(logits < _top(logits, k)[:, -1], -math.inf)


@mistake(
    "top_k_filter",
    hint="argsort says which token stands at a rank, not the rank of a token.",
)
def takes_the_order_for_ranks(logits, k):
    return logits.masked_fill(logits.argsort(dim=1, descending=True) >= k, -math.inf)


@mistake(
    "top_k_filter",
    hint="The k best of the whole batch are kept. Each row keeps k.",
)
def ranks_the_whole_batch(logits, k):
    return logits.masked_fill(
        logits < logits.flatten().topk(min(k, logits.numel()))[0][-1], -math.inf
    )


@mistake(
    "top_k_filter",
    hint="These are probabilities. The filter returns scores; the softmax comes when a token is "
    "drawn.",
)
def returns_probabilities(logits, k):
    return logits.masked_fill(logits < _top(logits, k)[:, -1:], -math.inf).softmax(1)


@mistake(
    "top_k_filter",
    hint="It does not work when k is larger than V: there are no more than V scores to keep.",
)
def insists_on_k(logits, k):
    return logits.masked_fill(logits < logits.topk(k, dim=1).values[:, -1:], -math.inf)


@alternative("top_k_filter")
def puts_the_best_back(logits, k):
    best = logits.topk(min(k, logits.shape[1]), dim=1)
    return torch.full_like(logits, -math.inf).scatter(1, best.indices, best.values)


@alternative("top_k_filter")
def counts_who_is_better(logits, k):
    better = (logits[:, None, :] > logits[:, :, None]).sum(2)
    return torch.where(better < k, logits, -math.inf)


@alternative("top_k_filter")
def sorts_lists(logits, k):
    rows = [[x if x in sorted(row)[-k:] else -math.inf for x in row] for row in logits.tolist()]
    return logits.new_tensor(rows)


@careless("top_k_filter")
def writes_the_best_into_float32(logits, k):
    kept = torch.full(logits.shape, -math.inf)
    for b, row in enumerate(logits):
        for place in row.topk(min(k, len(row))).indices.tolist():
            kept[b, place] = row[place]
    return kept


@careless("top_k_filter")
def drops_in_the_given_scores(logits, k):
    logits[logits < _top(logits, k)[:, -1:]] = -math.inf
    return logits


def _sorted(logits, descending=True):
    probabilities, order = logits.softmax(1).sort(dim=1, descending=descending)
    return probabilities, probabilities.cumsum(1), order


def _drop(logits, order, dropped):
    return logits.masked_fill(torch.zeros_like(dropped).scatter(1, order, dropped), -math.inf)


@mistake(
    "top_p_filter",
    hint="The token that reaches p is dropped. Together the kept tokens should have at least p, so "
    "it belongs to them.",
    earns=(
        "scores in any order",
        "where p is reached exactly",
    ),
)
def drops_the_token_that_crosses(logits, p):
    _, sums, order = _sorted(logits)
    return _drop(logits, order, sums > p)


@mistake(
    "top_p_filter",
    hint="The token that reaches p is dropped. Together the kept tokens should have at least p, so "
    "it belongs to them.",
    earns=("scores in any order",),
)
def drops_the_token_that_reaches(logits, p):
    _, sums, order = _sorted(logits)
    return _drop(logits, order, sums >= p)


@mistake(
    "top_p_filter",
    hint="The token that reaches p is dropped, unless it is the first. Together the kept tokens "
    "should have at least p.",
)
def always_keeps_the_first_only(logits, p):
    _, sums, order = _sorted(logits)
    return _drop(logits, order, (sums > p) & (torch.arange(sums.shape[1]) > 0))


@mistake(
    "top_p_filter",
    hint="The token that reaches p is dropped, unless it is the first. Together the kept tokens "
    "should have at least p.",
)
def keeps_the_first_in_any_case(logits, p):
    _, sums, order = _sorted(logits)
    return _drop(logits, order, (sums >= p) & (torch.arange(sums.shape[1]) > 0))


@mistake(
    "top_p_filter",
    hint="One token too many is kept: stop with the first that makes the sum reach p.",
    earns=("scores in any order",),
)
def keeps_one_more(logits, p):
    probabilities, sums, order = _sorted(logits)
    before = F.pad(sums - probabilities, (1, 0))[:, :-1]
    return _drop(logits, order, before >= p)


@mistake(
    "top_p_filter",
    hint="The mask is in the order of the probabilities, the scores in the order of the ids: the "
    "wrong tokens are dropped. Bring the mask back.",
    earns=(
        "scores from large to small",
        "where p is reached exactly",
    ),
)
def forgets_to_unsort(logits, p):
    probabilities, sums, _ = _sorted(logits)
    return logits.masked_fill(sums - probabilities >= p, -math.inf)


@mistake(
    "top_p_filter",
    hint="The mask is brought into sorted order a second time. `gather` reads from `order`, "
    "`scatter` writes to it.",
)
def gathers_the_mask(logits, p):
    probabilities, sums, order = _sorted(logits)
    return logits.masked_fill((sums - probabilities >= p).gather(1, order), -math.inf)


@mistake(
    "top_p_filter",
    hint="exp of the scores does not sum to 1. Use softmax.",
)
def forgets_to_divide(logits, p):
    keep = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
    for row, scores in enumerate(logits):
        reached = 0.0
        for token in scores.argsort(descending=True).tolist():
            if reached >= p:
                break
            keep[row, token] = True
            reached += scores[token].exp().item()
    return logits.masked_fill(~keep, -math.inf)


@mistake(
    "top_p_filter",
    hint="exp of the scores does not sum to 1. Use softmax.",
)
def adds_exponentials(logits, p):
    weights, order = logits.exp().sort(dim=1, descending=True)
    return _drop(logits, order, weights.cumsum(1) - weights >= p)


@mistake(
    "break_top_p_filter",
    hint="The exponentials of these scores sum to 1 in each row: they are log-probabilities, and "
    "softmax changes nothing.",
    where=lambda logits, p: bool(((logits.exp().sum(1) - 1).abs() < 1e-6).all()),
)
def log_probabilities():
    return torch.tensor([[0.5, 0.2, 0.3]]).log(), 0.6


@mistake(
    "break_top_p_filter",
    hint="There is only one token, which is kept whatever its probability.",
    where=lambda logits, p: logits.shape[1] == 1,
)
def a_single_token():
    return torch.tensor([[0.3]]), 0.5


@mistake(
    "break_top_p_filter",
    hint="The best token alone reaches p, as a probability and as an exponential, too: both keep "
    "only this one.",
    where=lambda logits, p: bool(
        (logits.softmax(1).amax(1) >= p).all() and (logits.exp().amax(1) >= p).all()
    ),
)
def one_token_far_ahead():
    return torch.tensor([[9.0, 0.0, 1.0]]), 0.5


@alternative("break_top_p_filter")
def small_scores():
    return torch.tensor([[-5.0, -6.0, -7.0]]), 0.5


@alternative("break_top_p_filter")
def random_scores():
    return torch.tensor([[1.0, 0.9, 0.8, 0.7], [0.0, 0.1, 0.2, 0.3]]), 0.8


@mistake(
    "top_p_filter",
    hint="Where the sum is exactly p, one token more is kept. Reached is reached: a token "
    "that finds p before it is not needed.",
    earns=(
        "scores from large to small",
        "scores in any order",
    ),
)
def waits_until_p_is_exceeded(logits, p):
    probabilities, sums, order = _sorted(logits)
    return _drop(logits, order, sums - probabilities > p)


@mistake(
    "top_p_filter",
    hint="Tokens are kept by their probability, all that are as probable as the last one needed. "
    "Of equal ones no more are kept than p needs: decide by their places in the order.",
)
def keeps_all_equals(logits, p):
    probabilities = logits.softmax(1)
    descending = probabilities.sort(1, descending=True).values
    last = (descending.cumsum(1) < p).sum(1, keepdim=True).clamp(max=logits.shape[1] - 1)
    return logits.masked_fill(probabilities < descending.gather(1, last), -math.inf)


@mistake(
    "top_p_filter",
    hint="The scores come back sorted. Each should stand where its token was.",
)
def returns_sorted_scores(logits, p):
    probabilities, sums, order = _sorted(logits)
    return logits.gather(1, order).masked_fill(sums - probabilities >= p, -math.inf)


@mistake(
    "top_p_filter",
    hint="The probabilities are added in the order of the ids. Begin with the most probable token.",
    earns=(
        "scores from large to small",
        "where p is reached exactly",
    ),
)
def adds_in_the_order_of_ids(logits, p):
    probabilities = logits.softmax(1)
    return logits.masked_fill(probabilities.cumsum(1) - probabilities >= p, -math.inf)


@mistake(
    "top_p_filter",
    hint="The sum begins with the least probable tokens: sort in descending order.",
)
def begins_with_the_worst(logits, p):
    probabilities, sums, order = _sorted(logits, descending=False)
    return _drop(logits, order, sums - probabilities >= p)


@mistake(
    "top_p_filter",
    hint="Tokens are kept whose own probability is at least p. It is their sum that should reach "
    "p.",
)
def compares_single_probabilities(logits, p):
    return logits.masked_fill(logits.softmax(1) < p, -math.inf)


@mistake(
    "top_p_filter",
    hint="A token is judged by its own probability. It is the sum of those before it that decides.",
)
def compares_with_the_rest(logits, p):
    return logits.masked_fill(logits.softmax(1) < 1 - p, -math.inf)


@mistake(
    "top_p_filter",
    hint="Tokens are kept that have at least p times the probability of the best one. That is "
    "another filter, called min-p. Here the sum should reach p.",
)
def compares_with_the_best(logits, p):
    probabilities = logits.softmax(1)
    return logits.masked_fill(probabilities < p * probabilities.amax(1, keepdim=True), -math.inf)


@mistake(
    "top_p_filter",
    hint="A share p of the *tokens* is kept. It is a share of the probability that counts.",
)
def keeps_a_share_of_the_tokens(logits, p):
    return _drop_behind(logits, max(1, round(p * logits.shape[1])))


def _drop_behind(logits, k):
    return logits.masked_fill(logits < logits.topk(k, dim=1).values[:, -1:], -math.inf)


@mistake(
    "top_p_filter",
    hint="What is dropped becomes 0, and exp(0) = 1 is a fair share. A score of -inf has "
    "probability 0.",
)
def drops_to_zero(logits, p):
    probabilities, sums, order = _sorted(logits)
    dropped = torch.zeros_like(sums, dtype=torch.bool).scatter(1, order, sums - probabilities >= p)
    return logits.masked_fill(dropped, 0.0)


@mistake(
    "top_p_filter",
    hint="These are probabilities, and those dropped are 0 without the others being divided by "
    "what is left. Return scores: the softmax of these sums to 1 again by itself.",
)
def does_not_renormalise(logits, p):
    probabilities, sums, order = _sorted(logits)
    dropped = torch.zeros_like(sums, dtype=torch.bool).scatter(1, order, sums - probabilities >= p)
    return logits.softmax(1).masked_fill(dropped, 0.0)


@mistake(
    "top_p_filter",
    hint="What is kept comes back as probabilities. Scores go in, and scores come out: as they "
    "were, or -inf.",
    earns=(
        "scores in any order",
        "where p is reached exactly",
    ),
)
def keeps_probabilities(logits, p):
    probabilities, sums, order = _sorted(logits)
    return _drop(logits.softmax(1), order, sums - probabilities >= p)


@mistake(
    "top_p_filter",
    hint="What is kept is made log-probabilities that sum to 1. Leave the scores as they were: the "
    "softmax comes when a token is drawn.",
)
def divides_what_is_kept(logits, p):
    probabilities, sums, order = _sorted(logits)
    return _drop(logits, order, sums - probabilities >= p).log_softmax(1)


@mistake(
    "top_p_filter",
    hint="The scores are added up as if they were probabilities. Take the softmax first.",
)
def adds_scores(logits, p):
    scores, order = logits.sort(dim=1, descending=True)
    return _drop(logits, order, scores.cumsum(1) - scores >= p)


@alternative("top_p_filter")
def sorts_back(logits, p):
    probabilities, order = logits.softmax(1).sort(dim=1, descending=True)
    keep = probabilities.cumsum(1) - probabilities < p
    return torch.where(keep.gather(1, order.argsort(1)), logits, -math.inf)


@alternative("top_p_filter")
def shifts_the_mask(logits, p):
    values, order = logits.sort(dim=1, descending=True)
    dropped = values.softmax(1).cumsum(1) >= p
    dropped = torch.cat([torch.zeros_like(dropped[:, :1]), dropped[:, :-1]], 1)
    values = values.masked_fill(dropped, -math.inf)
    return torch.empty_like(logits).scatter_(1, order, values)


@alternative("top_p_filter")
def adds_up_all_that_are_better(logits, p):
    probabilities, V = logits.softmax(1), logits.shape[1]
    equal = logits[:, None, :] == logits[:, :, None]
    better = (logits[:, None, :] > logits[:, :, None]) | equal & torch.ones(
        V, V, device=logits.device
    ).tril(-1).bool()
    before = (better * probabilities[:, None, :]).sum(2)
    return logits.masked_fill(before >= p, -math.inf)


@careless("top_p_filter")
def marks_what_is_dropped_on_the_cpu(logits, p):
    probabilities, sums, order = _sorted(logits)
    dropped = torch.zeros(logits.shape, dtype=torch.bool)
    return logits.masked_fill(dropped.scatter(1, order, sums - probabilities >= p), -math.inf)


@careless("top_p_filter")
def drops_the_tail_of_the_given_scores(logits, p):
    probabilities, sums, order = _sorted(logits)
    for b, dropped in enumerate(sums - probabilities >= p):
        logits[b, order[b, dropped]] = -math.inf
    return logits


def _ended(log_probs, finished, token=PAD):
    """What a finished beam may do: one token, at no cost."""
    only = torch.full_like(log_probs, -math.inf)
    only[:, :, token] = 0  # not [..., token]: where there is no such token, the error names an axis
    return torch.where(finished[..., None], only, log_probs)


def _best(totals, K, V):
    scores, place = totals.flatten(1).topk(K, 1)
    return scores, place // V, place % V


@mistake(
    "trace_beam_search",
    hint="Here each beam keeps its own best word. The two best of all five are kept, and both may "
    "come from one beam.",
)
def keeps_one_of_each_beam():
    return [[0.3, 0.24], [0.24, 0.21]], [[0, 1], [1, 0]], [["old", "dog"], ["EOS", "fox"]]


@mistake(
    "trace_beam_search",
    hint="These are the probabilities of the words alone. Multiply by that of the beginning.",
)
def forgets_the_beginning():
    return [[0.5, 0.45], [0.9, 0.7]], [[0, 0], [1, 0]], [["old", "small"], ["dog", "fox"]]


@mistake(
    "trace_beam_search",
    hint="The words are chosen by their own probability. What counts is that of the whole "
    "beginning.",
)
def chooses_by_the_word_alone():
    return [[0.24, 0.3], [0.3, 0.168]], [[1, 0], [1, 0]], [["dog", "old"], ["EOS", "fox"]]


@mistake(
    "trace_beam_search",
    hint="The beams of a step stand best first: compare the two probabilities of the second step.",
)
def keeps_the_order_of_the_beams():
    return [[0.3, 0.27], [0.21, 0.243]], [[0, 0], [0, 1]], [["old", "small"], ["fox", "dog"]]


@mistake(
    "trace_beam_search",
    hint="Beams are counted from 0 here.",
)
def counts_beams_from_one():
    return [[0.3, 0.27], [0.243, 0.21]], [[1, 1], [2, 1]], [["old", "small"], ["dog", "fox"]]


@mistake(
    "trace_beam_search",
    hint="In the second step the old beams are those of the first, not those from before it.",
)
def names_the_first_beams():
    return [[0.3, 0.27], [0.243, 0.21]], [[0, 0], [0, 0]], [["old", "small"], ["dog", "fox"]]


@mistake(
    "trace_beam_search",
    hint="tokens holds the word that was added, not the whole beginning.",
)
def writes_whole_beginnings():
    return (
        [[0.3, 0.27], [0.243, 0.21]],
        [[0, 0], [1, 0]],
        [["the old", "the small"], ["the small dog", "the old fox"]],
    )


@mistake(
    "trace_beam_search",
    hint="These are the same beams twice in the second step. Both go on there, and of each other.",
)
def repeats_the_first_step():
    return [[0.3, 0.27], [0.3, 0.27]], [[0, 0], [0, 0]], [["old", "small"], ["old", "small"]]


@mistake(
    "trace_beam_search",
    hint="This is a greedy search: the best word of the best beam, and its second best. In the "
    "second step the words of both beams compete.",
)
def follows_the_best_beam():
    return [[0.3, 0.27], [0.21, 0.09]], [[0, 0], [0, 0]], [["old", "small"], ["fox", "dog"]]


@mistake(
    "trace_beam_search",
    hint="The first row is that of the step that was already taken. Asked for are the two steps "
    "after it.",
)
def begins_one_step_too_early():
    tokens = [["the", "a"], ["old", "small"]]
    return [[0.6, 0.4], [0.3, 0.27]], [[0, 0], [0, 0]], tokens


@mistake(
    "trace_beam_search", hint="These are logarithms. Here the probabilities themselves are asked."
)
def writes_logarithms():
    scores = [[math.log(0.3), math.log(0.27)], [math.log(0.243), math.log(0.21)]]
    return scores, [[0, 0], [1, 0]], [["old", "small"], ["dog", "fox"]]


@alternative("trace_beam_search")
def multiplies_them_out():
    scores = [[0.6 * 0.5, 0.6 * 0.45], [0.6 * 0.45 * 0.9, 0.6 * 0.5 * 0.7]]
    return scores, [[0, 0], [1, 0]], [["old", "small"], ["dog", "fox"]]


@alternative("trace_beam_search")
def returns_a_list_of_tuples():
    return [((0.30, 0.27), (0.243, 0.210)), ((0, 0), (1, 0)), (("old", "small"), ("dog", "fox"))]


@alternative("trace_beam_search")
def returns_tensors_of_numbers():
    scores = torch.tensor([[0.3, 0.27], [0.243, 0.21]])
    return scores, torch.tensor([[0, 0], [1, 0]]), [["old", "small"], ["dog", "fox"]]


@mistake(
    "beam_step",
    hint="Finished beams are extended: they go on with tokens after their EOS. They only add PAD, "
    "and keep their score.",
    earns=(
        "the new scores",
        "origins and tokens",
        "several sources",
    ),
)
def extends_finished_beams(scores, log_probs, finished):
    return _best(scores[..., None] + log_probs, *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="A finished beam disappears: all its continuations have the score -inf. One, with PAD, "
    "should be free, so that it stays in the race.",
    earns=(
        "the new scores",
        "origins and tokens",
        "several sources",
    ),
)
def loses_finished_beams(scores, log_probs, finished):
    totals = scores[..., None] + log_probs.masked_fill(finished[..., None], -math.inf)
    return _best(totals, *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="A finished beam goes on with every token for free, so that it fills the beam with copies "
    "of itself. PAD alone is free, all else impossible.",
)
def copies_finished_beams(scores, log_probs, finished):
    totals = scores[..., None] + log_probs.masked_fill(finished[..., None], 0.0)
    return _best(totals, *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="PAD is free for a finished beam, but it may still go on with other tokens. These should "
    "be impossible.",
)
def may_go_on_after_all(scores, log_probs, finished):
    log_probs = log_probs.clone()
    log_probs[..., PAD] = log_probs[..., PAD].masked_fill(finished, 0.0)
    return _best(scores[..., None] + log_probs, *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="A finished beam goes on with PAD alone, but pays what the model asks for it. PAD costs "
    "0 then.",
)
def pays_for_padding(scores, log_probs, finished):
    others = torch.arange(log_probs.shape[2], device=log_probs.device) != PAD
    log_probs = log_probs.masked_fill(finished[..., None] & others, -math.inf)
    return _best(scores[..., None] + log_probs, *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="A finished beam goes on with EOS, again and again. It goes on with PAD.",
)
def ends_again(scores, log_probs, finished):
    return _best(scores[..., None] + _ended(log_probs, finished, EOS), *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="Probabilities are added. What is added are their logarithms: then the probabilities "
    "multiply.",
)
def adds_up_probabilities(scores, log_probs, finished):
    totals = scores.exp()[..., None] + _ended(log_probs, finished).exp()
    values, origin, tokens = _best(totals, *log_probs.shape[1:])
    return values.log(), origin, tokens


@mistake(
    "beam_step",
    hint="Log-probabilities are multiplied. Probabilities multiply, their logarithms add up.",
)
def multiplies_log_probabilities(scores, log_probs, finished):
    return _best(scores[..., None] * log_probs, *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="The scores so far are forgotten: only the last token counts. Add them.",
)
def forgets_the_past(scores, log_probs, finished):
    return _best(_ended(log_probs, finished), *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="Each beam keeps exactly one continuation, its best. The K best of *all* K · V should "
    "stay: two may come from one beam, and none from another.",
)
def lets_every_beam_live(scores, log_probs, finished):
    values, tokens = (scores[..., None] + _ended(log_probs, finished)).max(2)
    values, origin = values.sort(dim=1, descending=True)
    return values, origin, tokens.gather(1, origin)


@mistake(
    "beam_step",
    hint="Each beam keeps exactly one continuation, its best. The K best of *all* K · V should "
    "stay: two may come from one beam, and none from another.",
)
def lets_every_beam_live_in_its_place(scores, log_probs, finished):
    values, tokens = (scores[..., None] + _ended(log_probs, finished)).max(2)
    return values, torch.arange(scores.shape[1]).expand_as(tokens), tokens


@mistake(
    "beam_step",
    hint="These are the K best, but not with the best first.",
    earns=(
        "origins and tokens",
        "several sources",
        "finished beams",
    ),
)
def forgets_to_rank(scores, log_probs, finished):
    K, V = log_probs.shape[1:]
    totals = (scores[..., None] + _ended(log_probs, finished)).flatten(1)
    place = totals.topk(K, 1).indices.sort(1).values
    return totals.gather(1, place), place // V, place % V


@mistake(
    "beam_step",
    hint="Origin and token are exchanged: in K rows of V the place p stands in row p // V, at p % "
    "V.",
    earns=(
        "the new scores",
        "several sources",
        "finished beams",
    ),
)
def exchanges_origin_and_token(scores, log_probs, finished):
    values, origin, tokens = _best(
        scores[..., None] + _ended(log_probs, finished), *log_probs.shape[1:]
    )
    return values, tokens, origin


@mistake(
    "beam_step",
    hint="The place among all candidates is divided by K. A row has V candidates.",
    earns=(
        "the new scores",
        "several sources",
        "finished beams",
    ),
)
def divides_by_the_beams(scores, log_probs, finished):
    K = scores.shape[1]
    values, place = (scores[..., None] + _ended(log_probs, finished)).flatten(1).topk(K, 1)
    return values, place // K, place % K


@mistake(
    "beam_step",
    hint="The tokens are places among all K · V candidates. Which token is that, of which beam?",
)
def returns_flat_places(scores, log_probs, finished):
    K, V = log_probs.shape[1:]
    values, place = (scores[..., None] + _ended(log_probs, finished)).flatten(1).topk(K, 1)
    return values, place // V, place


@mistake("beam_step", hint="The K worst continuations are kept.")
def keeps_the_worst(scores, log_probs, finished):
    K, V = log_probs.shape[1:]
    totals = (scores[..., None] + _ended(log_probs, finished)).flatten(1)
    values, place = totals.topk(K, 1, largest=False)
    return values, place // V, place % V


@mistake(
    "beam_step",
    hint="The score added belongs to another beam: scores (B, K) must stand in front of all V "
    "tokens of their own beam, as (B, K, 1).",
)
def adds_the_best_score_to_all(scores, log_probs, finished):
    totals = scores[:, :1, None] + _ended(log_probs, finished)
    return _best(totals, *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="The K best of the whole batch are taken. Each source has its own K.",
)
def ranks_the_batch(scores, log_probs, finished):
    K, V = log_probs.shape[1:]
    values, place = (scores[..., None] + _ended(log_probs, finished)).flatten().topk(K)
    return values, place // V, place % V


@mistake(
    "beam_step",
    hint="The B · K best of the whole batch are taken. Each source has its own K.",
)
def shares_the_batch_out(scores, log_probs, finished):
    B, K, V = log_probs.shape
    values, place = (scores[..., None] + _ended(log_probs, finished)).flatten().topk(B * K)
    return values.view(B, K), (place // V % K).view(B, K), (place % V).view(B, K)


@mistake(
    "beam_step",
    hint="The beams of all sources are numbered through, and compete. Each source has its own K.",
    earns=(
        "the new scores",
        "origins and tokens",
        "finished beams",
    ),
)
def numbers_all_beams_through(scores, log_probs, finished):
    B, K, V = log_probs.shape
    values, place = (scores[..., None] + _ended(log_probs, finished)).flatten().topk(B * K)
    return values.view(B, K), (place // V).view(B, K), (place % V).view(B, K)


@mistake(
    "beam_step",
    hint="Each beam is said to go on from itself. Divide the place by V.",
)
def stays_with_itself(scores, log_probs, finished):
    B, K, V = log_probs.shape
    values, _, tokens = _best(scores[..., None] + _ended(log_probs, finished), K, V)
    return values, torch.arange(K).repeat(B, 1), tokens


@mistake(
    "beam_step",
    hint="Old scores and log-probabilities are multiplied. Logarithms are added where "
    "probabilities are multiplied.",
)
def multiplies_the_scores(scores, log_probs, finished):
    return _best(scores[..., None] * _ended(log_probs, finished, PAD), *log_probs.shape[1:])


@mistake(
    "beam_step",
    hint="The candidates are put side by side token by token, (B, V · K), but taken apart as if "
    "they stood beam by beam.",
)
def flattens_token_by_token(scores, log_probs, finished):
    totals = (scores[..., None] + _ended(log_probs, finished, PAD)).mT.flatten(1)
    new, place = totals.topk(log_probs.shape[1], dim=1)
    return new, place // log_probs.shape[2], place % log_probs.shape[2]


@mistake(
    "beam_step",
    hint="The scores that come back are the old ones of the beams that are kept. They lack the "
    "token that was added.",
    earns=(
        "origins and tokens",
        "several sources",
        "finished beams",
    ),
)
def returns_the_scores_before(scores, log_probs, finished):
    totals = scores[..., None] + _ended(log_probs, finished, PAD)
    _, beam, token = _best(totals, *log_probs.shape[1:])
    return scores.gather(1, beam), beam, token


@mistake(
    "beam_step",
    hint="log_softmax is taken of the log-probabilities once more: they come in as they should be "
    "added.",
)
def normalises_once_more(scores, log_probs, finished):
    totals = scores[..., None] + _ended(log_probs.log_softmax(-1), finished, PAD)
    return _best(totals, *log_probs.shape[1:])


@alternative("beam_step")
def takes_the_best_of_each_beam_first(scores, log_probs, finished):
    K, V = log_probs.shape[1:]
    n = min(K, V)
    best, ids = (scores.unsqueeze(2) + _ended(log_probs, finished)).topk(n, dim=2)
    values, place = best.flatten(1).topk(K, dim=1)
    return values, torch.div(place, n, rounding_mode="floor"), ids.flatten(1).gather(1, place)


@alternative("beam_step")
def sorts_all_candidates(scores, log_probs, finished):
    B, K, V = log_probs.shape
    totals = (scores[:, :, None] + log_probs).masked_fill(finished[:, :, None], -math.inf)
    totals[:, :, PAD] = torch.where(finished, scores, totals[:, :, PAD])
    values, place = totals.reshape(B, K * V).sort(dim=1, descending=True)
    place = place[:, :K]
    return values[:, :K], place.div(V, rounding_mode="trunc"), place.remainder(V)


@alternative("beam_step")
def goes_through_sources(scores, log_probs, finished):
    V, rows = log_probs.shape[2], []
    for one, following, ends in zip(scores, log_probs, finished, strict=True):
        candidates = []
        for k, end in enumerate(ends.tolist()):
            for v in range(V):
                added = following[k, v].item() if not end else (0.0 if v == PAD else -math.inf)
                candidates.append((one[k].item() + added, k, v))
        candidates.sort(key=lambda candidate: candidate[0], reverse=True)
        rows.append(candidates[: len(one)])
    columns = [[[c[i] for c in row] for row in rows] for i in range(3)]
    return tuple(
        torch.tensor(column, dtype=t, device=scores.device)
        for column, t in zip(columns, (scores.dtype, torch.int64, torch.int64), strict=True)
    )


@careless("beam_step")
def makes_the_only_way_on_the_cpu(scores, log_probs, finished):
    only = torch.full((log_probs.shape[2],), -math.inf)
    only[PAD] = 0
    totals = scores[..., None] + torch.where(finished[..., None], only, log_probs)
    return _best(totals, *log_probs.shape[1:])


@careless("beam_step")
def blocks_in_the_given_log_probs(scores, log_probs, finished):
    log_probs[finished] = -math.inf
    log_probs[..., PAD].masked_fill_(finished, 0.0)
    return _best(scores[..., None] + log_probs, *log_probs.shape[1:])


def _kept(best, kept, values, written):
    """The N best of all, with their ids."""
    values, rows = torch.cat([best, values], 1), torch.cat([kept, written], 1)
    values, place = values.topk(best.shape[1], 1)
    return values, rows[torch.arange(len(rows), device=rows.device)[:, None], place]


def _only(values, ended, fill=-math.inf):
    return values.masked_fill(~ended, fill)


@mistake(
    "keep_best",
    hint="Beams that go on are kept as if they had ended: `ended` is not used.",
)
def keeps_what_goes_on(best, kept, values, written, ended):
    return _kept(best, kept, values, written)


@mistake(
    "keep_best",
    hint="The beams that have ended are left out, and those that go on are kept. In `ended`, True "
    "says that a beam has ended.",
)
def exchanges_ended_and_going_on(best, kept, values, written, ended):
    return _kept(best, kept, _only(values, ~ended), written)


@mistake(
    "keep_best",
    hint="A beam that goes on gets the value 0. A log-probability is below 0, so it wins against "
    "all others: which value loses against all?",
)
def fills_with_zeros(best, kept, values, written, ended):
    return _kept(best, kept, _only(values, ended, 0.0), written)


@mistake(
    "keep_best",
    hint="What was kept before is thrown away when nothing better, or nothing at all, ends in a "
    "step. It competes with the beams that have just ended.",
)
def forgets_what_was_kept(best, kept, values, written, ended):
    return _kept(torch.full_like(best, -math.inf), kept, _only(values, ended), written)


@mistake(
    "keep_best",
    hint="Whatever has just ended takes the place of what was kept, though it may be worse. The "
    "better ones stay.",
)
def prefers_the_newest(best, kept, values, written, ended):
    values = _only(values, ended)
    ranks = torch.cat([best, values + 1e6], 1)  # of the new ones all are better
    place = ranks.topk(best.shape[1], 1).indices
    values, rows = torch.cat([best, values], 1), torch.cat([kept, written], 1)
    return values.gather(1, place), rows[torch.arange(len(rows))[:, None], place]


@mistake(
    "keep_best",
    hint="Nothing is ever added: what was kept comes back as it was.",
)
def adds_nothing(best, kept, values, written, ended):
    return best.clone(), kept.clone()


@mistake(
    "keep_best",
    hint="The values are right, and the ids are those of before. They have to move with the "
    "values.",
)
def leaves_the_ids(best, kept, values, written, ended):
    return _kept(best, kept, _only(values, ended), written)[0], kept.clone()


@mistake(
    "keep_best",
    hint="The ids are right, and the values are those of before. In the next step they are what "
    "others compete with.",
)
def leaves_the_values(best, kept, values, written, ended):
    return best.clone(), _kept(best, kept, _only(values, ended), written)[1]


@mistake(
    "keep_best",
    hint="Values and ids are put side by side in two orders, once the kept ones first and once the "
    "beams first, so that a value meets another one's ids.",
)
def joins_in_two_orders(best, kept, values, written, ended):
    values, place = torch.cat([best, _only(values, ended)], 1).topk(best.shape[1], 1)
    return values, torch.cat([written, kept], 1)[torch.arange(len(best))[:, None], place]


@mistake(
    "keep_best",
    hint="All sources take their ids from the first one. Beside the places, the index needs the "
    "number of the source.",
)
def takes_ids_of_the_first_source(best, kept, values, written, ended):
    values, place = torch.cat([best, _only(values, ended)], 1).topk(best.shape[1], 1)
    return values, torch.cat([kept, written], 1)[0][place]


@mistake(
    "keep_best",
    hint="The smallest values are kept. Log-probabilities are negative: the best is the one "
    "nearest to 0.",
)
def keeps_the_smallest_values(best, kept, values, written, ended):
    values = torch.cat([best, _only(values, ended)], 1)
    values, place = values.topk(best.shape[1], 1, largest=False)
    return values, torch.cat([kept, written], 1)[torch.arange(len(best))[:, None], place]


@mistake(
    "keep_best",
    hint="The best N are there, but not the best one first.",
)
def keeps_them_worst_first(best, kept, values, written, ended):
    values, rows = _kept(best, kept, _only(values, ended), written)
    return values.flip(1), rows.flip(1)


@mistake(
    "keep_best",
    hint="Only one of the beams that have just ended can come in. Two may end in one step, and "
    "both be better than what is kept.",
)
def takes_one_a_step(best, kept, values, written, ended):
    values, place = _only(values, ended).max(1, keepdim=True)
    return _kept(best, kept, values, written[torch.arange(len(best))[:, None], place])


@mistake(
    "keep_best",
    hint="The right hypotheses are kept, but not best first.",
)
def keeps_their_order(best, kept, values, written, ended):
    values = torch.cat([best, _only(values, ended)], 1)
    place = values.topk(best.shape[1], 1).indices.sort(1).values
    ids = torch.cat([kept, written], 1)[torch.arange(len(best))[:, None], place]
    return values.gather(1, place), ids


@mistake(
    "keep_best",
    hint="All N + K come back. Only N have a place: the best ones.",
)
def keeps_all(best, kept, values, written, ended):
    values = torch.cat([best, _only(values, ended)], 1)
    values, place = values.sort(1, descending=True)
    return values, torch.cat([kept, written], 1)[torch.arange(len(best))[:, None], place]


@alternative("keep_best")
def gathers_ids(best, kept, values, written, ended):
    values = torch.cat([values.masked_fill(~ended, -math.inf), best], 1)
    values, place = values.topk(best.shape[1], 1)
    places = place[:, :, None].expand(-1, -1, written.shape[2])
    return values, torch.cat([written, kept], 1).gather(1, places)


@alternative("keep_best")
def sorts_all_first(best, kept, values, written, ended):
    values = torch.cat([best, torch.where(ended, values, -math.inf)], 1)
    order, rows = values.argsort(1, descending=True)[:, : best.shape[1]], [*kept, *written]
    pairs = zip(rows[: len(kept)], rows[len(kept) :], order, strict=True)
    return values.gather(1, order), torch.stack([torch.cat([a, b])[o] for a, b, o in pairs])


@alternative("keep_best")
def lets_beams_in_one_by_one(best, kept, values, written, ended):
    best, kept = best.clone(), kept.clone()
    for k in range(values.shape[1]):
        for n in range(best.shape[1]):
            ahead = (best[:, :n] >= values[:, k : k + 1]).sum(1) == n  # all before are better
            here = ended[:, k] & ahead & (best[:, n] < values[:, k])
            rows = here[:, None]
            shifted = torch.cat([best[:, :n], values[:, k : k + 1], best[:, n:-1]], 1)
            best = torch.where(rows, shifted, best)
            shifted = torch.cat([kept[:, :n], written[:, k : k + 1], kept[:, n:-1]], 1)
            kept = torch.where(rows[:, :, None], shifted, kept)
            ended = ended & ~(here[:, None] & (torch.arange(len(ended[0])).to(here.device) == k))
    return best, kept


@careless("keep_best")
def makes_minus_infinity_on_the_cpu(best, kept, values, written, ended):
    nothing = torch.full(values.shape, -math.inf, dtype=values.dtype)
    return _kept(best, kept, torch.where(ended, values, nothing), written)


@careless("keep_best")
def writes_into_the_values(best, kept, values, written, ended):
    values[~ended] = -math.inf
    return _kept(best, kept, values, written)


@careless("keep_best")
def fills_with_a_million(best, kept, values, written, ended):
    values, rows = _kept(best, kept, _only(values, ended, -1e6), written)
    return values.masked_fill(values == -1e6, -math.inf), rows


class _Cached(nn.Module):
    """A right CachedAttention in small methods; a mistake overrides what it gets wrong."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.keys = self.values = None

    def split(self, x):
        return x.unflatten(2, (self.n_heads, -1)).transpose(1, 2)

    def merge(self, context):
        return context.transpose(1, 2).flatten(2)

    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    def join(self, old, new):
        return new if old is None else torch.cat([old, new], 2)

    def remember(self, k, v):
        self.keys, self.values = self.join(self.keys, k), self.join(self.values, v)
        return self.keys, self.values

    def out(self, x):
        return self.W_o(x)

    def forward(self, x):
        q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        k, v = self.remember(k, v)
        return self.out(self.merge(self.attend(q, k, v)))


@mistake(
    "CachedAttention",
    hint="The new keys are put beside the old ones along another axis than time: heads or features "
    "no longer fit. In (B, H, T, d_head), which axis is T?",
)
class JoinsHeads(_Cached):
    def join(self, old, new):
        return new if old is None else torch.cat([old, new], 1)


@mistake(
    "CachedAttention",
    hint="The new keys are put below the old ones along the batch: there seem to be more sequences "
    "with each call. In (B, H, T, d_head), which axis is T?",
)
class JoinsBatches(_Cached):
    def join(self, old, new):
        return new if old is None else torch.cat([old, new], 0)


@mistake(
    "CachedAttention",
    hint="Each position sees only itself: no value of a position before it comes in.",
    earns=("the first position",),
)
class RemembersNothing(_Cached):
    def remember(self, k, v):
        return k, v


@mistake(
    "CachedAttention",
    hint="Only the last position is remembered. What is kept should be all keys so far, the new "
    "one among them.",
    earns=("the first position",),
)
class RemembersTheLast(_Cached):
    def remember(self, k, v):
        both = self.join(self.keys, k), self.join(self.values, v)
        self.keys, self.values = k, v
        return both


@mistake(
    "CachedAttention",
    hint="Only the first position is remembered: what is joined later is used once and not kept.",
)
class RemembersTheFirst(_Cached):
    def remember(self, k, v):
        if self.keys is None:
            self.keys, self.values = k, v
            return k, v
        return self.join(self.keys, k), self.join(self.values, v)


@mistake(
    "CachedAttention",
    hint="The keys are joined and the values are not, so that there are more weights than values. "
    "Join both.",
)
class RemembersKeysOnly(_Cached):
    def remember(self, k, v):
        self.keys, self.values = self.join(self.keys, k), v
        return self.keys, self.values

    def attend(self, q, k, v):
        return masked_attention(q, k, v)


@mistake(
    "CachedAttention",
    hint="The new key is put before the old ones and the new value after them, so that a weight "
    "meets another position's value. Join both in the same order.",
)
class JoinsInTwoOrders(_Cached):
    def remember(self, k, v):
        self.keys = k if self.keys is None else torch.cat([k, self.keys], 2)
        self.values = self.join(self.values, v)
        return self.keys, self.values


@mistake(
    "CachedAttention",
    hint="A tensor is neither true nor false. Ask whether there is one: `is not None`.",
)
class AsksATensor(_Cached):
    def join(self, old, new):
        return torch.cat([old, new], 2) if old else new


@mistake(
    "CachedAttention",
    hint="A position sees all before it but not itself: join the new key to the old ones first, "
    "then attend.",
)
class LeavesItselfOut(_Cached):
    def remember(self, k, v):
        old = (k, v) if self.keys is None else (self.keys, self.values)
        super().remember(k, v)
        return old


@mistake(
    "CachedAttention",
    hint="The inputs are remembered and projected again at every call. That gives the same numbers "
    "and saves nothing: remember keys and values.",
    earns=(
        "the first position",
        "all further positions",
    ),
)
class RemembersInputs(_Cached):
    def forward(self, x):
        self.keys = x if self.keys is None else torch.cat([self.keys, x], 1)
        q, k, v = (self.split(W(self.keys)) for W in (self.W_q, self.W_k, self.W_v))
        return self.W_o(self.merge(self.attend(q[:, :, -1:], k, v)))


@mistake(
    "CachedAttention",
    hint="The queries are remembered too, so that the result has a row for every position so far. "
    "Only the new position asks.",
)
class RemembersQueries(_Cached):
    def forward(self, x):
        q, k, v = (self.split(W(x)) for W in (self.W_q, self.W_k, self.W_v))
        self.queries = self.join(getattr(self, "queries", None), q)
        return self.W_o(self.merge(self.attend(self.queries, *self.remember(k, v))))


@mistake(
    "CachedAttention",
    hint="Keys and values are exchanged.",
)
class ExchangesKeysAndValues(_Cached):
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, v, k)


@mistake(
    "CachedAttention",
    hint="The scores are not divided by √d_head.",
    earns=(
        "the first position",
        "keys and values are remembered",
    ),
)
class ForgetsTheScale(_Cached):
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, scale=1.0)


@mistake(
    "CachedAttention",
    hint="The scores are divided by √d_model. A head compares d_head numbers: divide by √d_head.",
)
class ScalesByTheModel(_Cached):
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, scale=(q.shape[1] * q.shape[3]) ** -0.5)


@mistake(
    "CachedAttention",
    hint="Each position sees only the first one. (`is_causal=True` takes a lone query for the "
    "first position, whatever is remembered. Nothing is to be hidden here: the future is not "
    "there yet.)",
)
class TakesItselfForTheFirst(_Cached):
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@mistake(
    "CachedAttention",
    hint="All features are compared at once, as if there were a single head. Split queries, keys "
    "and values into heads, and merge them afterwards.",
    earns=(
        "the first position",
        "keys and values are remembered",
    ),
)
class HasOneHead(_Cached):
    def attend(self, q, k, v):
        q, k, v = (x.transpose(1, 2).flatten(2)[:, None] for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v)


@mistake(
    "CachedAttention",
    hint="All features are compared at once, as if there were a single head, though the scores are "
    "divided by √d_head. Split into heads, and merge them afterwards.",
)
class HasOneHeadOfSmallScale(_Cached):
    def attend(self, q, k, v):
        scale = q.shape[3] ** -0.5
        q, k, v = (x.transpose(1, 2).flatten(2)[:, None] for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, scale=scale)


@mistake(
    "CachedAttention",
    hint="`masked_attention` returns the context only, unless asked for the weights.",
)
class UnpacksTheContext(_Cached):
    def attend(self, q, k, v):
        context, _ = masked_attention(q, k, v)
        return context

    def merge(self, context):
        return merge_heads(context)


@mistake(
    "CachedAttention",
    hint="The mask has T rows, but there is one query.",
)
class MasksWithASquare(_Cached):
    def attend(self, q, k, v):
        T = k.shape[2]
        return masked_attention(q, k, v, torch.ones(T, T, dtype=torch.bool).tril())


@mistake(
    "CachedAttention",
    hint="The last projection, W_o, is missing.",
    earns=(
        "all further positions",
        "keys and values are remembered",
    ),
)
class ForgetsTheOutput(_Cached):
    def out(self, x):
        return x


@alternative("CachedAttention")
class PutsTheNewInFront(_Cached):
    def join(self, old, new):
        return new if old is None else torch.cat([new, old], 2)


@alternative("CachedAttention")
class KeepsLists(_Cached):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.keys, self.values = [], []

    def remember(self, k, v):
        self.keys.append(k)
        self.values.append(v)
        return torch.cat(self.keys, 2), torch.cat(self.values, 2)


@alternative("CachedAttention")
class RemembersBeforeSplitting(_Cached):
    def forward(self, x):
        k, v = self.W_k(x), self.W_v(x)
        if self.keys is not None:
            k, v = torch.cat([self.keys, k], 1), torch.cat([self.values, v], 1)
        self.keys, self.values = k.detach(), v.detach()
        q, k, v = self.split(self.W_q(x)), self.split(k), self.split(v)
        weights = (q @ k.transpose(2, 3) / math.sqrt(q.shape[3])).softmax(3)
        return self.W_o(self.merge(weights @ v))


@careless("CachedAttention")
class BeginsWithNothingOnTheCpu(_Cached):
    def join(self, old, new):
        if old is None:
            old = torch.zeros(new.shape[0], new.shape[1], 0, new.shape[3])
        return torch.cat([old, new], 2)


@careless("CachedAttention")
class LetsSeeAllByAMaskOnTheCpu(_Cached):
    def attend(self, q, k, v):
        return masked_attention(q, k, v, torch.ones(1, k.shape[2], dtype=torch.bool))


@mistake(
    "follow_beams",
    hint="All sources take their rows from the first one: origin counts within a source. Beam j of "
    "source b is row b · K + j.",
)
def forgets_the_source(cache, origin):
    return cache[origin.flatten()]


@mistake(
    "follow_beams",
    hint="The rows of a source begin at b · B instead of b · K.",
)
def steps_by_the_batch(cache, origin):
    B, K = origin.shape
    rows = (B * torch.arange(B)[:, None] + origin).flatten()
    return cache[rows.clamp(max=B * K - 1)]


@mistake(
    "follow_beams",
    hint="The rows of a source begin at b · B instead of b · K.",
)
def steps_by_the_batch_and_beyond(cache, origin):
    B = len(origin)
    return cache[(B * torch.arange(B)[:, None] + origin).flatten()]


@mistake(
    "follow_beams",
    hint="The first rows of the sources take turns along the flat origins: 0, K, 2K, …, 0, K, … "
    "Each belongs to K origins in a row: add it as (B, 1), or use `repeat_interleave`.",
)
def repeats_in_turns(cache, origin):
    B, K = origin.shape
    return cache[(K * torch.arange(B)).repeat(K) + origin.flatten()]


@mistake(
    "follow_beams",
    hint="The rows are taken as if the beams came first: row j · B + b. They are ordered by "
    "source.",
)
def interleaves(cache, origin):
    B, K = origin.shape
    return cache[(torch.arange(B)[:, None] + origin * B).flatten()]


@mistake(
    "follow_beams",
    hint="Nothing is reordered: the scores belong to other beams now than what is remembered.",
)
def leaves_all_in_place(cache, origin):
    return cache.clone()


@mistake(
    "follow_beams",
    hint="Rows are sent to where origin points. It is the other way round: new beam j fetches the "
    "row of origin[b, j].",
)
def sends_instead_of_fetching(cache, origin):
    B, K = origin.shape
    moved, rows = cache.clone(), (K * torch.arange(B)[:, None] + origin).flatten()
    for new, old in enumerate(rows.tolist()):
        moved[old] = cache[new]
    return moved


@mistake(
    "follow_beams",
    hint="The cache changes while it is being read. Write to a new one.",
)
def overwrites(cache, origin):
    B, K = origin.shape
    for b in range(B):
        for j in range(K):
            cache[b * K + j] = cache[b * K + origin[b, j]]
    return cache


@mistake(
    "follow_beams",
    hint="Rows are read from the new cache while it is being written. Read them from the old one.",
)
def reads_what_it_writes(cache, origin):
    B, K = origin.shape
    moved = cache.clone()
    for b in range(B):
        for j in range(K):
            moved[b * K + j] = moved[b * K + origin[b, j]]
    return moved


@mistake(
    "follow_beams",
    hint="The result has two axes for source and beam. It should have the cache's one, (B · K, …).",
)
def keeps_two_axes(cache, origin):
    B, K = origin.shape
    return cache[K * torch.arange(B)[:, None] + origin]


@mistake(
    "follow_beams",
    hint="Every beam takes over the row of its source's best beam: origin is not used.",
)
def follows_the_first(cache, origin):
    B, K = origin.shape
    return cache[(K * torch.arange(B)).repeat_interleave(K)]


@alternative("follow_beams")
def unflattens(cache, origin):
    B, K = origin.shape
    sources = torch.arange(B, device=cache.device)[:, None]
    return cache.unflatten(0, (B, K))[sources, origin].flatten(0, 1)


@alternative("follow_beams")
def gathers(cache, origin):
    B, K = origin.shape
    flat = cache.reshape(B, K, -1)
    return flat.gather(1, origin[:, :, None].expand(-1, -1, flat.shape[2])).reshape(cache.shape)


@alternative("follow_beams")
def goes_row_by_row(cache, origin):
    sources = cache.chunk(len(origin))
    return torch.cat([rows[places] for rows, places in zip(sources, origin, strict=True)])


@careless("follow_beams")
def numbers_the_sources_on_the_cpu(cache, origin):
    B, K = origin.shape
    return cache[(K * torch.arange(B)[:, None] + origin).flatten()]


@careless("follow_beams")
def copies_rows_to_the_cpu(cache, origin):
    B, K = origin.shape
    moved = torch.zeros(cache.shape, dtype=cache.dtype)
    for b in range(B):
        for j in range(K):
            moved[b * K + j] = cache[b * K + origin[b, j]]
    return moved


OUTSIDE = "nothing is learned from a search or a draw: it may be cut off from the graph"
EQUIVALENT = {
    "top_k_filter: whose result is cut off from the gradient: return logits.masked_fill(logits < "
    "smallest, -math.inf).detach()": OUTSIDE,
    "top_p_filter: whose result is cut off from the gradient: return logits.masked_fill(dropped, "
    "-math.inf).detach()": OUTSIDE,
    "beam_step: whose result is cut off from the gradient: return (scores.detach(), (place // "
    "V).detach(), (place % V).detach())": OUTSIDE,
    "keep_best: whose result is cut off from the gradient: return (best[:, :N].detach(), "
    "ids.take_along_dim(place[:, :N].unsqueeze(2), dim=1).detach())": OUTSIDE,
    "keep_best: with `kept` once where `best` belongs: N = kept.shape[1]": "both hold N hypotheses",
    "keep_best: without `dim` in one call of `sort`: best, place = values.sort(descending=True, "
    "stable=True)": "the last axis is the default",
    "keep_best: without `stable` in one call of `sort`: best, place = values.sort(dim=1, "
    "descending=True)": "of equal values any may be kept",
    "keep_best: with False once where True belongs: best, place = values.sort(dim=1, "
    "descending=True, stable=False)": "of equal values any may be kept",
    "follow_beams: whose result is cut off from the gradient: return cache[(first + "
    "origin).flatten()].detach()": OUTSIDE,
    "sample_tokens: whose result is cut off from the gradient: return (sums <= noise.unsqueeze(1) "
    "* sums[:, -1:]).sum(dim=1).detach()": "ids have no gradient",
    "top_k_filter: without `dim` in one call of `topk`: smallest = logits.topk(min(k, "
    "logits.shape[1])).values[:, -1:]": "the last axis is the default",
    "top_p_filter: without `dim` in one call of `sort`: probabilities, order = "
    "torch.softmax(logits, dim=1).sort(descending=True)": "the last axis is the default",
    "top_p_filter: with `ones_like` once where `zeros_like` belongs: dropped = "
    "torch.ones_like(before, dtype=torch.bool).scatter(1, order, before >= p)": (
        "scatter writes to every place"
    ),
    "beam_step: without `dim` in one call of `topk`: scores, place = totals.topk(K)": (
        "the last axis is the default"
    ),
    "follow_beams: with `cache` once where `origin` belongs: first = K * torch.arange(B, "
    "device=cache.device).unsqueeze(1)": "both are on one device",
}
