"""Lesson 12: what the hardware wants."""


def training_flops(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    """Count the floating-point operations of the matrix products in training on one pair.

    T_k, T_q         tokens of the source and of the target
    d_model, d_ff, n_layers, vocab_size  sizes of a Transformer, n_layers on each side
    returns          an int: two operations for each product of two numbers (it is added up, too),
                     once forward and twice backward

    Scores that a mask hides are computed, and count. Embeddings, norms, softmax and biases are left
    out: they hardly count.

    >>> training_flops(T_k=1, T_q=1, d_model=1, d_ff=1, n_layers=1, vocab_size=1)
    138
    """
    # exercise: about 5 lines
    projections = 4 * T_k + (4 + 2) * T_q + 2 * T_k  # W_k and W_v of the cross-attention read T_k
    attention = 2 * (T_k * T_k + T_q * T_q + T_q * T_k)  # scores, and weights times values
    feed_forward = 2 * (T_k + T_q)
    layer = projections * d_model**2 + attention * d_model + feed_forward * d_model * d_ff
    return 3 * 2 * (n_layers * layer + T_q * d_model * vocab_size)
