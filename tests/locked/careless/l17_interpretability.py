"""Careless right answers to lesson 17."""

import math

import numpy as np
import torch
from torch import nn

from attention.interpretability import Explained, null_space
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.provided.models.attention_weights import watch_attention
from attention.sequence_to_sequence import shift_right
from attention.transformer import Encoder, masks_from_tokens
from tests.locked.careless import careless


@careless("LeaveOneOut", "device", "dtype", how="differences into zeros of float32")
class LeaveOneOut_1(Explained):
    @torch.no_grad()
    def forward(self, source, target):
        real, _ = masks_from_tokens(source, target)
        whole = self.log_p(source, target)
        result = torch.zeros(source.shape[0], target.shape[1], source.shape[1])
        for j in range(source.shape[1]):
            mask = real.clone()
            mask[:, :, j] = False
            result[:, :, j] = whole - self.log_p(source, target, mask)
        return result


@careless("LeaveOneOut", "device", how="compares with positions without a device")
class LeaveOneOut_2(Explained):
    @torch.no_grad()
    def forward(self, source, target):
        real = (source != PAD)[:, None, :]
        whole, losses = self.log_p(source, target, real), []
        for j in range(source.shape[1]):
            others = torch.arange(source.shape[1]) != j
            losses.append(whole - self.log_p(source, target, real & others))
        return torch.stack(losses, dim=-1)


@careless("perturb_attention", "plain_numbers", how="the step as a Python number")
def perturb_attention_1(weights, values, direction):
    basis = null_space(values)
    change = basis @ (basis.T @ direction)
    steps = [(w / -c).item() for w, c in zip(weights, change, strict=True) if c < 0]
    if not steps:
        return weights
    return (weights + min(steps) * change).clamp(min=0)


@careless("perturb_attention", "device", how="a scalar tensor beside where")
def perturb_attention_2(weights, values, direction):
    basis = null_space(values)
    change = basis @ (direction @ basis)
    step = torch.where(change < 0, weights / -change, torch.tensor(math.inf)).min()
    if torch.isinf(step):
        return weights.clone()
    return torch.clamp(weights + step * change, min=0.0)


@careless("perturb_attention", "extra_axis", "plain_numbers", how="pieces added up from 0.0")
def perturb_attention_3(weights, values, direction):
    change = 0.0
    for column in null_space(values).T:
        change = change + (column * direction).sum() * column
    if isinstance(change, float) or not (change < 0).any():
        return weights
    falling = change < 0
    step = (weights[falling][None, :] / -change[falling][None, :]).min()
    return (weights + step * change).clamp(min=0)


@careless("HiddenTokenAttribution", "device", "dtype", how="sizes into zeros of float32")
class HiddenTokenAttribution_1(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder if isinstance(encoder, nn.Module) else Encoder(**encoder)

    def forward(self, x):
        B, T, d_model = x.shape
        x = x.detach().clone().requires_grad_()
        hidden = self.encoder(x)
        sizes = torch.zeros(B, T, T)
        for i in range(T):
            for f in range(d_model):
                gradient = torch.autograd.grad(hidden[:, i, f].sum(), x, retain_graph=True)[0]
                sizes[:, i] += (gradient**2).sum(dim=-1)
        sizes = sizes.sqrt()
        return sizes / sizes.sum(dim=-1, keepdim=True)


@careless(
    "HiddenTokenAttribution", "plain_numbers", "module_state", how="from 0.0; keeps the sizes"
)
class HiddenTokenAttribution_2(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder if isinstance(encoder, nn.Module) else Encoder(**encoder)

    def forward(self, x):
        x = x.detach().requires_grad_()
        rows = []
        for vector in self.encoder(x).sum(dim=0):
            squares = 0.0
            for number in vector:
                (gradient,) = torch.autograd.grad(number, x, retain_graph=True)
                squares = squares + gradient.square().sum(dim=-1)
            rows.append(squares**0.5)
        self.sizes = torch.stack(rows, dim=1)
        return self.sizes / self.sizes.sum(dim=2, keepdim=True)


@careless("HeadImportance", "numpy", how="means of absolute numbers in NumPy")
class HeadImportance_1(Explained):
    def forward(self, source, target):
        gates = self.gates(len(source))
        with watch_attention(self.model, gates):
            loss = -self.log_p(source, target)[target != PAD].sum()
            gradients = torch.autograd.grad(loss, list(gates.values()))
        means = [np.abs(gradient.numpy()).mean(axis=0) for gradient in gradients]
        return {name: torch.from_numpy(mean) for name, mean in zip(gates, means, strict=True)}


@careless("HeadImportance", "plain_numbers", how="sentence by sentence, from 0.0")
class HeadImportance_2(Explained):
    def forward(self, source, target):
        totals = {}
        for b in range(len(source)):
            one, wanted = source[b : b + 1], target[b : b + 1]
            gates = self.gates(1)
            with watch_attention(self.model, gates):
                loss = -self.log_p(one, wanted)[wanted != PAD].sum()
                loss.backward(inputs=list(gates.values()))
            for name, gate in gates.items():
                totals[name] = totals.get(name, 0.0) + gate.grad[0].abs()
        return {name: total / len(source) for name, total in totals.items()}


@careless("ActivationPatching", "device", how="causal mask without a device")
class ActivationPatching_1(Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read, T_q = shift_right(target), target.shape[1]
        mask, other_mask = (source != PAD).unsqueeze(1), (other != PAD).unsqueeze(1)
        target_mask = torch.ones(T_q, T_q, dtype=torch.bool).tril() & (read != PAD).unsqueeze(1)
        memory = self.model.encode(source, mask)
        memory = torch.where(places[..., None], self.model.encode(other, other_mask), memory)
        return self.model.decode(read, memory, target_mask, mask).softmax(dim=-1)


@careless("ActivationPatching", "dtype", "device", how="row by row into zeros of float32")
class ActivationPatching_2(Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read = shift_right(target)
        mask, target_mask = masks_from_tokens(source, read)
        mine = self.model.encode(source, mask)
        theirs = self.model.encode(other, masks_from_tokens(other, read)[0])
        memory = torch.zeros(mine.shape)
        for b in range(source.shape[0]):
            for t in range(source.shape[1]):
                memory[b, t] = theirs[b, t] if places[b, t] else mine[b, t]
        memory = memory.to(mine.dtype)
        return self.model.decode(read, memory, target_mask, mask).softmax(dim=-1)


@careless("ActivationPatching", "in_place", how="gives the places that were given one more axis")
class ActivationPatching_3(Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        theirs = self.model.encode(other, (other != PAD)[:, None])
        read = shift_right(target)
        mask, target_mask = masks_from_tokens(source, read)
        memory = self.model.encode(source, mask)
        memory = torch.where(places.unsqueeze_(-1), theirs, memory)
        return self.model.decode(read, memory, target_mask, mask).softmax(dim=-1)


@careless("ActivationPatching", "module_state", how="keeps the memories in attributes")
class ActivationPatching_4(Explained):
    def remember(self, name, ids, read):
        self.mask, self.target_mask = masks_from_tokens(ids, read)
        setattr(self, name, self.model.encode(ids, self.mask))

    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        self.read = shift_right(target)
        self.remember("theirs", other, self.read)
        self.remember("mine", source, self.read)
        self.mine[places] = self.theirs[places]
        return self.model.decode(self.read, self.mine, self.target_mask, self.mask).softmax(-1)
