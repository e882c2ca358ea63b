"""What an error in PyTorch's or Python's words means, for those who read it for the first time.

A sentence is true of every error whose words it is found by, whatever the line that raised it.
"""

import math
import re
from collections.abc import Callable

from autograder.checking.diagnosis.relations import TENSORS

FLOAT = "`/` always gives a float, `//` a whole number: sizes and counts are whole."


def meaning(kind: str, message: str) -> str:
    """What an error means, where there is no doubt; else ''."""
    if "NoneType" in message and "callable" not in message:
        return OF_NONE if kind in ("TypeError", "AttributeError") else ""
    for words, says in MEANINGS:
        found = re.search(words, message)
        if found:
            return says(*found.groups()) if callable(says) else says
    return ""


def _products(a: str, b: str) -> str:
    return (
        f"In `A @ B` the last axis of A must be as long as the last but one of B. Here it is {a} "
        f"beside {b}: is one of them to be transposed, or another axis meant?"
    )


def _batches(first: str, a: str, other: str, b: str) -> str:
    if first == other:
        return _products(a, b)
    return f"In `A @ B` the axes in front must be the same: here {first} meets {other}."


def _axes(a: str, b: str) -> str:
    return (
        f"Along one axis {a} numbers meet {b}. Two tensors fit if all axes, counted from the last, "
        "are equally long or of size 1: is an axis missing, exchanged with another, or not cut to "
        "the part that is meant? (`.mT` exchanges the last two, `.T` turns all of them around.)"
    )


def _places(index: str, axis: str, size: str) -> str:
    last = int(size) - 1
    return (
        f"Places count from 0: on axis {axis} the last of {size} is {last}, and {index} is asked "
        "for."
    )


def _sizes(sizes: str, count: str) -> str:
    if "-" in sizes:
        return ""
    asked_for = math.prod(int(size) for size in sizes.split(",") if size.strip())
    return f"These sizes make {asked_for} numbers, and the tensor has {count}."


def _unpacked(names: str, values: str) -> str:
    return (
        f"There are {names} names before the `=`, and {values} values come. A tensor is cut along "
        "axis 0 unless another one is named."
    )


def _called(kinds: str) -> str:
    said = f"A function of PyTorch's cannot be called with ({kinds})."
    if re.search(r"\blist\b|\btuple of (?!int)", kinds):
        return f"{said} {TENSORS}"
    return f"{said} {FLOAT}" if re.search(r"\bfloat\b", kinds) else said


def _dtypes(one: str, other: str) -> str:
    names = [DTYPES.get(kind.removeprefix("c10::").lower(), "") for kind in (one, other)]
    if not all(names) or names[0] == names[1]:
        return ""
    met = f"A tensor of {names[0]} meets one of {names[1]}, and here both must have one dtype."
    if all("float" in name for name in names):
        return f"{met} {UNTOLD}"
    return f"{met} `.to(x.dtype)` gives a tensor that of x."


def _precisions(one: str, other: str) -> str:
    """Where the one that is expected need not be that of another tensor, unless both are floats."""
    said = _dtypes(one, other)
    return said if said.endswith(UNTOLD) else ""


UNTOLD = (
    "`torch.zeros` and its like make float32 where they are not told otherwise: pass "
    "`dtype=x.dtype`, or use `x.new_zeros(…)`."
)
DTYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "long int": "int64",
    "int": "int32",
    "bool": "bool",
}
OF_NONE = (
    "A value it computes with is None: an argument that was left out or is None, or what a "
    "function returned."
)
# From what stands in a message to what it means: a sentence, or a function of what was found.
MEANINGS: tuple[tuple[str, str | Callable[..., str]], ...] = (
    (
        "Boolean value of Tensor with more than one value is ambiguous",
        "`if`, `and`, `or` and `not` need one True or False, and got a tensor of several "
        "elements. Use `&`, `|` and `~` element by element, and `is not None` to ask whether "
        "an argument was given.",
    ),
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _products),
    (
        r"first two dimensions of batch2 tensor to be: \[(\d+), (\d+)\] but got: \[(\d+), (\d+)\]",
        _batches,
    ),
    (r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", _axes),
    (
        "only one element tensors can be converted|elements cannot be converted to Scalar",
        "A function of Python's own, such as `math.exp` or `float`, takes one number, and got a "
        "tensor of several. PyTorch's, such as `torch.exp`, take tensors.",
    ),
    (
        r"Dimension out of range .*\[(-?\d+), (-?\d+)\], but got (-?\d+)",
        lambda low, high, axis: (
            f"There is no axis {axis} here, only {low} to {high}. Counted from the end, as -1 and "
            "-2 are, an axis is the same one however many stand in front of it."
        ),
    ),
    (r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", _places),
    (
        "view size is not compatible",
        "`view` needs numbers that lie one after the other in memory, and behind a transpose they "
        "do not. `reshape` copies where it must.",
    ),
    (r"shape '\[([^]]*)\]' is invalid for input of size (\d+)", _sizes),
    (
        r"Tensors must have same number of dimensions: got (\d+) and (\d+)",
        lambda one, other: (
            f"Tensors that are joined need equally many axes, and here one has {one}, one {other}: "
            "squeeze takes an axis of size 1 away, unsqueeze adds one."
        ),
    ),
    (
        r"Sizes of tensors must match except in dimension (\d+)",
        lambda axis: (
            f"Tensors that are joined along axis {axis} must be equally long along all others."
        ),
    ),
    ("step must be greater than zero", "Tensors know no `[::-1]`: `flip(0)` turns them around."),
    (
        r"tuple of ints, ?but got float|'float' object cannot be interpreted as an integer",
        f"A size or a count is a float. {FLOAT}",
    ),
    (
        r"slice indices must be integers|only integers, slices .* are valid indices",
        f"An index must be a whole number. {FLOAT}",
    ),
    (r"received an invalid combination of arguments - got \(([^)]*)\)", _called),
    (r"'(list|tuple)' object has no attribute '\w+'", TENSORS),
    (r"must be Tensor, not (list|tuple)", TENSORS),
    (r"not enough values to unpack \(expected (\d+), got (\d+)\)", _unpacked),
    (
        r"Expected target size",
        "`cross_entropy` looks for the classes on axis 1: (B, vocab_size, T) goes with targets "
        "(B, T).",
    ),
    (
        r"same (?:dtype|scalar type), but (?:got:?|found) ((?:c10::)?\w+(?: int)?)(?:,| !=| and) "
        r"((?:c10::)?\w+(?: int)?)",
        _dtypes,
    ),
    (r"expected scalar type (\w+) but found (\w+)", _precisions),
    (
        r"mixed dtype \(CPU\)",
        f"What goes into a layer has another dtype than the layer's weights. {UNTOLD}",
    ),
    (
        r"argument #1 'indices' to have one of .* Long, Int",
        "An `nn.Embedding` finds rows by whole numbers, and got others. `torch.zeros` and its like "
        "make whole numbers with `dtype=torch.long`.",
    ),
    (
        r"^index out of range in self$",
        "A place is asked for that is not there: places count from 0, so that the last of n is "
        "n − 1. An `nn.Embedding` has a place for each of its rows.",
    ),
    (
        "only supports boolean masks",
        "A mask is made of True and False, as a comparison gives them.",
    ),
)
