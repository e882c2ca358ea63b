"""Lesson 02: how much fits into one vector, and how long it takes to learn that."""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from attention.experiments import recorded
from attention.experiments.recorded import Experiment
from attention.provided.data.numbers import Corpus, numbers
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.measuring import timing
from attention.provided.models import translators
from attention.provided.training_steps import one_thread

Model = Callable[..., nn.Module]

WORDS = 9  # of the longest sources, EOS comes on top
NETWORKS = {128: (16, 32, 64), 64: (16, 32)}  # width of the GRUs → numbers that get through


def train_one(
    d_state: int,
    steps: int,
    seed: int,
    Seq2Seq: Model,
    reverse: bool = False,
    through: int | None = None,
) -> dict[str, Any]:
    """Train the translator of lesson 02; returns what `measured` does, and its `influence`.

    d_state  how many numbers every state has
    through  how many of the encoding's numbers the decoder sees, the others being 0; None: all
    returns  also "before" and "after" training: the influence of the words on the encoding
    """
    torch.manual_seed(seed)
    corpus = numbers()
    sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
    model: Any = Seq2Seq(*sizes, d_state=d_state, reverse=reverse)
    if through is not None:
        encoding, kept = model.encoding, torch.arange(d_state).lt(through)
        model.encoding = lambda source, lengths: encoding(source, lengths) * kept
    before = influence(model, corpus, seed)
    found = measured(model, corpus, seed, steps)
    return {**found, "before": before, "after": influence(model, corpus, seed)}


def influence(model: Any, corpus: Corpus, seed: int) -> list[float]:
    """How much each word of the longest test sources changes the encoding; EOS, 1, comes first.

    returns  ten numbers, in the order from the last word that was read to the first
    """
    embedded: list[Tensor] = []
    hook = model.source_embedding.register_forward_hook(lambda *call: embedded.append(call[2]))
    batch = corpus.batch([pair for pair in corpus.test if len(pair[1].split()) == WORDS])
    last = model.encoding(batch.source, batch.lengths)  # (B, d_state)
    hook.remove()
    found = steps_back(last, embedded[0], torch.Generator().manual_seed(seed))
    return [round(one, 4) for one in found.tolist()]


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
    ax = plots.lines(steps, {"loss": losses}, xlabel="steps", ylabel="nats per letter")
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


