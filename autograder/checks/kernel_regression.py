"""Checks of lesson 01. The oracle is a double loop over Python floats."""

import math

import torch

from autograder.checking import counterexamples
from autograder.checking.toolbox import expect
from autograder.checking.toolbox.registry import check

F64 = torch.float64
NEAR = 1e-3  # beside numbers in the hundreds: differences have the rounding of what they are of


def _tensor(rows):
    return torch.tensor(rows, dtype=F64)


def _average(scores, values):
    """Average of numbers, weighted by exp(score), in plain Python."""
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    return math.fsum(w * v for w, v in zip(weights, values, strict=True)) / math.fsum(weights)


def _gaussian(x, x_train, y_train, bandwidth):
    """Gaussian kernel regression as a double loop."""
    return _tensor(
        [
            _average(
                [-((a - b) ** 2) / (2 * bandwidth**2) for b in x_train.tolist()], y_train.tolist()
            )
            for a in x.tolist()
        ]
    )


def _differentiable(x, x_train, y_train, bandwidth):
    """Gaussian kernel regression as a ratio of sums, through which autograd can differentiate."""
    kernel = (-((x.unsqueeze(1) - x_train) / bandwidth).pow(2) / 2).exp()
    return kernel.mul(y_train).sum(1) / kernel.sum(1)


def _between(got, low, high, what):
    """Every entry of ``got`` lies from ``low`` to ``high``; if not, the message shows one."""
    low, high = (torch.as_tensor(bound, dtype=F64).expand_as(got) for bound in (low, high))
    outside = (~((got >= low - 1e-9) & (got <= high + 1e-9))).nonzero()
    if len(outside):
        place = tuple(outside[0].tolist())
        shown = f"[{', '.join(map(str, place))}] = {got[place]:.6g}"
        expect.true(False, what, shown, f"a number from {low[place]:.6g} to {high[place]:.6g}")


def _examples(draw):
    """T_q=5 queries and T_k=7 examples, in no order; each query has an example near it.

    Where all are far the weights are tiny, and what is added to their sum shows: a stage's own.
    """
    x_train = draw.uniform(7, high=6.0)
    x = x_train[draw.permutation(7)[:5]] + draw.uniform(5, low=-0.4, high=0.4)
    return x, x_train, draw.normal(7, scale=4.0)


def _follows_the_nearest(predict, y_train, at=slice(None)):
    """Near the examples, with a tiny bandwidth, and far from all of them: where exp is 0."""
    x, x_train = _tensor([-500.0, 2.1, 500.0]), _tensor([2.0, 0.0, 2.3, 9.0])
    predictions = predict(x[at], x_train, y_train[:4])
    expect.finite(predictions, "with a tiny bandwidth, or far away, a prediction is not a number")
    what = "with a tiny bandwidth, or far away, the nearest example's value is not the prediction"
    expect.close(predictions, y_train[torch.tensor([1, 0, 3])][at], what)


def _one(prediction):
    """The only number that came back, whatever axes it has."""
    expect.tensor(prediction)
    if prediction.numel() != 1:
        expect.shape(prediction, (1,), axes="T_q,")
    return prediction.reshape(1)


