"""Wrong and right answers to the exercises of lesson 11."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.training import ModelAndLoss
from autograder.checking.toolbox.registry import alternative, careless

PAD = 0


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


@alternative("label_smoothed_loss")
def builds_the_wanted_distribution(logits, target, smoothing=0.1):
    vocab_size = logits.shape[-1]
    wanted = (1 - smoothing) * F.one_hot(target, vocab_size).to(logits) + smoothing / vocab_size
    loss = -(wanted * F.log_softmax(logits, -1)).sum(-1)
    real = loss[target != PAD]
    return real.mean() if len(real) else real.sum()


@alternative("label_smoothed_loss")
def loops_over_tokens(logits, target, smoothing=0.1):
    losses = []
    for scores, ids in zip(logits, target.tolist(), strict=True):
        for row, wanted in zip(scores, ids, strict=True):
            if wanted != PAD:
                log_p = row - torch.logsumexp(row, 0)
                losses.append(-(1 - smoothing) * log_p[wanted] - smoothing * log_p.mean())
    return torch.stack(losses).mean() if losses else 0 * logits.sum()


@alternative("label_smoothed_loss")
def fills_with_zeros(logits, target, smoothing=0.1):
    log_p, chosen, real = _parts(logits, target)
    loss = torch.where(real, (smoothing - 1) * chosen - smoothing * log_p.mean(-1), 0.0)
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
            losses[b, t] = -(1 - smoothing) * log_p[wanted] - smoothing * log_p.mean()
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


def _norm(gradients):
    return math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))


def _shorter(gradients, max_norm, norm):
    factor = min(1.0, max_norm / norm) if norm else 1.0
    return [gradient * factor for gradient in gradients]


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
    """A right TrainStep in small methods, some of which others override."""

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
        return [count / max(sum(counts), 1) for count in counts]

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
    """A right Evaluation in small methods, some of which others override."""

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
        return total / max(tokens, 1)


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
}
