"""Answers to lesson 11 that were written without a look at its checks."""

import math
import random

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided.data.tokens import PAD
from attention.training import ModelAndLoss
from tests.locked import right, wrong


@wrong("noam_learning_rate", cause="takes the larger of the two parts", kind="value")
def noam_learning_rate_1(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * max(step * warmup_steps**-1.5, step**-0.5)


@wrong(
    "noam_learning_rate", cause="the exponent of the warm-up is -0.5 instead of -1.5", kind="value"
)
def noam_learning_rate_2(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * min(step * warmup_steps**-0.5, step**-0.5)


@wrong(
    "noam_learning_rate",
    cause="multiplies by the root of d_model instead of dividing",
    kind="value",
)
def noam_learning_rate_3(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**0.5 * min(step * warmup_steps**-1.5, step**-0.5)


@wrong("noam_learning_rate", cause="ignores the factor", kind="value")
def noam_learning_rate_4(step, d_model, warmup_steps, factor=1.0):
    return d_model**-0.5 * min(step * warmup_steps**-1.5, step**-0.5)


@wrong("noam_learning_rate", cause="counts the steps from 0: it adds 1", kind="value")
def noam_learning_rate_5(step, d_model, warmup_steps, factor=1.0):
    step = step + 1
    return factor * d_model**-0.5 * min(step * warmup_steps**-1.5, step**-0.5)


@wrong("noam_learning_rate", cause="the factor multiplies only the part that rises", kind="value")
def noam_learning_rate_6(step, d_model, warmup_steps, factor=1.0):
    return d_model**-0.5 * min(factor * step * warmup_steps**-1.5, step**-0.5)


@wrong(
    "noam_learning_rate", cause="divides whole numbers, so it is 0 during the warm-up", kind="value"
)
def noam_learning_rate_7(step, d_model, warmup_steps, factor=1.0):
    rise = step // warmup_steps * warmup_steps**-0.5
    return factor * d_model**-0.5 * min(rise, step**-0.5)


@right("noam_learning_rate", how="two cases, square roots")
def noam_learning_rate_8(step, d_model, warmup_steps, factor=1.0):
    if step < warmup_steps:
        rate = step / (warmup_steps * math.sqrt(warmup_steps))
    else:
        rate = 1 / math.sqrt(step)
    return factor * rate / math.sqrt(d_model)


@wrong("label_smoothed_loss", cause="divides by all positions, padding included", kind="value")
def label_smoothed_loss_1(logits, target, smoothing=0.1):
    log_p = logits.log_softmax(-1)
    chosen = log_p.gather(-1, target[..., None])[..., 0]
    loss = -(1 - smoothing) * chosen - smoothing * log_p.mean(-1)
    return (loss * (target != PAD)).mean()


@wrong(
    "label_smoothed_loss",
    cause="spreads the share over the V - 1 other tokens, not over all V",
    kind="value",
)
def label_smoothed_loss_2(logits, target, smoothing=0.1):
    log_p = logits.log_softmax(-1)
    goal = torch.full_like(log_p, smoothing / (logits.shape[-1] - 1))
    goal = goal.scatter(-1, target[..., None], 1 - smoothing)
    loss = -(goal * log_p).sum(-1)
    real = target != PAD
    return (loss * real).sum() / real.sum()


@wrong("label_smoothed_loss", cause="log of a softmax is -inf for scores far apart", kind="extreme")
def label_smoothed_loss_3(logits, target, smoothing=0.1):
    log_p = torch.log(torch.softmax(logits, dim=-1))
    chosen = log_p.gather(-1, target[..., None]).squeeze(-1)
    loss = -(1 - smoothing) * chosen - smoothing * log_p.mean(-1)
    real = target != PAD
    return loss[real].mean()


@wrong("label_smoothed_loss", cause="uses 0.1 whatever smoothing was given", kind="value")
def label_smoothed_loss_4(logits, target, smoothing=0.1):
    return F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=0.1
    )


@wrong(
    "label_smoothed_loss", cause="the smoothed part also counts the positions of PAD", kind="value"
)
def label_smoothed_loss_5(logits, target, smoothing=0.1):
    log_p = logits.log_softmax(-1)
    real = (target != PAD).to(log_p.dtype)
    chosen = (log_p.gather(-1, target[..., None]).squeeze(-1) * real).sum()
    return (-(1 - smoothing) * chosen - smoothing * log_p.mean(-1).sum()) / real.sum()


@wrong(
    "label_smoothed_loss",
    cause="sums the smoothed part over the vocabulary: no 1 / V",
    kind="value",
)
def label_smoothed_loss_6(logits, target, smoothing=0.1):
    log_p = logits.log_softmax(-1)
    chosen = log_p.gather(-1, target[..., None]).squeeze(-1)
    loss = -(1 - smoothing) * chosen - smoothing * log_p.sum(-1)
    real = target != PAD
    return (loss * real).sum() / real.sum()


@wrong("label_smoothed_loss", cause="takes the mean of the sentences' means", kind="value")
def label_smoothed_loss_7(logits, target, smoothing=0.1):
    log_p = logits.log_softmax(-1)
    chosen = log_p.gather(-1, target[..., None]).squeeze(-1)
    loss = -(1 - smoothing) * chosen - smoothing * log_p.mean(-1)
    real = target != PAD
    return ((loss * real).sum(1) / real.sum(1)).mean()


@wrong(
    "label_smoothed_loss", cause="the first part is not multiplied by 1 - smoothing", kind="value"
)
def label_smoothed_loss_8(logits, target, smoothing=0.1):
    log_p = logits.log_softmax(-1)
    chosen = log_p.gather(-1, target[..., None]).squeeze(-1)
    loss = -chosen - smoothing * log_p.mean(-1)
    real = target != PAD
    return (loss * real).sum() / real.sum()


@wrong("label_smoothed_loss", cause="returns a number without a gradient", kind="gradient")
def label_smoothed_loss_9(logits, target, smoothing=0.1):
    loss = F.cross_entropy(
        logits.transpose(1, 2), target, ignore_index=PAD, label_smoothing=smoothing
    )
    return torch.tensor(loss.item())


@wrong("label_smoothed_loss", cause="the softmax runs over the positions", kind="value")
def label_smoothed_loss_10(logits, target, smoothing=0.1):
    log_p = torch.log_softmax(logits, dim=1)
    chosen = log_p.gather(-1, target[..., None]).squeeze(-1)
    loss = -(1 - smoothing) * chosen - smoothing * log_p.mean(-1)
    real = target != PAD
    return (loss * real).sum() / real.sum()


@right("label_smoothed_loss", how="PyTorch's cross_entropy with the vocabulary as axis 1")
def label_smoothed_loss_11(logits, target, smoothing=0.1):
    return F.cross_entropy(
        logits.transpose(1, 2), target, ignore_index=PAD, label_smoothing=smoothing
    )


@wrong(
    "label_smoothed_loss",
    cause="with smoothing 0 it adds 0 times the mean of the scores: NaN where a score is -inf",
    kind="extreme",
)
def label_smoothed_loss_12(logits, target, smoothing=0.1):
    real = target != PAD
    rows, ids = logits[real], target[real]
    right_ = rows[torch.arange(len(ids), device=ids.device), ids]
    mixed = (1 - smoothing) * right_ + smoothing * rows.mean(dim=1)
    return (rows.logsumexp(dim=1) - mixed).mean()


@right(
    "label_smoothed_loss",
    how="logsumexp less the mixture of the scores, mixed only if there is smoothing",
)
def label_smoothed_loss_13(logits, target, smoothing=0.1):
    real = target != PAD
    rows, ids = logits[real], target[real]
    mixed = rows[torch.arange(len(ids), device=ids.device), ids]
    if smoothing:
        mixed = (1 - smoothing) * mixed + smoothing * rows.mean(dim=1)
    return (rows.logsumexp(dim=1) - mixed).mean()


def _too_long(lengths, max_tokens):
    if lengths and max(lengths) > max_tokens:
        raise ValueError("a sentence is longer than max_tokens")


@wrong("batch_by_tokens", cause="keeps the given order instead of sorting by length", kind="value")
def batch_by_tokens_1(lengths, max_tokens):
    _too_long(lengths, max_tokens)
    batches, longest = [], 0
    for index, length in enumerate(lengths):
        longest = max(longest, length)
        if not batches or (len(batches[-1]) + 1) * longest > max_tokens:
            batches.append([])
            longest = length
        batches[-1].append(index)
    return batches


@wrong("batch_by_tokens", cause="adds the lengths up, without the padding", kind="value")
def batch_by_tokens_2(lengths, max_tokens):
    _too_long(lengths, max_tokens)
    batches, total = [], 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not batches or total + lengths[index] > max_tokens:
            batches.append([])
            total = 0
        batches[-1].append(index)
        total += lengths[index]
    return batches


@wrong("batch_by_tokens", cause="goes from the longest sentence to the shortest", kind="value")
def batch_by_tokens_3(lengths, max_tokens):
    _too_long(lengths, max_tokens)
    batches = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not batches or (len(batches[-1]) + 1) * lengths[batches[-1][0]] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


@wrong("batch_by_tokens", cause="closes a batch that would be exactly max_tokens", kind="value")
def batch_by_tokens_4(lengths, max_tokens):
    _too_long(lengths, max_tokens)
    batches = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if not batches or (len(batches[-1]) + 1) * lengths[index] >= max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


@wrong("batch_by_tokens", cause="does not refuse a sentence longer than max_tokens", kind="error")
def batch_by_tokens_5(lengths, max_tokens):
    batches = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if not batches or (len(batches[-1]) + 1) * lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


@wrong("batch_by_tokens", cause="returns the lengths instead of the indices", kind="value")
def batch_by_tokens_6(lengths, max_tokens):
    _too_long(lengths, max_tokens)
    batches = []
    for length in sorted(lengths):
        if not batches or (len(batches[-1]) + 1) * length > max_tokens:
            batches.append([])
        batches[-1].append(length)
    return batches


@wrong("batch_by_tokens", cause="loses the last batch, which is never full", kind="value")
def batch_by_tokens_7(lengths, max_tokens):
    _too_long(lengths, max_tokens)
    batches, batch = [], []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) + 1) * lengths[index] > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(index)
    return batches


