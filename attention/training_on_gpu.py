"""Lesson 12: what the hardware wants."""

import torch

from attention.provided import demand


def training_flops(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    """Count the floating-point operations of the matrix products in training on one pair.

    T_k, T_q         tokens of the source and of the target
    d_model, d_ff, n_layers, vocab_size  sizes of a Transformer, n_layers on each side
    returns          an int: two operations for each product of two numbers, a multiplication and an
                     addition; once forward and twice backward

    Scores that a mask hides are computed, and count. Embeddings, norms, softmax and biases take
    little, and are left out.
    Refuses sizes below 1, and numbers of tokens below 0.

    >>> training_flops(T_k=1, T_q=1, d_model=1, d_ff=1, n_layers=1, vocab_size=1)
    138
    """
    demand.counts(0, T_k=T_k, T_q=T_q)
    demand.counts(d_model=d_model, d_ff=d_ff, n_layers=n_layers, vocab_size=vocab_size)
    # exercise: about 5 lines
    projections = 4 * T_k + (4 + 2) * T_q + 2 * T_k  # W_k and W_v of the cross-attention read T_k
    attention = 2 * (T_k * T_k + T_q * T_q + T_q * T_k)  # scores, and weights times values
    feed_forward = 2 * (T_k + T_q)
    layer = projections * d_model**2 + attention * d_model + feed_forward * d_model * d_ff
    return 3 * 2 * (n_layers * layer + T_q * d_model * vocab_size)


def training_memory(B, T, d_model, n_heads, d_ff, n_layers, fused=False):
    """Count the bytes that training a stack of encoder layers takes, in float32, part by part.

    B, T       sentences of the batch, and tokens of each
    d_model, n_heads, d_ff, n_layers  sizes of a stack of pre-norm EncoderLayers without dropout
    fused      whether the attention is PyTorch's kernel, which does not keep its weights
    returns    a dict of ints: bytes of "weights", "gradients", "moments" (AdamW's two) and
               "activations": what the forward pass keeps for the backward pass

    A linear map keeps what it is applied to, a product of two results keeps both, softmax and ReLU
    keep their own result, and a LayerNorm keeps what it is applied to and two numbers for each
    token. Scaling and adding keep nothing. The fused kernel keeps queries, keys, values, its result
    and one number for each query of each head. A tensor that is kept twice is there once.
    Refuses sizes below 1, and a B or a T below 0.

    >>> training_memory(B=1, T=1, d_model=1, n_heads=1, d_ff=1, n_layers=1)
    {'weights': 64, 'gradients': 64, 'moments': 128, 'activations': 56}
    """
    demand.counts(0, B=B, T=T)
    demand.counts(d_model=d_model, n_heads=n_heads, d_ff=d_ff, n_layers=n_layers)
    attention, feed_forward = 4 * (d_model + 1) * d_model, 2 * d_model * d_ff + d_ff + d_model
    weights = 4 * n_layers * (attention + feed_forward + 2 * 2 * d_model)  # two norms
    # For each token: 8 vectors, two numbers of each norm, the hidden units, the attention weights.
    per_token = 8 * d_model + 2 * 2 + d_ff + n_heads * (1 if fused else T)
    parts = {"weights": weights, "gradients": weights, "moments": 2 * weights}
    return parts | {"activations": 4 * n_layers * B * T * per_token}


def loss_scaling(gradients, scale, good_steps=0, patience=2000):
    """Undo the scale of a loss in float16, and choose the scale of the next step.

    gradients   list of float16 tensors: those of scale · loss
    scale       a float
    good_steps  how many steps in a row have been taken with this scale
    patience    after so many the scale is doubled, counting this one
    returns     three results: the gradients of the loss, a list of float32 tensors, or None if a
                number in any of them is infinite or NaN, and the step must be skipped; the scale of
                the next step; its good_steps

    A step that is skipped halves the scale, and good_steps begins at 0 again, as it does when the
    scale is doubled. Source: Micikevicius et al. (2018), section 3.2, with the changing scale of
    PyTorch's GradScaler.
    Refuses a scale that is not above 0, good_steps below 0, and a patience below 1.

    >>> loss_scaling([torch.tensor([8.0], dtype=torch.float16)], scale=1024.0, good_steps=5)
    ([tensor([0.0078])], 1024.0, 6)
    >>> loss_scaling([torch.tensor([torch.inf], dtype=torch.float16)], scale=1024.0, good_steps=5)
    (None, 512.0, 0)
    """
    demand.positive(scale=scale)
    demand.counts(0, good_steps=good_steps)
    demand.counts(patience=patience)
    # exercise: about 7 lines
    if not all(gradient.isfinite().all() for gradient in gradients):
        return None, scale / 2, 0
    unscaled = [gradient.float() / scale for gradient in gradients]
    good_steps = good_steps + 1
    if good_steps == patience:
        return unscaled, 2 * scale, 0
    return unscaled, scale, good_steps


def data_parallel_gradients(gradients, tokens):
    """Join the gradients of several processes, each of which has a share of one batch.

    gradients  list with an item for each process: the list of its gradients, tensors of any shapes;
               they are those of the mean loss over the real tokens of its own share
    tokens     list of int: how many real tokens each share has
    returns    list of tensors: the gradients of the mean over all real tokens, which one process
               with the whole batch would have

    A process whose share has no token has gradients of 0. If no share has one, all are 0.
    Refuses numbers of tokens below 0.

    >>> data_parallel_gradients([[torch.tensor([1.0])], [torch.tensor([5.0])]], tokens=[3, 1])
    [tensor([2.])]
    """
    demand.counts(0, tokens=min(tokens, default=0))
    # exercise: about 4 lines
    shares = [count / sum(tokens) if count else 0.0 for count in tokens]
    return [
        sum(share * gradient for share, gradient in zip(shares, parts, strict=True))
        for parts in zip(*gradients, strict=True)
    ]


# Inputs on which a wrong answer shows


def break_data_parallel_gradients():
    """Return an input for which `averages_the_processes` gives wrong gradients.

    returns  a tuple (gradients, tokens) as `data_parallel_gradients` takes them
    """
    # exercise: about 1 line
    return [[torch.tensor([1.0])], [torch.tensor([5.0])]], [3, 1]
