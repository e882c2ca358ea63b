"""Lesson 02: how much fits into one vector, and how long it takes to learn that."""

import functools
import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from attention.experiments import recorded
from attention.experiments.recorded import Claim, Experiment
from attention.provided.data.numbers import Corpus, numbers
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.measuring import timing
from attention.provided.models import translators
from attention.provided.training_steps import one_thread

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


def pairs_and_ids(corpus: Corpus) -> None:
    """Print some pairs, how many there are, and three sources as a batch of ids."""
    for number, english, german in corpus.test[30::170]:
        print(f"{number:>6}  {english}\n        {german}")
    batch = corpus.batch(corpus.test[20:23])
    print(f"\n{len(corpus.train)} pairs to train on, {len(corpus.test)} others to test with")
    print("source ids (B, T_k):", *batch.source.tolist(), sep="\n  ")
    print("lengths (B,):", batch.lengths.tolist())


def fading(gru_step: Callable[..., Tensor], steps: int = 80) -> int:
    """Draw what is left of a state of 1 that reads zeros, with its update gate held at a value.

    The gates 0.5, 0.9 and 0.99 are set by biases; all weights are 0, and so is the candidate.
    returns  the number of steps after which half is gone at 0.99
    """
    left: dict[str, list[float]] = {}
    for gate in (0.5, 0.9, 0.99):
        h, zeros = torch.ones(1, 1), torch.zeros(3, 1)
        biases = torch.tensor([0.0, math.log(gate / (1 - gate)), 0.0])
        row = left[f"z = {gate}"] = [1.0]
        for _ in range(steps):
            h = gru_step(torch.zeros(1, 1), h, zeros, zeros, biases, torch.zeros(3))
            row.append(h.item())
    plots.lines(range(steps + 1), left, xlabel="steps", ylabel="what is left of the state")
    half = {name: sum(one > 0.5 for one in row) for name, row in left.items()}
    print("half is gone after", ", ".join(f"{n} ({name})" for name, n in half.items()))
    return half["z = 0.99"]


def losses_of(losses: Sequence[float], corpus: Corpus) -> Axes:
    """Draw the loss of each step, beside that of letters which are all equally probable."""
    steps = range(1, len(losses) + 1)
    ax = plots.lines(steps, {"loss": losses}, xlabel="steps", ylabel="nats a letter")
    ax.axhline(math.log(len(corpus.target_vocabulary)), color=plots.GREY, linestyle="--")
    ax.set_ylim(0, None)
    ax.set_title("all letters equally probable: dashed")
    return ax


def translations(model: nn.Module, corpus: Corpus) -> None:
    """Print what a model makes of two test numbers of each length."""
    pairs = [pair for some in corpus.test_by_digits(at_most=2).values() for pair in some]
    for (number, _, german), text in zip(
        pairs, translators.translations(model, corpus, pairs), strict=True
    ):
        print(f"{number:>6}  {'right' if text == german else 'wrong'}  {text[:70]}")


def accuracy(model: nn.Module, corpus: Corpus) -> Axes:
    """Draw and print the share of test numbers without any error, by number of digits."""
    shares = translators.accuracy_by_digits(model, corpus)
    print("  ".join(f"{digits} digits {share:.2f}" for digits, share in shares.items()))
    return plots.accuracy({"64 numbers, 300 steps": shares})