@check(
    rests_on=(
        "The score is *minus* the squared distance over the temperature",
        "A score per key, a weight per key, the weighted sum of the values",
        "keys `(T_k, d_k)` and values `(T_k, d_v)` give `(d_v,)`, for any lengths",
        "towards 0 only the nearest key counts",
        "Raises ValueError if the temperature is not positive",
    )
)
def soft_lookup(student, draw):
    """Softmax of minus squared distance over temperature, from hard lookup to the mean."""
    query, keys, values = draw.normal(3), draw.normal(7, 3), draw.normal(7, 5, scale=200.0)
    answer = student(query, keys, values, temperature=2.0)
    expect.shape(answer, (5,), axes="d_v,")
    expect.dtype(answer, F64)
    _between(answer, values.amin(0), values.amax(0), "the answer is outside the range of values")

    two = _tensor([[0.0, 0.0], [1.0, 2.0]]), _tensor([[10.0], [40.0]])
    answer = student(_tensor([0.0, 0.0]), *two, temperature=5 / math.log(2))
    what = "for query (0, 0), keys (0, 0) and (1, 2), values 10 and 40, temperature 5 / log 2"
    expect.close(answer, _tensor([20.0]), f"{what} = 7.2135 the answer is wrong")

    for temperature in (0.7, 3.0, 20.0):
        scores = [-(math.dist(query.tolist(), key.tolist()) ** 2) / temperature for key in keys]
        expected = _tensor([_average(scores, values[:, j].tolist()) for j in range(5)])
        answer = student(query, draw.strided(keys), draw.strided(values), temperature=temperature)
        what = f"with temperature={temperature} the answer is wrong"
        expect.close(answer, expected, what, atol=NEAR)

    order = draw.permutation(7)
    shuffled = student(query, keys[order], values[order], temperature=20.0)
    what = "shuffling the (key, value) pairs changes the answer"
    expect.close(shuffled, answer, what, atol=NEAR)
    apart = torch.arange(7, dtype=F64).unsqueeze(1) * _tensor([[1.0, -1.0, 2.0]])
    answer = student(apart[4] + 0.1, apart, values, temperature=1e-5)
    what = "with a temperature near 0 the answer is not the value of the nearest key"
    expect.close(answer, values[4], what)
    for temperature in (0.0, -1.0):
        what = f"temperature={temperature} should be refused"
        expect.raises(student, ValueError, query, keys, values, temperature=temperature, what=what)

    with expect.care():
        alone = student(query, keys[:1], values[:1], temperature=2.0)
        expect.close(alone, values[0], "with one key the answer is not its value")
    with expect.care():
        short = student(query[:1], keys[:2, :1], values[:2, :1], temperature=2.0)
        scores = [-((query[0] - key).item() ** 2) / 2.0 for key in keys[:2, 0]]
        expected = _tensor([_average(scores, values[:2, 0].tolist())])
        expect.close(short, expected, "with d_k=1 and d_v=1 the answer is wrong", atol=NEAR)


@check(
    rests_on=(
        "The weights of query $x_i$ are its Gaussian similarities, divided by their sum",
        "an average of the examples, weighted by a Gaussian kernel",
        "Predict $y$ for all queries at once",
        "far from all examples (1)",
    ),
    stages={"for one query": 1, "for many queries": 1, "far from all examples": 1},
)
def nadaraya_watson(student, draw):
    """Gaussian kernel regression for one query, for many at once, and where exp is 0."""
    x, x_train, y_train = _examples(draw)
    with expect.stage("for many queries"):
        _predicts_many(student, draw, x, x_train, y_train)
    with expect.stage("for one query"):
        _predicts_one(student, x[:1], x_train, y_train)
    with expect.stage("far from all examples"):
        for far in (slice(1), slice(2, 3)):
            _follows_the_nearest(lambda *given: _one(student(*given, 1.0)), y_train, far)
        if expect.stands("for many queries"):
            _follows_the_nearest(lambda *given: student(*given, 0.01), y_train)
    with expect.stage("for many queries"):
        with expect.care():
            what = "with T_q=5 and T_k=1 a prediction is wrong"
            single = x, x_train[:1], y_train[:1]
            expect.close(student(*single, 7.0), _gaussian(*single, 7.0), what)
        with expect.care():
            wide = 100 * x, 100 * x_train, 100 * y_train
            what = "with numbers in the hundreds and bandwidth 70 a prediction is wrong"
            expect.close(student(*wide, 70.0), 100 * _gaussian(x, x_train, y_train, 0.7), what)


