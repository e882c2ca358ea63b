"""What lesson 19 compares: sentences, texts drawn from a novel, and docstrings' first lines."""

import functools
import random
import re
from typing import Any

import torch
from torch import Tensor

from attention.provided.data import docstrings, novels

SENTENCES = (  # two on each of four subjects; no pair of them shares a word that tells anything
    "A man is playing a guitar.",
    "Someone makes music on stage.",
    "The stock market fell sharply today.",
    "Shares dropped on Wall Street.",
    "How do I boil an egg?",
    "Cooking instructions for breakfast",
    "The train to Berlin is late.",
    "Our journey by rail is delayed.",
)

ROUNDING = 1e-6  # of a cosine: equal texts in different batches get vectors that differ so much
WORD_SEARCHES = ("shared words", "tf-idf")
TEXTS = ("Transformers read pieces.", "unbelievably", "Café on Friday the 13th", "Nadaraya–Watson")
QUESTIONS = (  # that docstrings of Python may answer
    "turn a string into a date",
    "Convert a string to a date.",
    "how can I compress bytes?",
    "wait until another thread is done",
)

TRIPLETS = {  # a sentence, the same in other words, and another thing in nearly the same words
    "negation": (
        ("The shop is open on Sundays.", "You can buy there on Sundays, too.",
         "The shop is not open on Sundays."),
        ("I like this film.", "This movie pleases me.", "I do not like this film."),
        ("The patient has a fever.", "The sick man's temperature is too high.",
         "The patient has no fever."),
        ("Dogs are allowed in the park.", "You may bring your dog to the park.",
         "Dogs are never allowed in the park."),
        ("The test passed.", "All checks succeeded.", "The test did not pass."),
        ("She always answers letters.", "Whoever writes to her gets a reply.",
         "She never answers letters."),
    ),
    "numbers": (
        ("The ticket costs 5 euros.", "You pay five euros to get in.",
         "The ticket costs 500 euros."),
        ("He was born in 1815.", "His year of birth is eighteen fifteen.",
         "He was born in 1951."),
        ("The meeting begins at 9.", "We meet at nine o'clock.", "The meeting begins at 4."),
        ("The bridge is 30 metres long.", "The bridge has a length of thirty metres.",
         "The bridge is 3000 metres long."),
        ("Take two pills a day.", "The dose is a pair of tablets daily.",
         "Take twelve pills a day."),
        ("Three people were hurt.", "There were three injured.", "Thirty people were hurt."),
    ),
    "who did what": (
        ("The dog bit the man.", "The man was bitten by the dog.", "The man bit the dog."),
        ("Anna sold the car to Paul.", "Paul bought the car from Anna.",
         "Paul sold the car to Anna."),
        ("The teacher praised the pupil.", "The pupil was praised by the teacher.",
         "The pupil praised the teacher."),
        ("France beat Brazil.", "Brazil lost to France.", "Brazil beat France."),
        ("Peter is older than Mary.", "Mary is younger than Peter.",
         "Mary is older than Peter."),
        ("The cat chases the mouse.", "The mouse runs away from the cat.",
         "The mouse chases the cat."),
    ),
}  # fmt: skip


def sample_sentences(
    tokenizer: Any, seed: int, count: int, least: int = 8, most: int = 40
) -> Tensor:
    """Sentences of Jane Austen's *Persuasion*, of least to most pieces, drawn: ids (count, T)."""
    found = re.split(r"(?<=[.!?;]) +|\n", novels.load()[novels.TEST])
    fit = [s for s in found if least <= len(tokenizer.encode(s, 10_000)) <= most]
    return tokenizer.batch(random.Random(seed).sample(fit, count))


def excerpts(tokenizer: Any, seed: int, count: int, T: int) -> Tensor:
    """Runs of pieces of the same novel, each of T with [CLS] and [SEP]: ids (count, T)."""
    lines = [s for s in novels.load()[novels.TEST].split("\n") if len(s.split()) > T]
    return tokenizer.batch(random.Random(seed).sample(lines, count), T)


@functools.cache
def held_out() -> tuple[list[str], list[str]]:
    """Summaries and bodies of the docstrings that the stand-in has not learned from: 589 each."""
    _, rows = docstrings.split(docstrings.load())
    return [row.summary for row in rows], [row.body for row in rows]


def found(queries: Tensor, passages: Tensor, k: int = 1) -> Tensor:
    """Whether the passage of the same row is among the k nearest: (N,), 0 or 1 for each query.

    Passages that are equally near stand in an order that is drawn: then it is the probability.
    """
    cosines = queries.double() @ passages.double().T
    further = cosines - cosines.diagonal()[:, None]
    nearer = (further > ROUNDING).sum(dim=1)
    alike = (further.abs() <= ROUNDING).sum(dim=1)  # itself is one of them
    return ((k - nearer) / alike).clamp(0, 1)


def share_found(queries: Tensor, passages: Tensor) -> list[float]:
    """For which share of queries the passage of the same row is the nearest, and among ten."""
    return [found(queries, passages, k).mean().item() for k in (1, 10)]


@functools.cache
def shared_words() -> Tensor:
    """How many words a summary shares with its body: (589,), int64.

    Stop words, such as "the", are not counted.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    both = held_out()
    counter = CountVectorizer(binary=True, stop_words="english").fit(sum(both, []))
    summaries, bodies = map(counter.transform, both)
    return torch.from_numpy(summaries.multiply(bodies).toarray()).sum(dim=1)


def counted_words(how: str) -> tuple[Tensor, Tensor]:
    """Summaries and bodies as counts of words, for which a dot product compares them."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

    summaries, bodies = held_out()
    rows, _ = docstrings.split(docstrings.load())
    tf_idf = TfidfVectorizer(sublinear_tf=True)  # words are weighed by how rare they are
    counter = tf_idf if how == "tf-idf" else CountVectorizer(binary=True)
    counter.fit([f"{row.summary} {row.body}" for row in rows])
    made = (counter.transform(texts).toarray() for texts in (summaries, bodies))
    queries, passages = (torch.from_numpy(one).double() for one in made)
    return queries, passages