def size_and_steps(Seq2Seq: Model, corpus: Corpus) -> float:
    """Draw accuracy by digits with one factor changed: the size of the model, or the steps.

    Read from the record: `train_one` trains one point of it. 3000 steps are one stored model, of
    which two shares are printed.
    returns  the share of five-digit numbers that is right after 1000 steps, the median of the seeds
    """
    rows = recorded.read("sequence_to_sequence", "size x steps")
    designs = {
        "the size, 300 steps": [(32, 300), (64, 300), (128, 300)],
        "the steps, 64 numbers": [(64, 300), (64, 1000)],
    }
    axes = plots.panels(1, 2, width=3.9, height=2.8)
    for ax, (title, points) in zip(axes, designs.items(), strict=True):
        found = {f"{d}, {n} steps": seeds.where(rows, d_state=d, steps=n) for d, n in points}
        seeds.bands(found, ax, f"changed: {title}", legend=False)
        plots.legend(ax, fontsize=8, loc="lower left")
        for label, runs in found.items():
            shown = "   ".join(f"{share:.2f}" for share in seeds.at_digits(runs, 5))
            print(f"{label:<16} at five digits, seeds 0, 1, 2:  {shown}")
    longer = Seq2Seq(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
    translators.load(longer, "sequence_to_sequence_3000_steps")
    shares = translators.accuracy_by_digits(longer, corpus)
    alone = f"{shares.get(5, 0):.2f}, and at six {shares.get(6, 0):.2f}"
    print(f"64, 3000 steps   at five digits, seed 0 alone:   {alone}")
    return median(seeds.at_digits(seeds.where(rows, d_state=64, steps=1000), 5))


def reversed_source() -> Axes:
    """Draw accuracy by digits with the source as it is and reversed; all else is equal."""
    rows = recorded.read("sequence_to_sequence", "size x steps")
    backwards = recorded.read("sequence_to_sequence", "reversed source")
    found = {
        "source as it is": seeds.where(rows, d_state=64, steps=300),
        "source reversed": seeds.where(backwards, steps=300),
    }
    for label, runs in found.items():
        for digits in (4, 5):
            shares = (f"{share:.2f}" for share in seeds.at_digits(runs, digits))
            print(f"{label}, {digits} digits:", *shares)
    return seeds.bands(found)


def reach(Seq2Seq: Model, trained: nn.Module, corpus: Corpus) -> Axes:
    """Draw `influence_by_distance` before and after training, on a logarithmic scale.

    Prints the recorded influence 20 steps back, for three seeds.
    """
    torch.manual_seed(translators.SEED)
    untrained = Seq2Seq(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
    models = {"before training": untrained, "after training": trained}
    curves = {label: influence_by_distance(one, translators.SEED) for label, one in models.items()}
    ax = plots.lines(range(40), curves, xlabel="steps back", ylabel="influence on the encoding")
    ax.set_yscale("log")
    rows = recorded.read("sequence_to_sequence", "size x steps")
    runs = seeds.where(rows, d_state=64, steps=300)
    for name in ("before", "after"):
        shown = (f"{run[name]:.5f}" for run in runs)
        print(f"{name:<7} {FAR} steps back, seeds 0, 1, 2:", *shown)
    return ax


def times() -> Axes:
    """Time a GRU and a linear layer with as many multiplications, at six lengths, on one core."""
    gru, layer = nn.GRU(64, 64, batch_first=True), nn.Linear(64, 6 * 64)
    lengths = (25, 50, 100, 200, 400, 800)
    inputs = [torch.randn(1, T, 64) for T in lengths]
    with torch.no_grad(), one_thread():
        measured = {
            name: timing.in_turns([functools.partial(one, x) for x in inputs])
            for name, one in (("recurrent", gru), ("all positions at once", layer))
        }
    title = "one sequence, one core of the machine that built this notebook"
    return plots.lines(lengths, measured, None, title, "length T", "milliseconds")


def beside_companions(model: nn.Module, corpus: Corpus) -> None:
    """Print what becomes of three two-digit numbers in a batch with a longer and longer one."""
    few = [pair for pair in corpus.test if 20 < pair[0] < 100][:3]
    for digits in (2, 4, 6):
        batch = few + corpus.test_by_digits(1)[digits]
        texts = translators.translations(model, corpus, batch)[:3]
        print(f"beside a number of {digits} digits:", *(one[:24] or "(nothing)" for one in texts))


def measured(model: nn.Module, corpus: Corpus, seed: int, steps: int) -> dict[str, Any]:
    """Train a translator on the batches of a seed, and measure it.

    returns  "digits" and "accuracy", lists; "loss", the mean of the last tenth of the steps;
             "parameters"
    """
    batches = corpus.batches(translators.BATCH, steps, seed)
    losses = translators.train(model, batches, steps, token_loss)
    last = losses[-max(1, len(losses) // 10) :]
    shares = translators.accuracy_by_digits(model, corpus)
    return {
        "digits": list(shares),
        "accuracy": [round(share, 3) for share in shares.values()],
        "loss": round(sum(last) / len(last), 4),
        "parameters": translators.size(model),
    }


def token_loss(logits: Tensor, target: Tensor) -> Tensor:
    """The mean cross-entropy of the tokens that are no padding, as lesson 02 writes it."""
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