@wrong("batch_by_tokens", cause="returns one empty batch if there are no sentences", kind="extreme")
def batch_by_tokens_8(lengths, max_tokens):
    _too_long(lengths, max_tokens)
    batches = [[]]
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if (len(batches[-1]) + 1) * lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


@wrong("batch_by_tokens", cause="of equal lengths, the later sentence comes first", kind="value")
def batch_by_tokens_9(lengths, max_tokens):
    _too_long(lengths, max_tokens)
    batches = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], -i)):
        if not batches or (len(batches[-1]) + 1) * lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


@wrong("batch_by_tokens", cause="refuses a sentence of exactly max_tokens", kind="error")
def batch_by_tokens_10(lengths, max_tokens):
    batches = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[index] >= max_tokens:
            raise ValueError(f"sentence {index} is too long")
        if not batches or (len(batches[-1]) + 1) * lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


@wrong(
    "batch_by_tokens",
    cause="finds indices by their length, so equal lengths give one index twice",
    kind="value",
)
def batch_by_tokens_11(lengths, max_tokens):
    _too_long(lengths, max_tokens)
    batches = []
    for length in sorted(lengths):
        if not batches or (len(batches[-1]) + 1) * length > max_tokens:
            batches.append([])
        batches[-1].append(lengths.index(length))
    return batches