def _predicts_many(student, draw, x, x_train, y_train):
    predictions = student(x, x_train, y_train, 0.7)
    expect.shape(predictions, (5,), axes="T_q,")
    expect.dtype(predictions, F64)
    expect.finite(predictions)
    what = "a prediction is outside the range of y_train"
    _between(predictions, y_train.min(), y_train.max(), what)

    # At distance 2 and this bandwidth the kernel is 1/2: (1 · 10 + 1/2 · 40) / (3/2) = 20.
    x_hand, y_hand = _tensor([0.0, 2.0]), _tensor([10.0, 40.0])
    predictions = student(_tensor([0.0, 1.0]), x_hand, y_hand, math.sqrt(2 / math.log(2)))
    what = "for x = (0, 1), x_train = (0, 2), y_train = (10, 40) and bandwidth √(2 / log 2)"
    expect.close(predictions, _tensor([20.0, 25.0]), f"{what} = 1.69864 a prediction is wrong")

    for bandwidth in (0.3, 0.7, 2.5):
        predictions = student(draw.strided(x), draw.strided(x_train), y_train, bandwidth)
        expected = _gaussian(x, x_train, y_train, bandwidth)
        expect.close(predictions, expected, f"with bandwidth={bandwidth} a prediction is wrong")

    order, queries = draw.permutation(7), draw.permutation(5)
    shuffled = student(x, x_train[order], y_train[order], 2.5)
    expect.close(shuffled, predictions, "shuffling the examples changes the predictions")
    shuffled = student(x[queries], x_train, y_train, 2.5)
    expect.close(shuffled, predictions[queries], "shuffled queries give other predictions")


def _predicts_one(student, x, x_train, y_train):
    """One query, T_q=1: the values count, and the shape is a matter of care."""
    predictions = student(x, x_train, y_train, 0.7)
    expect.finite(_one(predictions))
    what = "for one query the prediction is outside the range of y_train"
    _between(_one(predictions), y_train.min(), y_train.max(), what)
    given = _tensor([0.0]), _tensor([0.0, 2.0]), _tensor([10.0, 40.0])
    what = "for x = (0,), x_train = (0, 2), y_train = (10, 40) and bandwidth √(2 / log 2)"
    what += " = 1.69864 a prediction is wrong"
    expect.close(_one(student(*given, math.sqrt(2 / math.log(2)))), _tensor([20.0]), what)
    expected = _gaussian(x, x_train, y_train, 0.7)
    what = "for one query and bandwidth=0.7 a prediction is wrong"
    expect.close(_one(predictions), expected, what)
    if expect.stands("for many queries"):
        with expect.care():
            what = "with T_q=1 and T_k=7 a prediction is wrong"
            expect.close(predictions, expected, what)


@check(
    without={**counterexamples.WITHOUT, "care": "it makes an input and is given none"},
    rests_on=(
        "returns an input `(x, x_train, y_train, bandwidth)` for which the result is wrong",
        "`x` is `(T_q,)`, `x_train` and `y_train` are `(T_k,)`",
        "the bandwidth is a positive number",
    ),
)
def break_nadaraya_watson(student, draw):
    """An input on which divides_by_the_sum is wrong."""
    counterexamples.judge(student, "nadaraya_watson", "divides_by_the_sum", allowed=_a_regression)


def _a_regression(x, x_train, y_train, bandwidth):
    """Queries, examples with a value each, all finite, and a positive bandwidth."""
    for name, tensor in (("x", x), ("x_train", x_train), ("y_train", y_train)):
        expect.tensor(tensor)
        fits = tensor.dim() == 1 and tensor.is_floating_point() and tensor.numel() > 0
        fits = fits and tensor.isfinite().all().item()
        wanted = "finite floating point numbers with one axis, one at least"
        expect.true(fits, f"{name} does not fit the exercise", expect.describe(tensor), wanted)
    what = "there are not as many values as examples"
    expect.true(len(x_train) == len(y_train), what, str(len(y_train)), str(len(x_train)))
    number = isinstance(bandwidth, int | float) and not isinstance(bandwidth, bool)
    fits = number and 0 < bandwidth < math.inf
    expect.true(fits, "the bandwidth does not fit", repr(bandwidth), "a positive number")


