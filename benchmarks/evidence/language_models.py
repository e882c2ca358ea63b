"""What lesson 15 claims. `make bench-language-models` and `bench-docstrings` measure it."""

from benchmarks.evidence import Claim

CLAIMS = [
    Claim(
        claim="With a fixed number of scores, a decoder that reads more coarsely finds more"
        " of the topic words than one that reads half",
        control="the model; texts, steps and optimiser kept; scores counted beside",
        seeds="0, 1, 2",
        where="One table",
    ),
    Claim(
        claim="Positions and experts make no difference on this task that is clearer than "
        "the spread of the seeds",
        control="positions or experts added to “local, then compressed”",
        seeds="0, 1, 2",
        where="One table",
    ),
    Claim(
        claim="The balancing loss makes the shares of the experts more even in the second "
        "layer, not in the first",
        control="the loss on or off; the model kept",
        seeds="0, 1, 2",
        where="Who works?",
    ),
    Claim(
        claim="After a few minutes a small model does not beat a rule of one line at first "
        "lines of docstrings",
        control="rules that nobody trains, on the same rows; the steps of training",
        seeds="0, 1, 2",
        where="How good is a first line?",
    ),
]
