"""What the measurements of lesson 17 share: sentences, and how a mean is written down."""

import random

from attention.provided.measuring.rank_agreement import bootstrap


def sentences(pairs, corpus, count, seed=0):
    """So many of the pairs, as a batch."""
    return corpus.batch(random.Random(seed).sample(pairs, min(count, len(pairs))))


def interval(numbers):
    """Mean and bounds, rounded for the file."""
    return [round(number, 4) for number in bootstrap(numbers)]
