"""Lesson 02: how much fits into one vector, and how long it takes to learn that."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from attention.experiments.recorded import Claim, Experiment
from attention.provided.data.numbers import Corpus, numbers
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots
from attention.provided.models import translators

Model = Callable[..., nn.Module]

FAR = 20  # steps back


def train_one(
    d_state: int, steps: int, seed: int, Seq2Seq: Model, reverse: bool = False
) -> dict[str, Any]:
    """Train the translator of lesson 02; returns what `measured` does, and its reach.

    d_state  how many numbers the one vector has, and every state
    returns  also "before" and "after" training: the influence on the encoding of a word that was
             read 20 steps before the last one, as a share of the last one's
    """
    torch.manual_seed(seed)
    corpus = numbers()
    sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    model = Seq2Seq(*sizes, d_state=d_state, reverse=reverse)
    before = influence(model, seed)
    found = measured(model, corpus, seed, steps)
    return {**found, "before": before, "after": influence(model, seed)}


def influence(model: nn.Module, seed: int) -> float:
    """How much a word that was read 20 steps ago changes the encoding; the last word's is 1."""
    return round(influence_by_distance(model, seed)[FAR].item(), 5)


def influence_by_distance(model: nn.Module, seed: int, steps: int = 40) -> Tensor:
    """How much each of 40 random words changes the encoding: (40,), the last word's, 1, first."""
    generator = torch.Generator().manual_seed(seed)
    embedding: Any = model.source_embedding
    words = torch.randint(3, embedding.num_embeddings, (64, steps), generator=generator)
    x = embedding(words).detach().requires_grad_()  # (B, T, d_embedding)
    encodings = model.encoder(x)[0][:, -1]  # type: ignore[operator]  # (B, d_state)
    return steps_back(encodings, x, generator)


def steps_back(last: Tensor, x: Tensor, generator: torch.Generator) -> Tensor:
    """How much a last output depends on each input, by its distance; that of the last input is 1.

    last     (B, d)       made of x
    x        (B, T, d_x)  requires a gradient
    returns  (T,)         for 0, 1, 2 … steps back, the mean over the batch

    The output has many numbers, a gradient wants one: a random direction for each row weighs them
    all, so that none is left out and none preferred.
    """
    directions = torch.randn(last.shape, generator=generator)
    (gradient,) = torch.autograd.grad((last * directions).sum(), x)
    by_distance = gradient.norm(dim=2).mean(dim=0).flip(0)  # (T,)
    return by_distance / by_distance[0]


def reach(models: Mapping[str, nn.Module]) -> Axes:
    """Draw `influence_by_distance` for each labelled model, on a logarithmic scale."""
    curves = {label: influence_by_distance(one, translators.SEED) for label, one in models.items()}
    ax = plots.lines(range(40), curves, xlabel="steps back", ylabel="influence on the encoding")
    ax.set_yscale("log")
    return ax


def measured(model: nn.Module, corpus: Corpus, seed: int, steps: int) -> dict[str, Any]:
    """Train a translator on the batches of a seed, and measure it.

    returns  "digits" and "accuracy", lists; "loss", the mean of the last tenth of the steps;
             "parameters"
    """
    losses = translators.train(model, corpus.batches(translators.BATCH, steps, seed), steps, _loss)
    last = losses[-max(1, len(losses) // 10) :]
    shares = translators.accuracy_by_digits(model, corpus)
    return {
        "digits": list(shares),
        "accuracy": [round(share, 3) for share in shares.values()],
        "loss": round(sum(last) / len(last), 4),
        "parameters": translators.size(model),
    }


def _loss(logits: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits.transpose(1, 2), target, ignore_index=PAD)


SEEDS = (0, 1, 2)
SHORT = {"d_state": 64, "steps": 60, "seed": 0}

EXPERIMENTS = {
    "size x steps": Experiment(
        claim="a wider model, or longer training, moves the fall of accuracy to longer numbers",
        control="the width of the model, or the number of steps; data, seeds and the rest kept",
        points=[
            {"d_state": d_state, "steps": steps, "seed": seed}
            for d_state, steps in ((32, 300), (64, 300), (128, 300), (64, 1000))
            for seed in SEEDS
        ]
        + [SHORT],
        run=train_one,
        again=SHORT,
    ),
    "reversed source": Experiment(
        claim="reading the source backwards helps at four digits, after 300 steps",
        control="the order in which the source is read; the rest as above, 64 numbers",
        points=[{"d_state": 64, "steps": 300, "seed": seed, "reverse": True} for seed in SEEDS]
        + [SHORT | {"reverse": True}],
        run=train_one,
        again=SHORT | {"reverse": True},
    ),
}
CLAIMS = [
    Claim(
        "an update gate below 1 forgets: half of a state is gone after 1, 7 and 69 steps",
        control="the update gate at 0.5, 0.9 and 0.99; inputs and candidate are 0",
        seeds="none needed: nothing is drawn",
        where="A state that forgets on purpose",
    ),
    Claim(
        "a recurrent layer waits for every step, a linear layer does not",
        control="layers with as many multiplications, one core, 25 to 800 positions",
        seeds="none: shortest of 20 runs",
        where="And a slow one",
    ),
]
