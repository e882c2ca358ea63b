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
