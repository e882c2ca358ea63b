"""Wrong and right answers to the exercises of lesson 02."""

import torch
from torch.nn import functional

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import decoder_step, masked_cross_entropy
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _gates(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3, 1)
    h_r, h_z, h_n = (h @ W_h.T + b_h).chunk(3, 1)
    return torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z), x_n, h_n


@alternative("gru_step")
def with_gru_cell(x, h, W_x, W_h, b_x, b_h):
    return torch.gru_cell(x, h, W_x, W_h, b_x, b_h)


@alternative("gru_step")
def gate_by_gate(x, h, W_x, W_h, b_x, b_h):
    d = h.shape[1]
    reads = [torch.einsum("bi,oi->bo", x, W_x[g * d : g * d + d]) for g in range(3)]
    keeps = [torch.einsum("bi,oi->bo", h, W_h[g * d : g * d + d]) for g in range(3)]
    r, z = (
        1 / (1 + torch.exp(-(reads[g] + keeps[g] + (b_x + b_h)[g * d : g * d + d])))
        for g in range(2)
    )
    n = torch.tanh(reads[2] + b_x[2 * d :] + r * (keeps[2] + b_h[2 * d :]))
    return n + z * (h - n)


@careless("gru_step")
def writes_into_zeros(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    new = torch.zeros(h.shape)
    for row in range(len(h)):
        n = torch.tanh(x_n[row] + r[row] * h_n[row])
        new[row] = (1 - z[row]) * n + z[row] * h[row]
    return new


@careless("gru_step")
def overwrites_the_state(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    h *= z
    h += (1 - z) * torch.tanh(x_n + r * h_n)
    return h


@careless("gru_step")
def divides_infinity_by_infinity(x, h, W_x, W_h, b_x, b_h):
    seen, kept = (x @ W_x.T + b_x).chunk(3, 1), (h @ W_h.T + b_h).chunk(3, 1)
    r, z = (torch.exp(seen[i] + kept[i]) / (1 + torch.exp(seen[i] + kept[i])) for i in range(2))
    return (1 - z) * torch.tanh(seen[2] + r * kept[2]) + z * h


@alternative("reverse_source")
def with_an_index_table(source, lengths):
    steps = torch.arange(source.shape[1], device=source.device)
    mirrored = lengths[:, None] - 1 - steps
    rows = torch.arange(len(source))[:, None]
    return source[rows, torch.where(mirrored >= 0, mirrored, steps)]


@alternative("reverse_source")
def row_by_row_and_stacked(source, lengths):
    rows = zip(source, lengths.tolist(), strict=True)
    return torch.stack([torch.cat([row[:length].flip(0), row[length:]]) for row, length in rows])


@careless("reverse_source")
def fills_up_with_zeros(source, lengths):
    turned = torch.zeros_like(source)
    for row, length in enumerate(lengths.tolist()):
        turned[row, :length] = source[row, :length].flip(0)
    return turned


@careless("reverse_source")
def reverses_lists(source, lengths):
    rows = zip(source.tolist(), lengths.tolist(), strict=True)
    return torch.tensor([row[:length][::-1] + row[length:] for row, length in rows])


def _losses(logits, target):
    return functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")


@mistake(
    "masked_cross_entropy",
    hint="Each sequence is averaged first, then the batch: tokens of short sequences count more.",
)
def averages_each_sequence_first(logits, target):
    means = []
    for scores, ids in zip(logits.log_softmax(-1), target, strict=True):
        of_true = [-line[token] for line, token in zip(scores, ids, strict=True) if token != 0]
        means.append(sum(of_true) / len(of_true))  # of one sequence, without padding
    return sum(means) / len(means)  # and of the batch


@alternative("masked_cross_entropy")
def with_ignore_index(logits, target):
    return functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


@alternative("masked_cross_entropy")
def sum_over_count(logits, target):
    mask = (target != PAD).to(logits.dtype)
    log_p = logits - logits.logsumexp(2, keepdim=True)
    picked = log_p.masked_fill(functional.one_hot(target, logits.shape[2]) == 0, 0.0).sum(2)
    return -picked.masked_fill(mask == 0, 0.0).sum() / mask.sum()


@careless("masked_cross_entropy")
def adds_to_a_zero(logits, target):
    log_p, total = logits.log_softmax(2), torch.tensor(0.0)
    for scores, ids in zip(log_p.flatten(0, 1), target.flatten().tolist(), strict=True):
        if ids != PAD:
            total -= scores[ids]
    return total / (target != PAD).sum()


@careless("masked_cross_entropy")
def collects_in_float32(logits, target):
    losses = torch.zeros(target.shape)
    for row, ids in enumerate(target.tolist()):
        for step, token in enumerate(ids):
            losses[row, step] = -logits[row, step].log_softmax(0)[token]
    return losses[target != PAD].mean()


@alternative("train")
def clears_behind_the_step(model, batches, optimizer):
    losses = []
    for batch in batches:
        value = masked_cross_entropy(model(batch.source, batch.lengths, batch.target), batch.target)
        losses.append(float(value))
        value.backward()
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad = None
    return losses


@alternative("train")
def with_autograd_and_pytorch_s_loss(model, batches, optimizer):
    def learn(batch):
        scores = model(batch.source, batch.lengths, batch.target).flatten(0, 1)
        loss = functional.cross_entropy(scores, batch.target.flatten(), ignore_index=PAD)
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        for one, slope in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            one.grad = slope
        optimizer.step()
        return loss.item()

    return [learn(batch) for batch in batches]


@careless("train")
def wants_a_batch(model, batches, optimizer):
    losses, batches = [], iter(batches)
    batch = next(batches)
    while batch is not None:
        optimizer.zero_grad()
        loss = masked_cross_entropy(model(batch.source, batch.lengths, batch.target), batch.target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        batch = next(batches, None)
    return losses


@careless("train")
def stacks_the_losses(model, batches, optimizer):
    losses = []
    for batch in batches:
        loss = masked_cross_entropy(model(batch.source, batch.lengths, batch.target), batch.target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def _decode(
    state, context, weights, max_length, first=BOS, feed=True, carry=True, stop=torch.all, fill=True
):
    """Greedy decoding with its parts left out one at a time."""
    tokens = torch.full((len(state),), first)
    ended, written = torch.zeros(len(state), dtype=torch.bool), []
    while len(written) < max_length and not (stop and stop(ended)):
        logits, new = decoder_step(tokens, state, context, weights)
        state = new if carry else state
        chosen = logits.argmax(1)
        chosen = chosen.masked_fill(ended, PAD) if fill else chosen
        tokens = chosen if feed else tokens
        written.append(chosen)
        ended = ended | (chosen == EOS)
    return torch.stack(written, 1)


@alternative("greedy_decode")
def for_loop_with_break(state, context, weights, max_length):
    read = torch.full((len(state),), BOS, device=state.device)
    result = torch.full((len(state), max_length), PAD, device=state.device)
    running = torch.ones_like(read, dtype=torch.bool)
    for step in range(max_length):
        scores, state = decoder_step(read, state, context, weights)
        read = torch.where(running, scores.max(1).indices, PAD)
        result[:, step] = read
        running &= read != EOS
        if not running.any():
            return result[:, : step + 1]
    return result


@alternative("greedy_decode")
def one_sequence_at_a_time(state, context, weights, max_length):
    rows = []
    for h, c in zip(state.split(1), context.split(1), strict=True):
        token, row = torch.tensor([BOS], device=state.device), []
        while len(row) < max_length and token.item() != EOS:
            logits, h = decoder_step(token, h, c, weights)
            token = logits.argmax(1)
            row.append(token.item())
        rows.append(row)
    longest = max(map(len, rows))
    padded = [row + [PAD] * (longest - len(row)) for row in rows]
    return torch.tensor(padded, device=state.device)


@careless("greedy_decode")
def begins_and_ends_on_the_cpu(state, context, weights, max_length):
    return _decode(state, context, weights, max_length)


@careless("greedy_decode")
def writes_into_a_table(state, context, weights, max_length):
    read = torch.full((len(state),), BOS, device=state.device)
    ended, table = read == EOS, torch.full((len(state), max_length), PAD)
    for step in range(max_length):
        scores, state = decoder_step(read, state, context, weights)
        read = scores.argmax(1).masked_fill(ended, PAD)
        table[:, step] = read
        ended = ended | (read == EOS)
        if ended.all():
            break
    return table[:, : step + 1]


def _counts(target):
    """How many tokens each row has."""
    return (target != PAD).sum(1)


def _equally_hard(logits, target):
    """Whether the true tokens of every row have the same mean loss."""
    losses, true = _losses(logits, target), target != PAD
    means = (losses * true).sum(1) / _counts(target)
    return bool((means - means[0]).abs().max() < 1e-9)


@mistake(
    "break_masked_cross_entropy",
    hint="There is one sequence, so its mean is the mean of the batch.",
    where=lambda logits, target: len(target) == 1,
)
def one_sequence():
    return torch.tensor([[[0.0, 1.0, 2.0, 3.0]] * 3]), torch.tensor([[3, 1, PAD]])


@mistake(
    "break_masked_cross_entropy",
    hint="All sequences have as many tokens. The mean of equally large groups' means is the mean.",
    where=lambda logits, target: len(set(_counts(target).tolist())) == 1,
)
def as_many_tokens():
    logits = torch.arange(24.0).view(2, 3, 4) * torch.tensor([[[1.0]], [[-1.0]]])
    return logits, torch.tensor([[3, 2, PAD], [1, 3, PAD]])


@mistake(
    "break_masked_cross_entropy",
    hint="The sequences differ in length, but on average their tokens are equally hard. Make those "
    "of one sequence easier.",
    where=_equally_hard,
)
def all_equally_hard():
    return torch.zeros(2, 3, 5), torch.tensor([[3, PAD, PAD], [4, 1, 3]])


@alternative("break_masked_cross_entropy")
def an_easy_short_one():
    logits = torch.zeros(2, 4, 5, dtype=torch.float64)
    logits[1, :, 2] = 3.0
    return logits, torch.tensor([[4, 3, 1, 2], [2, PAD, PAD, PAD]])


@alternative("break_masked_cross_entropy")
def a_hard_long_one():
    logits = torch.linspace(-2, 2, 2 * 3 * 4).view(2, 3, 4)
    return logits, torch.tensor([[1, 1, 3], [3, 2, PAD]])


EQUIVALENT = {
    "train: with `model` once where `optimizer` belongs: model.zero_grad()": "both have the same "
    "parameters",
    "reverse_source: with one call of `tolist` left out: for row, length in "
    "enumerate(lengths): turned[row, :length] = source[row, "
    ":length].flip(0)": "it counts as an index, too",
    "masked_cross_entropy: with another axis in one place: log_p = "
    "torch.log_softmax(logits, dim=-1)": "the last axis is the same one",
    "masked_cross_entropy: with one call of `squeeze` left out: losses = "
    "-log_p.gather(2, target.unsqueeze(2))": "the mask picks the same numbers",
    "masked_cross_entropy: with one whole number off by one: losses = "
    "-log_p.gather(2, target.unsqueeze(2)).squeeze(1)": "the mask picks the same numbers",
    "greedy_decode: whose result is cut off from the gradient: return "
    "torch.stack(written, dim=1).detach()": "whole numbers have no gradient",
}
