"""Lesson 03: what attention does, what the second reading does, and what a query knows."""

from attention.provided.compared import train_one
from benchmarks.evidence import Claim, Experiment

SEEDS = (0, 1, 2)
SHORT = {"attention": True, "bidirectional": True, "seed": 0, "steps": 20}

EXPERIMENTS = {
    "attention x bidirectional": Experiment(
        claim="after 300 steps five digits come through with attention and not through one vector, "
        "with a backward RNN or without",
        control="attention or one vector of the same 128 numbers, by a forward RNN or by a forward "
        "and a backward one; data, 300 steps, decoder, seeds kept",
        points=[
            {"attention": attention, "bidirectional": bidirectional, "seed": seed, "steps": 300}
            for attention in (True, False)
            for bidirectional in (True, False)
            for seed in SEEDS
        ]
        + [SHORT],
        run=train_one,
        again=SHORT,
    ),
    "query after reading": Experiment(
        claim="it is not for want of the previous letter that letters look at other words",
        control="the query is the state before or after the previous letter is read; the rest as "
        "above, with attention and a bidirectional encoder",
        points=[
            {"attention": True, "bidirectional": True, "seed": seed, "steps": 300}
            | {"asks_after": True}
            for seed in SEEDS
        ]
        + [SHORT | {"asks_after": True}],
        run=train_one,
        again=SHORT | {"asks_after": True},
    ),
}
CLAIMS = [
    Claim(
        "the first letter of a word needs the word, nine in ten of the later letters do not",
        control="at one letter at a time, the weight on its word is given to the other words",
        seeds="0 (one stored model, 732 numbers)",
        where="Reading an alignment",
    ),
    Claim(
        "without the mask, what a short source becomes depends on its companions",
        control="the mask; model and numbers kept, companions of 2, 4 and 6 digits",
        seeds="0 (one stored model)",
        where="Break it",
    ),
]
