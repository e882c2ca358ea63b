"""Lesson 02: how exactly the 64 numbers must be known, and letters one by one."""

from unittest import mock

import torch

from attention import sequence_to_sequence as lesson
from attention.provided.data.tokens import PAD
from attention.provided.models import translators
from attention.provided.training_steps import one_thread
from attention.train import shipped


def rounded(at_most=100):
    """Accuracy at three and at four digits, by the multiples to which the encoding is rounded."""
    model, corpus = shipped.trained("sequence_to_sequence")
    exact, found = lesson.encode, {}
    for step in (None, 0.1, 0.25, 0.5):

        def encode(states, lengths, step=step):
            encoding = exact(states, lengths)
            return encoding if step is None else (encoding / step).round() * step

        with mock.patch.object(lesson, "encode", encode):
            shares = translators.accuracy_by_digits(model, corpus, at_most)
        name = "as it is" if step is None else f"multiples of {step:g}"
        found[name] = [round(shares[digits], 3) for digits in (3, 4)]
    return found


@torch.no_grad()
def letters():
    """Of the numbers of six digits: letters right if the true ones before are given, and others."""
    model, corpus = shipped.trained("sequence_to_sequence")
    pairs = corpus.test_by_digits(at_most=100)[6]
    batch = corpus.batch(pairs)
    with one_thread():
        logits = model(batch.source, batch.lengths, batch.target)  # (B, T_q, vocab_size)
    true = batch.target != PAD  # (B, T_q)
    right = (logits.argmax(dim=2) == batch.target)[true].double().mean().item()
    count = true.sum(dim=1).double().mean().item()
    return {
        "letters right": round(right, 4),
        "letters in a number, EOS included": round(count, 1),
        "numbers, were errors independent": round(right**count, 4),
    }
