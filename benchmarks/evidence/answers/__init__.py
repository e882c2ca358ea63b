"""Answers to open questions: their trainings, in a file of their own that no notebook reads.

One module a lesson; the name of an experiment begins with the number of the lesson.
"""

from benchmarks.evidence.answers import (
    multi_head_attention,
    scaled_dot_product_attention,
    score_functions,
    tokens_and_positions,
    transformer_blocks,
    translation,
)

EXPERIMENTS = {
    **score_functions.EXPERIMENTS,
    **scaled_dot_product_attention.EXPERIMENTS,
    **multi_head_attention.EXPERIMENTS,
    **tokens_and_positions.EXPERIMENTS,
    **transformer_blocks.EXPERIMENTS,
    **translation.EXPERIMENTS,
}
