"""Lesson 11: what it takes to train a Transformer.

`python -m attention.train` trains with the functions of this module.
"""

import random

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.transformer import Transformer


def noam_learning_rate(step, d_model, warmup_steps, factor=1.0):
    """Return the learning rate of one step: it rises in a line, then falls with 1 / √step.

    step          number of the step, from 1
    d_model       length of the model's vectors
    warmup_steps  the step at which the rate is highest, from 1
    factor        multiplies every rate
    returns       a float

    Raises ValueError for a step or a warm-up below 1. (PyTorch's LambdaLR counts from 0.)
    Also for a d_model below 1 and a factor below 0.
    Source: Vaswani et al. (2017), equation 3.

    >>> [noam_learning_rate(step, d_model=100, warmup_steps=4) for step in (1, 4, 16)]
    [0.0125, 0.05, 0.025]
    """
    demand.counts(step=step, d_model=d_model, warmup_steps=warmup_steps)
    demand.within(0, factor=factor)
    # exercise: about 2 lines
    rise, fall = step * warmup_steps**-1.5, step**-0.5
    return factor * d_model**-0.5 * min(rise, fall)


def label_smoothed_loss(logits, target, smoothing=0.1):
    """Return the mean cross-entropy per real token, against targets that are a little uncertain.

    logits     (B, T, vocab_size)
    target     (B, T)  ids, filled up with PAD; where PAD stands there is no loss
    smoothing  share of the probability that is spread evenly over the whole vocabulary
    returns    ()  0, with a gradient of 0, if no token is real

    Refuses a smoothing that is not from 0 to 1.
    Source: Szegedy et al. (2016), section 7.

    >>> logits, target = torch.zeros(1, 2, 4), torch.tensor([[3, 0]])
    >>> label_smoothed_loss(logits, target)  # log 4
    tensor(1.3863)
    """
    demand.within(0, 1, smoothing=smoothing)
    # exercise: about 5 lines
    log_p = torch.log_softmax(logits, dim=-1)  # (B, T, vocab_size)
    loss = -log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)  # (B, T)
    loss = (1 - smoothing) * loss - smoothing * log_p.mean(dim=-1)  # (B, T)
    real = target != PAD
    return loss[real].sum() / real.sum().clamp(min=1)  # 0 / 1 without a real token: 0 / 0 is NaN


def batch_by_tokens(lengths, max_tokens):
    """Group sentences of similar length into batches that are small enough when padded.

    lengths     list of int: tokens of each sentence
    max_tokens  largest size of a batch: number of sentences × length of the longest
    returns     list of lists of indices, every sentence once: sentences in the order of their
                length (of equal ones, the earlier first), each batch filled as far as it goes;
                [] if there are none

    Raises ValueError for a sentence that is longer than max_tokens.
    Also for a max_tokens below 1.

    >>> batch_by_tokens([3, 9, 2, 4], max_tokens=9)
    [[2, 0], [3], [1]]
    """
    demand.counts(max_tokens=max_tokens)
    # exercise: about 8 lines
    batches = [[]]
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        if lengths[index] > max_tokens:
            raise ValueError(
                f"sentence {index} has {lengths[index]} tokens, max_tokens={max_tokens}"
            )
        if (len(batches[-1]) + 1) * lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return [batch for batch in batches if batch]


def epoch_order(n_batches, seed, epoch):
    """Say in which order an epoch reads its batches: at random, but the same whenever asked.

    n_batches  how many batches there are
    seed       the seed of the training, any int from 0
    epoch      number of the epoch, from 0
    returns    list of int, a permutation of 0 … n_batches - 1

    It depends on nothing but its arguments, so training can resume in the middle of an epoch.
    Python's global generator is left as it is.
    Refuses numbers below 0.

    >>> epoch_order(5, seed=0, epoch=2) == epoch_order(5, seed=0, epoch=2)
    True
    """
    demand.counts(0, n_batches=n_batches, seed=seed, epoch=epoch)
    order = list(range(n_batches))
    random.Random(f"{seed} {epoch}").shuffle(order)
    return order