class _LongSentence(ValueError):
    """A sentence that fits into no batch."""


@right(
    "batch_by_tokens", how="sorts pairs, looks ahead with a while loop, a subclass of ValueError"
)
def batch_by_tokens_12(lengths, max_tokens):
    queue = sorted((length, index) for index, length in enumerate(lengths))
    if queue and queue[-1][0] > max_tokens:
        raise _LongSentence(f"{queue[-1][0]} tokens do not fit into {max_tokens}")
    batches, start = [], 0
    while start < len(queue):
        end = start + 1
        while end < len(queue) and (end + 1 - start) * queue[end][0] <= max_tokens:
            end += 1
        batches.append([index for _, index in queue[start:end]])
        start = end
    return batches


@wrong("epoch_order", cause="seeds and uses Python's global generator", kind="state")
def epoch_order_1(n_batches, seed, epoch):
    random.seed(f"{seed} {epoch}")
    order = list(range(n_batches))
    random.shuffle(order)
    return order


@wrong(
    "epoch_order",
    cause="the sum of seed and epoch gives different pairs the same order",
    kind="value",
)
def epoch_order_2(n_batches, seed, epoch):
    order = list(range(n_batches))
    random.Random(seed + epoch).shuffle(order)
    return order


@wrong("epoch_order", cause="ignores the epoch", kind="value")
def epoch_order_3(n_batches, seed, epoch):
    order = list(range(n_batches))
    random.Random(seed).shuffle(order)
    return order


@wrong("epoch_order", cause="returns None: shuffle works in place", kind="type")
def epoch_order_4(n_batches, seed, epoch):
    return random.Random(f"{seed} {epoch}").shuffle(list(range(n_batches)))


@wrong(
    "epoch_order",
    cause="the generator has no seed, so every call gives another order",
    kind="state",
)
def epoch_order_5(n_batches, seed, epoch):
    return random.Random().sample(range(n_batches), n_batches)


@wrong("epoch_order", cause="draws with repetition, so it is no permutation", kind="value")
def epoch_order_6(n_batches, seed, epoch):
    return random.Random(f"{seed} {epoch}").choices(range(n_batches), k=n_batches)


@wrong("epoch_order", cause="counts the batches from 1", kind="value")
def epoch_order_7(n_batches, seed, epoch):
    order = list(range(1, n_batches + 1))
    random.Random(f"{seed} {epoch}").shuffle(order)
    return order


@wrong(
    "epoch_order",
    cause="without a space, seed 1 epoch 11 and seed 11 epoch 1 are the same",
    kind="value",
)
def epoch_order_8(n_batches, seed, epoch):
    order = list(range(n_batches))
    random.Random(f"{seed}{epoch}").shuffle(order)
    return order