@check(
    rests_on=(
        "Divide each query's similarities by their sum",
        "what if **no** key is in reach",
        "Such a row becomes uniform, 1 / T_k each",
        "it also changes honest rows whose similarities are small",
    )
)
def attention_weights(student, draw):
    """Rows sum to 1; a row of zeros becomes uniform."""
    weights = student(_tensor([[1.0, 3.0], [4.0, 1.0]]))
    expect.shape(weights, (2, 2), axes="T_q, T_k")
    expect.dtype(weights, F64)
    expect.rows_sum_to_one(weights, 1, "a row does not sum to 1")
    expected = _tensor([[0.25, 0.75], [0.8, 0.2]])
    expect.close(weights, expected, "the weights of [[1, 3], [4, 1]] are wrong")

    similarity = draw.uniform(5, 7, high=400.0)
    similarity[1, 2:5] = 0.0  # some keys in reach, and some not
    expected = _tensor([[s / math.fsum(row) for s in row] for row in similarity.tolist()])
    weights = student(draw.strided(similarity))
    expect.shape(weights, (5, 7), axes="T_q, T_k")
    expect.rows_sum_to_one(weights, 1, "a row does not sum to 1")
    expect.close(weights, expected, "the weights differ from a double loop")

    empty = similarity.clone()
    empty[2] = empty[4] = 0.0
    weights = student(empty)
    expect.finite(weights, "a query with no key in reach gets weights that are not numbers")
    expect.rows_sum_to_one(weights, 1, "with no key in reach the row does not sum to 1")
    expected[2] = expected[4] = 1 / 7
    expect.close(weights, expected, "a query with no key in reach should weigh all keys equally")
    partly = student(_tensor([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0]]))
    what = "the weights of [[1, 0, 3], [0, 0, 2]], where some keys are out of reach, are wrong"
    expect.close(partly, _tensor([[0.25, 0.0, 0.75], [0.0, 0.0, 1.0]]), what)
    faint = student(_tensor([[1e-30, 3e-30], [1.0, 1.0]]))
    what = "the similarities 1e-30 and 3e-30 of a row are small, but not 0: their ratio counts"
    expect.close(faint, _tensor([[0.25, 0.75], [0.5, 0.5]]), what)
    with expect.care():
        single = student(_tensor([[3.0], [0.0]]))
        expect.close(single, _tensor([[1.0], [1.0]]), "with one key every weight should be 1")
    with expect.care():
        what = "with one query the weights of [[1, 3]] are wrong"
        expect.close(student(_tensor([[1.0, 3.0]])), _tensor([[0.25, 0.75]]), what)
    with expect.care():
        uneven = student(_tensor([[1.0, 1e-30], [1.0, 1.0]]))
        what = "the weights of the row (1, 1e-30) do not have the ratio of these numbers"
        expect.close(1e30 * uneven[0, 1], _tensor(1.0), what)


def _left_out(x_train, y_train, bandwidth):
    """Mean squared error of predicting each example from the others, in loops."""
    errors = []
    for i in range(len(x_train)):
        rest = [j for j in range(len(x_train)) if j != i]
        found = _gaussian(x_train[i : i + 1], x_train[rest], y_train[rest], bandwidth)
        errors.append((found - y_train[i]).item())
    return _tensor(math.fsum(error**2 for error in errors) / len(errors))


@check(
    without={
        "ones": "of one example alone, no other is left to predict it",
        "offset": "the mean is that of squares",
        "gradients": "they are a stage of their own, and the check asks for all of them",
    },
    rests_on=(
        "Leave each example out in turn, predict it from the rest, and average the squared errors",
        "all with the Gaussian kernel",
        "A gradient must be able to flow through the bandwidth",
        "However small the bandwidth, an example never sees itself",
        "its prediction then is the value of its nearest neighbour",
    ),
    stages={"with ordinary bandwidths": 1, "with a tiny bandwidth": 1, "its gradient": 1},
)
def leave_one_out_loss(student, draw):
    """Mean squared error of predicting each example from the others."""
    _, x_train, y_train = _examples(draw)
    with expect.stage("with ordinary bandwidths"):
        _leaves_out(student, draw, x_train, y_train)
    with expect.stage("with a tiny bandwidth"):
        _sees_its_neighbour(student)
    with expect.stage("its gradient"):
        _reaches_the_bandwidth(student, x_train, y_train)
    with expect.stage("with ordinary bandwidths"):
        with expect.care():
            wide = student(100 * x_train, 100 * y_train, 250.0)
            what = "with numbers in the hundreds and bandwidth 250 the loss is wrong"
            expect.close(wide, 1e4 * _left_out(x_train, y_train, 2.5), what)
        with expect.care():
            pair = student(x_train[:2], y_train[:2], 0.4)
            what = "with two examples, of which each predicts the other, the loss is wrong"
            expect.close(pair, _left_out(x_train[:2], y_train[:2], 0.4), what)


