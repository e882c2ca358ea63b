"""Wrong answers to lesson 12."""

import torch

from attention.provided import demand
from tests.locked import wrong

# --- training_flops --------------------------------------------------------------------------


def _sizes(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    demand.counts(0, T_k=T_k, T_q=T_q)
    demand.counts(d_model=d_model, d_ff=d_ff, n_layers=n_layers, vocab_size=vocab_size)


@wrong("training_flops", cause="cross-attention's keys and values are counted for target positions")
def training_flops_101(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    _sizes(T_k, T_q, d_model, d_ff, n_layers, vocab_size)
    encoder = 4 * T_k * d_model**2 + 2 * T_k**2 * d_model + 2 * T_k * d_model * d_ff
    decoder = 8 * T_q * d_model**2 + 2 * T_q**2 * d_model + 2 * T_q * T_k * d_model
    decoder += 2 * T_q * d_model * d_ff
    return 6 * (n_layers * (encoder + decoder) + T_q * d_model * vocab_size)


@wrong("training_flops", cause="once forward and once backward")
def training_flops_102(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    _sizes(T_k, T_q, d_model, d_ff, n_layers, vocab_size)
    projections = (4 * T_k + 4 * T_q + 2 * T_q + 2 * T_k) * d_model**2
    scores = 2 * d_model * (T_k**2 + T_q**2 + T_q * T_k)
    feed_forward = 2 * d_model * d_ff * (T_k + T_q)
    total = n_layers * (projections + scores + feed_forward) + T_q * d_model * vocab_size
    return 2 * 2 * total


@wrong("training_flops", cause="the generator is counted in every layer")
def training_flops_103(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    _sizes(T_k, T_q, d_model, d_ff, n_layers, vocab_size)

    def attention(a, b):
        return 2 * a * d_model**2 + 2 * b * d_model**2 + 2 * a * b * d_model

    layer = attention(T_k, T_k) + attention(T_q, T_q) + attention(T_q, T_k)
    layer += 2 * (T_k + T_q) * d_model * d_ff
    return 6 * n_layers * (layer + T_q * d_model * vocab_size)


@wrong("training_flops", cause="causal self-attention counts half of the scores")
def training_flops_104(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    _sizes(T_k, T_q, d_model, d_ff, n_layers, vocab_size)
    one = 6 * (T_k + T_q) * d_model**2 + 2 * (T_k + T_q) * d_model * d_ff
    one += 2 * T_k**2 * d_model + T_q * (T_q + 1) * d_model + 2 * T_k * T_q * d_model
    return 6 * (n_layers * one + T_q * d_model * vocab_size)


@wrong("training_flops", cause="the generator works on source positions, too")
def training_flops_105(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    _sizes(T_k, T_q, d_model, d_ff, n_layers, vocab_size)
    one = 6 * (T_k + T_q) * d_model**2 + 2 * (T_k + T_q) * d_model * d_ff
    one += 2 * (T_k**2 + T_q**2 + T_k * T_q) * d_model
    return 6 * n_layers * one + 3 * (T_k + T_q) * d_model * vocab_size


# --- loss_scaling ----------------------------------------------------------------------------


def _good(scale, good_steps, patience):
    demand.positive(scale=scale)
    demand.counts(0, good_steps=good_steps)
    demand.counts(patience=patience)


@wrong("loss_scaling", cause="divides in float16: small gradients become 0", kind="dtype")
def loss_scaling_101(gradients, scale, good_steps=0, patience=2000):
    _good(scale, good_steps, patience)
    if not all(g.isfinite().all() for g in gradients):
        return None, scale / 2, 0
    unscaled = [(g / scale).float() for g in gradients]
    good_steps += 1
    return (unscaled, scale * 2, 0) if good_steps >= patience else (unscaled, scale, good_steps)


@wrong("loss_scaling", cause="doubles one step too late")
def loss_scaling_102(gradients, scale, good_steps=0, patience=2000):
    _good(scale, good_steps, patience)
    if any(not torch.isfinite(g).all() for g in gradients):
        return None, scale * 0.5, 0
    grads = [g.float() / scale for g in gradients]
    if good_steps >= patience:
        return grads, 2 * scale, 0
    return grads, scale, good_steps + 1


@wrong("loss_scaling", cause="asks for inf only, NaN goes through", kind="extreme")
def loss_scaling_103(gradients, scale, good_steps=0, patience=2000):
    _good(scale, good_steps, patience)
    if any(torch.isinf(g).any() for g in gradients):
        return None, scale / 2, 0
    good_steps += 1
    if good_steps == patience:
        good_steps, new = 0, scale * 2
    else:
        new = scale
    return [g.to(torch.float32) / scale for g in gradients], new, good_steps


@wrong("loss_scaling", cause="good_steps goes on after a doubling")
def loss_scaling_104(gradients, scale, good_steps=0, patience=2000):
    _good(scale, good_steps, patience)
    for g in gradients:
        if not g.isfinite().all():
            return None, scale / 2, 0
    good_steps += 1
    new_scale = scale * 2 if good_steps >= patience else scale
    return [g.float() / scale for g in gradients], new_scale, good_steps


@wrong("loss_scaling", cause="unscales with the new scale, after the doubling")
def loss_scaling_105(gradients, scale, good_steps=0, patience=2000):
    _good(scale, good_steps, patience)
    if not all(torch.isfinite(g).all() for g in gradients):
        return None, scale / 2, 0
    good_steps += 1
    if good_steps >= patience:
        scale, good_steps = scale * 2, 0
    return [g.float() / scale for g in gradients], scale, good_steps


@wrong("loss_scaling", cause="drops only the tensors that are not finite", kind="type")
def loss_scaling_106(gradients, scale, good_steps=0, patience=2000):
    _good(scale, good_steps, patience)
    clean = [g.float() / scale for g in gradients if g.isfinite().all()]
    if len(clean) < len(gradients):
        return clean, scale / 2, 0
    if good_steps + 1 >= patience:
        return clean, scale * 2, 0
    return clean, scale, good_steps + 1


# --- data_parallel_gradients -----------------------------------------------------------------


def _turned(gradients):
    return zip(*gradients, strict=True)


@wrong("data_parallel_gradients", cause="the sum of the weighted gradients is not divided")
def data_parallel_gradients_101(gradients, tokens):
    demand.counts(0, tokens=min(tokens, default=0))
    return [sum(n * g for n, g in zip(tokens, of, strict=True)) for of in _turned(gradients)]


@wrong("data_parallel_gradients", cause="NaN or an error if no share has a token", kind="extreme")
def data_parallel_gradients_102(gradients, tokens):
    demand.counts(0, tokens=min(tokens, default=0))
    n = torch.tensor(tokens, dtype=torch.float32, device=gradients[0][0].device)
    w = n / n.sum()
    return [sum(a * g for a, g in zip(w, of, strict=True)) for of in _turned(gradients)]


@wrong("data_parallel_gradients", cause="weighted, then divided by the number of processes")
def data_parallel_gradients_103(gradients, tokens):
    demand.counts(0, tokens=min(tokens, default=0))
    total = max(sum(tokens), 1)
    out = []
    for p in range(len(gradients[0])):
        parts = [gradients[i][p] * tokens[i] / total for i in range(len(tokens))]
        out.append(torch.stack(parts).mean(0))
    return out


@wrong("data_parallel_gradients", cause="divides by the tokens: the share with few counts most")
def data_parallel_gradients_104(gradients, tokens):
    demand.counts(0, tokens=min(tokens, default=0))
    inverse = [1 / n if n else 0.0 for n in tokens]
    total = sum(inverse) or 1.0
    return [
        sum(a / total * g for a, g in zip(inverse, of, strict=True)) for of in _turned(gradients)
    ]


@wrong("data_parallel_gradients", cause="adds into the gradients of process 0", kind="state")
def data_parallel_gradients_105(gradients, tokens):
    demand.counts(0, tokens=min(tokens, default=0))
    total = max(sum(tokens), 1)
    joined = gradients[0]
    for g in joined:
        g.mul_(tokens[0] / total)
    for n, others in zip(tokens[1:], gradients[1:], strict=True):
        for g, other in zip(joined, others, strict=True):
            g.add_(other, alpha=n / total)
    return joined


@wrong("data_parallel_gradients", cause="the mean over processes that have tokens, unweighted")
def data_parallel_gradients_106(gradients, tokens):
    demand.counts(0, tokens=min(tokens, default=0))
    with_tokens = max(sum(n > 0 for n in tokens), 1)
    return [torch.stack(of).sum(dim=0) / with_tokens for of in _turned(gradients)]
