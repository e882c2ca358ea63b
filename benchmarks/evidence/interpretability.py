"""What lesson 17 claims. `make bench-interpretability` measures it on the shipped translator."""

from benchmarks.evidence import Claim

CLAIMS = [
    Claim(
        claim="At the first letter of a word three of four heads look at its English word; "
        "no head of the self-attentions is positional",
        control="a head with equal weights",
        seeds="one model",
        where="What do the heads look at?",
    ),
    Claim(
        claim="Attention agrees with leave-one-out better than gradient · input, less than "
        "the length of the gradient",
        control="random weights; the same sentences",
        seeds="200 sentences, 95 % intervals",
        where="Does it matter?",
    ),
    Claim(
        claim="Where T is larger than the rank, other weights give the same output",
        control="a random direction; rows short enough to have no null space",
        seeds="one model, 200 sentences",
        where="Could the weights be different?",
    ),
    Claim(
        claim="The token can be read from every layer; what the layers bring in is the "
        "token before",
        control="the same model untrained; the most frequent answer",
        seeds="one model, held-out sentences",
        where="Is it still that word?",
    ),
    Claim(
        claim="All heads of the encoder can be silenced; in the decoder the order by "
        "importance is a trap",
        control="random orders, and a greedy one",
        seeds="one model, 500 numbers",
        where="Which heads are needed?",
    ),
]