def _leaves_out(student, draw, x_train, y_train):
    loss = student(_tensor([0.0, 1.0, 3.0]), _tensor([0.0, 2.0, 5.0]), 0.25)  # errors 2, -2, -3
    expect.shape(loss, ())
    expect.dtype(loss, F64)
    what = "with x = (0, 1, 3), y = (0, 2, 5) and bandwidth 0.25 the loss is wrong"
    expect.close(loss, _tensor(17 / 3), what)
    twins = x_train.clone()
    twins[4] = twins[1]  # two examples at the same place
    for x, bandwidth in ((x_train, 2.5), (x_train, 0.4), (twins, 0.8)):
        expected = _left_out(x, y_train, bandwidth)
        place = " and two examples at the same x" if x is twins else ""
        loss = student(draw.strided(x), draw.strided(y_train), bandwidth)
        expect.close(loss, expected, f"with bandwidth={bandwidth}{place} the loss is wrong")


def _sees_its_neighbour(student):
    """First with errors of 1, -1 and -1, whose mean square is 1, and so is its root."""
    what = "with a tiny bandwidth an example is not predicted by its nearest neighbour"
    several = ((_tensor([0.0, 1.0, 2.0]), 1.0), (_tensor([0.0, 2.0, 5.0]), 17 / 3))
    for y_train, expected in several[: 1 + expect.stands("with ordinary bandwidths")]:
        loss = student(_tensor([0.0, 1.0, 9.0]), y_train, 1e-6)
        expect.shape(loss, ())
        expect.finite(loss, "with a tiny bandwidth the loss is not a number")
        expect.close(loss, _tensor(expected), what)


def _reaches_the_bandwidth(student, x_train, y_train):
    """The gradient of the bandwidth; where the loss is another one, the direction of them all."""

    def reference(x_train, y_train, bandwidth):
        others = [torch.arange(7) != i for i in range(7)]
        predictions = [
            _differentiable(x_train[i : i + 1], x_train[rest], y_train[rest], bandwidth)
            for i, rest in enumerate(others)
        ]
        return (y_train - torch.cat(predictions)).pow(2).sum() / 7

    given = x_train, y_train, _tensor(0.8)
    leaves = [one.clone().requires_grad_() for one in given]
    wanted = torch.autograd.grad(reference(*leaves), leaves)
    got = student.gradients(*given)
    what = "no gradient flows back to the bandwidth, so it could not be learned"
    expect.true(got[2] is not None, what, "no gradient", "a gradient")
    if expect.stands("with ordinary bandwidths"):
        expect.close(got[2], wanted[2], "the gradient of the bandwidth is wrong")
        with expect.care("gradients"):
            expect.gradients(student, reference, *given)
        return
    for one, leaf in zip(got, leaves, strict=True):
        expect.true(one is not None, "no gradient flows back to the examples", "none", "a gradient")
        expect.shape(one, leaf.shape)
    got, wanted = (torch.cat([one.flatten() for one in some]) for some in (got, wanted))
    what = "the gradient is wrong, and not only by a factor"
    expect.close(got / got.norm(), wanted / wanted.norm(), what)


