"""Time the products of a training in float32, by PyTorch and by oneDNN: ``make bench-products``.

    python benchmarks/products.py [--sizes tiny small base] [--rows 1900] [--seconds 1]

One thread. A row is a linear layer of the size and a batch of so many tokens: the result, the
gradient of what came in, and that of the weight. The libraries take turns; GFLOP/s are those of the
shortest of all repeats, in processor time, and a ratio says how many times as fast oneDNN is.
"""

import argparse

import torch

from attention.train.speed import onednn_products
from benchmarks.attention_kernels import times
from benchmarks.peers.training import SIZES


def shapes(size):
    """The linear layers of a size by name: (length of what comes in, of what goes out)."""
    d_model, d_ff = size["d_model"], size["d_ff"]
    return {
        "queries, keys and values": (d_model, 3 * d_model),
        "hidden units": (d_model, d_ff),
        "behind the hidden units": (d_ff, d_model),
    }


def kinds(rows, m, n):
    """The three products of a layer by name: factors (left, right) of left @ right.T."""
    x, weight, grad = torch.randn(rows, m), torch.randn(n, m), torch.randn(rows, n)
    return {"result": (x, weight), "to x": (grad, weight.T), "to weight": (grad.T, x.T)}


def gflops(left, right, seconds):
    """GFLOP/s of left @ right.T by PyTorch and by oneDNN."""
    actions = [lambda: left @ right.T, lambda: onednn_products.by_onednn(left, right)]
    work = 2 * left.shape[0] * left.shape[1] * right.shape[0]
    return [work / spent / 1e6 for spent in times(actions, "cpu", seconds)]


def main(arguments=None):
    """Print a row for each layer of each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = ("tiny", "small", "base")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=sizes, metavar="SIZE")
    parser.add_argument("--rows", type=int, default=1900, help="tokens of a batch (default: 1900)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a product (default: 1)")
    options = parser.parse_args(arguments)
    if onednn_products.onednn() is None:
        parser.exit(1, "this PyTorch has no product of oneDNN's\n")
    torch.set_num_threads(1)
    takes = "oneDNN's" if onednn_products.onednn_is_faster() else "PyTorch's"
    print(f"GFLOP/s of PyTorch, of oneDNN, ratio; on this processor training takes {takes}")
    for size in options.sizes:
        for layer, (m, n) in shapes(SIZES[size]).items():
            cells = []
            for kind, (left, right) in kinds(options.rows, m, n).items():
                usual, quick = gflops(left, right, options.seconds)
                cells.append(f"{kind}: {usual:.0f}, {quick:.0f}, {quick / usual:.2f}")
            print(f"{size}, {layer} ({m} -> {n}).  " + "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