@wrong(
    "epoch_order",
    cause="1000 seed + epoch: seed 0 epoch 1000 is the same as seed 1 epoch 0",
    kind="value",
)
def epoch_order_9(n_batches, seed, epoch):
    order = list(range(n_batches))
    random.Random(1000 * seed + epoch).shuffle(order)
    return order


@right("epoch_order", how="sample, seeded with bytes of both numbers")
def epoch_order_10(n_batches, seed, epoch):
    generator = random.Random(f"epoch={epoch}, seed={seed}".encode())
    return generator.sample(range(n_batches), k=n_batches)


@right("epoch_order", how="sorts by random keys")
def epoch_order_11(n_batches, seed, epoch):
    draw = random.Random(repr((seed, epoch)))
    keys = [draw.random() for _ in range(n_batches)]
    return sorted(range(n_batches), key=keys.__getitem__)


@wrong("clip_gradients", cause="clips every tensor by its own norm", kind="value")
def clip_gradients_1(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    return [gradient * (max_norm / gradient.norm().clamp(min=max_norm)) for gradient in gradients]


@wrong("clip_gradients", cause="does not undo the loss scale", kind="value")
def clip_gradients_2(gradients, max_norm, loss_scale=1.0):
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    return [gradient * (max_norm / norm.clamp(min=max_norm)) for gradient in gradients]


@wrong("clip_gradients", cause="clips first and undoes the loss scale afterwards", kind="value")
def clip_gradients_3(gradients, max_norm, loss_scale=1.0):
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    factor = max_norm / norm.clamp(min=max_norm)
    return [gradient * factor / loss_scale for gradient in gradients]


@wrong("clip_gradients", cause="lengthens short gradients to max_norm as well", kind="value")
def clip_gradients_4(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    return [gradient * max_norm / norm for gradient in gradients]


@wrong("clip_gradients", cause="divides a Python number by 0 if all gradients are 0", kind="crash")
def clip_gradients_5(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    norm = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
    factor = min(1.0, max_norm / norm)
    return [gradient * factor for gradient in gradients]


@wrong("clip_gradients", cause="writes into the gradients that it was given", kind="state")
def clip_gradients_6(gradients, max_norm, loss_scale=1.0):
    for gradient in gradients:
        gradient /= loss_scale
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    factor = max_norm / norm.clamp(min=max_norm)
    for gradient in gradients:
        gradient *= factor
    return gradients


@wrong(
    "clip_gradients",
    cause="cuts single numbers at max_norm, which changes the direction",
    kind="value",
)
def clip_gradients_7(gradients, max_norm, loss_scale=1.0):
    return [(gradient / loss_scale).clamp(-max_norm, max_norm) for gradient in gradients]


@wrong(
    "clip_gradients",
    cause="adds the norms up instead of taking the norm of all numbers",
    kind="value",
)
def clip_gradients_8(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient / loss_scale for gradient in gradients]
    norm = sum(gradient.norm() for gradient in gradients)
    return [gradient * (max_norm / norm).clamp(max=1) for gradient in gradients]


@wrong("clip_gradients", cause="multiplies by the loss scale instead of dividing", kind="value")
def clip_gradients_9(gradients, max_norm, loss_scale=1.0):
    gradients = [gradient * loss_scale for gradient in gradients]
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    return [gradient * (max_norm / norm.clamp(min=max_norm)) for gradient in gradients]


@wrong(
    "clip_gradients", cause="stacks the gradients, which fails for different shapes", kind="crash"
)
def clip_gradients_10(gradients, max_norm, loss_scale=1.0):
    stacked = torch.stack(gradients) / loss_scale
    return list(stacked * (max_norm / stacked.norm().clamp(min=max_norm)))


@right("clip_gradients", how="the norm of one long vector, shortened only if it is too long")
def clip_gradients_11(gradients, max_norm, loss_scale=1.0):
    unscaled = [g / loss_scale for g in gradients]
    norm = torch.cat([g.reshape(-1) for g in unscaled]).norm().item()
    if norm <= max_norm:
        return unscaled
    return [g.mul(max_norm / norm) for g in unscaled]


@wrong("adamw_step", cause="adds the weight decay to the gradient: Adam with L2", kind="value")
def adamw_step_1(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    gradient = gradient + weight_decay * parameter
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient**2
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps), m, v


@wrong("adamw_step", cause="does not correct the means for their start at 0", kind="value")
def adamw_step_2(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient**2
    parameter = parameter * (1 - learning_rate * weight_decay)
    return parameter - learning_rate * m / (v.sqrt() + eps), m, v


@wrong("adamw_step", cause="eps stands inside of the root", kind="extreme")
def adamw_step_3(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    parameter = parameter * (1 - learning_rate * weight_decay)
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient**2
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return parameter - learning_rate * m_hat / torch.sqrt(v_hat + eps), m, v


@wrong("adamw_step", cause="returns the corrected means as the new state", kind="value")
def adamw_step_4(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    parameter = parameter * (1 - learning_rate * weight_decay)
    m = (betas[0] * m + (1 - betas[0]) * gradient) / (1 - betas[0] ** step)
    v = (betas[1] * v + (1 - betas[1]) * gradient**2) / (1 - betas[1] ** step)
    return parameter - learning_rate * m / (v.sqrt() + eps), m, v


@wrong("adamw_step", cause="corrects with the power step + 1, as if steps began at 0", kind="value")
def adamw_step_5(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    parameter = parameter * (1 - learning_rate * weight_decay)
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient**2
    m_hat, v_hat = m / (1 - betas[0] ** (step + 1)), v / (1 - betas[1] ** (step + 1))
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps), m, v


@wrong("adamw_step", cause="the two betas are swapped", kind="value")
def adamw_step_6(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    beta_2, beta_1 = betas
    parameter = parameter * (1 - learning_rate * weight_decay)
    m = beta_1 * m + (1 - beta_1) * gradient
    v = beta_2 * v + (1 - beta_2) * gradient**2
    m_hat, v_hat = m / (1 - beta_1**step), v / (1 - beta_2**step)
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps), m, v


@wrong("adamw_step", cause="changes parameter, m and v in place", kind="state")
def adamw_step_7(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    parameter.mul_(1 - learning_rate * weight_decay)
    m.mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    v.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    parameter.sub_(learning_rate * m_hat / (v_hat.sqrt() + eps))
    return parameter, m, v


@wrong("adamw_step", cause="the decay is not multiplied by the learning rate", kind="value")
def adamw_step_8(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    parameter = parameter * (1 - weight_decay)
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient**2
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps), m, v


@wrong("adamw_step", cause="returns the parameter alone, without the state", kind="type")
def adamw_step_9(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    parameter = parameter * (1 - learning_rate * weight_decay)
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient**2
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps)


@wrong("adamw_step", cause="ignores the weight decay", kind="value")
def adamw_step_10(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient**2
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps), m, v


@right("adamw_step", how="lerp and addcdiv, the decay subtracted last from the old parameter")
def adamw_step_11(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    (b1, b2), decay = betas, learning_rate * weight_decay * parameter
    m, v = torch.lerp(gradient, m, b1), torch.lerp(gradient * gradient, v, b2)
    root = (v / (1 - b2**step)).sqrt().add(eps)
    moved = torch.addcdiv(parameter, m, root, value=-learning_rate / (1 - b1**step))
    return moved - decay, m, v


class _Step(ModelAndLoss):
    def __init__(self, model, optimizer=None, smoothing=0.1, max_norm=1.0, dtype=None):
        super().__init__(model, smoothing, dtype)
        if not isinstance(optimizer, torch.optim.Optimizer):
            optimizer = torch.optim.SGD(self.model.parameters(), **(optimizer or {"lr": 0.1}))
        self.optimizer = optimizer
        self.max_norm = max_norm

    def finish(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()


@wrong("TrainStep", cause="takes the mean of the batches' means", kind="value")
class TrainStep_1(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        mean = 0.0
        for source, target in batches:
            part = self.loss(source, target) / len(batches)
            part.backward()
            mean = mean + part.detach()
        self.finish()
        return mean


@wrong("TrainStep", cause="gradients of earlier steps are not set to zero", kind="state")
class TrainStep_2(_Step):
    def forward(self, batches):
        self.model.train()
        counts = [(target != PAD).sum() for _, target in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            part = self.loss(source, target) * count / sum(counts)
            part.backward()
            mean = mean + part.detach()
        self.finish()
        return mean


@wrong("TrainStep", cause="does not switch to training mode", kind="state")
class TrainStep_3(_Step):
    def forward(self, batches):
        self.optimizer.zero_grad()
        counts = [(target != PAD).sum() for _, target in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            part = self.loss(source, target) * count / sum(counts)
            part.backward()
            mean = mean + part.detach()
        self.finish()
        return mean


@wrong("TrainStep", cause="does not clip the gradients", kind="value")
class TrainStep_4(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        counts = [(target != PAD).sum() for _, target in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            part = self.loss(source, target) * count / sum(counts)
            part.backward()
            mean = mean + part.detach()
        self.optimizer.step()
        return mean


@wrong("TrainStep", cause="makes a step after each batch instead of one for all", kind="value")
class TrainStep_5(_Step):
    def forward(self, batches):
        self.model.train()
        counts = [(target != PAD).sum() for _, target in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            self.optimizer.zero_grad()
            part = self.loss(source, target) * count / sum(counts)
            part.backward()
            mean = mean + part.detach()
            self.finish()
        return mean


@wrong("TrainStep", cause="the returned loss is not detached", kind="gradient")
class TrainStep_6(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        counts = [(target != PAD).sum() for _, target in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            part = self.loss(source, target) * count / sum(counts)
            part.backward()
            mean = mean + part
        self.finish()
        return mean


@wrong(
    "TrainStep",
    cause="weights the batches by all their target positions, padding included",
    kind="value",
)
class TrainStep_7(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        total, mean = sum(target.numel() for _, target in batches), 0.0
        for source, target in batches:
            part = self.loss(source, target) * target.numel() / total
            part.backward()
            mean = mean + part.detach()
        self.finish()
        return mean


@wrong(
    "TrainStep",
    cause="sets the gradients to zero before each batch, so only the last counts",
    kind="value",
)
class TrainStep_8(_Step):
    def forward(self, batches):
        self.model.train()
        counts = [(target != PAD).sum() for _, target in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            self.optimizer.zero_grad()
            part = self.loss(source, target) * count / sum(counts)
            part.backward()
            mean = mean + part.detach()
        self.finish()
        return mean


@wrong("TrainStep", cause="clips after the optimizer's step", kind="value")
class TrainStep_9(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        counts = [(target != PAD).sum() for _, target in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            part = self.loss(source, target) * count / sum(counts)
            part.backward()
            mean = mean + part.detach()
        self.optimizer.step()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        return mean


@wrong("TrainStep", cause="weights the batches by the tokens of their sources", kind="value")
class TrainStep_10(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        counts = [(source != PAD).sum() for source, _ in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            part = self.loss(source, target) * count / sum(counts)
            part.backward()
            mean = mean + part.detach()
        self.finish()
        return mean


@wrong(
    "TrainStep",
    cause="goes backward from the sum of the losses, not from their mean per token",
    kind="value",
)
class TrainStep_11(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        total, tokens = 0.0, 0
        for source, target in batches:
            count = (target != PAD).sum()
            part = self.loss(source, target) * count
            part.backward()
            total, tokens = total + part.detach(), tokens + count
        self.finish()
        return total / tokens


@wrong("TrainStep", cause="forgets the optimizer's step", kind="value")
class TrainStep_12(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        counts = [(target != PAD).sum() for _, target in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            part = self.loss(source, target) * count / sum(counts)
            part.backward()
            mean = mean + part.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        return mean


@right("TrainStep", how="sums backward, gradients divided once at the end; self.train()")
class TrainStep_13(_Step):
    def forward(self, batches):
        self.train()
        for parameter in self.model.parameters():
            parameter.grad = None
        total, tokens = 0.0, 0
        for source, target in batches:
            count = int((target != PAD).sum())
            part = count * self.loss(source, target)
            part.backward()
            total, tokens = total + part.detach(), tokens + count
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                parameter.grad /= tokens
        self.finish()
        return total / tokens


class _Eval(ModelAndLoss):
    def __init__(self, model, smoothing=0.0, dtype=None):
        super().__init__(model, smoothing, dtype)

    def forward(self, batches):
        was_training = self.model.training
        mean = self.mean_loss(batches)
        self.model.train(was_training)
        return mean


@wrong(
    "Evaluation", cause="dropout stays on: the model is not put into evaluation mode", kind="state"
)
class Evaluation_1(_Eval):
    @torch.no_grad()
    def mean_loss(self, batches):
        total, tokens = 0.0, 0
        for source, target in batches:
            count = (target != PAD).sum()
            total, tokens = total + self.loss(source, target) * count, tokens + count
        return total / tokens


@wrong("Evaluation", cause="computes with gradients", kind="gradient")
class Evaluation_2(_Eval):
    def mean_loss(self, batches):
        self.model.eval()
        total, tokens = 0.0, 0
        for source, target in batches:
            count = (target != PAD).sum()
            total, tokens = total + self.loss(source, target) * count, tokens + count
        return total / tokens


@wrong("Evaluation", cause="takes the mean of the batches' means", kind="value")
class Evaluation_3(_Eval):
    def mean_loss(self, batches):
        self.model.eval()
        with torch.no_grad():
            losses = [self.loss(source, target) for source, target in batches]
        return torch.stack(losses).mean()


@wrong("Evaluation", cause="weights the batches by all positions, padding included", kind="value")
class Evaluation_4(_Eval):
    def mean_loss(self, batches):
        self.model.eval()
        total, tokens = 0.0, 0
        with torch.no_grad():
            for source, target in batches:
                total = total + self.loss(source, target) * target.numel()
                tokens += target.numel()
        return total / tokens


@wrong("Evaluation", cause="returns within the loop, after the first batch", kind="size")
class Evaluation_5(_Eval):
    def mean_loss(self, batches):
        self.model.eval()
        total, tokens = 0.0, 0
        with torch.no_grad():
            for source, target in batches:
                count = (target != PAD).sum()
                total, tokens = total + self.loss(source, target) * count, tokens + count
                return total / tokens


@wrong(
    "Evaluation",
    cause="torch.no_grad() is called but not used in a with, so it does nothing",
    kind="gradient",
)
class Evaluation_6(_Eval):
    def mean_loss(self, batches):
        self.model.eval()
        torch.no_grad()
        total, tokens = 0.0, 0
        for source, target in batches:
            count = (target != PAD).sum()
            total, tokens = total + self.loss(source, target) * count, tokens + count
        return total / tokens


@wrong(
    "Evaluation",
    cause="switches gradients off for the whole program and leaves them off",
    kind="state",
)
class Evaluation_7(_Eval):
    def mean_loss(self, batches):
        self.model.eval()
        torch.set_grad_enabled(False)
        total, tokens = 0.0, 0
        for source, target in batches:
            count = (target != PAD).sum()
            total, tokens = total + self.loss(source, target) * count, tokens + count
        return total / tokens


@wrong("Evaluation", cause="returns the sum over all tokens, not the mean", kind="value")
class Evaluation_8(_Eval):
    def mean_loss(self, batches):
        self.model.eval()
        total = 0.0
        with torch.no_grad():
            for source, target in batches:
                total = total + self.loss(source, target) * (target != PAD).sum()
        return total


@right("Evaluation", how="the shares of the batches first, decorated with no_grad")
class Evaluation_9(_Eval):
    @torch.no_grad()
    def mean_loss(self, batches):
        self.eval()
        counts = torch.stack([target.ne(PAD).sum() for _, target in batches])
        losses = torch.stack([self.loss(*batch) for batch in batches])
        return (losses * (counts / counts.sum())).sum()


@wrong(
    "average_checkpoints",
    cause="sums in the type of the weights, too coarse for 16 bits",
    kind="dtype",
)
def average_checkpoints_1(checkpoints):
    averaged = {}
    for name, last in checkpoints[-1].items():
        if last.is_floating_point():
            total = torch.zeros_like(last)
            for checkpoint in checkpoints:
                total += checkpoint[name]
            averaged[name] = total / len(checkpoints)
        else:
            averaged[name] = last.clone()
    return averaged


@wrong("average_checkpoints", cause="averages counters as well", kind="value")
def average_checkpoints_2(checkpoints):
    averaged = {}
    for name, last in checkpoints[-1].items():
        stacked = torch.stack([checkpoint[name].double() for checkpoint in checkpoints])
        averaged[name] = stacked.mean(dim=0).to(last.dtype)
    return averaged


@wrong(
    "average_checkpoints",
    cause="takes counters from the first checkpoint, not the last",
    kind="value",
)
def average_checkpoints_3(checkpoints):
    averaged = {}
    for name, first in checkpoints[0].items():
        if first.is_floating_point():
            stacked = torch.stack([checkpoint[name].double() for checkpoint in checkpoints])
            averaged[name] = stacked.mean(dim=0).to(first.dtype)
        else:
            averaged[name] = first.clone()
    return averaged


@wrong("average_checkpoints", cause="leaves the means in float64", kind="dtype")
def average_checkpoints_4(checkpoints):
    averaged = {}
    for name, last in checkpoints[-1].items():
        if last.is_floating_point():
            averaged[name] = sum(checkpoint[name].double() for checkpoint in checkpoints)
            averaged[name] = averaged[name] / len(checkpoints)
        else:
            averaged[name] = last.clone()
    return averaged


@wrong(
    "average_checkpoints",
    cause="writes the means into the first checkpoint and so changes it",
    kind="state",
)
def average_checkpoints_5(checkpoints):
    averaged = checkpoints[0]
    for name, last in checkpoints[-1].items():
        if last.is_floating_point():
            stacked = torch.stack([checkpoint[name].double() for checkpoint in checkpoints])
            averaged[name] = stacked.mean(dim=0).to(last.dtype)
        else:
            averaged[name] = last.clone()
    return averaged


@wrong(
    "average_checkpoints",
    cause="halves at each checkpoint, so the last one counts most",
    kind="value",
)
def average_checkpoints_6(checkpoints):
    averaged = {}
    for name, last in checkpoints[-1].items():
        if last.is_floating_point():
            mean = checkpoints[0][name].double()
            for checkpoint in checkpoints[1:]:
                mean = (mean + checkpoint[name].double()) / 2
            averaged[name] = mean.to(last.dtype)
        else:
            averaged[name] = last.clone()
    return averaged


@wrong(
    "average_checkpoints",
    cause="averages float32 only; other floating-point types stay as they are",
    kind="dtype",
)
def average_checkpoints_7(checkpoints):
    averaged = {}
    for name, last in checkpoints[-1].items():
        if last.dtype == torch.float32:
            stacked = torch.stack([checkpoint[name].double() for checkpoint in checkpoints])
            averaged[name] = stacked.mean(dim=0).float()
        else:
            averaged[name] = last.clone()
    return averaged


@wrong("average_checkpoints", cause="leaves counters out of the result", kind="shape")
def average_checkpoints_8(checkpoints):
    return {
        name: torch.stack([c[name].double() for c in checkpoints]).mean(dim=0).to(last.dtype)
        for name, last in checkpoints[-1].items()
        if last.is_floating_point()
    }


@right("average_checkpoints", how="a running sum in float64, divided in place")
def average_checkpoints_9(checkpoints):
    result = {}
    for name in checkpoints[0]:
        *_, last = (checkpoint[name] for checkpoint in checkpoints)
        if not torch.is_floating_point(last):
            result[name] = last.detach().clone()
            continue
        total = torch.zeros_like(last, dtype=torch.float64)
        for checkpoint in checkpoints:
            total += checkpoint[name]
        result[name] = total.div_(len(checkpoints)).to(last)
    return result


@wrong("training_flops", cause="counts one operation for each product, not two", kind="value")
def training_flops_1(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    layer = (6 * T_k + 6 * T_q) * d_model**2 + 2 * (T_k**2 + T_q**2 + T_q * T_k) * d_model
    layer += 2 * (T_k + T_q) * d_model * d_ff
    return 3 * (n_layers * layer + T_q * d_model * vocab_size)


@wrong("training_flops", cause="counts the way forward only", kind="value")
def training_flops_2(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    layer = (6 * T_k + 6 * T_q) * d_model**2 + 2 * (T_k**2 + T_q**2 + T_q * T_k) * d_model
    layer += 2 * (T_k + T_q) * d_model * d_ff
    return 2 * (n_layers * layer + T_q * d_model * vocab_size)


@wrong(
    "training_flops",
    cause="all four projections of the cross-attention have T_q rows",
    kind="value",
)
def training_flops_3(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    layer = (4 * T_k + 8 * T_q) * d_model**2 + 2 * (T_k**2 + T_q**2 + T_q * T_k) * d_model
    layer += 2 * (T_k + T_q) * d_model * d_ff
    return 6 * (n_layers * layer + T_q * d_model * vocab_size)


@wrong(
    "training_flops", cause="counts the scores but not the weights times the values", kind="value"
)
def training_flops_4(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    layer = (6 * T_k + 6 * T_q) * d_model**2 + (T_k**2 + T_q**2 + T_q * T_k) * d_model
    layer += 2 * (T_k + T_q) * d_model * d_ff
    return 6 * (n_layers * layer + T_q * d_model * vocab_size)


@wrong("training_flops", cause="counts the generator once per layer", kind="value")
def training_flops_5(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    layer = (6 * T_k + 6 * T_q) * d_model**2 + 2 * (T_k**2 + T_q**2 + T_q * T_k) * d_model
    layer += 2 * (T_k + T_q) * d_model * d_ff + T_q * d_model * vocab_size
    return 6 * n_layers * layer


@wrong(
    "training_flops", cause="the generator works on the source's positions as well", kind="value"
)
def training_flops_6(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    layer = (6 * T_k + 6 * T_q) * d_model**2 + 2 * (T_k**2 + T_q**2 + T_q * T_k) * d_model
    layer += 2 * (T_k + T_q) * d_model * d_ff
    return 6 * (n_layers * layer + (T_k + T_q) * d_model * vocab_size)


@wrong(
    "training_flops",
    cause="the scores of the cross-attention are taken as (T_q, T_q)",
    kind="value",
)
def training_flops_7(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    layer = (6 * T_k + 6 * T_q) * d_model**2 + 2 * (T_k**2 + 2 * T_q**2) * d_model
    layer += 2 * (T_k + T_q) * d_model * d_ff
    return 6 * (n_layers * layer + T_q * d_model * vocab_size)


@wrong("training_flops", cause="leaves out the causal attention's masked scores", kind="value")
def training_flops_8(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    seen = T_q * (T_q + 1) // 2
    layer = (6 * T_k + 6 * T_q) * d_model**2 + 2 * (T_k**2 + seen + T_q * T_k) * d_model
    layer += 2 * (T_k + T_q) * d_model * d_ff
    return 6 * (n_layers * layer + T_q * d_model * vocab_size)


@right("training_flops", how="a list of all products (n, m, k), layer by layer")
def training_flops_9(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    products = [(T_q, d_model, vocab_size)]
    for _ in range(n_layers):
        for queries, keys in ((T_k, T_k), (T_q, T_q), (T_q, T_k)):
            products += 2 * [(queries, d_model, d_model)] + 2 * [(keys, d_model, d_model)]
            products += [(queries, d_model, keys), (queries, keys, d_model)]
        for rows in (T_k, T_q):
            products += [(rows, d_model, d_ff), (rows, d_ff, d_model)]
    return 6 * sum(math.prod(sizes) for sizes in products)
