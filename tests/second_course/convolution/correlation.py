"""Lesson 00: a kernel slides along a signal."""

import torch


def correlate(x, kernel):
    """Slide a kernel along a signal, and sum the products at each place.

    x        (T,)          the signal
    kernel   (K,)          not longer than it
    returns  (T - K + 1,)  entry i is the sum of x[i + j] * kernel[j] over all j

    >>> correlate(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, -1.0]))
    tensor([-1., -2.])
    """
    # exercise: about 2 lines
    windows = x.unfold(0, len(kernel), 1)  # (T - K + 1, K)
    return windows @ kernel  # (T - K + 1,)


def correlate_same(x, kernel):
    """Correlate a signal with zeros on both sides, so that the result is as long as the signal.

    x        (T,)  the signal
    kernel   (K,)  K is odd
    returns  (T,)  entry i is the one for which the middle of the kernel lies on x[i]
    """
    # exercise: about 3 lines
    zeros = x.new_zeros(len(kernel) // 2)
    windows = torch.cat([zeros, x, zeros]).unfold(0, len(kernel), 1)  # (T, K)
    return windows @ kernel  # (T,)


def max_pool(x, width):
    """Keep the largest value of each window; the windows stand side by side.

    x        (T,)           the signal
    width    whole number   values in a window; what does not fill one at the end is left out
    returns  (T // width,)
    """
    # exercise: about 1 line
    return x.unfold(0, width, width).amax(dim=1)
