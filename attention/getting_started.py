"""Lesson 00: from an average in which all values count the same to one that can choose."""

import torch


def uniform_average(values):
    """Average the values, all of them equally important.

    values   (T_k, d_v)  one value vector per row
    returns  (d_v,)      their mean, of the same dtype

    >>> uniform_average(torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([2., 2.])
    """
    # exercise: about 1 line
    return values.mean(dim=0)  # (d_v,)


def softmax(scores, dim):
    """Turn scores into weights that are not negative and sum to 1 along one axis.

    scores   any shape; scores of ±1000 are fine, and a score of -inf gets the weight 0
    dim      the axis along which the weights sum to 1
    returns  same shape and dtype as `scores`

    At least one score along `dim` must be finite: where there is nothing to choose from, the
    result is NaN, as in `torch.softmax`. (Lesson 06 gives such a row a meaning.)

    >>> softmax(torch.tensor([[0.0, 0.0], [1000.0, -1000.0]]), dim=1)
    tensor([[0.5000, 0.5000],
            [1.0000, 0.0000]])
    """
    # exercise: about 3 lines
    # The largest exponent becomes 0: nothing overflows, and the shift cancels in the ratio.
    shifted = scores - scores.amax(dim=dim, keepdim=True)  # same shape, <= 0
    exponentials = torch.exp(shifted)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


def weighted_average(weights, values):
    """Average the values once per query, each time with that query's own weights.

    weights  (T_q, T_k)  one row per query; every row sums to 1
    values   (T_k, d_v)  one value vector per row
    returns  (T_q, d_v)  the context: row i is the sum over j of weights[i, j] · values[j]

    >>> weights = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    >>> weighted_average(weights, torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[2., 2.],
            [1., 0.]])
    """
    # exercise: about 1 line
    return weights @ values  # (T_q, d_v)
