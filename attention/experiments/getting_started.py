"""Lesson 00: the trained translator of lesson 10 at work, and what softmax does to scores."""

from collections.abc import Callable
from os.path import commonprefix

import torch
from matplotlib.axes import Axes
from torch import Tensor

from attention.provided.data.numbers import in_words, is_test
from attention.provided.figures import plots
from attention.provided.models.number_translator import NumberTranslator


def translation(number: int) -> Axes:
    """Translate a number with lesson 10's trained model, and draw what it looked at.

    number   from 1 to 999 999
    returns  the map: German letters down, in the order in which they were written, English words
             across; the weights are averaged over all eight heads, the largest of a row has a dot,
             and a frame is around the first letter that is wrong

    One number in ten was kept out of the training, and the printed lines say whether this one was.
    Of a wrong translation they also say the right one, and where the first wrong letter looked.
    """
    found = NumberTranslator().translate(number)
    german, expected = "".join(found.letters), in_words(number, "de")
    print("English:", " ".join(found.words[:-1]))
    print("German: ", german, "(right)" if german == expected else "(wrong)")
    if german != expected:
        print("right:  ", expected)
    if is_test(number):
        print("This number was kept out of the training: the model cannot know it by heart.")
    ax = plots.panels(width=1.5 + 0.85 * len(found.words), height=0.8 + 0.17 * len(german))
    title = "what each letter looked at, mean of eight heads"
    plots.heatmap(found.weights, ax, title, found.letters, found.words)
    order = found.weights.argsort(dim=1, descending=True)
    ax.plot(order[:, 0], range(len(order)), "o", color=plots.VERMILION, markersize=5)
    right = len(commonprefix([german, expected]))
    if right < len(german):
        plots.mark(ax, (right, right), (0, len(found.words) - 1))
        looked_at = ((found.words[at], found.weights[right, at]) for at in order[right, :2])
        said = ", ".join(f"{word} {weight:.2f}" for word, weight in looked_at)
        print(f"largest weights at the first wrong letter: {said}")
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
