"""Answers to lesson 02 that were written without a look at its checks."""

import torch
from torch.nn import functional as F

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import decoder_step
from tests.locked import right, wrong

# --- gru_step --------------------------------------------------------------------------------


@wrong("gru_step", cause="mixes the wrong way round: z keeps the candidate, not h", kind="value")
def gru_step_1(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3, dim=1)
    h_r, h_z, h_n = (h @ W_h.T + b_h).chunk(3, dim=1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return z * n + (1 - z) * h


@wrong("gru_step", cause="takes the blocks in the order z, r, n", kind="value")
def gru_step_2(x, h, W_x, W_h, b_x, b_h):
    x_z, x_r, x_n = (x @ W_x.T + b_x).chunk(3, dim=1)
    h_z, h_r, h_n = (h @ W_h.T + b_h).chunk(3, dim=1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


@wrong(
    "gru_step",
    cause="the reset gate multiplies h before W_hn instead of W_hn h + b_hn",
    kind="value",
)
def gru_step_3(x, h, W_x, W_h, b_x, b_h):
    d = h.shape[1]
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3, dim=1)
    r = torch.sigmoid(x_r + h @ W_h[:d].T + b_h[:d])
    z = torch.sigmoid(x_z + h @ W_h[d : 2 * d].T + b_h[d : 2 * d])
    n = torch.tanh(x_n + (r * h) @ W_h[2 * d :].T + b_h[2 * d :])
    return (1 - z) * n + z * h


@wrong(
    "gru_step",
    cause="the bias b_hn stands outside of the product with the reset gate",
    kind="value",
)
def gru_step_4(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x.T + b_x + b_h).chunk(3, dim=1)
    h_r, h_z, h_n = (h @ W_h.T).chunk(3, dim=1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


@wrong("gru_step", cause="the weights are not transposed", kind="crash")
def gru_step_5(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x + b_x).chunk(3, dim=1)
    h_r, h_z, h_n = (h @ W_h + b_h).chunk(3, dim=1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


@wrong("gru_step", cause="the biases of the state, b_h, are left out", kind="value")
def gru_step_6(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3, dim=1)
    h_r, h_z, h_n = (h @ W_h.T).chunk(3, dim=1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


@wrong("gru_step", cause="a sigmoid instead of tanh for the candidate", kind="value")
def gru_step_7(x, h, W_x, W_h, b_x, b_h):
    gates_x = F.linear(x, W_x, b_x).chunk(3, dim=1)
    gates_h = F.linear(h, W_h, b_h).chunk(3, dim=1)
    r = torch.sigmoid(gates_x[0] + gates_h[0])
    z = torch.sigmoid(gates_x[1] + gates_h[1])
    n = torch.sigmoid(gates_x[2] + r * gates_h[2])
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


@wrong("encode", cause="takes the state at the padded end", kind="value")
def encode_1(states, lengths):
    return states[:, -1]


@wrong("encode", cause="index n instead of n − 1: one step too late", kind="crash")
def encode_2(states, lengths):
    rows = torch.arange(states.shape[0], device=states.device)
    return states[rows, lengths]


@wrong("encode", cause="a colon takes all rows for each length: (B, B, d)", kind="shape")
def encode_3(states, lengths):
    return states[:, lengths - 1]


@wrong("encode", cause="averages the true states instead of taking the last", kind="value")
def encode_4(states, lengths):
    steps = torch.arange(states.shape[1], device=states.device)
    true = (steps < lengths[:, None]).to(states.dtype)
    return (states * true[:, :, None]).sum(dim=1) / lengths[:, None]


@wrong("encode", cause="squeezes too much: the axis of a batch of 1 is lost", kind="size")
def encode_5(states, lengths):
    index = (lengths - 1).view(-1, 1, 1).expand(-1, 1, states.shape[2])
    return states.gather(1, index).squeeze()


@wrong("encode", cause="takes all states at the end of the longest sequence", kind="value")
def encode_6(states, lengths):
    return states[:, lengths.max() - 1, :]


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


@wrong("reverse_source", cause="flips the whole row, so the padding comes first", kind="value")
def reverse_source_1(source, lengths):
    return source.flip(1)


@wrong("reverse_source", cause="writes into the source itself", kind="state")
def reverse_source_2(source, lengths):
    for row, length in enumerate(lengths.tolist()):
        source[row, :length] = source[row, :length].flip(0)
    return source


@wrong(
    "reverse_source",
    cause="flips the last axis, so vectors keep their order and are turned around themselves",
    kind="value",
)
def reverse_source_3(source, lengths):
    turned = source.clone()
    for row, length in enumerate(lengths.tolist()):
        turned[row, :length] = source[row, :length].flip(-1)
    return turned


@wrong("reverse_source", cause="leaves the last true token where it is", kind="value")
def reverse_source_4(source, lengths):
    turned = source.clone()
    for row, length in enumerate(lengths.tolist()):
        turned[row, : length - 1] = source[row, : length - 1].flip(0)
    return turned


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


@wrong("shift_right", cause="roll puts the last column in front instead of BOS", kind="value")
def shift_right_1(target):
    return target.roll(1, dims=1)


@wrong("shift_right", cause="fills with PAD in front instead of BOS", kind="value")
def shift_right_2(target):
    return F.pad(target[:, :-1], (1, 0))


@wrong("shift_right", cause="shifts to the left, with EOS at the end", kind="value")
def shift_right_3(target):
    return torch.cat([target[:, 1:], torch.full_like(target[:, :1], EOS)], dim=1)


@wrong("shift_right", cause="does not drop the last column: (B, T + 1)", kind="shape")
def shift_right_4(target):
    return torch.cat([torch.full_like(target[:, :1], BOS), target], dim=1)


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
    cause="divides by the number of all positions, padding included",
    kind="value",
)
def masked_cross_entropy_1(logits, target):
    log_p = torch.log_softmax(logits, dim=-1)
    losses = -log_p.gather(2, target.unsqueeze(2)).squeeze(2)
    return (losses * (target != PAD)).mean()


@wrong(
    "masked_cross_entropy",
    cause="averages within each sequence first, so tokens of short ones count more",
    kind="value",
)
def masked_cross_entropy_2(logits, target):
    log_p = torch.log_softmax(logits, dim=-1)
    losses = -log_p.gather(2, target.unsqueeze(2)).squeeze(2)
    mask = (target != PAD).to(losses.dtype)
    return ((losses * mask).sum(dim=1) / mask.sum(dim=1)).mean()


@wrong("masked_cross_entropy", cause="counts the padding like letters", kind="value")
def masked_cross_entropy_3(logits, target):
    log_p = torch.log_softmax(logits, dim=2)
    return -log_p.gather(2, target.unsqueeze(2)).mean()


@wrong(
    "masked_cross_entropy",
    cause="takes the logarithm of a finished softmax: infinite when a probability underflows",
    kind="extreme",
)
def masked_cross_entropy_4(logits, target):
    p = torch.softmax(logits, dim=2)
    losses = -torch.log(p.gather(2, target.unsqueeze(2)).squeeze(2))
    return losses[target != PAD].mean()


@wrong("masked_cross_entropy", cause="softmax over the steps, not the vocabulary", kind="value")
def masked_cross_entropy_5(logits, target):
    log_p = torch.log_softmax(logits, dim=1)
    losses = -log_p.gather(2, target.unsqueeze(2)).squeeze(2)
    return losses[target != PAD].mean()


@wrong("masked_cross_entropy", cause="adds the losses up instead of averaging", kind="value")
def masked_cross_entropy_6(logits, target):
    log_p = torch.log_softmax(logits, dim=2)
    losses = -log_p.gather(2, target.unsqueeze(2)).squeeze(2)
    return losses[target != PAD].sum()


@wrong("masked_cross_entropy", cause="the minus is missing", kind="value")
def masked_cross_entropy_7(logits, target):
    log_p = torch.log_softmax(logits, dim=2)
    return log_p.gather(2, target.unsqueeze(2)).squeeze(2)[target != PAD].mean()


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


@wrong("greedy_decode", cause="goes on writing letters behind EOS instead of PAD", kind="value")
def greedy_decode_1(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < max_length and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1)
        written.append(tokens)
        ended = ended | (tokens == EOS)
    return torch.stack(written, dim=1)


@wrong("greedy_decode", cause="stops as soon as any row has ended", kind="shape")
def greedy_decode_2(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < max_length and not ended.any():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1).masked_fill(ended, PAD)
        written.append(tokens)
        ended = ended | (tokens == EOS)
    return torch.stack(written, dim=1)


@wrong(
    "greedy_decode", cause="drops the new state and starts each step from the first", kind="value"
)
def greedy_decode_3(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < max_length and not ended.all():
        logits, _ = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1).masked_fill(ended, PAD)
        written.append(tokens)
        ended = ended | (tokens == EOS)
    return torch.stack(written, dim=1)


@wrong("greedy_decode", cause="reads BOS at every step, not what was written", kind="value")
def greedy_decode_4(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < max_length and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        best = logits.argmax(dim=1).masked_fill(ended, PAD)
        written.append(best)
        ended = ended | (best == EOS)
    return torch.stack(written, dim=1)


@wrong("greedy_decode", cause="writes PAD in the place of EOS itself", kind="value")
def greedy_decode_5(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < max_length and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1)
        ended = ended | (tokens == EOS)
        tokens = tokens.masked_fill(ended, PAD)
        written.append(tokens)
    return torch.stack(written, dim=1)


@wrong(
    "greedy_decode",
    cause="never stops early: always max_length columns",
    kind="shape",
)
def greedy_decode_6(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    for _ in range(max_length):
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1).masked_fill(ended, PAD)
        written.append(tokens)
        ended = ended | (tokens == EOS)
    return torch.stack(written, dim=1)


@wrong("greedy_decode", cause="stacks along axis 0: (T, B)", kind="shape")
def greedy_decode_7(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < max_length and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1).masked_fill(ended, PAD)
        written.append(tokens)
        ended = ended | (tokens == EOS)
    return torch.stack(written)


@wrong(
    "greedy_decode",
    cause="forgets rows that ended in an earlier step, so they start to write again",
    kind="value",
)
def greedy_decode_8(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < max_length and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1).masked_fill(ended, PAD)
        written.append(tokens)
        ended = tokens == EOS
    return torch.stack(written, dim=1)


@wrong("greedy_decode", cause="ignores max_length and allows 100 steps", kind="shape")
def greedy_decode_9(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < 100 and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1).masked_fill(ended, PAD)
        written.append(tokens)
        ended = ended | (tokens == EOS)
    return torch.stack(written, dim=1)


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