def clip_gradients(gradients, max_norm, loss_scale=1.0):
    """Undo the loss's scale, then shorten all gradients together if they are too long.

    gradients   list of tensors of any shapes: those of a loss that was multiplied by loss_scale
    max_norm    the largest norm that all of them, seen as one long vector, may have
    loss_scale  what the loss was multiplied by, so that small gradients do not become 0 in float16
    returns     list of new tensors, shaped like the gradients; float32 for those of float16, where
                small ones, divided by the scale, would become 0 after all

    Refuses an empty list, and a norm or a scale that is not above 0.
    Source: Pascanu, Mikolov and Bengio (2013), algorithm 1.

    >>> clip_gradients([torch.tensor([3.0]), torch.tensor([4.0])], max_norm=1.0)
    [tensor([0.6000]), tensor([0.8000])]
    """
    demand.positive(max_norm=max_norm, loss_scale=loss_scale)
    demand.counts(gradients=len(gradients))
    # float16 would lose again what the scale has saved.
    gradients = [one.to(torch.promote_types(one.dtype, torch.float32)) for one in gradients]
    # exercise: about 4 lines
    gradients = [gradient / loss_scale for gradient in gradients]
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    factor = max_norm / norm.clamp(min=max_norm)  # at most 1
    return [gradient * factor for gradient in gradients]


def adamw_step(
    parameter, gradient, m, v, step, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0
):
    """Take one step of Adam with decoupled weight decay.

    parameter, gradient  tensors of the same shape
    m, v                 running means of the gradient and of its square, of that shape; zeros
                         before the first step
    step                 number of the step, from 1
    learning_rate, betas, eps, weight_decay  as in torch.optim.AdamW
    returns              (parameter, m, v), new tensors: all of it must be stored to resume

    Raises ValueError for a step below 1, where the corrections would divide by 0.
    Also for a rate, eps or weight decay below 0, and for betas outside [0, 1).
    Source: Kingma and Ba (2015), algorithm 1; Loshchilov and Hutter (2019), algorithm 2.

    >>> zero = torch.zeros(1)
    >>> adamw_step(torch.tensor([1.0]), torch.tensor([5.0]), zero, zero, 1, learning_rate=0.1)[0]
    tensor([0.9000])
    """
    demand.counts(step=step)
    demand.within(0, learning_rate=learning_rate, eps=eps, weight_decay=weight_decay)
    demand.share(beta_1=betas[0], beta_2=betas[1])
    # exercise: about 6 lines
    parameter = parameter * (1 - learning_rate * weight_decay)
    m = betas[0] * m + (1 - betas[0]) * gradient
    v = betas[1] * v + (1 - betas[1]) * gradient.square()
    m_hat = m / (1 - betas[0] ** step)
    v_hat = v / (1 - betas[1] ** step)
    return parameter - learning_rate * m_hat / (v_hat.sqrt() + eps), m, v


class ModelAndLoss(nn.Module):
    """A Transformer with the loss of its answers: what training and evaluation share.

    model      a Transformer, or a dict of the arguments to build one
    smoothing  share of the probability that the targets spread over the vocabulary
    dtype      None, or the type of the matrix products, such as torch.bfloat16

    Raises ValueError for a smoothing that is not from 0 to 1.
    """

    def __init__(self, model, smoothing, dtype):
        super().__init__()
        demand.within(0, 1, smoothing=smoothing)
        self.model = model if isinstance(model, nn.Module) else Transformer(**model)
        self.smoothing, self.dtype = smoothing, dtype

    def loss(self, source, target):
        """Return the mean loss per real token of one batch, (): 0 if there is none.

        source, target  (B, T_k), (B, T_q)  ids, filled up with PAD
        """
        with torch.autocast(source.device.type, self.dtype, enabled=self.dtype is not None):
            logits = self.model(source, target)  # (B, T_q, vocab_size)
        if self.dtype is not None:
            logits = logits.float()  # the loss adds up many small numbers
        logits, target = logits.flatten(0, 1), target.flatten()
        options = {"ignore_index": PAD, "label_smoothing": self.smoothing, "reduction": "sum"}
        return F.cross_entropy(logits, target, **options) / (target != PAD).sum().clamp(min=1)


