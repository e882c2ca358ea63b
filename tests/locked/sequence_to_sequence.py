"""Answers to lesson 02 that were written without a look at its checks."""

import torch
from torch.nn import functional as F

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import decoder_step, masked_cross_entropy, shift_right
from tests.locked import right, wrong

# --- gru_step --------------------------------------------------------------------------------


@wrong("gru_step", cause="the weights are not transposed", kind="crash")
def gru_step_5(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x + b_x).chunk(3, dim=1)
    h_r, h_z, h_n = (h @ W_h + b_h).chunk(3, dim=1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


@wrong("gru_step", cause="writes the new state into the h it was given", kind="state")
def gru_step_8(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3, dim=1)
    h_r, h_z, h_n = (h @ W_h.T + b_h).chunk(3, dim=1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    h *= z
    h += (1 - z) * n
    return h


@right("gru_step", how="one gate after the other from slices, with a helper")
def gru_step_9(x, h, W_x, W_h, b_x, b_h):
    d = h.shape[1]

    def parts(block):
        rows = slice(block * d, (block + 1) * d)
        return F.linear(x, W_x[rows], b_x[rows]), F.linear(h, W_h[rows], b_h[rows])

    reset = sum(parts(0)).sigmoid()
    update = sum(parts(1)).sigmoid()
    from_x, from_h = parts(2)
    candidate = torch.tanh(from_x + reset * from_h)
    return candidate + update * (h - candidate)


@right("gru_step", how="stacks the blocks as (3, d, …) and uses einsum")
def gru_step_10(x, h, W_x, W_h, b_x, b_h):
    d = h.shape[1]
    from_x = torch.einsum("gij,bj->gbi", W_x.view(3, d, -1), x) + b_x.view(3, 1, d)
    from_h = torch.einsum("gij,bj->gbi", W_h.view(3, d, d), h) + b_h.view(3, 1, d)
    r, z = torch.sigmoid(from_x[:2] + from_h[:2])
    n = (from_x[2] + r * from_h[2]).tanh()
    return torch.lerp(n, h, z)


# --- reverse_source --------------------------------------------------------------------------


@wrong(
    "reverse_source",
    cause="puts zeros behind the end, whatever stood there",
    kind="value",
)
def reverse_source_5(source, lengths):
    turned = torch.zeros_like(source)
    for row, length in enumerate(lengths.tolist()):
        turned[row, :length] = source[row, :length].flip(0)
    return turned


@wrong(
    "reverse_source",
    cause="an index with two axes: works for ids, not for vectors (B, T, d)",
    kind="crash",
)
def reverse_source_6(source, lengths):
    steps = torch.arange(source.shape[1], device=source.device)
    index = lengths[:, None] - 1 - steps
    index = torch.where(index >= 0, index, steps)
    return source.gather(1, index)


@wrong(
    "reverse_source",
    cause="behind the end stands the first token again, because the index is cut off at 0",
    kind="value",
)
def reverse_source_7(source, lengths):
    rows = torch.arange(source.shape[0], device=source.device)[:, None]
    steps = torch.arange(source.shape[1], device=source.device)
    return source[rows, (lengths[:, None] - 1 - steps).clamp(min=0)]


@right("reverse_source", how="one index per place, made with where")
def reverse_source_8(source, lengths):
    rows = torch.arange(source.shape[0], device=source.device).unsqueeze(1)
    steps = torch.arange(source.shape[1], device=source.device).unsqueeze(0)
    ends = lengths.unsqueeze(1)
    return source[rows, torch.where(steps < ends, ends - 1 - steps, steps)]


@right("reverse_source", how="head and tail of each row, cut apart and joined")
def reverse_source_9(source, lengths):
    turned = [
        torch.cat([torch.flip(row[:n], (0,)), row[n:]])
        for row, n in zip(source, lengths.tolist(), strict=True)
    ]
    return torch.stack(turned)


# --- greedy_decode ---------------------------------------------------------------------------


@right("greedy_decode", how="fills a matrix of PAD and cuts it at the last step")
def greedy_decode_10(state, context, weights, max_length):
    rows = state.shape[0]
    tokens = torch.full((rows,), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    result = torch.full((rows, max_length), PAD, device=state.device)
    for step in range(max_length):
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = torch.where(ended, PAD, logits.max(dim=-1).indices)
        result[:, step] = tokens
        ended = ended.logical_or(tokens.eq(EOS))
        if bool(ended.all()):
            return result[:, : step + 1]
    return result


@right("greedy_decode", how="multiplies the tokens by 'not ended', and joins columns with cat")
def greedy_decode_11(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while True:
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = torch.argmax(logits, -1) * ~ended + PAD * ended
        written += [tokens[:, None]]
        ended |= tokens == EOS
        if len(written) == max_length or all(ended.tolist()):
            break
    return torch.cat(written, dim=1)


# --- train ---------------------------------------------------------------------------------------


@wrong("train", cause="never empties the gradients, so each step follows all batches before it")
def train_1(model, batches, optimizer):
    losses = []
    for batch in batches:
        logits = model(batch.source, batch.lengths, batch.target)
        loss = masked_cross_entropy(logits, batch.target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong("train", cause="empties the gradients after backward, before the step")
def train_2(model, batches, optimizer):
    losses = []
    for batch in batches:
        logits = model(batch.source, batch.lengths, batch.target)
        loss = masked_cross_entropy(logits, batch.target)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong("train", cause="returns the losses as tensors, not as floats", kind="type")
def train_3(model, batches, optimizer):
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        logits = model(batch.source, batch.lengths, batch.target)
        loss = masked_cross_entropy(logits, batch.target)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


@wrong("train", cause="shifts the target before the model shifts it once more")
def train_4(model, batches, optimizer):
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        logits = model(batch.source, batch.lengths, shift_right(batch.target))
        loss = masked_cross_entropy(logits, batch.target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong("train", cause="PyTorch's cross-entropy, in which padding counts")
def train_5(model, batches, optimizer):
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        logits = model(batch.source, batch.lengths, batch.target)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.target.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@right("train", how="a closure for the optimiser's step, which gives its loss back")
def train_6(model, batches, optimizer):
    def take(batch):
        def closure():
            optimizer.zero_grad()
            logits = model(batch.source, batch.lengths, batch.target)
            loss = masked_cross_entropy(logits, batch.target)
            loss.backward()
            return loss

        return float(optimizer.step(closure))

    return [take(batch) for batch in batches]


@right(
    "train", how="autograd.grad instead of backward, and PyTorch's cross-entropy without padding"
)
def train_7(model, batches, optimizer):
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    losses = []
    for batch in batches:
        logits = model(batch.source, batch.lengths, batch.target)
        loss = F.cross_entropy(logits.transpose(1, 2), batch.target, ignore_index=PAD)
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        for parameter, gradient in zip(parameters, found, strict=True):
            parameter.grad = gradient
        losses.append(loss.detach().item())
        optimizer.step()
    return losses


# --- masked_cross_entropy --------------------------------------------------------------------


@wrong(
    "masked_cross_entropy",
    cause="the probability is kept above 1e-9 before its logarithm, so large losses are cut off",
    kind="extreme",
)
def masked_cross_entropy_12(logits, target):
    p = torch.softmax(logits, dim=2).gather(2, target.unsqueeze(2)).squeeze(2)
    losses = -torch.log(p.clamp(min=1e-9))
    return losses[target != PAD].mean()


@wrong("masked_cross_entropy", cause="stops at EOS before it counts it")
def masked_cross_entropy_13(logits, target):
    losses = []
    for lines, ids in zip(logits.log_softmax(2), target, strict=True):
        for line, token in zip(lines, ids, strict=True):
            if token in (EOS, PAD):
                break
            losses.append(-line[token])
    return torch.stack(losses).mean()


@wrong("masked_cross_entropy", cause="the softmax runs along the steps, not along the vocabulary")
def masked_cross_entropy_14(logits, target):
    log_p = torch.log_softmax(logits, dim=1)
    losses = -log_p.gather(2, target.unsqueeze(2)).squeeze(2)
    return losses[target != PAD].mean()


@right("masked_cross_entropy", how="token by token: logsumexp less the score of the true one")
def masked_cross_entropy_15(logits, target):
    total, count = 0, 0
    for b in range(target.shape[0]):
        for t in range(target.shape[1]):
            if target[b, t] != PAD:
                scores = logits[b, t]
                total = total + torch.logsumexp(scores, dim=0) - scores[target[b, t]]
                count += 1
    return total / count


@right("masked_cross_entropy", how="drops the padding first, and picks with a one-hot table")
def masked_cross_entropy_16(logits, target):
    real = target != PAD
    scores, ids = logits[real], target[real]
    picked = F.one_hot(ids, logits.shape[2]).bool()
    log_p = scores - scores.logsumexp(dim=1, keepdim=True)
    return -log_p[picked].sum() / len(ids)
