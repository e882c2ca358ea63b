"""What lesson 18 claims. `make bench-efficient-attention` measures what takes minutes."""

from benchmarks.evidence import Claim

CLAIMS = [
    Claim(
        claim="Tiles give the result of dense attention with less memory; the fused kernel "
        "is the quickest exact one",
        control="the same inputs, dense attention in the same run",
        seeds="none: the shortest of several runs",
        where="What it costs",
    ),
    Claim(
        claim="A recurrent form takes the same time for each token, a cache more with each",
        control="the length; heads and d kept",
        seeds="none: the shortest of several runs",
        where="Attention as a recurrent network",
    ),
    Claim(
        claim="Linear attention recalls many pairs only with enough features, a window only"
        " within its reach",
        control="d_k, pairs, distance and steps, one at a time; dense attention beside",
        seeds="0, 1, 2",
        where="What is given up",
    ),
]
