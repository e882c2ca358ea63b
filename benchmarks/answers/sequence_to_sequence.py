"""Lesson 02: how exactly the 64 numbers must be known, and how probable true letters are."""

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
    """How probable the true letters of the test numbers are, if those before them are given."""
    model, corpus = shipped.trained("sequence_to_sequence")
    batch = corpus.batch(corpus.test)
    with one_thread():
        logits = model(batch.source, batch.lengths, batch.target)  # (B, T_q, vocab_size)
    of_true = logits.softmax(dim=2).gather(2, batch.target[..., None])[..., 0]  # (B, T_q)
    p = of_true[batch.target != PAD]
    return {
        "median": round(p.median().item(), 4),
        "below 0.5": round(p.lt(0.5).double().mean().item(), 4),
    }