def vector_network_and_steps(Seq2Seq: Model, corpus: Corpus) -> float:
    """Draw accuracy with one factor changed: what gets through, the network, or the steps.

    Read from the record: `train_one` trains one point of it. 3000 steps are one stored model, of
    which two shares are printed.
    returns  the share of five-digit numbers that is right after 1000 steps, the median of the seeds
    """
    axes = plots.panels(1, 2, width=3.9, height=2.8, share=False)
    cut = recorded.read("sequence_to_sequence", "vector and network")
    rows = [*recorded.read("sequence_to_sequence", "steps"), *cut]
    print("four digits, 300 steps, seeds 0, 1, 2")
    named = {}
    for d, widths in NETWORKS.items():
        for through in (*widths, None):
            runs = seeds.where(rows, d_state=d, through=through, steps=300)
            named[f"{through or d} of {d}"] = shares = seeds.at_digits(runs, 4)
            print(f"{f'{through or d} of {d} numbers':<18}", *(f"{one:6.2f}" for one in shares))
    seeds.dots(named, axes[0], "changed: what gets through", "four digits, 300 steps", shares=True)
    found = {
        f"{n} steps": seeds.where(rows, d_state=64, steps=n, through=None) for n in (300, 1000)
    }
    seeds.bands(found, axes[1], "changed: the steps, 64 numbers", legend=False)
    plots.legend(axes[1], fontsize=8, loc="lower left")
    print("five digits, 64 numbers")
    for label, runs in found.items():
        print(f"{label:<18}", *(f"{one:6.2f}" for one in seeds.at_digits(runs, 5)))
    longer = Seq2Seq(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
    translators.load(longer, "sequence_to_sequence_3000_steps")
    shares_by = translators.accuracy_by_digits(longer, corpus)
    print(
        f"3000 steps, seed 0 alone: {shares_by.get(5, 0):.2f}, six digits {shares_by.get(6, 0):.2f}"
    )
    return median(seeds.at_digits(found["1000 steps"], 5))


def reversed_source() -> Axes:
    """Draw accuracy by digits with the source as it is and reversed; all else is equal."""
    rows = recorded.read("sequence_to_sequence", "steps")
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


def reach() -> float:
    """Draw the recorded `influence` of a word on the encoding, for three seeds, log scale.

    returns  that of the first word after training, with seed 0
    """
    runs = seeds.where(recorded.read("sequence_to_sequence", "steps"), d_state=64, steps=300)
    ax = plots.panels(width=6.5, height=3.0)
    for name, colour in (("before", plots.VERMILION), ("after", plots.BLUE)):
        for run in runs:
            label = f"{name} training" if run is runs[0] else None
            ax.plot(run[name], color=colour, label=label, linewidth=1.2)
        first = (f"{run[name][WORDS]:.3f}" for run in runs)
        print(f"{name:<7} training, the first word, seeds 0, 1, 2:", *first)
    ax.set(yscale="log", xlabel="steps back", ylabel="influence on the encoding")
    plots.legend(ax, fontsize=9, loc="lower left")
    return float(runs[0]["after"][WORDS])


def times() -> Any:
    """Time a GRU and a linear layer with as many multiplications, alone and in a batch."""
    gru, layer = nn.GRU(64, 64, batch_first=True), nn.Linear(64, 6 * 64)
    lengths = (25, 50, 100, 200)
    axes = plots.panels(1, 2, width=3.9, height=2.6, share=False)
    for ax, B in zip(axes, (1, 64), strict=True):
        inputs = [torch.randn(B, T, 64) for T in lengths]
        with torch.no_grad(), one_thread():
            measured = {
                name: timing.in_turns([functools.partial(one, x) for x in inputs])
                for name, one in (("recurrent", gru), ("all positions at once", layer))
            }
        title = "one sequence" if B == 1 else f"a batch of {B}"
        plots.lines(lengths, measured, ax, title, "length T", "milliseconds")
        ax.get_legend().remove()
        slow, fast = (row[-1] for row in measured.values())
        print(f"{title}, T = {lengths[-1]}: {slow / fast:.1f} times as long")
    plots.legend(axes[0], fontsize=8, loc="upper left")
    return axes


def measured(
    model: nn.Module,
    corpus: Corpus,
    seed: int,
    steps: int,
    rate: float = translators.LEARNING_RATE,
) -> dict[str, Any]:
    """Train a translator on the batches of a seed, and measure it.

    returns  "digits" and "accuracy", lists; "loss", the mean of the last tenth of the steps;
             "parameters"
    """
    batches = corpus.batches(translators.BATCH, steps, seed)
    losses = trained(model, batches, steps, rate)
    last = losses[-max(1, len(losses) // 10) :]
    shares = translators.accuracy_by_digits(model, corpus)
    return {
        "digits": list(shares),
        "accuracy": [round(share, 3) for share in shares.values()],
        "loss": round(sum(last) / len(last), 4),
        "parameters": translators.size(model),
    }


def trained(
    model: nn.Module,
    batches: Iterable[Any],
    steps: int,
    rate: float = translators.LEARNING_RATE,
) -> list[float]:
    """Train a translator by the mean cross-entropy of true tokens; returns the loss of each step.

    The loss has no name of its own here: it would answer an exercise of lesson 02.
    """
    return translators.train(
        model,
        batches,
        steps,
        lambda logits, target: nn.functional.cross_entropy(
            logits.transpose(1, 2), target, ignore_index=PAD
        ),
        rate,
    )


SEEDS = (0, 1, 2)
SHORT = {"d_state": 64, "steps": 60, "seed": 0}

EXPERIMENTS = {
    "steps": Experiment(
        points=[
            {"d_state": d_state, "steps": steps, "seed": seed}
            for d_state, steps in ((64, 300), (128, 300), (64, 1000))
            for seed in SEEDS
        ]
        + [SHORT],
        run=train_one,
        again=SHORT,
    ),
    "vector and network": Experiment(
        points=[
            {"d_state": d_state, "steps": 300, "seed": seed, "through": through}
            for d_state, widths in NETWORKS.items()
            for through in widths
            for seed in SEEDS
        ]
        + [SHORT | {"through": 16}],
        run=train_one,
        again=SHORT | {"through": 16},
    ),
    "reversed source": Experiment(
        points=[{"d_state": 64, "steps": 300, "seed": seed, "reverse": True} for seed in SEEDS]
        + [SHORT | {"reverse": True}],
        run=train_one,
        again=SHORT | {"reverse": True},
    ),
}
