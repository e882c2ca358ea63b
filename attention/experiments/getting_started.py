"""Lesson 00: the trained translator of lesson 10 at work, and what softmax does to scores."""

from collections.abc import Callable

import torch
from matplotlib.axes import Axes
from torch import Tensor

from attention.experiments.recorded import Claim
from attention.provided.data.numbers import in_words, is_test
from attention.provided.figures import plots
from attention.provided.models.number_translator import NumberTranslator


def translation(number: int) -> Axes:
    """Translate a number with lesson 10's trained model, and draw what it looked at.

    number   from 1 to 999 999
    returns  the map: German letters down, in the order in which they were written, English words
             across; the attention weights are averaged over all eight heads

    One number in ten was kept out of the training, and the printed lines say whether this one was.
    """
    found = NumberTranslator().translate(number)
    german = "".join(found.letters)
    print("English:", " ".join(found.words[:-1]))
    print("German: ", german, "(right)" if german == in_words(number, "de") else "(wrong)")
    if is_test(number):
        print("This number was kept out of the training: the model cannot know it by heart.")
    ax = plots.panels(width=1.5 + 0.85 * len(found.words), height=0.8 + 0.17 * len(german))
    title = "what each letter looked at, mean of eight heads"
    plots.heatmap(found.weights, ax, title, found.letters, found.words)
    ax.set(xlabel="English words", ylabel="German letters, in order of writing")
    ax.tick_params(axis="x", labelrotation=25 if len(found.words) > 5 else 0)
    return ax


def scales(softmax: Callable[..., Tensor]) -> list[Axes]:
    """Draw the weights that softmax makes of the scores 2, 1, -1, times 0.1, 1 and 10."""
    axes = list(plots.panels(columns=3))
    for ax, factor in zip(axes, (0.1, 1.0, 10.0), strict=True):
        scores = factor * torch.tensor([2.0, 1.0, -1.0])
        labels = [f"{score:g}" for score in scores.tolist()]
        plots.bars(softmax(scores, dim=0), labels, ax, title=f"scores times {factor:g}")
        ax.set(xlabel="score")
    return axes


CLAIMS = [
    Claim(
        claim="so for 731 the dark cells cross: *ein* looks at *one*, then *dreißig* goes back to "
        "*thirty*. The model found these places by itself.",
        control="which letter is written; one trained model, the mean of its eight heads",
        refuter="a number like it that does not cross: of 72 such numbers (every ninth of 648) "
        "all 72 look most at the digit's word when its first letter is written, and at the word "
        "for the tens when theirs is. A mean hides what single heads do (lesson 10)",
        seeds="one model",
        where="What will you build, and how?",
    ),
    Claim(
        claim="A plain average gives the freezer as much say as your room.",
        control="the weights, equal or not; the three sensors kept",
        refuter="none can: three weights of 1/3",
        seeds="none needed: arithmetic",
        where="Reading a check",
    ),
    Claim(
        claim="adding the same number $c$ to all scores changes no weight",
        control="c; the scores kept",
        refuter="none can, by the formula. In float32 it holds up to c = 10 million; with 100 "
        "million the three scores round to the same number",
        seeds="none needed: a theorem",
        where="From scores to weights",
    ),
    Claim(
        claim="In float32, a score of 89 is enough to overflow.",
        control="the largest score; the formula without the shift kept",
        refuter="a power of 89 that is finite: 88.7 gives 3.3e38, 88.8 inf",
        seeds="none needed: nothing is drawn",
        where="Break it",
    ),
    Claim(
        claim="Only the differences between scores count: small ones make an average, large ones "
        "a choice.",
        control="the scale of three scores, 0.1, 1 and 10",
        refuter="equal scores of any size: their differences are 0, and the weights stay equal",
        seeds="none needed: nothing is drawn",
        where="Predict first",
    ),
]
