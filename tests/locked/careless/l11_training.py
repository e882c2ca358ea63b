"""Careless right answers to lesson 11."""

import math

import numpy as np
import torch
from torch import nn

from attention.provided.data.tokens import PAD
from attention.training import ModelAndLoss
from tests.locked.careless import careless


@careless("adamw_step", "in_place", how="works in place on clones")
def adamw_step_1(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    parameter, m, v = parameter.clone(), m.clone(), v.clone()
    parameter *= 1 - learning_rate * weight_decay
    m.mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    v.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    parameter -= learning_rate * m_hat / (v_hat.sqrt() + eps)
    return parameter, m, v


@careless("adamw_step", "other_order", how="moves the means by a part of what is missing")
def adamw_step_2(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    m = m + (1 - betas[0]) * (gradient - m)
    v = v + (1 - betas[1]) * (gradient**2 - v)
    update = m / (1 - betas[0] ** step) / (torch.sqrt(v / (1 - betas[1] ** step)) + eps)
    return parameter - learning_rate * (update + weight_decay * parameter), m, v


@careless("adamw_step", "other_type", how="corrections as NumPy's floats")
def adamw_step_3(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    beta_1, beta_2 = np.array(betas, dtype=np.float64)
    m = m * beta_1 + gradient * (1 - beta_1)
    v = v * beta_2 + gradient * gradient * (1 - beta_2)
    root = torch.sqrt(v) / np.sqrt(1 - beta_2**step) + eps
    decayed = parameter - learning_rate * weight_decay * parameter
    return decayed - learning_rate * (m / (1 - beta_1**step)) / root, m, v


@careless("noam_learning_rate", "other_type", how="returns NumPy's float")
def noam_learning_rate_1(step, d_model, warmup_steps, factor=1.0):
    return factor * d_model**-0.5 * np.minimum(step**-0.5, step * warmup_steps**-1.5)


@careless("noam_learning_rate", "dtype", how="computed by a float32 tensor, then a Python number")
def noam_learning_rate_2(step, d_model, warmup_steps, factor=1.0):
    number = torch.tensor(float(step))
    rate = torch.minimum(number**-0.5, number * warmup_steps**-1.5)
    return (factor * rate / math.sqrt(d_model)).item()


class _Step(ModelAndLoss):
    def __init__(self, model, optimizer=None, smoothing=0.1, max_norm=1.0, dtype=None):
        super().__init__(model, smoothing, dtype)
        if not isinstance(optimizer, torch.optim.Optimizer):
            optimizer = torch.optim.SGD(self.model.parameters(), **(optimizer or {"lr": 0.1}))
        self.optimizer = optimizer
        self.max_norm = max_norm


@careless("TrainStep", "plain_numbers", "module_state", how="a total from 0.0; keeps the last loss")
class TrainStep_1(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        counts = [(target != PAD).sum().item() for _, target in batches]
        self.last = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            loss = self.loss(source, target) * (count / sum(counts))
            loss.backward()
            self.last = self.last + loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        return self.last


@careless("TrainStep", "device", "dtype", how="losses into zeros of float32")
class TrainStep_2(_Step):
    def forward(self, batches):
        self.model.train()
        self.optimizer.zero_grad()
        losses, shares = torch.zeros(len(batches)), torch.zeros(len(batches))
        for i, (_, target) in enumerate(batches):
            shares[i] = (target != PAD).sum()
        shares = shares / shares.sum()
        for i, (source, target) in enumerate(batches):
            loss = self.loss(source, target)
            (loss * shares[i]).backward()
            losses[i] = loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        return (losses * shares).sum()


class _Eval(ModelAndLoss):
    def __init__(self, model, smoothing=0.0, dtype=None):
        super().__init__(model, smoothing, dtype)

    def forward(self, batches):
        was_training = self.model.training
        mean = self.mean_loss(batches)
        self.model.train(was_training)
        return mean


@careless(
    "Evaluation", "plain_numbers", "device", "dtype", how="Python floats, then a tensor of one"
)
class Evaluation_1(_Eval):
    def mean_loss(self, batches):
        self.model.eval()
        total, count = 0.0, 0
        with torch.no_grad():
            for source, target in batches:
                tokens = (target != PAD).sum().item()
                total += self.loss(source, target).item() * tokens
                count += tokens
        return torch.tensor(total / count)


@careless("Evaluation", "numpy", "device", how="NumPy's weighted average")
class Evaluation_2(_Eval):
    @torch.no_grad()
    def mean_loss(self, batches):
        self.model.eval()
        losses = [self.loss(source, target).numpy() for source, target in batches]
        counts = [(target.numpy() != PAD).sum() for _, target in batches]
        return torch.tensor(np.average(losses, weights=counts), dtype=torch.float32)


@careless("Evaluation", "device", "dtype", how="sums in zeros of float32")
class Evaluation_3(_Eval):
    @torch.no_grad()
    def mean_loss(self, batches):
        self.model.eval()
        sums = torch.zeros(2)
        for source, target in batches:
            count = (target != PAD).sum()
            sums[0] += self.loss(source, target) * count
            sums[1] += count
        return sums[0] / sums[1]


@careless(
    "batch_by_tokens", "numpy", "other_type", how="a stable argsort; NumPy's ints in the lists"
)
def batch_by_tokens_1(lengths, max_tokens):
    batches = []
    for i in np.argsort(np.array(lengths, dtype=np.int64), kind="stable"):
        if lengths[i] > max_tokens:
            raise ValueError(f"sentence {i} has {lengths[i]} tokens, more than {max_tokens}")
        if batches and (len(batches[-1]) + 1) * lengths[i] <= max_tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


@careless("batch_by_tokens", "plain_numbers", how="pairs of length and index, sorted")
def batch_by_tokens_2(lengths, max_tokens):
    if lengths and max(lengths) > max_tokens:
        raise ValueError(f"a sentence of {max(lengths)} tokens is longer than {max_tokens}")
    batches, batch = [], []
    for length, i in sorted((length, i) for i, length in enumerate(lengths)):
        if batch and (len(batch) + 1) * length > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(i)
    return [*batches, batch] if batch else batches


@careless("clip_gradients", "plain_numbers", how="a total from 0.0, the norm as a Python number")
def clip_gradients_1(gradients, max_norm, loss_scale=1.0):
    unscaled, total = [gradient / loss_scale for gradient in gradients], 0.0
    for gradient in unscaled:
        total += (gradient**2).sum().item()
    norm = math.sqrt(total)
    factor = max_norm / norm if norm > max_norm else 1.0
    return [gradient * factor for gradient in unscaled]


@careless("clip_gradients", "device", "dtype", how="norms into zeros of float32")
def clip_gradients_2(gradients, max_norm, loss_scale=1.0):
    norms = torch.zeros(len(gradients))
    for i, gradient in enumerate(gradients):
        norms[i] = (gradient / loss_scale).norm()
    factor = max_norm / torch.maximum(norms.norm(), torch.tensor(float(max_norm)))
    return [gradient / loss_scale * factor for gradient in gradients]


@careless("clip_gradients", "numpy", how="one long vector in NumPy")
def clip_gradients_3(gradients, max_norm, loss_scale=1.0):
    unscaled = [gradient / loss_scale for gradient in gradients]
    norm = np.linalg.norm(np.concatenate([g.numpy().ravel() for g in unscaled]))
    return [gradient * float(max_norm / max(norm, max_norm)) for gradient in unscaled]
