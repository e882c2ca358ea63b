"""What lesson 16 claims. `make bench-digits` measures what takes minutes."""

from benchmarks.evidence import Claim

CLAIMS = [
    Claim(
        claim="Attention on two levels answers what a mean of means and attention on one "
        "level cannot; a tanh between two means answers it too, later",
        control="the reader; documents, steps and rate kept",
        seeds="0, 1, 2",
        where="Words, sentences, documents",
    ),
    Claim(
        claim="The CNN errs least on average; shuffled patches cost neither model anything "
        "clear; without positions the ViT loses a fifth of the images",
        control="model, order of the patches, positions; split and steps kept",
        seeds="0, 1, 2",
        where="Fixed weights, variable weights",
    ),
    Claim(
        claim="A map of attention does not say on which patch the answer rests",
        control="the patch that is blank: most attended, most ink, random, largest drop",
        seeds="0, 1, 2",
        where="Where does it look?",
    ),
]
