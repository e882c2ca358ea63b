"""The figures in answers to open questions that nothing is trained for, lesson by lesson.

    python -m benchmarks.answers [LESSON …]

Stored models are asked, and counts are taken. Lessons 01 to 15 take seconds; the agreement and the
null space of lesson 17 and the tiles of lesson 18 take minutes, on one thread. The figures of
trainings are recorded: ``python -m attention.experiments``.
"""

import argparse
import sys

import torch

from benchmarks.answers import (
    bahdanau_attention,
    efficient_attention,
    interpretability,
    kernel_regression,
    language_models,
    sequence_to_sequence,
    tokens_and_positions,
)

ANSWERS = {
    "01": {
        "1 · far away": kernel_regression.far_away,
        "2 · a third feature": kernel_regression.third_feature,
    },
    "02": {
        "1 · rounded encodings": sequence_to_sequence.rounded,
        "2 · true letters": sequence_to_sequence.letters,
    },
    "03": {
        "1 · one word": bahdanau_attention.one_word,
        "1 · one word, once": bahdanau_attention.one_word_once,
        "2 · annotations exchanged": bahdanau_attention.exchanged,
    },
    "08": {"2 · rows alike": tokens_and_positions.alike},
    "15": {"2 · two layers": language_models.reached},
    "17": {
        "1 · agreement": interpretability.agreement,
        "2 · random directions": interpretability.moved,
    },
    "18": {
        "1 · tiles skipped": efficient_attention.skipped,
        "3 · window against kernel": efficient_attention.overtaken,
    },
}


def main(arguments=None):
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lesson", nargs="*", help="numbers of lessons; all if none")
    options = parser.parse_args(arguments)
    unknown = [lesson for lesson in options.lesson if lesson not in ANSWERS]
    if unknown:
        there = ", ".join(ANSWERS)
        print(f"nothing to measure for {', '.join(unknown)}; there are: {there}", file=sys.stderr)
        return 1
    torch.set_num_threads(1)
    for lesson in options.lesson or ANSWERS:
        for name, measure in ANSWERS[lesson].items():
            print(f"lesson {lesson}, {name}", flush=True)
            for what, figures in measure().items():
                print(f"    {what}: {figures}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
