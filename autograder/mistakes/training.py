"""Wrong and right answers to the exercises of lesson 11."""

import math
import random
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from attention.training import ModelAndLoss
from autograder.checking.toolbox.registry import again, alternative, careless, mistake

PAD = 0
LOW = -1e30  # 0 times it is 0


@mistake(
    "noam_learning_rate",
    hint="The steps are counted as if the first were 0. The first is 1, and the warm-up "
    "ends at step warmup_steps.",
)
def counts_one_more(step, d_model, warmup_steps, factor=1.0):
    step = step + 1
    return factor * d_model**-0.5 * min(step * warmup_steps**-1.5, step**-0.5)


@mistake(
    "noam_learning_rate",
    hint="One step too few is counted: the first step would have a rate of 0 and learn nothing.",
)
def counts_one_less(step, d_model, warmup_steps, factor=1.0):
    step = step - 1
    fall = step**-0.5 if step else math.inf
    return factor * d_model**-0.5 * min(step * warmup_steps**-1.5, fall)


@mistake(
    "noam_learning_rate",
    hint="After the warm-up the rate stays where it is. It has to fall, with 1 / √step.",
)
def never_decays(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * warmup_steps**-0.5 * min(step / warmup_steps, 1)


@mistake(
    "noam_learning_rate",
    hint="There is no warm-up: the rate falls from the first step on. If you have a line, it is "
    "never the smaller part: it must divide by warmup_steps^1.5, not multiply.",
)
def never_warms_up(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * step**-0.5


@mistake(
    "noam_learning_rate",
    hint="The rate rises for ever. Which is smaller late in training, the line or the curve?",
)
def only_rises(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * step * warmup_steps**-1.5


@mistake(
    "noam_learning_rate",
    hint="The larger of the two is taken: high at first, lowest at the end of the warm-up, then "
    "rising for ever. It should be the smaller one.",
)
def takes_the_larger(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * max(step * warmup_steps**-1.5, step**-0.5)


@mistake(
    "noam_learning_rate",
    hint="The falling part goes down with 1 / step. It is 1 / √step.",
)
def falls_too_fast(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * min(step * warmup_steps**-1.5, warmup_steps**0.5 / step)


@mistake(
    "noam_learning_rate",
    hint="The rate does not depend on the model. Wider models get smaller rates: 1 / √d_model.",
)
def forgets_the_model(step, d_model, warmup_steps, factor=1.0):
    return factor * min(step * warmup_steps**-1.5, step**-0.5)


@mistake(
    "noam_learning_rate",
    hint="√d_model multiplies. Wider models need smaller rates, so it divides.",
)
def multiplies_by_the_root(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**0.5 * min(step * warmup_steps**-1.5, step**-0.5)


@mistake("noam_learning_rate", hint="It is divided by d_model, not by its square root.")
def divides_by_the_model(step, d_model, warmup_steps, factor=1.0):
    return factor / d_model * min(step * warmup_steps**-1.5, step**-0.5)


@mistake("noam_learning_rate", hint="`factor` has no effect.")
def forgets_the_factor(step, d_model, warmup_steps, factor=1.0):
    return d_model**-0.5 * min(step * warmup_steps**-1.5, step**-0.5)


@mistake(
    "noam_learning_rate",
    hint="`factor` scales only the rise, so that it also moves the peak. It multiplies every rate.",
)
def scales_the_rise(step, d_model, warmup_steps, factor=1.0):
    return d_model**-0.5 * min(factor * step * warmup_steps**-1.5, step**-0.5)


@mistake(
    "noam_learning_rate",
    hint="The line rises too steeply: it has to meet the curve at warmup_steps. Which power of "
    "warmup_steps makes step · power equal to 1 / √step there?",
)
def rises_to_the_wrong_height(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * min(step / warmup_steps, step**-0.5)


@alternative("noam_learning_rate")
def asks_which_part(step, d_model, warmup_steps, factor=1.0):
    peak = factor / math.sqrt(d_model * warmup_steps)
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * math.sqrt(warmup_steps / step)


@alternative("noam_learning_rate")
def computes_with_tensors(step, d_model, warmup_steps, factor=1.0):
    step = torch.tensor(float(step), dtype=torch.float64)
    return factor * d_model**-0.5 * torch.minimum(step**-0.5, step * warmup_steps**-1.5)


def _parts(logits, target):
    """Log-probabilities, those of the targets, and which targets are real."""
    log_p = logits.log_softmax(-1)
    return log_p, log_p.gather(-1, target[..., None])[..., 0], target != PAD


def _per_token(loss, real):
    return (loss * real).sum() / real.sum().clamp(min=1)


@mistake("label_smoothed_loss", hint="The targets are not smoothed: `smoothing` has no effect.")
def does_not_smooth(logits, target, smoothing=0.1):
    _, chosen, real = _parts(logits, target)
    return _per_token(-chosen, real)


@mistake(
    "label_smoothed_loss",
    hint="`smoothing` is spread over the other V - 1 tokens. It is spread over the whole "
    "vocabulary, the right token included.",
)
def spreads_over_the_others(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    others = (log_p.sum(-1) - chosen) / (logits.shape[-1] - 1)
    return _per_token(-(1 - smoothing) * chosen - smoothing * others, real)


@mistake(
    "label_smoothed_loss",
    hint="Log-probabilities are bounded from below, so a token that is ruled out has a "
    "finite loss when it is asked for. That loss is infinite.",
)
def bounds_the_logarithms(logits, target, smoothing=0.1):
    log_p, _, real = _parts(logits, target)
    log_p = log_p.clamp(min=-1e4)
    chosen = log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return _per_token(-(1 - smoothing) * chosen - smoothing * log_p.mean(-1), real)


@mistake(
    "label_smoothed_loss",
    hint="PAD gets no share of the smoothed probability, which is spread over the whole "
    "vocabulary. Only positions whose target is PAD are left out.",
)
def leaves_pad_out_of_the_vocabulary(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return _per_token(-(1 - smoothing) * chosen - smoothing * log_p[..., 1:].mean(-1), real)


@mistake(
    "label_smoothed_loss",
    hint="The smoothed part also counts where the target is PAD. Both parts count at real tokens "
    "only.",
)
def smooths_padding(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    total = (-(1 - smoothing) * chosen * real).sum() - smoothing * log_p.mean(-1).sum()
    return total / real.sum()


@mistake(
    "label_smoothed_loss",
    hint="Padding counts like text, so the model is rewarded for writing PAD. Leave these "
    "positions out of the sum and of the number of tokens.",
)
def counts_padding(logits, target, smoothing=0.1):
    log_p, chosen, _ = _parts(logits, target)
    return (-(1 - smoothing) * chosen - smoothing * log_p.mean(-1)).mean()


@mistake(
    "label_smoothed_loss",
    hint="The sum leaves padding out, but it is divided by all positions. Divide by the number of "
    "real tokens.",
)
def divides_by_all_positions(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return ((-(1 - smoothing) * chosen - smoothing * log_p.mean(-1)) * real).mean()


@mistake(
    "label_smoothed_loss",
    hint="This is the mean of the sentences' means: a token of a short sentence counts more than "
    "one of a long sentence. Every token counts the same.",
)
def averages_sentences(logits, target, smoothing=0.1):
    means = []
    for scores, ids in zip(logits, target, strict=True):
        surprise = torch.logsumexp(scores, dim=1, keepdim=True) - scores  # (T, vocab_size)
        right = torch.stack([row[token] for row, token in zip(surprise, ids, strict=True)])
        losses = (1 - smoothing) * right + smoothing * surprise.mean(dim=1)  # (T,)
        means.append(losses[ids != PAD].mean())
    return torch.stack(means).mean()


@mistake(
    "label_smoothed_loss",
    hint="The targets are smoothed by 0.1, whatever `smoothing` says.",
)
def always_smooths_by_a_tenth(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return _per_token(-0.9 * chosen - 0.1 * log_p.mean(-1), real)


@mistake("label_smoothed_loss", hint="This is the sum over the real tokens. Return the mean.")
def returns_the_sum(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return ((-(1 - smoothing) * chosen - smoothing * log_p.mean(-1)) * real).sum()


@mistake(
    "label_smoothed_loss",
    hint="`gather` returns shape (B, T, 1), which is broadcast to a table together with "
    "(B, T). Drop the last axis first.",
)
def keeps_the_axis_of_gather(logits, target, smoothing=0.1):
    log_p, real = logits.log_softmax(-1), target != PAD
    chosen = log_p.gather(-1, target[..., None])
    return _per_token(-(1 - smoothing) * chosen - smoothing * log_p.mean(-1), real)


@mistake("label_smoothed_loss", hint="This is one loss for each token. Return their mean.")
def returns_one_for_each_token(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return (-(1 - smoothing) * chosen - smoothing * log_p.mean(-1)) * real


@mistake(
    "label_smoothed_loss",
    hint="The right token keeps a weight of 1, so the weights sum to 1 + smoothing. The "
    "share that is spread has to be taken from it.",
)
def takes_nothing_away(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return _per_token(-chosen - smoothing * log_p.mean(-1), real)


@mistake(
    "label_smoothed_loss",
    hint="Every token of the vocabulary gets all of `smoothing`. They share it: each gets "
    "1 / V of it.",
)
def gives_each_token_all_of_it(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return _per_token(-(1 - smoothing) * chosen - smoothing * log_p.sum(-1), real)


@mistake("label_smoothed_loss", hint="The sign is wrong: a loss is minus a log-probability.")
def has_the_wrong_sign(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return _per_token((1 - smoothing) * chosen + smoothing * log_p.mean(-1), real)


@mistake(
    "label_smoothed_loss",
    hint="The two shares are exchanged: the right token gets `smoothing`, and the rest is spread.",
)
def exchanges_the_shares(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return _per_token(-smoothing * chosen - (1 - smoothing) * log_p.mean(-1), real)


@mistake(
    "label_smoothed_loss",
    hint="This is the logarithm of a softmax: it is -inf where a probability is rounded to "
    "0. log_softmax computes both at once, and exactly.",
)
def takes_the_logarithm_afterwards(logits, target, smoothing=0.1):
    log_p = logits.softmax(-1).log()
    chosen, real = log_p.gather(-1, target[..., None])[..., 0], target != PAD
    return _per_token(-(1 - smoothing) * chosen - smoothing * log_p.mean(-1), real)


@mistake(
    "label_smoothed_loss",
    hint="These are probabilities: the logarithm is missing.",
)
def forgets_the_logarithm(logits, target, smoothing=0.1):
    p = logits.softmax(-1)
    chosen, real = p.gather(-1, target[..., None])[..., 0], target != PAD
    return _per_token(-(1 - smoothing) * chosen - smoothing * p.mean(-1), real)


@mistake(
    "label_smoothed_loss",
    hint="The softmax is missing: these are bare scores, not log-probabilities.",
)
def forgets_the_softmax(logits, target, smoothing=0.1):
    chosen, real = logits.gather(-1, target[..., None])[..., 0], target != PAD
    return _per_token(-(1 - smoothing) * chosen - smoothing * logits.mean(-1), real)


@mistake(
    "label_smoothed_loss",
    hint="This is the divergence from the smoothed targets. It lacks their entropy, which "
    "is above 0. The gradient is the same, but the number is not the cross-entropy.",
)
def returns_the_divergence(logits, target, smoothing=0.1):
    log_p, _, real = _parts(logits, target)
    wanted = torch.full_like(log_p, smoothing / logits.shape[-1])
    wanted = wanted + (1 - smoothing) * F.one_hot(target, logits.shape[-1])
    loss = F.kl_div(log_p, wanted, reduction="none").sum(-1)
    return _per_token(loss, real)


@mistake(
    "label_smoothed_loss",
    hint="The result has lost its gradient: a model cannot learn from a Python number. "
    "Keep tensors.",
)
def returns_a_number(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    loss = _per_token(-(1 - smoothing) * chosen - smoothing * log_p.mean(-1), real)
    return torch.tensor(loss.item(), dtype=logits.dtype)


@mistake(
    "label_smoothed_loss",
    hint="The softmax runs over the positions. It has to run over the vocabulary, the last axis.",
)
def normalises_over_positions(logits, target, smoothing=0.1):
    log_p, real = logits.log_softmax(1), target != PAD
    chosen = log_p.gather(-1, target[..., None])[..., 0]
    return _per_token(-(1 - smoothing) * chosen - smoothing * log_p.mean(-1), real)


@mistake(
    "label_smoothed_loss",
    hint="F.cross_entropy wants the vocabulary on axis 1, (B, vocab_size, T), or only two axes: "
    "flatten batch and positions.",
)
def asks_pytorch_with_other_axes(logits, target, smoothing=0.1):
    return F.cross_entropy(logits, target, ignore_index=PAD, label_smoothing=smoothing)


def _with_fewer_zeros(known, everywhere):
    """The same mistake, without NaN at padding, or without any, where a score is -inf.

    As it is, it may multiply an infinite loss by 0.
    """

    def answer(logits, target, smoothing=0.1):
        there = (target == PAD).unsqueeze(-1) | everywhere
        return known.target(torch.where(there, logits.clamp(min=LOW), logits), target, smoothing)

    answer.__name__ = f"{known.name}_{'without_zeros' if everywhere else 'of_selected_tokens'}"
    return answer


again(
    "label_smoothed_loss",
    *(partial(_with_fewer_zeros, everywhere=one) for one in (False, True)),
)


@mistake(
    "label_smoothed_loss",
    hint="Where PAD stands the loss may be infinite, and 0 times infinity is NaN. Choose the real "
    "tokens, loss[real], instead of multiplying by 0.",
)
def multiplies_by_the_mask(logits, target, smoothing=0.1):
    log_p, loss, real = _parts(logits, target)
    if smoothing > 0:
        loss = (1 - smoothing) * loss + smoothing * log_p.mean(-1)
    return _per_token(-loss, real)


@mistake(
    "label_smoothed_loss",
    hint="Where a token is ruled out the mean of the log-probabilities is -inf, and 0 times "
    "infinity is NaN. With smoothing=0 leave the smoothed part out.",
)
def multiplies_by_a_smoothing_of_0(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    loss = -(1 - smoothing) * chosen - smoothing * log_p.mean(-1)
    return loss[real].sum() / real.sum().clamp(min=1)


@mistake(
    "label_smoothed_loss",
    hint="0 times infinity is NaN, and a score may be -inf. Choose the real tokens, loss[real], "
    "instead of multiplying by 0; and with smoothing=0 leave the smoothed part out.",
)
def multiplies_both_by_0(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    return _per_token(-(1 - smoothing) * chosen - smoothing * log_p.mean(-1), real)


NO_TOKEN = (
    "Where no token is real there is nothing to take the mean of, and 0 / 0 is NaN. The loss "
    "should be 0 then."
)


def _smoothed(logits, target, smoothing):
    """Pair (the loss of each position, whether it is real)."""
    log_p, chosen, real = _parts(logits, target)
    loss = -(1 - smoothing) * chosen
    return (loss - smoothing * log_p.mean(-1) if smoothing > 0 else loss), real


@mistake("label_smoothed_loss", hint=NO_TOKEN)
def takes_the_mean_of_what_is_real(logits, target, smoothing=0.1):
    loss, real = _smoothed(logits, target, smoothing)
    return loss[real].mean()


@mistake("label_smoothed_loss", hint=NO_TOKEN)
def divides_by_no_tokens(logits, target, smoothing=0.1):
    loss, real = _smoothed(logits, target, smoothing)
    return torch.where(real, loss, 0.0).sum() / real.sum()


@mistake(
    "label_smoothed_loss",
    hint="Where no token is real, the 0 is a new number without a gradient, and training "
    "would stop with an error. Compute it from the scores, as an empty sum of them.",
)
def returns_a_new_0_for_no_token(logits, target, smoothing=0.1):
    if (target == PAD).all():
        return torch.zeros((), dtype=logits.dtype, device=logits.device)
    return takes_the_mean_of_what_is_real(logits, target, smoothing)


@alternative("label_smoothed_loss")
def builds_the_wanted_distribution(logits, target, smoothing=0.1):
    vocab_size = logits.shape[-1]
    wanted = (1 - smoothing) * F.one_hot(target, vocab_size).to(logits) + smoothing / vocab_size
    loss = -(wanted * F.log_softmax(logits, -1)).masked_fill(wanted == 0, 0.0).sum(-1)
    real = loss[target != PAD]
    return real.mean() if len(real) else real.sum()


@alternative("label_smoothed_loss")
def loops_over_tokens(logits, target, smoothing=0.1):
    losses = []
    for scores, ids in zip(logits, target.tolist(), strict=True):
        for row, wanted in zip(scores, ids, strict=True):
            if wanted != PAD:
                log_p = row - torch.logsumexp(row, 0)
                loss = -(1 - smoothing) * log_p[wanted]
                losses.append(loss - smoothing * log_p.mean() if smoothing else loss)
    return torch.stack(losses).mean() if losses else 0 * logits.sum()


@alternative("label_smoothed_loss")
def fills_with_zeros(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    spread = 0.0 if smoothing == 0 else smoothing * log_p.mean(-1)
    loss = torch.where(real, (smoothing - 1) * chosen - spread, 0.0)
    return loss.sum() / max(1, real.sum())


@alternative("label_smoothed_loss")
def lets_pytorch_do_it(logits, target, smoothing=0.1):
    options = {"ignore_index": PAD, "label_smoothing": smoothing, "reduction": "sum"}
    return F.cross_entropy(logits.mT, target, **options) / (target != PAD).sum().clamp(min=1)


@careless("label_smoothed_loss")
def fills_a_table_on_the_cpu(logits, target, smoothing=0.1):
    losses = torch.zeros(target.shape)
    for b, ids in enumerate(target.tolist()):
        for t, wanted in enumerate(ids):
            log_p = logits[b, t].log_softmax(0)
            losses[b, t] = -(1 - smoothing) * log_p[wanted]
            if smoothing:
                losses[b, t] = losses[b, t] - smoothing * log_p.mean()
    return losses[target.cpu() != PAD].sum() / max(1, (target != PAD).sum().item())


@careless("label_smoothed_loss")
def computes_in_float32(logits, target, smoothing=0.1):
    return lets_pytorch_do_it(logits.float(), target, smoothing)


def _by_length(lengths):
    return sorted(range(len(lengths)), key=lambda index: lengths[index])


def _refuse(lengths, max_tokens):
    for index, length in enumerate(lengths):
        if length > max_tokens:
            raise ValueError(f"sentence {index} has {length} tokens, max_tokens={max_tokens}")


def _fill(order, lengths, fits):
    """Greedy batches in an order; ``fits(batch)`` says whether it may be so large."""
    batches = []
    for index in order:
        if batches and fits([lengths[one] for one in [*batches[-1], index]]):
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def _within(max_tokens):
    return lambda group: len(group) * max(group) <= max_tokens


@mistake(
    "batch_by_tokens",
    hint="The last batch is lost. A batch is closed when a sentence no longer fits, and no "
    "sentence comes after the last one. The batch that is still open counts too.",
    earns=(
        "in the order of length",
        "a sentence too long, or none",
    ),
)
def drops_the_last_batch(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    batches, batch = [], []
    for index in _by_length(lengths):
        if (len(batch) + 1) * lengths[index] > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(index)
    return batches


@mistake(
    "batch_by_tokens",
    hint="The sentence that no longer fitted is lost. It is the first of the next batch.",
)
def loses_the_one_too_many(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    batches, batch = [], []
    for index in _by_length(lengths):
        if (len(batch) + 1) * lengths[index] > max_tokens:
            batches.append(batch)
            batch = []
        else:
            batch.append(index)
    return [*batches, batch] if batch else batches


@mistake(
    "batch_by_tokens",
    hint="The sentence at the border is in two batches: it closes one, and begins the next.",
)
def repeats_at_the_border(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    batches = [[]]
    for index in _by_length(lengths):
        batches[-1].append(index)
        if len(batches[-1]) * lengths[index] > max_tokens:
            batches.append([index])
    return [batch for batch in batches if batch]


@mistake(
    "batch_by_tokens",
    hint="A batch is closed when it has already grown too large. Ask before the sentence is added.",
    earns=(
        "in the order of length",
        "a sentence too long, or none",
    ),
)
def asks_too_late(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    batches = [[]]
    for index in _by_length(lengths):
        batches[-1].append(index)
        if len(batches[-1]) * lengths[index] > max_tokens:
            batches.append([])
    return [batch for batch in batches if batch]


@mistake(
    "batch_by_tokens",
    hint="The sentences' own lengths are added up. When padded, each takes as much room as "
    "the longest of its batch.",
)
def adds_up_lengths(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    return _fill(_by_length(lengths), lengths, lambda group: sum(group) <= max_tokens)


@mistake(
    "batch_by_tokens",
    hint="A batch may have exactly max_tokens; it is closed one step too early.",
)
def stays_below(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    return _fill(_by_length(lengths), lengths, lambda group: len(group) * max(group) < max_tokens)


@mistake(
    "batch_by_tokens",
    hint="A batch is measured by its shortest sentence. When padded, all are as long as "
    "the longest.",
)
def measures_with_the_shortest(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    return _fill(_by_length(lengths), lengths, lambda group: len(group) * min(group) <= max_tokens)


@mistake(
    "batch_by_tokens",
    hint="The next sentence is counted with the shortest length of the batch. But it makes "
    "all of them as long as itself.",
)
def counts_the_newcomer_as_the_shortest(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    return _fill(
        _by_length(lengths),
        lengths,
        lambda group: (len(group) - 1) * group[-1] + group[0] <= max_tokens,
    )


@mistake(
    "batch_by_tokens",
    hint="max_tokens is taken for a number of sentences.",
)
def counts_sentences(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    return _fill(_by_length(lengths), lengths, lambda group: len(group) <= max_tokens)


UNSORTED = (
    "The sentences are taken as they come, so that short ones are padded to the length of long "
    "ones. Sort them by length first."
)


@mistake(
    "batch_by_tokens",
    hint=UNSORTED,
    earns=(
        "filled as far as it goes",
        "a sentence too long, or none",
    ),
)
def does_not_sort(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    return _fill(range(len(lengths)), lengths, _within(max_tokens))


def _by_the_last(order, lengths, max_tokens):
    """Batches in an order, each measured by the sentence that comes, as if it were the longest."""
    return _fill(order, lengths, lambda group: len(group) * group[-1] <= max_tokens)


@mistake("batch_by_tokens", hint=UNSORTED)
def does_not_sort_but_trusts_the_last(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    return _by_the_last(range(len(lengths)), lengths, max_tokens)


@mistake(
    "batch_by_tokens",
    hint="The next sentence is not counted: with it the batch has one sentence more.",
)
def forgets_the_one_that_comes(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    order = _by_length(lengths)
    return _fill(order, lengths, lambda group: (len(group) - 1) * group[-1] <= max_tokens)


@mistake(
    "batch_by_tokens",
    hint="The batch is measured by the sentence before. The next one is the longest, and "
    "all are padded to its length.",
)
def measures_by_the_one_before(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    order = _by_length(lengths)
    return _fill(order, lengths, lambda group: len(group) * group[-2] <= max_tokens)


@mistake(
    "batch_by_tokens",
    hint="Equally long sentences all get the index of the first: `index` finds only that one. Sort "
    "the indices themselves.",
)
def asks_where_the_length_is(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    order = [lengths.index(length) for length in sorted(lengths)]
    return _fill(order, lengths, _within(max_tokens))


@mistake(
    "batch_by_tokens",
    hint="`lengths.sort()` changes the list that was handed in, and afterwards the indices are "
    "places in the sorted list. Sort indices by their lengths.",
)
def sorts_in_place(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    lengths.sort()
    return _fill(range(len(lengths)), lengths, _within(max_tokens))


@mistake(
    "batch_by_tokens",
    hint="These are lengths. Return the indices of the sentences, in the order of their lengths.",
)
def returns_lengths(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    ordered = sorted(lengths)
    groups = _fill(range(len(lengths)), ordered, _within(max_tokens))
    return [[ordered[index] for index in group] for group in groups]


@mistake(
    "batch_by_tokens",
    hint="These are places in the sorted list. Return indices into `lengths` as it was handed in.",
    earns=("a sentence too long, or none",),
)
def returns_places(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    return _fill(range(len(lengths)), sorted(lengths), _within(max_tokens))


LONGEST_FIRST = "The longest sentences come first. The shortest should."


@mistake("batch_by_tokens", hint=LONGEST_FIRST)
def begins_with_the_longest_and_trusts_the_last(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    return _by_the_last(order, lengths, max_tokens)


@mistake(
    "batch_by_tokens",
    hint=LONGEST_FIRST,
    earns=(
        "filled as far as it goes",
        "a sentence too long, or none",
    ),
)
def begins_with_the_longest(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    return _fill(order, lengths, _within(max_tokens))


@mistake(
    "batch_by_tokens",
    hint="Of equally long sentences the later one comes first. Keep the order in which they were "
    "handed in.",
)
def turns_equals_round(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], -index))
    return _fill(order, lengths, _within(max_tokens))


@mistake(
    "batch_by_tokens",
    hint="Each length has batches of its own. Different lengths may share a batch, as long "
    "as it fits when padded.",
)
def keeps_lengths_apart(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    return _fill(
        _by_length(lengths),
        lengths,
        lambda group: len(group) * max(group) <= max_tokens and min(group) == max(group),
    )


@mistake(
    "batch_by_tokens",
    hint="All batches have as many sentences as the longest sentence allows, so those of "
    "short sentences stay half empty. Measure each batch by itself.",
)
def sizes_all_by_the_longest(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    order, size = _by_length(lengths), max_tokens // max(lengths, default=1)
    return [order[begin : begin + size] for begin in range(0, len(order), size)]


@mistake(
    "batch_by_tokens",
    hint="With no sentences at all, the batch that you begin with is returned empty. Return [].",
    earns=(
        "in the order of length",
        "filled as far as it goes",
    ),
)
def keeps_an_empty_batch(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    batches = [[]]
    for index in _by_length(lengths):
        if (len(batches[-1]) + 1) * lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


@mistake(
    "batch_by_tokens",
    hint="A sentence that fits into no batch is put into one of its own, larger than "
    "max_tokens. Raise a ValueError instead.",
    earns=(
        "in the order of length",
        "filled as far as it goes",
    ),
)
def accepts_what_is_too_long(lengths, max_tokens):
    return _fill(_by_length(lengths), lengths, _within(max_tokens))


@mistake(
    "batch_by_tokens",
    hint="A sentence that is too long is left out without a word. Raise a ValueError instead.",
)
def leaves_out_what_is_too_long(lengths, max_tokens):
    order = [index for index in _by_length(lengths) if lengths[index] <= max_tokens]
    return _fill(order, lengths, _within(max_tokens))


@mistake(
    "batch_by_tokens",
    hint="A sentence of exactly max_tokens is refused. It fits, alone in its batch: only longer "
    "ones are refused.",
)
def refuses_what_just_fits(lengths, max_tokens):
    _refuse(lengths, max_tokens - 1)
    return _fill(_by_length(lengths), lengths, _within(max_tokens))


NO_SENTENCES = "There may be no sentences at all. Then there are no batches: return []."


@mistake("batch_by_tokens", hint=NO_SENTENCES)
def takes_the_maximum_of_nothing(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError(f"a sentence has {max(lengths)} tokens, max_tokens={max_tokens}")
    return _fill(_by_length(lengths), lengths, _within(max_tokens))


@mistake("batch_by_tokens", hint=NO_SENTENCES)
def looks_at_the_longest_of_none(lengths, max_tokens):
    order = _by_length(lengths)
    if lengths[order[-1]] > max_tokens:
        raise ValueError(f"sentence {order[-1]} is longer than max_tokens={max_tokens}")
    return _fill(order, lengths, _within(max_tokens))


@alternative("batch_by_tokens")
def sorts_pairs(lengths, max_tokens):
    batches, batch = [], []
    for length, index in sorted(zip(lengths, range(len(lengths)), strict=True)):
        if length > max_tokens:
            raise ValueError(f"{length} tokens are more than {max_tokens}")
        if batch and (len(batch) + 1) * length > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(index)
    if batch:
        batches.append(batch)
    return batches


@alternative("batch_by_tokens")
def cuts_slices(lengths, max_tokens):
    order, begin, batches = torch.tensor(lengths).argsort(stable=True).tolist(), 0, []
    if lengths and max(lengths) > max_tokens:
        raise ValueError(f"a sentence has {max(lengths)} tokens, max_tokens={max_tokens}")
    while begin < len(order):
        end = begin
        while end < len(order) and (end + 1 - begin) * lengths[order[end]] <= max_tokens:
            end += 1
        batches.append(order[begin:end])
        begin = end
    return batches


@careless("batch_by_tokens")
def appends_one_that_never_fits(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    lengths.append(max_tokens + 1)  # it closes the last batch
    batches, batch = [], []
    for index in _by_length(lengths):
        if batch and (len(batch) + 1) * lengths[index] > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(index)
    return batches


@careless("batch_by_tokens")
def crosses_out_what_is_taken(lengths, max_tokens):
    _refuse(lengths, max_tokens)
    batches = []
    for _ in range(len(lengths)):
        shortest = min(lengths)
        if not batches or (len(batches[-1]) + 1) * shortest > max_tokens:
            batches.append([])
        batches[-1].append(lengths.index(shortest))
        lengths[lengths.index(shortest)] = math.inf
    return batches


def _shuffled(n_batches, seed):
    order = list(range(n_batches))
    random.Random(seed).shuffle(order)
    return order


@mistake(
    "epoch_order",
    hint="Every epoch has the same order: the epoch has no effect. The model would always see the "
    "same batches one after the other.",
)
def forgets_the_epoch(n_batches, seed, epoch):
    return _shuffled(n_batches, seed)


@mistake(
    "epoch_order",
    hint="The seed has no effect: two trainings with different seeds see the same orders.",
)
def forgets_the_seed(n_batches, seed, epoch):
    return _shuffled(n_batches, epoch)


@mistake(
    "epoch_order",
    hint="seed + epoch is the same for seed 1, epoch 0 and seed 0, epoch 1: a training with the "
    "next seed repeats this one, an epoch later. Make one seed of the two that is always new.",
)
def adds_seed_and_epoch(n_batches, seed, epoch):
    return _shuffled(n_batches, seed + epoch)


@mistake(
    "epoch_order",
    hint="seed · epoch is 0 for every seed in epoch 0, and the same for many other pairs. Make one "
    "seed of the two that is always new.",
)
def multiplies_seed_and_epoch(n_batches, seed, epoch):
    return _shuffled(n_batches, seed * epoch)


@mistake(
    "epoch_order",
    hint="Seed and epoch are joined by an exclusive or, which is 0 wherever they are equal. Make "
    "one seed of the two that is always new.",
)
def joins_by_exclusive_or(n_batches, seed, epoch):
    return _shuffled(n_batches, seed ^ epoch)


COLLIDES = (
    "Some seed and epoch of one training give the same number, or the same text, as those of "
    "another. Two numbers side by side need something between them that is in neither."
)


@mistake("epoch_order", hint=COLLIDES)
def multiplies_the_seed_by_ten(n_batches, seed, epoch):
    return _shuffled(n_batches, 10 * seed + epoch)


@mistake("epoch_order", hint=COLLIDES)
def multiplies_the_seed_by_a_hundred(n_batches, seed, epoch):
    return _shuffled(n_batches, 100 * seed + epoch)


@mistake("epoch_order", hint=COLLIDES)
def multiplies_the_seed_by_a_thousand(n_batches, seed, epoch):
    return _shuffled(n_batches, 1000 * seed + epoch)


@mistake("epoch_order", hint=COLLIDES)
def multiplies_the_seed_by_ten_thousand(n_batches, seed, epoch):
    return _shuffled(n_batches, 10_000 * seed + epoch)


@mistake("epoch_order", hint=COLLIDES)
def writes_them_without_a_gap(n_batches, seed, epoch):
    return _shuffled(n_batches, f"{seed}{epoch}")


@mistake(
    "epoch_order",
    hint="The order is right, but PyTorch's global generator is seeded on the way, so "
    "everything drawn from it afterwards is the same each time. Make a generator of "
    "your own.",
)
def seeds_pytorchs_generator(n_batches, seed, epoch):
    torch.manual_seed(1_000_003 * seed + epoch)
    return torch.randperm(n_batches).tolist()


@mistake(
    "epoch_order",
    hint="The order is right, but Python's global generator is seeded on the way, so "
    "everything drawn from it afterwards is the same each time. Make a generator of "
    "your own: random.Random.",
)
def seeds_the_global_generator(n_batches, seed, epoch):
    random.seed(f"{seed} {epoch}")
    order = list(range(n_batches))
    random.shuffle(order)
    return order


@mistake(
    "epoch_order",
    hint="`random.Random` takes a number or a text, not a tuple. Make one text of the two.",
)
def seeds_with_a_tuple(n_batches, seed, epoch):
    return _shuffled(n_batches, (seed, epoch))


@mistake(
    "epoch_order",
    hint="The batches come in the order of their numbers, in every epoch: shortest sentences "
    "first. Shuffle them.",
)
def does_not_shuffle(n_batches, seed, epoch):
    return list(range(n_batches))


@mistake(
    "epoch_order",
    hint="`shuffle` changes a list in place and returns None.",
)
def returns_what_shuffle_returns(n_batches, seed, epoch):
    return random.Random(f"{seed} {epoch}").shuffle(list(range(n_batches)))


@mistake(
    "epoch_order",
    hint="Batches are drawn with replacement: some come twice in an epoch, others never.",
)
def draws_with_replacement(n_batches, seed, epoch):
    return random.Random(f"{seed} {epoch}").choices(range(n_batches), k=n_batches)


@mistake(
    "epoch_order",
    hint="Every epoch has the same order and only begins at another place. Shuffle anew.",
)
def turns_one_order(n_batches, seed, epoch):
    order, by = _shuffled(n_batches, seed), epoch % n_batches
    return order[by:] + order[:by]


@mistake("epoch_order", hint="The numbers begin with 1. Batches are counted from 0.")
def counts_from_one(n_batches, seed, epoch):
    return [number + 1 for number in _shuffled(n_batches, f"{seed} {epoch}")]


@mistake("epoch_order", hint="This is a tensor. Return a list of ints.")
def returns_a_tensor(n_batches, seed, epoch):
    generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    return torch.randperm(n_batches, generator=generator)


@alternative("epoch_order")
def permutes_with_pytorch(n_batches, seed, epoch):
    generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    return torch.randperm(n_batches, generator=generator).tolist()


@alternative("epoch_order")
def hashes_the_pair(n_batches, seed, epoch):
    draw = random.Random(hash((seed, epoch)))
    return draw.sample(range(n_batches), n_batches)


@alternative("epoch_order")
def seeds_a_generator_with_a_drawn_seed(n_batches, seed, epoch):
    seeds = random.Random(seed)
    for _ in range(epoch):
        seeds.getrandbits(64)
    return _shuffled(n_batches, seeds.getrandbits(64))


@careless("epoch_order")
def draws_until_all_are_there(n_batches, seed, epoch):
    draw = random.Random(f"{seed} {epoch}")
    order = [draw.randrange(n_batches)]
    while len(order) < n_batches:
        index = draw.randrange(n_batches)
        if index not in order:
            order.append(index)
    return order


@careless("epoch_order")
def samples_from_the_global_generator(n_batches, seed, epoch):
    random.seed(f"{seed} {epoch}")
    return random.sample(range(n_batches), n_batches)


def _norm(gradients):
    return math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))


def _shorter(gradients, max_norm, norm):
    factor = min(1.0, max_norm / norm) if norm else 1.0
    return [gradient * factor for gradient in gradients]


@mistake(
    "clip_gradients",
    hint="Each tensor is shortened by itself, which turns the direction of the step. One norm for "
    "all of them together, and one factor.",
)
def clips_each_by_itself(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    return [_shorter([gradient], max_norm, _norm([gradient]))[0] for gradient in gradients]


@mistake(
    "clip_gradients",
    hint="Gradients that are short enough are stretched to max_norm. Leave these as they are.",
)
def stretches_short_ones(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    norm = _norm(gradients) or 1.0
    return [gradient * (max_norm / norm) for gradient in gradients]


@mistake(
    "clip_gradients",
    hint="0 / 0: the norm of gradients that are all 0 is 0, and nothing may be divided by it.",
)
def divides_by_zero(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    return [gradient / norm * norm.clamp(max=max_norm) for gradient in gradients]


@mistake(
    "clip_gradients",
    hint="The gradients are clipped while they are still scaled, and unscaled afterwards: they end "
    "loss_scale times too short. First undo the scale, then measure.",
)
def clips_before_unscaling(gradients, max_norm, loss_scale=1.0):
    clipped = _shorter(gradients, max_norm, _norm(gradients))
    return [gradient / loss_scale for gradient in clipped]


@mistake(
    "clip_gradients",
    hint="The scale of the loss is still in the gradients.",
)
def forgets_the_scale(gradients, max_norm, loss_scale=1.0):
    return _shorter(gradients, max_norm, _norm(gradients))


@mistake(
    "clip_gradients",
    hint="The gradients are multiplied by the scale once more. The loss was multiplied by it, so "
    "divide.",
)
def scales_twice(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient * loss_scale for gradient in gradients]
    return _shorter(gradients, max_norm, _norm(gradients))


@mistake(
    "clip_gradients",
    hint="Every number is cut off at max_norm, which changes the direction. Shorten all by one "
    "factor.",
)
def cuts_off_numbers(gradients, max_norm, loss_scale=1.0):
    return [(gradient / loss_scale).clamp(-max_norm, max_norm) for gradient in gradients]


@mistake(
    "clip_gradients",
    hint="The norms of the tensors are added up. Of one long vector, the *squares* add up, and the "
    "norm is the root.",
)
def adds_up_norms(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    return _shorter(gradients, max_norm, sum(_norm([gradient]) for gradient in gradients))


@mistake("clip_gradients", hint="The root is missing: this compares the squared norm.")
def forgets_to_take_the_root(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    return _shorter(gradients, max_norm, _norm(gradients) ** 2)


@mistake(
    "clip_gradients",
    hint="The longest tensor sets the factor. All of them count: the norm is that of one long "
    "vector.",
)
def takes_the_longest(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    return _shorter(gradients, max_norm, max(_norm([gradient]) for gradient in gradients))


@mistake(
    "clip_gradients",
    hint="The largest number sets the factor. It is the norm that counts: the root of the sum of "
    "all squares.",
)
def takes_the_largest_number(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    return _shorter(gradients, max_norm, max(one.abs().max().item() for one in gradients))


@mistake(
    "clip_gradients",
    hint="The norm is that of absolute values, added up. It is the root of the sum of all squares.",
)
def adds_up_absolute_values(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    return _shorter(gradients, max_norm, sum(one.abs().sum().item() for one in gradients))


@mistake(
    "clip_gradients",
    hint="Long gradients end with norm 1, whatever max_norm says.",
)
def makes_unit_vectors(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    norm = _norm(gradients)
    return gradients if norm <= max_norm else [gradient / norm for gradient in gradients]


@mistake(
    "clip_gradients",
    hint="The gradients handed in are changed. Return new tensors: operations that end in _ and /= "
    "write into the old ones.",
)
def writes_into_them(gradients, max_norm, loss_scale=1.0):
    for gradient in gradients:
        gradient /= loss_scale
    norm = _norm(gradients)
    for gradient in gradients:
        gradient *= min(1.0, max_norm / norm) if norm else 1.0
    return gradients


@mistake(
    "clip_gradients",
    hint="The scale is undone in the gradients that were handed in: `g /= loss_scale` writes into "
    "the old tensors. `g / loss_scale` makes new ones.",
)
def unscales_in_place(gradients, max_norm, loss_scale=1.0):
    for gradient in gradients:
        gradient /= loss_scale
    return _shorter(gradients, max_norm, _norm(gradients))


@mistake(
    "clip_gradients",
    hint="Nothing is clipped. (If you called clip_grad_norm_: it wants parameters, and looks at "
    "their attribute `grad`. These tensors have none.)",
)
def returns_them_as_they_are(gradients, max_norm, loss_scale=1.0):
    return list(gradients)


@mistake("clip_gradients", hint="This is the norm. Return the gradients.")
def returns_the_norm(gradients, max_norm, loss_scale=1.0):
    return torch.stack([gradient.norm() for gradient in gradients]).norm() / loss_scale


@mistake(
    "clip_gradients",
    hint="All numbers come back as one long vector. Return a list of tensors, shaped like those "
    "handed in.",
)
def returns_one_long_vector(gradients, max_norm, loss_scale=1.0):
    long = torch.cat([gradient.flatten() for gradient in gradients]) / loss_scale
    return long * min(1.0, max_norm / max(_norm([long]), 1e-12))


@alternative("clip_gradients")
def measures_one_long_vector(gradients, max_norm, loss_scale=1.0):
    norm = torch.cat([gradient.reshape(-1) for gradient in gradients]).norm() / loss_scale
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)  # as in torch.nn.utils.clip_grad_norm_
    return [gradient * (factor / loss_scale) for gradient in gradients]


@alternative("clip_gradients")
def asks_whether_it_is_needed(gradients, max_norm, loss_scale=1.0):
    unscaled = [gradient / loss_scale for gradient in gradients]
    norm = sum(gradient.pow(2).sum() for gradient in unscaled) ** 0.5
    if norm > max_norm:
        unscaled = [gradient / norm * max_norm for gradient in unscaled]
    return tuple(unscaled)


@careless("clip_gradients")
def joins_them_on_the_cpu(gradients, max_norm, loss_scale=1.0):
    long = torch.zeros(0)
    for gradient in gradients:
        long = torch.cat([long, gradient.flatten() / loss_scale])
    return _shorter([one / loss_scale for one in gradients], max_norm, long.norm())


@careless("clip_gradients")
def unscales_in_float32(gradients, max_norm, loss_scale=1.0):
    unscaled = [gradient.float() / loss_scale for gradient in gradients]
    return _shorter(unscaled, max_norm, _norm(unscaled))


def _adamw(
    parameter,
    gradient,
    m,
    v,
    step,
    learning_rate,
    betas=(0.9, 0.98),
    eps=1e-9,
    weight_decay=0.0,
    correct=(True, True),
    inside=False,
):
    """A right step, unless one of the options at the end is given otherwise."""
    m = m + (1 - betas[0]) * (gradient - m)
    v = v + (1 - betas[1]) * (gradient * gradient - v)
    m_hat = m / (1 - betas[0] ** step) if correct[0] else m
    v_hat = v / (1 - betas[1] ** step) if correct[1] else v
    root = (v_hat + eps).sqrt() if inside else v_hat.sqrt() + eps
    decayed = parameter - learning_rate * weight_decay * parameter
    return decayed - learning_rate * m_hat / root, m, v


@mistake(
    "adamw_step",
    hint="The bias correction is missing: m and v begin at 0, so that they are much too small at "
    "first, and not equally so. Divide by 1 - beta to the power of step.",
)
def forgets_the_correction(*args, **options):
    return _adamw(*args, **options, correct=(False, False))


@mistake("adamw_step", hint="Only m is corrected. v begins at 0, too.")
def corrects_m_only(*args, **options):
    return _adamw(*args, **options, correct=(True, False))


@mistake("adamw_step", hint="Only v is corrected. m begins at 0, too.")
def corrects_v_only(*args, **options):
    return _adamw(*args, **options, correct=(False, True))


ONE_BETA = "m and v are corrected with the same beta. Each mean has one of its own."


@mistake("adamw_step", hint=ONE_BETA)
def corrects_both_with_the_first_beta(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _, m, v = _adamw(parameter, gradient, m, v, step, learning_rate, betas)
    share = 1 - betas[0] ** step
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m / share / ((v / share).sqrt() + eps), m, v


@mistake("adamw_step", hint=ONE_BETA)
def corrects_both_with_the_second_beta(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _, m, v = _adamw(parameter, gradient, m, v, step, learning_rate, betas)
    share = 1 - betas[1] ** step
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m / share / ((v / share).sqrt() + eps), m, v


@mistake(
    "adamw_step",
    hint="The corrected means are returned. What is stored are m and v as they are: the correction "
    "is only for this step.",
)
def stores_the_corrected(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    parameter, m, v = _adamw(
        parameter, gradient, m, v, step, learning_rate, betas, eps, weight_decay
    )
    return parameter, m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)


@mistake(
    "adamw_step",
    hint="The correction always divides by 1 - beta. The power is missing: beta to the power of "
    "step, which fades.",
)
def forgets_the_power(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m, v = betas[0] * m + (1 - betas[0]) * gradient, betas[1] * v + (1 - betas[1]) * gradient**2
    m_hat, v_hat = m / (1 - betas[0]), v / (1 - betas[1])
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps), m, v


@mistake(
    "adamw_step",
    hint="The step is counted from 0: its number is already that of this step, from 1 on.",
)
def counts_the_step_again(parameter, gradient, m, v, step, learning_rate, **options):
    return _adamw(parameter, gradient, m, v, step + 1, learning_rate, **options)


@mistake(
    "adamw_step",
    hint="The weight decay is added to the gradient, so that it is averaged and divided by √v like "
    "one. That is Adam with L2. In AdamW the parameter shrinks directly, apart from the gradient.",
)
def adds_decay_to_the_gradient(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    gradient = gradient + weight_decay * parameter
    return _adamw(parameter, gradient, m, v, step, learning_rate, betas, eps)


@mistake("adamw_step", hint="`weight_decay` has no effect.")
def forgets_the_decay(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    return _adamw(parameter, gradient, m, v, step, learning_rate, betas, eps)


@mistake(
    "adamw_step",
    hint="The decay is not multiplied by the learning rate: the parameter shrinks by "
    "learning_rate · weight_decay of itself.",
)
def decays_at_full_rate(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    shrunk = parameter * (1 - weight_decay)
    return _adamw(shrunk, gradient, m, v, step, learning_rate, betas, eps)


@mistake(
    "adamw_step",
    hint="The parameter shrinks after its step, so that the step shrinks with it. The decay is "
    "taken of the parameter as it was before.",
)
def decays_afterwards(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    parameter, m, v = _adamw(parameter, gradient, m, v, step, learning_rate, betas, eps)
    return parameter * (1 - learning_rate * weight_decay), m, v


@mistake(
    "adamw_step",
    hint="ε is under the root. It is added after the root: √v + ε.",
)
def adds_eps_inside(*args, **options):
    return _adamw(*args, **options, inside=True)


@mistake(
    "adamw_step",
    hint="ε is under the root, and is corrected together with v. It is added after the root.",
)
def corrects_eps_too(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _, m, v = _adamw(parameter, gradient, m, v, step, learning_rate, betas)
    root = ((v + eps) / (1 - betas[1] ** step)).sqrt()
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m / (1 - betas[0] ** step) / root, m, v


@mistake("adamw_step", hint="`eps` has no effect.")
def forgets_eps(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    return _adamw(
        parameter, gradient, m, v, step, learning_rate, betas, 1e-30, weight_decay=weight_decay
    )


@mistake(
    "adamw_step",
    hint="It is divided by v, not by its root. v is the mean of squares.",
)
def divides_by_v(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m, v = betas[0] * m + (1 - betas[0]) * gradient, betas[1] * v + (1 - betas[1]) * gradient**2
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m_hat / (v_hat + eps), m, v


@mistake(
    "adamw_step",
    hint="The gradient and its square are added whole, so that m and v grow to many times a "
    "gradient. For a mean, 1 - beta of the new comes to beta of the old.",
)
def adds_whole_gradients(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m, v = betas[0] * m + gradient, betas[1] * v + gradient**2
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m / (v.sqrt() + eps), m, v


@mistake(
    "adamw_step",
    hint="v is the mean of the gradients, like m. It should be that of their squares.",
)
def does_not_square(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m, v = betas[0] * m + (1 - betas[0]) * gradient, betas[1] * v + (1 - betas[1]) * gradient
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps), m, v


@mistake(
    "adamw_step",
    hint="The two betas are exchanged: the first is that of m, the second that of v.",
)
def exchanges_the_betas(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    return _adamw(
        parameter, gradient, m, v, step, learning_rate, betas[::-1], eps, weight_decay=weight_decay
    )


@mistake(
    "adamw_step",
    hint="beta and 1 - beta are exchanged: the mean takes over most of the new gradient. It should "
    "keep beta of the old mean, which is most of it.",
)
def keeps_little_of_the_mean(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m, v = (1 - betas[0]) * m + betas[0] * gradient, (1 - betas[1]) * v + betas[1] * gradient**2
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps), m, v


@mistake("adamw_step", hint="The step goes uphill. Go against the gradient.")
def goes_uphill(parameter, gradient, m, v, step, learning_rate, **options):
    new, _, _ = _adamw(parameter, gradient, m, v, step, -learning_rate, **options)
    _, m, v = _adamw(parameter, gradient, m, v, step, learning_rate, **options)
    return new, m, v


@mistake(
    "adamw_step",
    hint="m and v are changed in place. Return new tensors: operations that end in _ write into "
    "the old ones.",
)
def writes_into_m_and_v(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m.mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    v.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    root = (v / (1 - betas[1] ** step)).sqrt() + eps
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m / (1 - betas[0] ** step) / root, m, v


@mistake(
    "adamw_step",
    hint="All three are right, in another order: (parameter, m, v).",
)
def returns_m_and_v_first(*args, **options):
    parameter, m, v = _adamw(*args, **options)
    return m, v, parameter


@mistake(
    "adamw_step",
    hint="ε is added to √v before v is corrected, so that it counts too much in the first steps. "
    "Correct v, take the root, then add ε.",
)
def corrects_behind_eps(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _, m, v = _adamw(parameter, gradient, m, v, step, learning_rate, betas)
    rate = learning_rate * math.sqrt(1 - betas[1] ** step) / (1 - betas[0] ** step)
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - rate * m / (v.sqrt() + eps), m, v


@mistake(
    "adamw_step",
    hint="Only the parameter is returned. m and v belong to the result: the next step needs them.",
)
def returns_the_parameter_only(*args, **options):
    return _adamw(*args, **options)[0]


@careless("adamw_step")
def updates_in_place(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m *= betas[0]
    m += (1 - betas[0]) * gradient
    v *= betas[1]
    v += (1 - betas[1]) * gradient**2
    rate = learning_rate / (1 - betas[0] ** step)
    parameter *= 1 - learning_rate * weight_decay
    parameter -= rate * m / ((v / (1 - betas[1] ** step)).sqrt() + eps)
    return parameter, m, v


@careless("adamw_step")
def makes_them_of_numbers(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    options = step, learning_rate, betas, eps, weight_decay
    result = loops_over_numbers(parameter, gradient, m, v, *options)
    return tuple(torch.tensor(one.tolist()) for one in result)


@alternative("adamw_step")
def interpolates(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m, v = torch.lerp(m, gradient, 1 - betas[0]), torch.lerp(v, gradient**2, 1 - betas[1])
    rate = learning_rate / (1 - betas[0] ** step)
    update = rate * m / (v.sqrt() / math.sqrt(1 - betas[1] ** step) + eps)
    return parameter - update - learning_rate * weight_decay * parameter, m, v


@alternative("adamw_step")
def loops_over_numbers(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    rows = []
    flat = [tensor.reshape(-1).tolist() for tensor in (parameter, gradient, m, v)]
    for p, g, first, second in zip(*flat, strict=True):
        first = betas[0] * first + (1 - betas[0]) * g
        second = betas[1] * second + (1 - betas[1]) * g * g
        up, down = first / (1 - betas[0] ** step), second / (1 - betas[1] ** step)
        p -= learning_rate * (up / (math.sqrt(down) + eps) + weight_decay * p)
        rows.append((p, first, second))
    columns = zip(*rows, strict=True)
    return tuple(parameter.new_tensor(one).reshape(parameter.shape) for one in columns)


class _Step(ModelAndLoss):
    """A right TrainStep in small methods; a mistake overrides what it gets wrong."""

    least = 1  # by which is divided, where no token is real

    def __init__(self, model, optimizer=None, smoothing=0.1, max_norm=1.0, dtype=None):
        super().__init__(model, smoothing, dtype)
        if not isinstance(optimizer, torch.optim.Optimizer):
            optimizer = torch.optim.SGD(self.model.parameters(), **(optimizer or {"lr": 0.1}))
        self.optimizer = optimizer
        self.max_norm = max_norm

    def begin(self):
        self.model.train()
        self.optimizer.zero_grad()

    def count(self, source, target):
        return (target != PAD).sum()

    def weights(self, batches):
        """How much the mean of each batch counts in the mean over all."""
        counts = [self.count(*batch) for batch in batches]
        return [count / max(sum(counts), self.least) for count in counts]

    def clip(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)

    def end(self):
        self.clip()
        self.optimizer.step()

    def gather(self, batches):
        """Add up the gradients; return the parts of the loss."""
        parts = []
        for batch, weight in zip(batches, self.weights(batches), strict=True):
            part = self.loss(*batch) * weight
            part.backward()
            parts.append(part.detach())
        return parts

    def forward(self, batches):
        self.begin()
        parts = self.gather(batches)
        self.end()
        return sum(parts)


@mistake(
    "TrainStep",
    hint="Every batch counts the same, so that a token of a small batch counts more than one of a "
    "large batch. Weight each batch's mean with its share of the tokens.",
    earns=(
        "one batch",
        "the loss returned",
        "clipping and training mode",
    ),
)
class AveragesBatches(_Step):
    def weights(self, batches):
        return [1 / len(batches)] * len(batches)


@mistake(
    "TrainStep",
    hint="The batches' losses are added up as they are: twice as many batches, twice as long a "
    "step. Weight each with its share of the tokens.",
)
class AddsUpBatches(_Step):
    def weights(self, batches):
        return [1.0] * len(batches)


@mistake(
    "TrainStep",
    hint="Each loss is scaled twice: with its share of the tokens, which add up to 1, and with the "
    "number of batches.",
)
class ScalesTwice(_Step):
    def weights(self, batches):
        return [weight / len(batches) for weight in super().weights(batches)]


@mistake(
    "TrainStep",
    hint="The loss of each batch is a mean per token. Multiplied by its number of tokens it is a "
    "sum: divide by the number of all tokens.",
)
class AddsUpTokens(_Step):
    def weights(self, batches):
        return [self.count(*batch) for batch in batches]


@mistake(
    "TrainStep",
    hint="The gradients of the last step are still there, and the new ones are added to them. Set "
    "them to zero when a step begins.",
    earns=(
        "one batch",
        "the loss returned",
        "clipping and training mode",
    ),
)
class KeepsOldGradients(_Step):
    def begin(self):
        self.model.train()


@mistake(
    "TrainStep",
    hint="Only the last batch's gradients are left: they are set to zero before every batch. Do it "
    "once, before the loop.",
)
class ForgetsTheEarlierBatches(_Step):
    def gather(self, batches):
        parts = []
        for batch, weight in zip(batches, self.weights(batches), strict=True):
            self.optimizer.zero_grad()
            part = self.loss(*batch) * weight
            part.backward()
            parts.append(part.detach())
        return parts


@mistake(
    "TrainStep",
    hint="Nothing is learned: either the optimizer makes no step, or the gradients were set to "
    "zero after `backward`, so that it has nothing to go by.",
)
class ZeroesTooLate(_Step):
    def end(self):
        self.optimizer.zero_grad()
        self.optimizer.step()


@mistake(
    "TrainStep",
    hint="The parameters move as plain gradient descent with a learning rate of 0.1 would have it, "
    "whatever the optimizer is. Leave the step to self.optimizer.",
    earns=(
        "the loss returned",
        "clipping and training mode",
    ),
)
class StepsByItself(_Step):
    def end(self):
        self.clip()
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter -= 0.1 * parameter.grad


EVERY_BATCH = (
    "The optimizer makes a step after every batch. Gather the gradients of all batches, then make "
    "one step."
)


@mistake("TrainStep", hint=EVERY_BATCH, earns=("the loss returned",))
class StepsOnTheWay(_Step):
    def gather(self, batches):
        parts = []
        for batch, weight in zip(batches, self.weights(batches), strict=True):
            part = self.loss(*batch) * weight
            part.backward()
            parts.append(part.detach())
            self.optimizer.step()
        return parts


@mistake("TrainStep", hint=EVERY_BATCH)
class StepsWithWhatIsThere(_Step):
    def gather(self, batches):
        parts = []
        for batch, weight in zip(batches, self.weights(batches), strict=True):
            part = self.loss(*batch) * weight
            part.backward()
            parts.append(part.detach())
            super().end()
        return parts

    def end(self):
        pass


@mistake("TrainStep", hint=EVERY_BATCH)
class StepsAfterEveryBatch(_Step):
    def gather(self, batches):
        parts = []
        for batch, weight in zip(batches, self.weights(batches), strict=True):
            self.optimizer.zero_grad()
            part = self.loss(*batch) * weight
            part.backward()
            parts.append(part.detach())
            super().end()
        return parts

    def end(self):
        pass


@mistake(
    "TrainStep",
    hint="The optimizer makes a step after every batch, with the batch's own mean. Gather the "
    "gradients of all batches, weighted with their shares of the tokens, then make one step.",
)
class LearnsFromOneAfterTheOther(StepsAfterEveryBatch):
    def weights(self, batches):
        return [1.0] * len(batches)

    def forward(self, batches):
        return super().forward(batches) / len(batches)


@mistake(
    "TrainStep",
    hint="The gradients are not clipped, or only after the optimizer's step, when they have done "
    "their work.",
    earns=(
        "one batch",
        "several batches and steps",
        "the loss returned",
    ),
)
class DoesNotClip(_Step):
    def clip(self):
        pass


@mistake(
    "TrainStep",
    hint="The gradients are clipped after every batch, while they are still being gathered. One "
    "clip, when all are there.",
)
class ClipsEveryBatch(_Step):
    def gather(self, batches):
        parts = []
        for batch, weight in zip(batches, self.weights(batches), strict=True):
            part = self.loss(*batch) * weight
            part.backward()
            self.clip()
            parts.append(part.detach())
        return parts


@mistake(
    "TrainStep",
    hint="The gradients are clipped to a norm of 1, whatever max_norm says.",
)
class ClipsToOne(_Step):
    def clip(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)


@mistake(
    "TrainStep",
    hint="Every number of the gradients is cut off at max_norm. Their common norm is meant.",
)
class ClipsNumbers(_Step):
    def clip(self):
        nn.utils.clip_grad_value_(self.model.parameters(), self.max_norm)


@mistake(
    "TrainStep",
    hint="Each parameter's gradient is clipped by itself. All of them together have one norm.",
)
class ClipsEachByItself(_Step):
    def clip(self):
        for parameter in self.model.parameters():
            nn.utils.clip_grad_norm_([parameter], self.max_norm)


@mistake(
    "TrainStep",
    hint="Padding counts among the tokens, in the weights of the batches. Only real tokens of the "
    "target do.",
)
class CountsPadding(_Step):
    def count(self, source, target):
        return target.numel()


@mistake(
    "TrainStep",
    hint="The batches are weighted with their numbers of sentences. The loss is per token: weight "
    "them with their real target tokens.",
)
class CountsSentences(_Step):
    def count(self, source, target):
        return len(target)


@mistake(
    "TrainStep",
    hint="The source's tokens are counted. The loss is about those of the target.",
)
class CountsTheSource(_Step):
    def count(self, source, target):
        return (source != PAD).sum()


@mistake(
    "TrainStep",
    hint="The loss is the last batch's part only. Return the sum of all parts.",
    earns=(
        "one batch",
        "several batches and steps",
        "clipping and training mode",
    ),
)
class ReturnsTheLastPart(_Step):
    def forward(self, batches):
        self.begin()
        parts = self.gather(batches)
        self.end()
        return parts[-1]


@mistake(
    "TrainStep",
    hint="The step is right, but the loss returned is the mean of the batches' means. Weight them "
    "with their tokens here, too.",
)
class ReturnsTheMeanOfMeans(_Step):
    def forward(self, batches):
        means = [self.loss(*batch).detach() for batch in batches]
        super().forward(batches)
        return sum(means) / len(means)


@mistake(
    "TrainStep",
    hint="The loss is measured after the step. Return the one from which the gradients came.",
)
class MeasuresAfterwards(_Step):
    def forward(self, batches):
        super().forward(batches)
        pairs = zip(batches, self.weights(batches), strict=True)
        return sum(self.loss(*batch).detach() * weight for batch, weight in pairs)


@mistake("TrainStep", hint="Nothing is returned. Return the loss.")
class ReturnsNothing(_Step):
    def forward(self, batches):
        super().forward(batches)


@mistake(
    "TrainStep",
    hint="The loss is a Python number. It should be a tensor: on a GPU, `item()` would wait for "
    "every step to finish.",
)
class ReturnsANumber(_Step):
    def forward(self, batches):
        return super().forward(batches).item()


REMEMBERS = (
    "The mean remembers how it was computed. Go backward from each part before the next batch, and "
    "detach what you keep of it."
)


@mistake(
    "TrainStep",
    hint=REMEMBERS,
    earns=(
        "one batch",
        "several batches and steps",
        "clipping and training mode",
    ),
)
class RemembersTheParts(_Step):
    def gather(self, batches):
        parts = []
        for batch, weight in zip(batches, self.weights(batches), strict=True):
            parts.append(self.loss(*batch) * weight)
            parts[-1].backward()
        return parts


@mistake("TrainStep", hint=REMEMBERS)
class GoesBackwardOnce(_Step):
    def forward(self, batches):
        self.begin()
        pairs = zip(batches, self.weights(batches), strict=True)
        mean = sum(self.loss(*batch) * weight for batch, weight in pairs)
        mean.backward()
        self.end()
        return mean


NOT_TRAINING = (
    "The model is in evaluation mode during the step, so that nothing is dropped. Switch it to "
    "training mode when a step begins: an evaluation may have been before."
)


@mistake("TrainStep", hint=NOT_TRAINING)
class TrainsInEvaluationMode(_Step):
    def begin(self):
        self.model.eval()
        self.optimizer.zero_grad()


@mistake(
    "TrainStep",
    hint=NOT_TRAINING,
    earns=(
        "one batch",
        "several batches and steps",
        "the loss returned",
    ),
)
class TrainsInWhateverMode(_Step):
    def begin(self):
        self.optimizer.zero_grad()


@mistake(
    "TrainStep",
    hint="Where no token is real each share is 0 / 0, which is NaN, and the step makes NaN of all "
    "weights. There the loss should be 0, and the weights should stay.",
)
class DividesByNoTokens(_Step):
    least = 0


@careless("TrainStep")
class AddsToATotalOnTheCpu(_Step):
    def forward(self, batches):
        self.begin()
        total = torch.tensor(0.0)
        for part in self.gather(batches):
            total += part
        self.end()
        return total


@careless("TrainStep")
class MakesItsLossOfANumber(_Step):
    def forward(self, batches):
        return torch.tensor(super().forward(batches).item())


@alternative("TrainStep")
class ZeroesAtTheEnd(_Step):
    def begin(self):
        self.train()

    def end(self):
        super().end()
        for parameter in self.parameters():
            parameter.grad = None


@alternative("TrainStep")
class AddsUpSums(_Step):
    def forward(self, batches):
        self.begin()
        tokens = max(1, sum(target.ne(PAD).sum().item() for _, target in batches))
        options = {"ignore_index": PAD, "label_smoothing": self.smoothing, "reduction": "sum"}
        total = 0
        for source, target in batches:
            loss = F.cross_entropy(self.model(source, target).mT, target, **options) / tokens
            loss.backward()
            total += loss.detach()
        self.end()
        return total


@alternative("TrainStep")
class DividesGradients(_Step):
    def forward(self, batches):
        self.begin()
        total, tokens = 0, 0
        for batch in batches:
            part = self.loss(*batch) * self.count(*batch)
            part.backward()
            total, tokens = total + part.detach(), tokens + self.count(*batch)
        tokens = max(1, tokens)
        for parameter in self.model.parameters():
            parameter.grad /= tokens
        self.end()
        return total / tokens


class _Evaluation(ModelAndLoss):
    """A right Evaluation in small methods; a mistake overrides what it gets wrong."""

    least = 1  # by which is divided, where no token is real

    def __init__(self, model, smoothing=0.0, dtype=None):
        super().__init__(model, smoothing, dtype)

    def forward(self, batches):
        was_training = self.model.training
        mean = self.mean_loss(batches)
        self.model.train(was_training)
        return mean

    def mean_loss(self, batches):
        self.model.eval()
        with torch.no_grad():
            return self.mean(batches)

    def count(self, source, target):
        return (target != PAD).sum()

    def mean(self, batches):
        total, tokens = 0.0, 0
        for batch in batches:
            count = self.count(*batch)
            total, tokens = total + self.loss(*batch) * count, tokens + count
        return total / max(tokens, self.least)


@mistake(
    "Evaluation",
    hint="Dropout is on: the model is evaluated in training mode, with a part of it switched off. "
    "Switch it to evaluation mode.",
)
class KeepsDropout(_Evaluation):
    def mean_loss(self, batches):
        with torch.no_grad():
            return self.mean(batches)


@mistake(
    "Evaluation",
    hint="PyTorch keeps what it would need for gradients, all batches' worth of it. torch.no_grad "
    "tells it not to.",
)
class KeepsTheGraph(_Evaluation):
    def mean_loss(self, batches):
        self.model.eval()
        return self.mean(batches)


@mistake(
    "Evaluation",
    hint="This is the mean of the batches' means: a token of a small batch counts more than one of "
    "a large batch. Weight each with its number of tokens.",
)
class AveragesMeans(_Evaluation):
    def mean(self, batches):
        return sum(self.loss(*batch) for batch in batches) / len(batches)


@mistake(
    "Evaluation",
    hint="Padding is counted among the tokens. Only real tokens of the target are.",
)
class WeighsWithPadding(_Evaluation):
    def count(self, source, target):
        return target.numel()


@mistake(
    "Evaluation",
    hint="The batches are weighted with their numbers of sentences. The loss is per token.",
)
class WeighsWithSentences(_Evaluation):
    def count(self, source, target):
        return len(target)


@mistake(
    "Evaluation",
    hint="The source's tokens are counted. The loss is about those of the target.",
)
class WeighsWithTheSource(_Evaluation):
    def count(self, source, target):
        return (source != PAD).sum()


@mistake("Evaluation", hint="This is the sum over all tokens. Divide by their number.")
class ReturnsTheSum(_Evaluation):
    def mean(self, batches):
        return sum(self.loss(*batch) * self.count(*batch) for batch in batches)


@mistake("Evaluation", hint="The batches' means are added up.")
class AddsUpMeans(_Evaluation):
    def mean(self, batches):
        return sum(self.loss(*batch) for batch in batches)


@mistake("Evaluation", hint="Only the last batch's loss is returned.")
class ReturnsTheLastLoss(_Evaluation):
    def mean(self, batches):
        return [self.loss(*batch) for batch in batches][-1]


@mistake(
    "Evaluation",
    hint="The function returns from within the loop: after the first batch.",
)
class ReturnsTheFirstLoss(_Evaluation):
    def mean(self, batches):
        return self.loss(*batches[0])


@mistake("Evaluation", hint="This is a Python number. Return a tensor.")
class TurnsItIntoANumber(_Evaluation):
    def mean(self, batches):
        return super().mean(batches).item()


@mistake(
    "Evaluation",
    hint="The loss comes out in float32, though the weights are float64. Was it converted on the "
    "way, or made a Python number (`item()`)? Add up the tensors as they are.",
)
class AddsUpNumbers(_Evaluation):
    def mean(self, batches):
        total, tokens = 0.0, 0
        for batch in batches:
            count = self.count(*batch)
            total, tokens = total + self.loss(*batch).item() * count, tokens + count
        return total / max(tokens, self.least)


@mistake(
    "Evaluation",
    hint="This is the perplexity, the exponential of the loss. Return the loss.",
)
class ReturnsThePerplexity(_Evaluation):
    def mean(self, batches):
        return super().mean(batches).exp()


@mistake(
    "Evaluation",
    hint="Where no token is real this is 0 / 0, which is NaN. It should be 0.",
)
class MeansNothing(_Evaluation):
    least = 0


@careless("Evaluation")
class AddsUpOnTheCpu(_Evaluation):
    def mean(self, batches):
        total, tokens = torch.zeros(1), 0
        for batch in batches:
            total += self.loss(*batch) * self.count(*batch)
            tokens += self.count(*batch)
        return total[0] / max(tokens, 1)


@careless("Evaluation")
class MakesATensorOfANumber(_Evaluation):
    def mean(self, batches):
        return torch.tensor(super().mean(batches).item())


@alternative("Evaluation")
class StacksLosses(_Evaluation):
    @torch.no_grad()
    def mean_loss(self, batches):
        self.eval()
        losses = torch.stack([self.loss(source, target) for source, target in batches])
        counts = torch.stack([target.count_nonzero() for _, target in batches])
        return (losses * counts).sum() / counts.sum().clamp(min=1)


@alternative("Evaluation")
class LooksAtEverySentence(_Evaluation):
    def mean(self, batches):
        losses = []
        for source, target in batches:
            for row, wanted in zip(source, target, strict=True):
                scores = self.model(row[None], wanted[None])[0]
                options = {"label_smoothing": self.smoothing, "reduction": "none"}
                losses.append(F.cross_entropy(scores, wanted, **options)[wanted != PAD])
        return torch.cat(losses).sum() / max(1, len(torch.cat(losses)))


def _average(checkpoints, mean):
    """Apply ``mean`` to the list of each name's tensors; counters are those of the last."""
    last = checkpoints[-1]
    return {
        name: mean([one[name] for one in checkpoints]) if value.is_floating_point() else value
        for name, value in last.items()
    }


@mistake("average_checkpoints", hint="This is the last checkpoint. All of them count.")
def takes_the_last(checkpoints):
    return dict(checkpoints[-1])


@mistake("average_checkpoints", hint="The weights are added up, but not divided.")
def adds_them_up(checkpoints):
    return _average(checkpoints, lambda tensors: sum(one.double() for one in tensors))


@mistake(
    "average_checkpoints",
    hint="The average so far is averaged with the next one, so that the last checkpoint counts for "
    "a half and the first for next to nothing. Add all up, then divide once.",
)
def averages_two_at_a_time(checkpoints):
    def mean(tensors):
        result = tensors[0].double()
        for tensor in tensors[1:]:
            result = (result + tensor.double()) / 2
        return result.to(tensors[0].dtype)

    return _average(checkpoints, mean)


@mistake(
    "average_checkpoints",
    hint="Only the first and the last checkpoint are averaged.",
)
def averages_the_ends(checkpoints):
    return _average(
        checkpoints,
        lambda tensors: ((tensors[0].double() + tensors[-1].double()) / 2).to(tensors[0].dtype),
    )


@mistake(
    "average_checkpoints",
    hint="The sum is taken in the type of the weights: in float16 it overflows, and digits are "
    "lost. Add up in float64, and convert the mean.",
)
def adds_up_in_half_precision(checkpoints):
    return _average(checkpoints, lambda tensors: sum(tensors[1:], tensors[0]) / len(tensors))


@mistake(
    "average_checkpoints",
    hint="The sum is taken in float32, which loses digits of float64. The docstring wants float64.",
)
def adds_up_in_single_precision(checkpoints):
    return _average(checkpoints, lambda ts: torch.stack(ts).float().mean(0).to(ts[0].dtype))


@mistake(
    "average_checkpoints",
    hint="The average is of another type than the weights: it was computed in float64, and not "
    "converted back.",
)
def stays_in_double_precision(checkpoints):
    return _average(checkpoints, lambda tensors: torch.stack(tensors).double().mean(0))


@mistake(
    "average_checkpoints",
    hint="Every tensor has become a single number: the mean runs over the checkpoints, not over "
    "the weights.",
)
def averages_everything(checkpoints):
    return _average(checkpoints, lambda ts: torch.stack(ts).double().mean().to(ts[0].dtype))


@mistake(
    "average_checkpoints",
    hint="Counters are averaged, too. Tensors that hold no floating-point numbers are those of the "
    "last checkpoint.",
)
def averages_counters(checkpoints):
    return {
        name: torch.stack([one[name].double() for one in checkpoints]).mean(0).to(value.dtype)
        for name, value in checkpoints[-1].items()
    }


@mistake(
    "average_checkpoints",
    hint="Counters are those of the first checkpoint. They should be those of the last.",
)
def keeps_the_first_counters(checkpoints):
    average = _average(checkpoints, lambda ts: torch.stack(ts).double().mean(0).to(ts[0].dtype))
    return {
        name: value if value.is_floating_point() else checkpoints[0][name]
        for name, value in average.items()
    }


@mistake(
    "average_checkpoints",
    hint="Counters are left out. They belong to the result: those of the last checkpoint.",
)
def leaves_counters_out(checkpoints):
    average = _average(checkpoints, lambda ts: torch.stack(ts).double().mean(0).to(ts[0].dtype))
    return {name: value for name, value in average.items() if value.is_floating_point()}


@mistake(
    "average_checkpoints",
    hint="The sum is written into the first checkpoint. Make new tensors.",
)
def writes_into_the_first(checkpoints):
    def mean(tensors):
        total = tensors[0]
        for tensor in tensors[1:]:
            total += tensor
        total /= len(tensors)
        return total

    return _average(checkpoints, mean)


@mistake(
    "average_checkpoints",
    hint="The mean is written into one of the checkpoints. Make a new dict.",
)
def writes_into_the_last(checkpoints):
    result = checkpoints[-1]
    for name, value in result.items():
        if value.is_floating_point():
            stacked = torch.stack([one[name].double() for one in checkpoints])
            result[name] = stacked.mean(0).to(value.dtype)
    return result


@careless("average_checkpoints")
def adds_to_zeros_on_the_cpu(checkpoints):
    def mean(tensors):
        total = torch.zeros(tensors[0].shape, dtype=torch.float64)
        for tensor in tensors:
            total = total + tensor.double()
        return (total / len(tensors)).to(tensors[0].dtype)

    return _average(checkpoints, mean)


@careless("average_checkpoints")
def adds_to_the_first_in_place(checkpoints):
    def mean(tensors):
        total = tensors[0].double()  # of float64 it is the same tensor
        for tensor in tensors[1:]:
            total += tensor.double()
        return (total / len(tensors)).to(tensors[0].dtype)

    return _average(checkpoints, mean)


@alternative("average_checkpoints")
def adds_shares(checkpoints):
    average = {}
    for name, last in checkpoints[-1].items():
        average[name] = last.clone()
        if last.dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            total = torch.zeros_like(last, dtype=torch.float64)
            for checkpoint in checkpoints:
                total += checkpoint[name] / len(checkpoints)
            average[name] = total.to(last.dtype)
    return average


@alternative("average_checkpoints")
def moves_the_mean(checkpoints):
    def mean(tensors):
        result = tensors[0].double()
        for number, tensor in enumerate(tensors[1:], start=2):
            result = result + (tensor.double() - result) / number
        return result.to(tensors[0])

    return _average(checkpoints, mean)


EQUIVALENT = {
    "TrainStep: without `strict` in one call of `zip`: for (source, target), count in zip(batches, "
    "counts): part = self.loss(source, target) * count / sum(counts).clamp(min=1…": (
        "there are as many counts as batches"
    ),
    "TrainStep: with False once where True belongs: for (source, target), count in zip(batches, "
    "counts, strict=False): part = self.loss(source, target) * count / sum(count…": (
        "there are as many counts as batches"
    ),
    "TrainStep: whose result is cut off from the gradient: return mean.detach()": (
        "its parts are cut off already"
    ),
    "adamw_step: whose result is cut off from the gradient: return ((parameter - learning_rate * "
    "m_hat / (v_hat.sqrt() + eps)).detach(), m.detach(), v.detach())": (
        "an optimiser takes its step outside of the graph"
    ),
    "noam_learning_rate: with the two items of a pair exchanged: rise, fall = (step ** (-0.5), "
    "step * warmup_steps ** (-1.5))": "the smaller of two is the smaller in either order",
    "batch_by_tokens: with `lengths` once where `max_tokens` belongs: raise ValueError(f'sentence "
    "{index} has {lengths[index]} tokens, max_tokens={lengths}')": "the message's words are free",
    "Evaluation: with the two items of a pair exchanged: total, tokens = (0, 0.0)": (
        "the sums begin with 0 in either way of writing it"
    ),
    "Evaluation: whose result is cut off from the gradient: return (total / tokens).detach() if "
    "tokens else total.detach()": "within no_grad there is nothing to cut off",
    "average_checkpoints: with one call of `clone` left out: averaged[name] = last": (
        "the dict is new, and nothing writes into its tensors"
    ),
}
