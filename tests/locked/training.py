"""Answers to lesson 11 that were written without a look at its checks."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.training import ModelAndLoss
from tests.locked import right, wrong


@wrong(
    "noam_learning_rate", cause="the exponent of the warm-up is -0.5 instead of -1.5", kind="value"
)
def noam_learning_rate_2(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * min(step * warmup_steps**-0.5, step**-0.5)


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


@right("Evaluation", how="the shares of the batches first, decorated with no_grad")
class Evaluation_9(_Eval):
    @torch.no_grad()
    def mean_loss(self, batches):
        self.eval()
        counts = torch.stack([target.ne(PAD).sum() for _, target in batches])
        losses = torch.stack([self.loss(*batch) for batch in batches])
        return (losses * (counts / counts.sum())).sum()


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


# --- label_smoothed_loss ---------------------------------------------------------------------


@wrong("label_smoothed_loss", cause="the even part is a mean over all places, padding included")
def label_smoothed_loss_14(logits, target, smoothing=0.1):
    demand.within(0, 1, smoothing=smoothing)
    log_p = logits.log_softmax(dim=-1)
    real = target != PAD
    picked = log_p.gather(2, target.unsqueeze(2)).squeeze(2)
    right_part = -(picked * real).sum() / real.sum().clamp(min=1)
    return (1 - smoothing) * right_part - smoothing * log_p.mean() * real.any()


@wrong(
    "label_smoothed_loss",
    cause="PyTorch's function, which gives NaN where no token is real",
    kind="extreme",
)
def label_smoothed_loss_15(logits, target, smoothing=0.1):
    demand.within(0, 1, smoothing=smoothing)
    return F.cross_entropy(
        logits.transpose(1, 2), target, ignore_index=PAD, label_smoothing=smoothing
    )


@wrong("label_smoothed_loss", cause="spreads nothing on PAD: the even part leaves column 0 out")
def label_smoothed_loss_16(logits, target, smoothing=0.1):
    demand.within(0, 1, smoothing=smoothing)
    log_p = logits.log_softmax(dim=-1)
    picked = log_p.gather(2, target[:, :, None])[:, :, 0]
    losses = -(1 - smoothing) * picked - smoothing * log_p[:, :, 1:].mean(dim=2)
    real = target != PAD
    return (losses * real).sum() / real.sum().clamp(min=1)


@right("label_smoothed_loss", how="token by token in loops")
def label_smoothed_loss_17(logits, target, smoothing=0.1):
    demand.within(0, 1, smoothing=smoothing)
    V, total, count = logits.shape[2], (logits * 0).sum(), 0
    for b in range(len(target)):
        for t in range(target.shape[1]):
            token = int(target[b, t])
            if token == PAD:
                continue
            log_p = torch.log_softmax(logits[b, t], dim=0)
            total = total - (1 - smoothing) * log_p[token]
            total = total - smoothing * sum(log_p) / V
            count += 1
    return total / max(count, 1)


@right("label_smoothed_loss", how="writes the wanted distribution out")
def label_smoothed_loss_18(logits, target, smoothing=0.1):
    demand.within(0, 1, smoothing=smoothing)
    V = logits.shape[-1]
    wanted = torch.full_like(logits, smoothing / V)
    wanted.scatter_(2, target.unsqueeze(-1), 1 - smoothing + smoothing / V)
    wanted[target == PAD] = 0
    n = (target != PAD).sum()
    loss = -(wanted * F.log_softmax(logits, dim=-1)).sum()
    return loss / n if n > 0 else loss