@check(
    without={"gradients": "they are a stage of their own, and the check asks for all of them"},
    asks={
        "dtype": "(T_q,), (T_k,), (T_k,) -> (T_q,), in the dtype of x",
    },
    rests_on=(
        "Write a module with one parameter, `log_bandwidth`, a scalar",
        "the natural logarithm of the bandwidth",
        "here it predicts as in 1.2",
        "tells the module that this tensor is to be learned",
        "(T_q,), (T_k,), (T_k,) -> (T_q,), in the dtype of x",
    ),
    stages={"the parameter": 1, "the predictions": 1, "the gradient": 1},
)
def LearnedBandwidth(student, draw):  # noqa: N802, the name of the exercise
    """A module with one scalar parameter, driven through build, load, call and gradients."""
    examples = _examples(draw)
    module = student.build(0.5)
    named = module.parameters()
    with expect.stage("the parameter"):
        got = ", ".join(named) or "no parameter"
        expected = "one parameter, log_bandwidth"
        expect.true(list(named) == ["log_bandwidth"], "the parameters are wrong", got, expected)
        expect.shape(named["log_bandwidth"], ())
        what = "for bandwidth=0.5 the parameter is not log 0.5"
        expect.close(named["log_bandwidth"].item(), math.log(0.5), what, rtol=1e-5)
        start = draw.uniform(1).item() + 0.25
        what = f"for bandwidth={start:.4f} the parameter is not its logarithm"
        found = student.build(start).parameters()["log_bandwidth"]
        expect.close(found.item(), math.log(start), what, rtol=1e-5)
    with expect.stage("the predictions"):
        module = _predicts_as_loaded(student, draw, module, named, *examples)
    with expect.stage("the gradient"):
        if expect.stands("the predictions"):
            _learns(module, draw.normal(5), *examples)
        else:
            _could_learn(_of_bandwidth(1.0, student, module, named), *examples)
    x, x_train, y_train = examples
    with expect.stage("the predictions"):
        for one in ((x[:1], x_train, y_train), (x, x_train[:1], y_train[:1])):
            what = f"with T_q={len(one[0])} and T_k={len(one[1])} a prediction is wrong"
            with expect.care():
                expect.close(module(*one), _gaussian(*one, 2.0), what, rtol=1e-4)


def _of_bandwidth(bandwidth, student, module, named):
    """The module with this bandwidth: loaded, or built anew where nothing can be loaded."""
    if "log_bandwidth" not in named:
        return student.build(bandwidth)
    value = _tensor(math.log(bandwidth)).reshape(named["log_bandwidth"].shape)  # of one number
    module.load({"log_bandwidth": value})
    return module


def _predicts_as_loaded(student, draw, module, named, x, x_train, y_train):
    """Predictions as built, with two loaded bandwidths and with a tiny one; returns the module."""
    begins_right = expect.stands("the parameter")
    if begins_right or "log_bandwidth" not in named:
        predictions = module(x, x_train, y_train)
        expect.shape(predictions, (5,), axes="T_q,")
        expect.dtype(predictions, F64)
        expected = _gaussian(x, x_train, y_train, 0.5)
        expect.close(predictions, expected, "with bandwidth 0.5 a prediction is wrong", rtol=1e-4)
    for bandwidth in (0.8, 2.0):
        module = _of_bandwidth(bandwidth, student, module, named)
        predictions = module(x, draw.strided(x_train), draw.strided(y_train))
        expected = _gaussian(x, x_train, y_train, bandwidth)
        what = f"after loading log_bandwidth = log {bandwidth} a prediction is wrong"
        expect.close(predictions, expected, what, rtol=1e-4)
    narrow = student.build(0.01)
    if not begins_right:
        narrow = _of_bandwidth(0.01, student, narrow, named)
    _follows_the_nearest(narrow, y_train)
    return module


