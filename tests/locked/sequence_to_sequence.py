"""Answers to lesson 02 that were written without a look at its checks."""

import torch
from torch.nn import functional as F

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import decoder_step
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


# --- encode ----------------------------------------------------------------------------------


@wrong("encode", cause="squeezes too much: the axis of a batch of 1 is lost", kind="size")
def encode_5(states, lengths):
    index = (lengths - 1).view(-1, 1, 1).expand(-1, 1, states.shape[2])
    return states.gather(1, index).squeeze()


@wrong(
    "encode",
    cause="goes through a list of numbers, so no gradient reaches the states",
    kind="gradient",
)
def encode_7(states, lengths):
    picked = [states[i, n - 1].tolist() for i, n in enumerate(lengths.tolist())]
    return torch.tensor(picked, dtype=states.dtype, device=states.device)


@right("encode", how="gather along the steps")
def encode_8(states, lengths):
    index = (lengths - 1)[:, None, None].expand(-1, -1, states.size(-1))
    return torch.gather(states, 1, index)[:, 0]


@right("encode", how="a loop over the rows")
def encode_9(states, lengths):
    return torch.stack([row[:n][-1] for row, n in zip(states, lengths.tolist(), strict=True)])


@right("encode", how="a boolean mask that is True once per row")
def encode_10(states, lengths):
    steps = torch.arange(1, states.shape[1] + 1, device=states.device)
    return states[steps == lengths.unsqueeze(1)]


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


# --- shift_right -----------------------------------------------------------------------------


@wrong("shift_right", cause="the column of BOS is float, and so is the result", kind="dtype")
def shift_right_5(target):
    begin = BOS * torch.ones(target.shape[0], 1, device=target.device)
    return torch.cat([begin, target[:, :-1]], dim=1)


@wrong("shift_right", cause="makes the column of BOS on the CPU", kind="device")
def shift_right_6(target):
    begin = torch.full((target.shape[0], 1), BOS, dtype=target.dtype)
    return torch.cat([begin, target[:, :-1]], dim=1)


@wrong("shift_right", cause="shifts the target in place", kind="state")
def shift_right_7(target):
    target[:, 1:] = target[:, :-1].clone()
    target[:, 0] = BOS
    return target


@right("shift_right", how="roll, then BOS into the first column of the copy")
def shift_right_8(target):
    read = torch.roll(target, shifts=1, dims=1)
    read[:, 0] = BOS
    return read


@right("shift_right", how="F.pad with BOS as the value")
def shift_right_9(target):
    return F.pad(target, (1, -1), value=BOS)


# --- masked_cross_entropy --------------------------------------------------------------------


@wrong(
    "masked_cross_entropy",
    cause="squeezes too much: fails for a batch of 1 or a single step",
    kind="size",
)
def masked_cross_entropy_8(logits, target):
    log_p = torch.log_softmax(logits, dim=2)
    losses = -log_p.gather(2, target.unsqueeze(2)).squeeze()
    return losses[target != PAD].mean()


@wrong(
    "masked_cross_entropy",
    cause="makes a new tensor of plain numbers, so no gradient reaches the logits",
    kind="gradient",
)
def masked_cross_entropy_9(logits, target):
    log_p = torch.log_softmax(logits, dim=2)
    total, count = 0.0, 0
    for b in range(target.shape[0]):
        for t in range(target.shape[1]):
            if target[b, t] != PAD:
                total -= log_p[b, t, target[b, t]].item()
                count += 1
    return torch.tensor(total / count, dtype=logits.dtype, device=logits.device)


@right("masked_cross_entropy", how="drops the padding first, logsumexp of shifted logits")
def masked_cross_entropy_10(logits, target):
    keep = target != PAD
    scores, wanted = logits[keep], target[keep]
    scores = scores - scores.amax(dim=1, keepdim=True)
    picked = scores[torch.arange(len(wanted), device=scores.device), wanted]
    return (scores.logsumexp(dim=1) - picked).mean()


@right("masked_cross_entropy", how="where, sum and a division by the count")
def masked_cross_entropy_11(logits, target):
    losses = torch.take_along_dim(logits.log_softmax(-1).neg(), target[..., None], dim=-1)[..., 0]
    true = target.ne(PAD)
    return torch.where(true, losses, 0.0).sum() / true.sum()


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