class TrainStep(ModelAndLoss):
    """One update of a Transformer from several small batches, as if they were one big batch.

    model, smoothing, dtype  as in ModelAndLoss
    optimizer  of the model's parameters, or a dict of the arguments to build a torch.optim.SGD;
               None: plain gradient descent, learning rate 0.1
    max_norm   the gradients, as one long vector, are shortened to this norm

    bfloat16 has the range of float32 and needs no loss scale. float16 would.
    Refuses a max_norm that is not above 0; an infinite one shortens nothing.
    """

    def __init__(self, model, optimizer=None, smoothing=0.1, max_norm=1.0, dtype=None):
        super().__init__(model, smoothing, dtype)
        if max_norm != torch.inf:  # which shortens nothing
            demand.positive(max_norm=max_norm)
        if not isinstance(optimizer, torch.optim.Optimizer):
            optimizer = torch.optim.SGD(self.model.parameters(), **(optimizer or {"lr": 0.1}))
        self.optimizer = optimizer
        self.max_norm = max_norm

    def forward(self, batches):
        """Learn from the batches, in one step and in training mode.

        batches  list of (source (B, T_k), target (B, T_q)), ids filled up with PAD
        returns  (): the loss per real token over all batches, before the step, detached; 0, with
                 gradients of 0, if no token is real

        Only one batch is in memory at a time: backward comes before the next one begins.
        """
        # exercise: about 10 lines
        self.model.train()
        self.optimizer.zero_grad()
        counts = [(target != PAD).sum() for _, target in batches]
        mean = 0.0
        for (source, target), count in zip(batches, counts, strict=True):
            part = self.loss(source, target) * count / sum(counts).clamp(min=1)
            part.backward()
            mean = mean + part.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        return mean


class Evaluation(ModelAndLoss):
    """The loss of a Transformer on text that it does not learn from.

    model, dtype  as in ModelAndLoss
    smoothing     of the labels; 0 gives the plain cross-entropy, to compare with others
    """

    def __init__(self, model, smoothing=0.0, dtype=None):
        super().__init__(model, smoothing, dtype)

    def forward(self, batches):
        """Return `mean_loss`; then the model is in the mode that it was in, training or not."""
        was_training = self.model.training
        mean = self.mean_loss(batches)
        self.model.train(was_training)
        return mean

    def mean_loss(self, batches):
        """Return the loss per real token over all batches, (): without dropout or gradients.

        If no token is real, it is 0.

        batches  list of (source (B, T_k), target (B, T_q)), ids filled up with PAD
        """
        # exercise: about 7 lines
        self.model.eval()
        total, tokens = 0.0, 0
        with torch.no_grad():
            for source, target in batches:
                count = (target != PAD).sum()
                total, tokens = total + self.loss(source, target) * count, tokens + count
        return total / tokens if tokens else total


def average_checkpoints(checkpoints):
    """Average the weights of several checkpoints of one model.

    checkpoints  list of dicts {name: tensor}, all with the same names and shapes
    returns      a new dict {name: tensor}: the mean, in the type of the weights; tensors that do
                 not hold floating-point numbers, such as counters, are those of the last

    The sum is taken in float64. Source: Vaswani et al. (2017), section 6.1.
    Refuses an empty list.

    >>> average_checkpoints([{"w": torch.tensor([1.0])}, {"w": torch.tensor([4.0])}])
    {'w': tensor([2.5000])}
    """
    demand.counts(checkpoints=len(checkpoints))
    averaged = {}
    for name, last in checkpoints[-1].items():
        if last.is_floating_point():
            stacked = torch.stack([checkpoint[name].double() for checkpoint in checkpoints])
            averaged[name] = stacked.mean(dim=0).to(last.dtype)
        else:
            averaged[name] = last.clone()
    return averaged
