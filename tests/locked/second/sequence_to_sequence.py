"""Wrong answers to lesson 02."""

import torch
from torch.nn import functional as F

from attention.provided import demand
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import decoder_step
from tests.locked import wrong

# --- gru_step --------------------------------------------------------------------------------


@wrong("gru_step", cause="the update gate the other way round: z keeps the candidate")
def gru_step_101(x, h, W_x, W_h, b_x, b_h):
    xr, xz, xn = (x @ W_x.T + b_x).chunk(3, dim=1)
    hr, hz, hn = (h @ W_h.T + b_h).chunk(3, dim=1)
    r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    n = torch.tanh(xn + r * hn)
    return z * n + (1 - z) * h


@wrong("gru_step", cause="the reset gate acts on h before the product, as in the first paper")
def gru_step_102(x, h, W_x, W_h, b_x, b_h):
    d = h.shape[1]
    gx, gh = F.linear(x, W_x, b_x), F.linear(h, W_h, b_h)
    r = torch.sigmoid(gx[:, :d] + gh[:, :d])
    z = torch.sigmoid(gx[:, d : 2 * d] + gh[:, d : 2 * d])
    n = torch.tanh(gx[:, 2 * d :] + F.linear(r * h, W_h[2 * d :], b_h[2 * d :]))
    return (1 - z) * n + z * h


@wrong("gru_step", cause="the order of the gates is z, r, n")
def gru_step_103(x, h, W_x, W_h, b_x, b_h):
    a, b = x @ W_x.T + b_x, h @ W_h.T + b_h
    az, ar, an = a.chunk(3, 1)
    bz, br, bn = b.chunk(3, 1)
    z, r = (az + bz).sigmoid(), (ar + br).sigmoid()
    n = (an + r * bn).tanh()
    return (1 - z) * n + z * h


@wrong("gru_step", cause="b_hn stands outside the reset gate's product")
def gru_step_104(x, h, W_x, W_h, b_x, b_h):
    Wr, Wz, Wn = W_x.chunk(3)
    Ur, Uz, Un = W_h.chunk(3)
    br, bz, bn = (b_x + b_h).chunk(3)
    r = torch.sigmoid(x @ Wr.T + h @ Ur.T + br)
    z = torch.sigmoid(x @ Wz.T + h @ Uz.T + bz)
    n = torch.tanh(x @ Wn.T + r * (h @ Un.T) + bn)
    return (1 - z) * n + z * h


@wrong("gru_step", cause="sigmoid in place of tanh for the candidate")
def gru_step_105(x, h, W_x, W_h, b_x, b_h):
    xr, xz, xn = (x @ W_x.T + b_x).chunk(3, dim=1)
    hr, hz, hn = (h @ W_h.T + b_h).chunk(3, dim=1)
    r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    n = torch.sigmoid(xn + r * hn)
    return n + z * (h - n)


@wrong("gru_step", cause="the gates see only x's bias")
def gru_step_106(x, h, W_x, W_h, b_x, b_h):
    xr, xz, xn = (x @ W_x.T + b_x).chunk(3, dim=1)
    hr, hz, hn = (h @ W_h.T).chunk(3, dim=1)
    r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    return (1 - z) * torch.tanh(xn + r * hn) + z * h


# --- encode ----------------------------------------------------------------------------------


@wrong("encode", cause="reads one step too late; at full length it wraps to the first")
def encode_101(states, lengths):
    rows = torch.arange(len(states), device=states.device)
    return states[rows, lengths % states.shape[1]]


@wrong("encode", cause="always the last step, padding or not")
def encode_102(states, lengths):
    return states[:, -1]


@wrong("encode", cause="a colon in place of the rows: (B, B, d)", kind="shape")
def encode_103(states, lengths):
    return states[:, lengths - 1]


@wrong("encode", cause="the mean of the true states")
def encode_104(states, lengths):
    steps = torch.arange(states.shape[1], device=states.device)
    mask = (steps < lengths[:, None]).unsqueeze(2)
    return (states * mask).sum(1) / lengths[:, None]


@wrong("encode", cause="counts from the end: -lengths")
def encode_105(states, lengths):
    return torch.stack([row[-n] for row, n in zip(states, lengths, strict=True)])


# --- shift_right -----------------------------------------------------------------------------


@wrong("shift_right", cause="nothing drops out: (B, T + 1)", kind="shape")
def shift_right_101(target):
    return torch.cat([torch.full_like(target[:, :1], BOS), target], dim=1)


@wrong("shift_right", cause="roll: the last token comes in on the left")
def shift_right_102(target):
    return target.roll(1, dims=1)


@wrong("shift_right", cause="EOS enters on the left")
def shift_right_103(target):
    out = torch.full_like(target, EOS)
    out[:, 1:] = target[:, :-1]
    return out


@wrong("shift_right", cause="F.pad fills with 0, which is PAD")
def shift_right_104(target):
    return F.pad(target[:, :-1], (1, 0))


@wrong("shift_right", cause="shifts to the left: drops the first column")
def shift_right_105(target):
    bos = torch.full_like(target[:, :1], BOS)
    return torch.cat([bos, target[:, 1:]], dim=1)


@wrong("shift_right", cause="BOS is written into the caller's tensor", kind="state")
def shift_right_106(target):
    target[:, 1:] = target[:, :-1].clone()
    target[:, 0] = BOS
    return target


# --- masked_cross_entropy --------------------------------------------------------------------


@wrong("masked_cross_entropy", cause="the mean runs over all positions, padding too")
def masked_cross_entropy_101(logits, target):
    logp = logits.log_softmax(dim=2)
    picked = logp.gather(2, target.unsqueeze(2)).squeeze(2)
    return -picked.masked_fill(target == PAD, 0.0).mean()


