"""Small documents with one question: in which city is Ada?

Each document has several sentences. Each sentence puts one person into one city; one of them is
about Ada. The other sentences look the same, so a list of the words does not tell the answer.
"""

import random
from typing import NamedTuple

import torch
from torch import Tensor

from attention.provided import demand

PEOPLE = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gita", "Hugo", "Ida", "Jon"]
CITIES = ["Athens", "Bern", "Cairo", "Delhi", "Essen", "Fez", "Graz", "Hanoi", "Izmir", "Jena"]
PLACES = ["lives in", "moved to", "works in", "is in", "stays in"]
TIMES = ["", "today", "this year", "with a friend", "for a while"]
WORDS = ["<pad>", *PEOPLE, *CITIES, *sorted({w for t in PLACES + TIMES for w in t.split()})]
IDS = {word: number for number, word in enumerate(WORDS)}
SENTENCES, LENGTH = 8, 7  # at most


class Documents(NamedTuple):
    """Word ids (B, S, T), 0 where there is none; the answer (B,); the sentence that has it (B,)."""

    words: Tensor
    cities: Tensor
    sentence: Tensor


def make(n: int, seed: int) -> Documents:
    """Return n random documents of 4 to 8 sentences; no two are about the same person or city.

    Raises ValueError for an n below 1.
    """
    demand.counts(n=n)
    draw = random.Random(seed)
    words = torch.zeros(n, SENTENCES, LENGTH, dtype=torch.int64)
    cities, where = [], []
    for document in words:
        size = draw.randint(4, SENTENCES)
        people = draw.sample(PEOPLE[1:], size - 1)
        people.insert(draw.randrange(size), PEOPLE[0])
        places = draw.sample(CITIES, size)
        for row, person, city in zip(document, people, places, strict=False):
            text = f"{person} {draw.choice(PLACES)} {city} {draw.choice(TIMES)}".split()
            row[: len(text)] = torch.tensor([IDS[word] for word in text])
        where.append(people.index(PEOPLE[0]))
        cities.append(CITIES.index(places[where[-1]]))
    return Documents(words, torch.tensor(cities), torch.tensor(where))


def text(words: Tensor) -> list[str]:
    """Return the words of a sentence, (T,) ids, without padding."""
    return [WORDS[number] for number in words.tolist() if number]
