"""Wrong answers to lesson 11."""

import torch
from torch import nn

from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.training import ModelAndLoss
from tests.locked import wrong

# --- adamw_step ------------------------------------------------------------------------------


def _asked(step, learning_rate, betas, eps, weight_decay):
    demand.counts(step=step)
    demand.within(0, learning_rate=learning_rate, eps=eps, weight_decay=weight_decay)
    demand.share(beta_1=betas[0], beta_2=betas[1])


@wrong("adamw_step", cause="plain Adam: the decay is added to the gradient")
def adamw_step_101(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _asked(step, learning_rate, betas, eps, weight_decay)
    gradient = gradient + weight_decay * parameter
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient**2
    mh, vh = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return parameter - learning_rate * mh / (vh.sqrt() + eps), m, v


@wrong("adamw_step", cause="eps inside the root")
def adamw_step_102(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _asked(step, learning_rate, betas, eps, weight_decay)
    b1, b2 = betas
    m, v = b1 * m + (1 - b1) * gradient, b2 * v + (1 - b2) * gradient.square()
    update = (m / (1 - b1**step)) / torch.sqrt(v / (1 - b2**step) + eps)
    return parameter * (1 - learning_rate * weight_decay) - learning_rate * update, m, v


@wrong("adamw_step", cause="returns the corrected means: they are corrected again next time")
def adamw_step_103(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _asked(step, learning_rate, betas, eps, weight_decay)
    b1, b2 = betas
    m = (b1 * m + (1 - b1) * gradient) / (1 - b1**step)
    v = (b2 * v + (1 - b2) * gradient**2) / (1 - b2**step)
    parameter = parameter - learning_rate * weight_decay * parameter
    return parameter - learning_rate * m / (v.sqrt() + eps), m, v


@wrong("adamw_step", cause="the decay is not multiplied by the learning rate")
def adamw_step_104(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _asked(step, learning_rate, betas, eps, weight_decay)
    b1, b2 = betas
    m = torch.lerp(gradient, m, b1)
    v = torch.lerp(gradient**2, v, b2)
    p = parameter * (1 - weight_decay)
    return p - learning_rate * (m / (1 - b1**step)) / ((v / (1 - b2**step)).sqrt() + eps), m, v


@wrong("adamw_step", cause="the correction is always that of step 1: 1 - beta")
def adamw_step_105(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _asked(step, learning_rate, betas, eps, weight_decay)
    b1, b2 = betas
    m, v = b1 * m + (1 - b1) * gradient, b2 * v + (1 - b2) * gradient**2
    mh, vh = m / (1 - b1), v / (1 - b2)
    p = parameter - learning_rate * weight_decay * parameter
    return p - learning_rate * mh / (vh.sqrt() + eps), m, v


@wrong("adamw_step", cause="writes into m and v of the caller", kind="state")
def adamw_step_106(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    _asked(step, learning_rate, betas, eps, weight_decay)
    b1, b2 = betas
    m.mul_(b1).add_(gradient, alpha=1 - b1)
    v.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
    p = parameter * (1 - learning_rate * weight_decay)
    return p - learning_rate * (m / (1 - b1**step)) / ((v / (1 - b2**step)).sqrt() + eps), m, v


# --- noam_learning_rate ----------------------------------------------------------------------


@wrong("noam_learning_rate", cause="max in place of min")
def noam_learning_rate_101(step, d_model, warmup_steps, factor=1.0):
    demand.counts(step=step, d_model=d_model, warmup_steps=warmup_steps)
    demand.within(0, factor=factor)
    return factor * d_model**-0.5 * max(step**-0.5, step * warmup_steps**-1.5)


@wrong("noam_learning_rate", cause="the line is step / warmup_steps, without the root")
def noam_learning_rate_102(step, d_model, warmup_steps, factor=1.0):
    demand.counts(step=step, d_model=d_model, warmup_steps=warmup_steps)
    demand.within(0, factor=factor)
    return factor * d_model**-0.5 * min(step**-0.5, step / warmup_steps)


@wrong("noam_learning_rate", cause="multiplies by the root of d_model")
def noam_learning_rate_103(step, d_model, warmup_steps, factor=1.0):
    demand.counts(step=step, d_model=d_model, warmup_steps=warmup_steps)
    demand.within(0, factor=factor)
    rate = step * warmup_steps**-1.5 if step < warmup_steps else step**-0.5
    return factor * rate * d_model**0.5


@wrong("noam_learning_rate", cause="counts from 0: uses step + 1")
def noam_learning_rate_104(step, d_model, warmup_steps, factor=1.0):
    demand.counts(step=step, d_model=d_model, warmup_steps=warmup_steps)
    demand.within(0, factor=factor)
    step += 1
    return factor * d_model ** (-0.5) * min(step ** (-0.5), step * warmup_steps ** (-1.5))


# --- TrainStep -------------------------------------------------------------------------------


class _TrainStep(ModelAndLoss):
    def __init__(self, model, optimizer=None, smoothing=0.1, max_norm=1.0, dtype=None):
        super().__init__(model, smoothing, dtype)
        if max_norm != torch.inf:
            demand.positive(max_norm=max_norm)
        if not isinstance(optimizer, torch.optim.Optimizer):
            optimizer = torch.optim.SGD(self.model.parameters(), **(optimizer or {"lr": 0.1}))
        self.optimizer = optimizer
        self.max_norm = max_norm


@wrong("TrainStep", cause="every batch counts the same: divided by the number of batches")
class TrainStep_101(_TrainStep):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        total = 0.0
        for source, target in batches:
            loss = self.loss(source, target) / len(batches)
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        return total


@wrong("TrainStep", cause="zero_grad in the loop: only the last batch is learned from")
class TrainStep_102(_TrainStep):
    def forward(self, batches):
        self.model.train()
        n = sum(int((t != PAD).sum()) for _, t in batches)
        total = 0.0
        for source, target in batches:
            self.optimizer.zero_grad()
            loss = self.loss(source, target) * ((target != PAD).sum() / max(n, 1))
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        return total


@wrong("TrainStep", cause="a step after every batch")
class TrainStep_103(_TrainStep):
    def forward(self, batches):
        self.model.train()
        n = sum((t != PAD).sum() for _, t in batches).clamp(min=1)
        total = 0.0
        for source, target in batches:
            self.optimizer.zero_grad()
            loss = self.loss(source, target) * (target != PAD).sum() / n
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
            self.optimizer.step()
            total = total + loss.detach()
        return total


@wrong("TrainStep", cause="clips before backward has run, when the gradients are zero")
class TrainStep_104(_TrainStep):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        n = max(sum((t != PAD).sum().item() for _, t in batches), 1)
        losses = []
        for source, target in batches:
            loss = self.loss(source, target) * (target != PAD).sum().item() / n
            loss.backward()
            losses.append(loss.detach())
        self.optimizer.step()
        return torch.stack(losses).sum()


@wrong("TrainStep", cause="clip_grad_value_: each number by itself")
class TrainStep_105(_TrainStep):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        counts = [(target != PAD).sum() for _, target in batches]
        n = sum(counts).clamp(min=1)
        total = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            loss = self.loss(source, target) * count / n
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_value_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        return total


@wrong("TrainStep", cause="the padding counts in the shares: numel")
class TrainStep_106(_TrainStep):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        n = sum(target.numel() for _, target in batches)
        total = 0.0
        for source, target in batches:
            loss = self.loss(source, target) * (target.numel() / n)
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        return total


# --- Evaluation ------------------------------------------------------------------------------


class _Evaluation(ModelAndLoss):
    def __init__(self, model, smoothing=0.0, dtype=None):
        super().__init__(model, smoothing, dtype)

    def forward(self, batches):
        was_training = self.model.training
        mean = self.mean_loss(batches)
        self.model.train(was_training)
        return mean


@wrong("Evaluation", cause="the mean of the batches' means")
class Evaluation_101(_Evaluation):
    def mean_loss(self, batches):
        self.model.eval()
        with torch.no_grad():
            losses = [self.loss(source, target) for source, target in batches]
        return torch.stack(losses).mean()


@wrong("Evaluation", cause="no eval(): dropout stays on", kind="state")
class Evaluation_102(_Evaluation):
    @torch.no_grad()
    def mean_loss(self, batches):
        total, n = torch.zeros(()), 0
        for source, target in batches:
            k = (target != PAD).sum()
            total = total.to(source.device) + self.loss(source, target) * k
            n = n + k
        return total / max(n, 1)


@wrong("Evaluation", cause="no no_grad(): the result carries a graph", kind="gradient")
class Evaluation_103(_Evaluation):
    def mean_loss(self, batches):
        self.model.eval()
        counts = [(target != PAD).sum() for _, target in batches]
        sums = [self.loss(s, t) * n for (s, t), n in zip(batches, counts, strict=True)]
        return sum(sums) / sum(counts).clamp(min=1)


@wrong("Evaluation", cause="weights by sentences, not by tokens")
class Evaluation_104(_Evaluation):
    def mean_loss(self, batches):
        self.model.eval()
        total, n = 0.0, 0
        with torch.no_grad():
            for source, target in batches:
                total = total + self.loss(source, target) * len(target)
                n += len(target)
        return total / n


@wrong("Evaluation", cause="the perplexity, not the loss")
class Evaluation_105(_Evaluation):
    @torch.no_grad()
    def mean_loss(self, batches):
        self.model.eval()
        counts = torch.stack([(t != PAD).sum() for _, t in batches])
        means = torch.stack([self.loss(s, t) for s, t in batches])
        return ((means * counts).sum() / counts.sum().clamp(min=1)).exp()


# --- batch_by_tokens -------------------------------------------------------------------------


@wrong("batch_by_tokens", cause="adds up the lengths: the padding is not counted")
def batch_by_tokens_101(lengths, max_tokens):
    demand.counts(max_tokens=max_tokens)
    if lengths and max(lengths) > max_tokens:
        raise ValueError(f"a sentence of {max(lengths)} tokens is longer than {max_tokens}")
    batches, size = [], 0
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not batches or size + lengths[i] > max_tokens:
            batches.append([])
            size = 0
        batches[-1].append(i)
        size += lengths[i]
    return batches


@wrong("batch_by_tokens", cause=">=: a batch that fits exactly is closed too early")
def batch_by_tokens_102(lengths, max_tokens):
    demand.counts(max_tokens=max_tokens)
    batches, current = [], []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] > max_tokens:
            raise ValueError(f"sentence {i} has {lengths[i]} tokens, more than {max_tokens}")
        if current and (len(current) + 1) * lengths[i] >= max_tokens:
            batches.append(current)
            current = []
        current.append(i)
    return batches + [current] if current else batches


@wrong("batch_by_tokens", cause="the last batch is forgotten")
def batch_by_tokens_103(lengths, max_tokens):
    demand.counts(max_tokens=max_tokens)
    batches, current = [], []
    for n, i in sorted((n, i) for i, n in enumerate(lengths)):
        if n > max_tokens:
            raise ValueError(f"sentence {i} is too long: {n} > {max_tokens}")
        if (len(current) + 1) * n > max_tokens:
            batches.append(current)
            current = []
        current.append(i)
    return batches


@wrong("batch_by_tokens", cause="from longest to shortest")
def batch_by_tokens_104(lengths, max_tokens):
    demand.counts(max_tokens=max_tokens)
    batches = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if lengths[i] > max_tokens:
            raise ValueError("a sentence is longer than max_tokens")
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= max_tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


@wrong("batch_by_tokens", cause="the size is asked before the new sentence counts")
def batch_by_tokens_105(lengths, max_tokens):
    demand.counts(max_tokens=max_tokens)
    batches = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] > max_tokens:
            raise ValueError(f"{lengths[i]} > {max_tokens}")
        if batches and len(batches[-1]) * lengths[i] < max_tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


@wrong("batch_by_tokens", cause="a sentence too long gets a batch of its own", kind="error")
def batch_by_tokens_106(lengths, max_tokens):
    demand.counts(max_tokens=max_tokens)
    batches = [[]]
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if (len(batches[-1]) + 1) * lengths[i] > max_tokens and batches[-1]:
            batches.append([])
        batches[-1].append(i)
    return [batch for batch in batches if batch]


# --- clip_gradients --------------------------------------------------------------------------


def _wide(gradients, max_norm, loss_scale):
    demand.positive(max_norm=max_norm, loss_scale=loss_scale)
    demand.counts(gradients=len(gradients))
    return [one.to(torch.promote_types(one.dtype, torch.float32)) for one in gradients]


@wrong("clip_gradients", cause="each tensor is shortened by itself")
def clip_gradients_101(gradients, max_norm, loss_scale=1.0):
    gradients = [g / loss_scale for g in _wide(gradients, max_norm, loss_scale)]
    return [g * (max_norm / g.norm().clamp(min=max_norm)) for g in gradients]


@wrong("clip_gradients", cause="short gradients are made longer")
def clip_gradients_102(gradients, max_norm, loss_scale=1.0):
    gradients = [g / loss_scale for g in _wide(gradients, max_norm, loss_scale)]
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    return [g * max_norm / (norm + 1e-6) for g in gradients]


@wrong("clip_gradients", cause="the norm is taken before the scale is undone")
def clip_gradients_103(gradients, max_norm, loss_scale=1.0):
    gradients = _wide(gradients, max_norm, loss_scale)
    norm = torch.stack([g.norm() for g in gradients]).norm()
    factor = max_norm / norm.clamp(min=max_norm)
    return [g * factor / loss_scale for g in gradients]


@wrong("clip_gradients", cause="the norms are added up")
def clip_gradients_104(gradients, max_norm, loss_scale=1.0):
    gradients = [g / loss_scale for g in _wide(gradients, max_norm, loss_scale)]
    norm = sum(g.norm() for g in gradients)
    return [g * max_norm / norm.clamp(min=max_norm) for g in gradients]


@wrong("clip_gradients", cause="multiplies by the scale in place of dividing")
def clip_gradients_105(gradients, max_norm, loss_scale=1.0):
    gradients = [g * loss_scale for g in _wide(gradients, max_norm, loss_scale)]
    norm = sum((g**2).sum() for g in gradients).sqrt()
    if norm > max_norm:
        gradients = [g * (max_norm / norm) for g in gradients]
    return gradients