def _learns(module, cotangent, x, x_train, y_train):
    """The gradients at a bandwidth of 2."""
    by_name, by_input = module.gradients(x, x_train, y_train, cotangent=cotangent)
    got = by_name.get("log_bandwidth")
    what = "no gradient reaches log_bandwidth, so it would never be learned"
    expect.true(got is not None, what, "no gradient", "a gradient")
    step = 1e-5
    up, down = (
        _gaussian(x, x_train, y_train, 2.0 * math.exp(shift)) @ cotangent for shift in (step, -step)
    )
    what = "the gradient of log_bandwidth differs from a finite difference"
    slope = (up - down) / (2 * step)
    expect.close(got.double().reshape(()), slope, what, rtol=1e-4, atol=1e-6)
    inputs = [item.clone().requires_grad_() for item in (x, x_train, y_train)]
    loss = (_differentiable(*inputs, 2.0) * cotangent).sum()
    with expect.care("gradients"):
        for got, wanted in zip(by_input, torch.autograd.grad(loss, inputs), strict=True):
            what = "a gradient of the inputs is wrong"
            expect.close(got, wanted, what, rtol=1e-4, atol=1e-6)


def _could_learn(module, x, x_train, y_train):
    """Of other predictions than the right ones: averages that move with the parameter."""
    predictions = module(x, x_train, y_train)
    expect.shape(predictions, (5,), axes="T_q,")
    expect.finite(predictions)
    what = "a prediction is outside the range of y_train"
    _between(predictions, y_train.min(), y_train.max(), what)
    got = module.gradients(x, x_train, y_train)[0].get("log_bandwidth")
    what = "no gradient reaches log_bandwidth, so it would never be learned"
    expect.true(got is not None, what, "no gradient", "a gradient")
    expect.finite(got.reshape(()), "the gradient of log_bandwidth is not a number")
    expect.true(got.item() != 0, what, "0", "another gradient than 0")


ORDER = "True and False have neither precision nor gradient"


@check(
    without={
        "float32": ORDER,
        "gradients": ORDER,
        "large": "far from all examples the softmax is saturated, and no order shows",
    },
    rests_on=(
        "True if shuffling the examples changes no prediction and shuffling the queries only "
        "shuffles the predictions",
        "each key has its value",
        "compare with torch.allclose(…, atol=1e-5)",
    ),
)
def ignores_order(student, draw):
    """Finds which ways look at the place of an example or of a query, and no others."""
    for name in "ADEFGBC":
        _is_judged(student, name, *_list(draw))
    for name in "ABCDEFG":  # in order already: to sort them shuffles nothing
        x, x_train, y_train = _list(draw)
        x_train, order = x_train.sort()
        _is_judged(student, name, x.sort().values, x_train, y_train[order])
    x, x_train, y_train = _list(draw)
    _is_judged(student, "A", draw.strided(x), draw.strided(x_train), draw.strided(y_train))
    for name in "AE":  # one value for all examples, one query many times
        _is_judged(student, name, x, x_train, torch.full_like(y_train, y_train[0].item()))
        _is_judged(student, name, torch.full_like(x, x[0].item()), x_train, y_train)
    for _ in range(20):  # so many that nobody guesses them all
        _is_judged(student, draw.choice("ABCDEFG"), *_list(draw))
    with expect.care():
        for name in "AEG":
            _is_judged(student, name, x[:1], x_train, y_train)
            _is_judged(student, name, x, x_train[:1], y_train[:1])
    with expect.care():
        said = student("A", *_list(draw))
        expect.true(type(said) is bool, "the result is not a bool", expect.describe(said), "a bool")


def _list(draw):
    """Queries and examples of different numbers, in no order, with some example in reach of each.

    Of so many, a shuffle that changes nothing in a way that looks at the order is one in millions.
    """
    x, x_train = draw.uniform(11, low=0.0, high=6.0), draw.uniform(13, low=0.0, high=6.0)
    return x, x_train, draw.normal(13, scale=2.0) + 5


def _is_judged(student, name, *examples):
    expected = name in "AEG"
    said = student(name, *examples)
    if isinstance(said, torch.Tensor) and said.shape == ():
        said = bool(said)
    expect.true(isinstance(said, bool), "the result is not a bool", expect.describe(said), "a bool")
    if expected:
        what = f"way {name} ignores the order, and the test says it does not"
    else:
        of = "the queries" if name == "F" else "the examples"
        what = f"way {name} depends on the order of {of}, and the test does not notice"
    expect.equal(said, expected, what)