@wrong("masked_cross_entropy", cause="softmax then log: a huge score gives -inf", kind="extreme")
def masked_cross_entropy_102(logits, target):
    p = torch.softmax(logits, dim=-1)
    losses = -torch.log(p.gather(2, target[:, :, None])[:, :, 0])[target != PAD]
    return losses.sum() / max(losses.numel(), 1)


@wrong("masked_cross_entropy", cause="NaN if no letter is left", kind="extreme")
def masked_cross_entropy_103(logits, target):
    return F.cross_entropy(logits.transpose(1, 2), target, ignore_index=PAD)


@wrong("masked_cross_entropy", cause="mean of the means of the sequences")
def masked_cross_entropy_104(logits, target):
    losses = F.cross_entropy(logits.mT, target, reduction="none", ignore_index=PAD)
    counts = (target != PAD).sum(dim=1).clamp(min=1)
    return (losses.sum(dim=1) / counts).mean()


@wrong("masked_cross_entropy", cause="EOS is left out with the padding")
def masked_cross_entropy_105(logits, target):
    keep = (target != PAD) & (target != EOS)
    logp = torch.log_softmax(logits, dim=2).gather(2, target.unsqueeze(2)).squeeze(2)
    losses = -logp[keep]
    return losses.sum() / keep.sum().clamp(min=1)


@wrong("masked_cross_entropy", cause="the softmax runs along the steps")
def masked_cross_entropy_106(logits, target):
    mask = target != PAD
    logp = logits.log_softmax(dim=1).gather(2, target.unsqueeze(2)).squeeze(2)
    return -logp[mask].sum() / mask.sum().clamp(min=1)


# --- greedy_decode ---------------------------------------------------------------------------


@wrong("greedy_decode", cause="the new state is dropped: every step starts from the first")
def greedy_decode_101(state, context, weights, max_length):
    demand.counts(B=len(state), max_length=max_length)
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    for _ in range(max_length):
        logits, _state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1).masked_fill(ended, PAD)
        written.append(tokens)
        ended = ended | (tokens == EOS)
        if ended.all():
            break
    return torch.stack(written, dim=1)


@wrong("greedy_decode", cause="stops as soon as one row has ended")
def greedy_decode_102(state, context, weights, max_length):
    demand.counts(B=len(state), max_length=max_length)
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < max_length and not ended.any():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = torch.where(ended, torch.full_like(tokens, PAD), logits.argmax(1))
        ended |= tokens == EOS
        written.append(tokens)
    return torch.stack(written, dim=1)


@wrong("greedy_decode", cause="never stops before max_length", kind="size")
def greedy_decode_103(state, context, weights, max_length):
    demand.counts(B=len(state), max_length=max_length)
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = torch.full((len(tokens), max_length), PAD, device=state.device)
    for t in range(max_length):
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(-1)
        tokens[ended] = PAD
        written[:, t] = tokens
        ended |= tokens == EOS
    return written


@wrong("greedy_decode", cause="ended rows write EOS again in place of PAD")
def greedy_decode_104(state, context, weights, max_length):
    demand.counts(B=len(state), max_length=max_length)
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    for _ in range(max_length):
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(1).masked_fill(ended, EOS)
        written.append(tokens)
        ended = ended | tokens.eq(EOS)
        if ended.all():
            break
    return torch.stack(written, 1)


@wrong("greedy_decode", cause="marks the end before writing: EOS itself becomes PAD")
def greedy_decode_105(state, context, weights, max_length):
    demand.counts(B=len(state), max_length=max_length)
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    for _ in range(max_length):
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1)
        ended = ended | (tokens == EOS)
        tokens = tokens.masked_fill(ended, PAD)
        written.append(tokens)
        if ended.all():
            break
    return torch.stack(written, dim=1)


@wrong("greedy_decode", cause="an ended row that writes on unsets its mark")
def greedy_decode_106(state, context, weights, max_length):
    demand.counts(B=len(state), max_length=max_length)
    tokens = torch.full((state.shape[0],), BOS, device=state.device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    for _ in range(max_length):
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = torch.where(ended, PAD, logits.argmax(dim=1))
        ended = tokens == EOS
        written.append(tokens)
        if ended.all():
            break
    return torch.stack(written, dim=1)


# --- reverse_source --------------------------------------------------------------------------


@wrong("reverse_source", cause="flips the whole row: the padding comes to the front")
def reverse_source_101(source, lengths):
    return source.flip(1)


@wrong("reverse_source", cause="writes into the source", kind="state")
def reverse_source_102(source, lengths):
    for row, n in zip(source, lengths.tolist(), strict=True):
        row[:n] = row[:n].flip(0)
    return source


@wrong("reverse_source", cause="leaves the last true token (EOS) in place")
def reverse_source_103(source, lengths):
    out = source.clone()
    for b, n in enumerate(lengths.tolist()):
        out[b, : n - 1] = source[b, : n - 1].flip(0)
    return out


@wrong("reverse_source", cause="fills with zeros after the end, and not what stood there")
def reverse_source_104(source, lengths):
    result = torch.zeros_like(source)
    for b in range(len(source)):
        n = int(lengths[b])
        result[b, :n] = torch.flip(source[b, :n], dims=(0,))
    return result


@wrong("reverse_source", cause="flips the features of vectors as well")
def reverse_source_105(source, lengths):
    out = source.clone()
    for b, n in enumerate(lengths.tolist()):
        out[b, :n] = source[b, :n].flip(-1)
    return out
