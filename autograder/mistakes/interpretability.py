"""Wrong and right answers to the exercises of lesson 17."""

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from attention.interpretability import TOLERANCE, Explained, null_space
from attention.provided.data.tokens import EOS, PAD
from attention.provided.models.attention_weights import watch_attention
from attention.sequence_to_sequence import shift_right
from attention.transformer import Encoder, masks_from_tokens
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _with_ones(values):
    return torch.nn.functional.pad(values, (0, 1), value=1.0)


def _rank(matrix, tolerance=TOLERANCE):
    return torch.linalg.matrix_rank(matrix, rtol=tolerance)


# --- null_space_dimension ----------------------------------------------------------------------


@mistake(
    "null_space_dimension",
    hint="The sum is forgotten: a change must leave it at 1, which is one condition more. A column "
    "of ones beside the values says so.",
)
def forgets_the_sum(values, tolerance=TOLERANCE):
    return values.shape[-2] - _rank(values, tolerance)


@mistake(
    "null_space_dimension",
    hint="1 is always taken off for the sum. If the ones are a mixture of the values' columns "
    "already, the sum is no condition of its own: ask for the rank with the ones beside them.",
)
def takes_one_off(values, tolerance=TOLERANCE):
    strengths = torch.linalg.svdvals(values)
    largest = strengths.amax(dim=-1, keepdim=True)
    conditions = (strengths > tolerance * largest).sum(dim=-1) + 1  # and one for the sum
    return (values.shape[-2] - conditions).clamp(min=0)


@mistake(
    "null_space_dimension",
    hint="1 is always taken off for the sum, and where T is no larger than the rank the dimension "
    "comes out negative. Ask for the rank with a column of ones beside the values.",
)
def takes_one_off_below_zero(values, tolerance=TOLERANCE):
    return values.shape[-2] - _rank(values, tolerance) - 1


@mistake(
    "null_space_dimension",
    hint="d + 1 is how many conditions there are at most. Some of them may say the same: what "
    "counts is the rank.",
)
def counts_columns(values, tolerance=TOLERANCE):
    T, d = values.shape[-2:]
    return torch.full(values.shape[:-2], max(0, T - d - 1), device=values.device)


@mistake(
    "null_space_dimension",
    hint="This is the rank, how many conditions there are. The dimension is what they leave of T.",
)
def returns_the_rank(values, tolerance=TOLERANCE):
    return _rank(_with_ones(values), tolerance)


@mistake(
    "null_space_dimension",
    hint="The rank is subtracted from d. There are T weights in a row, one for each token.",
)
def subtracts_from_d(values, tolerance=TOLERANCE):
    return values.shape[-1] - _rank(_with_ones(values), tolerance)


@mistake(
    "null_space_dimension",
    hint="The rank is subtracted from d + 1, the columns. There are T weights in a row, one "
    "for each token.",
)
def subtracts_from_the_columns(values, tolerance=TOLERANCE):
    both = _with_ones(values)
    return both.shape[-1] - _rank(both, tolerance)


@mistake(
    "null_space_dimension",
    hint="`tolerance` is not used: directions that are faint, or mere rounding, count as if they "
    "were full. matrix_rank takes it as rtol.",
)
def forgets_the_tolerance(values, tolerance=TOLERANCE):
    return values.shape[-2] - torch.linalg.matrix_rank(_with_ones(values))


@mistake(
    "null_space_dimension",
    hint="The tolerance is taken for a number. It is a share of the largest singular value: rtol, "
    "not atol.",
)
def takes_the_tolerance_as_it_is(values, tolerance=TOLERANCE):
    return values.shape[-2] - torch.linalg.matrix_rank(_with_ones(values), atol=tolerance, rtol=0)


@mistake(
    "null_space_dimension",
    hint="The tolerance is a share of the largest singular value of the whole batch. Each matrix "
    "of it has its own largest one.",
)
def shares_the_largest(values, tolerance=TOLERANCE):
    strength = torch.linalg.svdvals(_with_ones(values))
    return values.shape[-2] - (strength > tolerance * strength.max()).sum(-1)


@mistake(
    "null_space_dimension",
    hint="The columns are brought to the same length first, and a faint one counts as much as the "
    "others. The tolerance is for the values as they are.",
)
def normalises_the_columns(values, tolerance=TOLERANCE):
    return values.shape[-2] - _rank(_with_ones(F.normalize(values, dim=-2)), tolerance)


@mistake(
    "null_space_dimension",
    hint="The ones stand below the values, as one token more. They should stand beside them, as "
    "one feature more: dim=-1.",
)
def appends_a_row(values, tolerance=TOLERANCE):
    both = torch.cat([values, torch.ones_like(values[..., :1, :])], dim=-2)
    return values.shape[-2] - _rank(both, tolerance)


@mistake(
    "null_space_dimension",
    hint="The ones stand below the values, and the rank is subtracted from T + 1. They should "
    "stand beside the values, as one feature more: dim=-1.",
)
def appends_a_row_and_counts_it(values, tolerance=TOLERANCE):
    both = torch.cat([values, torch.ones_like(values[..., :1, :])], dim=-2)
    return both.shape[-2] - _rank(both, tolerance)


@mistake(
    "null_space_dimension",
    hint="values.shape[0] is T only if no axis is in front: of (..., T, d), T is shape[-2].",
)
def takes_the_first_axis(values, tolerance=TOLERANCE):
    return values.shape[0] - _rank(_with_ones(values), tolerance)


@mistake(
    "null_space_dimension",
    hint="A plain int comes out, of the first of the values only: .item() wants a single number. "
    "Keep the tensor.",
)
def makes_a_number(values, tolerance=TOLERANCE):
    return int(values.shape[-2] - _rank(_with_ones(values), tolerance))


@alternative("null_space_dimension")
def counts_singular_values(values, tolerance=TOLERANCE):
    strength = torch.linalg.svdvals(_with_ones(values))
    return values.shape[-2] - (strength > tolerance * strength[..., :1]).sum(-1)


@alternative("null_space_dimension")
def counts_in_a_loop(values, tolerance=TOLERANCE):
    found = []
    for one in values.reshape(-1, *values.shape[-2:]):
        ones = torch.ones(len(one), 1, dtype=one.dtype, device=one.device)
        strength = torch.linalg.svdvals(torch.hstack([one, ones]))
        found.append(len(one) - (strength / strength[0] > tolerance).sum())
    return torch.stack(found).reshape(values.shape[:-2])


@alternative("null_space_dimension")
def counts_by_padding(values, tolerance=TOLERANCE):
    both = F.pad(values, (1, 0), value=1.0)
    rank = torch.linalg.matrix_rank(both.mT, rtol=tolerance)
    return both.shape[-2] - rank


@careless("null_space_dimension")
def makes_ones_on_the_cpu(values, tolerance=TOLERANCE):
    ones = torch.ones(*values.shape[:-1], 1)
    return values.shape[-2] - _rank(torch.cat([values, ones], dim=-1), tolerance)


@careless("null_space_dimension")
def ranks_in_numpy(values, tolerance=TOLERANCE):
    strength = numpy.linalg.svd(_with_ones(values).numpy(), compute_uv=False)
    return torch.tensor(values.shape[-2] - (strength > tolerance * strength[..., :1]).sum(-1))


# --- perturb_attention -------------------------------------------------------------------------


def _change(values, direction):
    basis = null_space(values)
    return basis @ (basis.T @ direction)


def _steps(weights, change):
    never = torch.full_like(weights, torch.inf)
    return torch.where(change < 0, weights / -change, never)


def _go(weights, change, step=None):
    """weights + step · change, with the largest step unless another is given."""
    if not (change < 0).any():
        return weights
    return weights + (_steps(weights, change).min() if step is None else step(change)) * change


@mistake(
    "perturb_attention",
    hint="The step is 1. How far one may go depends on which weight reaches 0 first.",
    earns=(
        "the part in the null space",
        "where nothing can change",
    ),
)
def goes_one_step(weights, values, direction):
    return weights + _change(values, direction)


@mistake(
    "perturb_attention",
    hint="The direction is taken as it is. Only its part in the null space leaves the output as it "
    "was.",
    earns=("the step",),
)
def takes_the_whole_direction(weights, values, direction):
    return _go(weights, direction)


@mistake(
    "perturb_attention",
    hint="The direction is taken as it is. Only its part in the null space leaves the output as it "
    "was.",
)
def takes_the_whole_direction_of_a_null_space(weights, values, direction):
    return _go(weights, direction) if null_space(values).shape[1] else weights


@mistake(
    "perturb_attention",
    hint="The step is that of the projected direction, but what is added is the direction itself. "
    "Only its part in the null space leaves the output as it was.",
    earns=(
        "the step",
        "where nothing can change",
    ),
)
def adds_the_whole_direction(weights, values, direction):
    change = _change(values, direction)
    if not (change < 0).any():
        return weights
    return weights + _steps(weights, change).min() * direction


@mistake(
    "perturb_attention",
    hint="The step is how far the whole direction could go. Only its projection is walked, "
    "and this decides which weight reaches 0 first.",
)
def steps_along_the_whole_direction(weights, values, direction):
    change = _change(values, direction)
    if not ((change < 0).any() and (direction < 0).any()):
        return weights
    return weights + _steps(weights, direction).min() * change


@mistake(
    "perturb_attention",
    hint="Only the mean is subtracted from the direction. That keeps the sum, not the output: "
    "project the direction on the null space.",
)
def keeps_only_the_sum(weights, values, direction):
    return _go(weights, direction - direction.mean())


@mistake(
    "perturb_attention",
    hint="The wrong part of the direction is used: direction - change is the part that alters "
    "the output. Keep the other one.",
)
def takes_the_other_part(weights, values, direction):
    return _go(weights, direction - _change(values, direction))


@mistake(
    "perturb_attention",
    hint="The wrong part of the direction is used: direction - change is the part that alters "
    "the output. Keep the other one.",
)
def takes_the_other_part_of_a_null_space(weights, values, direction):
    if not null_space(values).shape[1]:
        return weights
    return _go(weights, direction - _change(values, direction))


@mistake(
    "perturb_attention",
    hint="The step is never more than 1. The direction may be short: the step is as large as the "
    "weights allow.",
)
def steps_at_most_once(weights, values, direction):
    change = _change(values, direction)
    return _go(weights, change, lambda change: _steps(weights, change).min().clamp(max=1))


@mistake(
    "perturb_attention",
    hint="The weight that falls fastest limits the step. Another one that is smaller can "
    "reach 0 before it: compare how many steps each of them takes.",
)
def lets_the_steepest_decide(weights, values, direction):
    change = _change(values, direction)
    return _go(weights, change, lambda change: _steps(weights, change)[change.argmin()])


@mistake(
    "perturb_attention",
    hint="The smallest weight that falls limits the step. A larger one that falls faster can "
    "reach 0 before it: compare how many steps each of them takes.",
)
def lets_the_smallest_decide(weights, values, direction):
    change = _change(values, direction)
    falling = weights.masked_fill(change >= 0, torch.inf)
    return _go(weights, change, lambda change: _steps(weights, change)[falling.argmin()])


@mistake(
    "perturb_attention",
    hint="Weights that are 0 already do not limit the step. If the change lowers one of them, it "
    "gets negative at once: then the step is 0.",
)
def passes_over_zeros(weights, values, direction):
    change = _change(values, direction)
    falls = (change < 0) & (weights > 0)
    if not falls.any():
        return weights
    return weights + (weights[falls] / -change[falls]).min() * change


@mistake(
    "perturb_attention",
    hint="Weights that fall slowly do not limit the step. However slowly a weight falls, beyond "
    "its own step it is negative.",
)
def passes_over_slow_ones(weights, values, direction):
    change = _change(values, direction)
    falls = change < -0.01
    if not falls.any():
        return weights
    return weights + (weights[falls] / -change[falls]).min() * change


@mistake(
    "perturb_attention",
    hint="The largest of the steps is taken. At the smallest the first weight reaches 0; "
    "beyond it that one is negative.",
    earns=(
        "the part in the null space",
        "where nothing can change",
    ),
)
def takes_the_largest_step(weights, values, direction):
    change = _change(values, direction)
    falls = change < 0
    if not falls.any():
        return weights
    return weights + (weights[falls] / -change[falls]).max() * change


@mistake(
    "perturb_attention",
    hint="The steps of the weights that rise are counted, too: they are negative, and the "
    "smallest leads the other way. Only a weight that falls can reach 0.",
)
def counts_those_that_rise(weights, values, direction):
    change = _change(values, direction)
    if not (change < 0).any():
        return weights
    return weights + (weights / -change).min() * change


@mistake(
    "perturb_attention",
    hint="The size of each change decides, whichever way it goes. A weight that rises never "
    "reaches 0: only those that fall limit the step.",
)
def ignores_the_sign(weights, values, direction):
    change = _change(values, direction)
    if not (change < 0).any():
        return weights
    return weights + (weights / change.abs()).min() * change


@mistake(
    "perturb_attention",
    hint="Without a null space there is no change: no weight falls, and min() of nothing raises. "
    "Then the weights stay as they are.",
    earns=(
        "the part in the null space",
        "the step",
    ),
)
def expects_a_null_space(weights, values, direction):
    change = _change(values, direction)
    falls = change < 0
    return weights + (weights[falls] / -change[falls]).min() * change


@mistake(
    "perturb_attention",
    hint="Without a null space the step is infinite and the change 0: their product is NaN. Then "
    "the weights stay as they are.",
    earns=(
        "the part in the null space",
        "the step",
    ),
)
def multiplies_infinity(weights, values, direction):
    change = _change(values, direction)
    return weights + _steps(weights, change).min() * change


@mistake(
    "perturb_attention",
    hint="There can be a null space and still no change, as with a direction of 0: no weight "
    "falls, and min() of nothing raises. Then the weights stay as they are.",
    earns=(
        "the part in the null space",
        "the step",
    ),
)
def expects_a_change(weights, values, direction):
    if null_space(values).shape[1] == 0:
        return weights
    change = _change(values, direction)
    falls = change < 0
    return weights + (weights[falls] / -change[falls]).min() * change


@mistake(
    "perturb_attention",
    hint="There can be a null space and still no change, as with a direction of 0: the step is "
    "infinite, and infinity times 0 is NaN. Then the weights stay as they are.",
)
def multiplies_infinity_by_no_change(weights, values, direction):
    if null_space(values).shape[1] == 0:
        return weights
    change = _change(values, direction)
    return weights + _steps(weights, change).min() * change


@mistake(
    "perturb_attention",
    hint="Negative weights are set to 0 and the rest is divided by the sum. That makes weights, "
    "but of another output: take a smaller step instead.",
)
def clamps_and_divides(weights, values, direction):
    new = (weights + _change(values, direction)).clamp(min=0)
    return new / new.sum()


@mistake(
    "perturb_attention",
    hint="It goes half of the way. Take the largest step at which no weight is negative.",
    earns=(
        "the part in the null space",
        "where nothing can change",
    ),
)
def goes_half_way(weights, values, direction):
    change = _change(values, direction)
    return _go(weights, change, lambda change: _steps(weights, change).min() / 2)


@mistake(
    "perturb_attention",
    hint="It goes the other way: the change is subtracted from the weights.",
)
def goes_the_other_way(weights, values, direction):
    return _go(weights, -_change(values, direction))


@mistake(
    "perturb_attention",
    hint="basis.T @ direction has one number per column of the basis. To get back to T numbers, "
    "multiply with the basis once more.",
)
def forgets_to_come_back(weights, values, direction):
    change = null_space(values).T @ direction
    return _go(weights, change)


@mistake(
    "perturb_attention",
    hint="This is the change alone. Return the new weights: weights + step · change.",
)
def returns_the_change(weights, values, direction):
    change = _change(values, direction)
    if not (change < 0).any():
        return weights
    return _steps(weights, change).min() * change


@mistake(
    "perturb_attention",
    hint="+= writes into the weights that were handed in. weights + … makes new ones.",
)
def writes_into_the_weights(weights, values, direction):
    change = _change(values, direction)
    if (change < 0).any():
        weights += _steps(weights, change).min() * change
    return weights


@alternative("perturb_attention")
def goes_with_where(weights, values, direction):
    basis = null_space(values)
    change = basis.mm(basis.mT.mv(direction).unsqueeze(1)).squeeze(1)
    if torch.all(change >= 0):
        return weights.clone()
    return weights + _steps(weights, change).amin() * change


@alternative("perturb_attention")
def goes_weight_by_weight(weights, values, direction):
    change = sum((column @ direction) * column for column in null_space(values).unbind(1))
    if not isinstance(change, torch.Tensor):
        return weights
    steps = [w / -c for w, c in zip(weights, change, strict=True) if c < 0]
    step = min(steps, default=0.0)
    return torch.stack([w + step * c for w, c in zip(weights, change, strict=True)])


@alternative("perturb_attention")
def goes_with_a_projector(weights, values, direction):
    basis = null_space(values)
    change = torch.einsum("tn,sn,s->t", basis, basis, direction)
    speed = torch.where(weights > 0, -change / weights, torch.inf * (change < 0))
    speed = speed.nan_to_num(0.0, posinf=torch.inf).max()
    return weights + change / speed if speed > 0 else weights


@careless("perturb_attention")
def collects_weights_in_zeros(weights, values, direction):
    changed, new = _go(weights, _change(values, direction)), torch.zeros(len(weights))
    for i, weight in enumerate(changed):
        new[i] = weight
    return new


@careless("perturb_attention")
def goes_in_numpy(weights, values, direction):
    change = _change(values, direction).numpy()
    falls = change < 0
    if not falls.any():
        return weights
    step = (weights.numpy()[falls] / -change[falls]).min()
    return torch.from_numpy(weights.numpy() + step * change)


# --- token_identifiability ---------------------------------------------------------------------


def _distances(hidden, inputs, cosine):
    if cosine:
        hidden, inputs = F.normalize(hidden, dim=-1), F.normalize(inputs, dim=-1)
    return (hidden.unsqueeze(2) - inputs.unsqueeze(1)).norm(dim=-1)


def _own(hidden):
    return torch.arange(hidden.shape[1], device=hidden.device)


def _identified(hidden, inputs, mask, cosine, far=None):
    far = _distances(hidden, inputs, cosine) if far is None else far
    far = far.masked_fill(~mask.unsqueeze(1), torch.inf)
    return (far.argmin(-1) == _own(hidden)) & mask


NEAR_PADDING = (
    "Padding can be the nearest. Only the real inputs of a sentence are candidates: of (B, T, T), "
    "the last axis counts the inputs, and that is where the mask belongs."
)


@mistake("token_identifiability", hint=NEAR_PADDING)
def looks_at_padding(hidden, inputs, mask, cosine=True):
    return (_distances(hidden, inputs, cosine).argmin(-1) == _own(hidden)) & mask


@mistake(
    "token_identifiability",
    hint="Padding gets a large distance, but a finite one, and is nearer than an input that is "
    "farther away still. Put it at inf.",
)
def puts_padding_at_a_finite_distance(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine).masked_fill(~mask.unsqueeze(1), 1e9)
    return (far.argmin(-1) == _own(hidden)) & mask


@mistake(
    "token_identifiability",
    hint="In the padding False should come out: there is no token to identify.",
)
def identifies_padding(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine).masked_fill(~mask.unsqueeze(1), torch.inf)
    return far.argmin(-1) == _own(hidden)


@mistake(
    "token_identifiability",
    hint="In the padding False should come out: there is no token to identify. In a sentence of "
    "padding alone all distances are infinite, and so none is larger than another.",
)
def identifies_empty_sentences(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine).masked_fill(~mask.unsqueeze(1), torch.inf)
    return far.diagonal(dim1=1, dim2=2) <= far.amin(-1)


@mistake(
    "token_identifiability",
    hint="In the padding False should come out: there is no token to identify.",
)
def identifies_near_padding(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine)
    return far.diagonal(dim1=1, dim2=2) <= far.masked_fill(~mask.unsqueeze(1), torch.inf).amin(-1)


def _cosines(hidden, inputs):
    return F.normalize(hidden, dim=-1) @ F.normalize(inputs, dim=-1).mT


@mistake(
    "token_identifiability",
    hint="With the cosine, padding gets the similarity 0, and wins where all others are negative. "
    "The smallest is -1: put padding below it, at -inf.",
)
def sets_padding_to_zero(hidden, inputs, mask, cosine=True):
    far = -_cosines(hidden, inputs).masked_fill(~mask.unsqueeze(1), 0.0) if cosine else None
    return _identified_as_it_is(hidden, inputs, mask, far)


def _identified_as_it_is(hidden, inputs, mask, far):
    if far is None:
        return _identified(hidden, inputs, mask, False)
    return (far.argmin(-1) == _own(hidden)) & mask


@mistake(
    "token_identifiability",
    hint="With the cosine, padding gets the similarity 0, and wins where all others are negative. "
    "The smallest is -1: put padding below it, at -inf.",
)
def multiplies_with_the_mask(hidden, inputs, mask, cosine=True):
    far = -_cosines(hidden, inputs) * mask.unsqueeze(1) if cosine else None
    return _identified_as_it_is(hidden, inputs, mask, far)


@mistake(
    "token_identifiability",
    hint="The padded inputs are set to 0, and a vector of 0 can be the nearest. Make their "
    "distances infinite instead.",
)
def empties_the_padding(hidden, inputs, mask, cosine=True):
    inputs = inputs * mask.unsqueeze(2)
    return (_distances(hidden, inputs, cosine).argmin(-1) == _own(hidden)) & mask


@mistake(
    "token_identifiability",
    hint="The sign of the cosine is lost: a vector in the opposite direction counts as near. It is "
    "as far as can be.",
)
def forgets_the_sign_of_the_cosine(hidden, inputs, mask, cosine=True):
    return _identified(
        hidden, inputs, mask, cosine, -_cosines(hidden, inputs).abs() if cosine else None
    )


@mistake(
    "token_identifiability",
    hint="Absolute differences are added up. The Euclidean distance is the root of the sum of "
    "their squares.",
)
def adds_absolute_differences(hidden, inputs, mask, cosine=True):
    far = None if cosine else (hidden.unsqueeze(2) - inputs.unsqueeze(1)).abs().sum(-1)
    return _identified(hidden, inputs, mask, cosine, far)


@mistake(
    "token_identifiability",
    hint="Absolute differences are added up. The Euclidean distance is the root of the sum of "
    "their squares.",
)
def adds_absolute_differences_always(hidden, inputs, mask, cosine=True):
    if cosine:
        hidden, inputs = F.normalize(hidden, dim=-1), F.normalize(inputs, dim=-1)
    far = (hidden.unsqueeze(2) - inputs.unsqueeze(1)).abs().sum(-1)
    return _identified(hidden, inputs, mask, cosine, far)


@mistake(
    "token_identifiability",
    hint="`cosine` is not used: it is the Euclidean distance in either case.",
)
def measures_distances_only(hidden, inputs, mask, cosine=True):
    return _identified(hidden, inputs, mask, False)


@mistake(
    "token_identifiability",
    hint="`cosine` is not used: it is the angle in either case.",
)
def measures_angles_only(hidden, inputs, mask, cosine=True):
    return _identified(hidden, inputs, mask, True)


@mistake(
    "token_identifiability",
    hint="`cosine` is read the wrong way round.",
)
def exchanges_the_measures(hidden, inputs, mask, cosine=True):
    return _identified(hidden, inputs, mask, not cosine)


@mistake(
    "token_identifiability",
    hint="The dot product is no cosine: a long input wins whatever its direction. Divide by the "
    "lengths first.",
)
def compares_dot_products(hidden, inputs, mask, cosine=True):
    far = -(hidden @ inputs.mT) if cosine else None
    return _identified(hidden, inputs, mask, False, far)


@mistake(
    "token_identifiability",
    hint="The hidden vector that is nearest to each input is looked for. It should be the "
    "other way round: for each hidden vector, the nearest input.",
)
def asks_the_other_way(hidden, inputs, mask, cosine=True):
    return _identified(inputs, hidden, mask, cosine)


@mistake(
    "token_identifiability",
    hint="The farthest input is looked for. For distances take argmin, for cosines argmax.",
)
def takes_the_farthest(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine).masked_fill(~mask.unsqueeze(1), -torch.inf)
    return (far.argmax(-1) == _own(hidden)) & mask


@mistake(
    "token_identifiability",
    hint="With the cosine the smallest one is taken. A large cosine is a small angle.",
)
def takes_the_smallest_cosine(hidden, inputs, mask, cosine=True):
    far = None
    if cosine:
        far = F.normalize(hidden, dim=-1) @ F.normalize(inputs, dim=-1).mT
    return _identified(hidden, inputs, mask, cosine, far)


@mistake("token_identifiability", hint=NEAR_PADDING)
def masks_the_rows(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine).masked_fill(~mask.unsqueeze(2), torch.inf)
    return (far.argmin(-1) == _own(hidden)) & mask


@mistake(
    "token_identifiability",
    hint="The mask is read the wrong way round: the real inputs are hidden. True is a real token.",
)
def hides_the_real_ones(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine).masked_fill(mask.unsqueeze(1), torch.inf)
    return (far.argmin(-1) == _own(hidden)) & mask


@mistake(
    "token_identifiability",
    hint="The index of the nearest input comes out. The question is whether it is that of the "
    "token itself.",
)
def returns_the_index(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine).masked_fill(~mask.unsqueeze(1), torch.inf)
    return far.argmin(-1)


@mistake(
    "token_identifiability",
    hint="A share comes out. Return True or False for every token.",
)
def returns_a_share(hidden, inputs, mask, cosine=True):
    return _identified(hidden, inputs, mask, cosine).double().sum() / mask.sum()


@mistake(
    "token_identifiability",
    hint="Inputs of all sentences are candidates. Only those of the same sentence are.",
)
def looks_into_other_sentences(hidden, inputs, mask, cosine=True):
    B, T, _ = hidden.shape
    far = _distances(hidden.flatten(0, 1)[None], inputs.flatten(0, 1)[None], cosine)[0]
    far = far.masked_fill(~mask.flatten(), torch.inf)
    own = torch.arange(B * T, device=far.device)
    return (far.argmin(-1) == own).view(B, T) & mask


@alternative("token_identifiability")
def identifies_in_loops(hidden, inputs, mask, cosine=True):
    rows = torch.zeros_like(mask)
    for b in range(len(mask)):
        kept = mask[b].nonzero().squeeze(1)
        for i in kept.tolist():
            far = (inputs[b, kept] - hidden[b, i]).square().sum(-1)
            if cosine:
                far = -F.cosine_similarity(inputs[b, kept], hidden[b, i], dim=-1)
            rows[b, i] = kept[far.argmin()] == i
    return rows


@alternative("token_identifiability")
def identifies_by_cdist(hidden, inputs, mask, cosine=True):
    if cosine:
        near = F.cosine_similarity(hidden[:, :, None], inputs[:, None], dim=-1)
    else:
        near = -(hidden[:, :, None] - inputs[:, None]).square().sum(-1)
    near = near.masked_fill(~mask[:, None], -torch.inf)
    return torch.logical_and(near.max(2).indices == _own(hidden), mask)


@alternative("token_identifiability")
def identifies_against_the_best(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine)
    own = far.diagonal(dim1=1, dim2=2)
    best = far.where(mask[:, None, :], far.new_tensor(torch.inf)).amin(-1)
    return mask & (own <= best)


@careless("token_identifiability")
def counts_positions_on_the_cpu(hidden, inputs, mask, cosine=True):
    far = _distances(hidden, inputs, cosine).masked_fill(~mask.unsqueeze(1), torch.inf)
    return (far.argmin(-1) == torch.arange(hidden.shape[1])) & mask


@careless("token_identifiability")
def writes_down_what_it_identifies(hidden, inputs, mask, cosine=True):
    found = torch.zeros(mask.shape, dtype=torch.bool)
    right = _identified(hidden, inputs, mask, cosine)
    for b in range(len(mask)):
        found[b] = right[b]
    return found


# --- LeaveOneOut -------------------------------------------------------------------------------


class _Leaving(Explained):
    """A right LeaveOneOut in small methods; a mistake overrides what it gets wrong."""

    def hide(self, source, seen, j):
        without = seen.clone()
        without[:, :, j] = False
        return source, without

    def compare(self, whole, without):
        return whole - without

    def join(self, losses):
        return torch.stack(losses, dim=-1)

    @torch.no_grad()
    def forward(self, source, target):
        seen, _ = masks_from_tokens(source, target)
        whole = self.log_p(source, target, seen)
        losses = []
        for j in range(source.shape[1]):
            ids, without = self.hide(source, seen, j)
            losses.append(self.compare(whole, self.log_p(ids, target, without)))
        return self.join(losses)


@mistake(
    "LeaveOneOut",
    hint="The difference has the wrong sign. A token that helps should have a positive effect: "
    "log p with it, less log p without it.",
)
class TurnsTheSign(_Leaving):
    def compare(self, whole, without):
        return without - whole


@mistake(
    "LeaveOneOut",
    hint="Probabilities are compared. Return differences of log-probabilities.",
)
class ComparesProbabilities(_Leaving):
    def compare(self, whole, without):
        return whole.exp() - without.exp()


@mistake(
    "LeaveOneOut",
    hint="The tokens stay hidden once they were: each copy lacks all those before, too. Start from "
    "a new copy of the mask each time.",
)
class HidesMoreAndMore(_Leaving):
    def hide(self, source, seen, j):
        seen[:, :, j] = False
        return source, seen


@mistake(
    "LeaveOneOut",
    hint="Only one token may be looked at, and all others are hidden. It should be the other way "
    "round.",
)
class KeepsOne(_Leaving):
    def hide(self, source, seen, j):
        only = torch.zeros_like(seen)
        only[:, :, j] = seen[:, :, j]
        return source, only


@mistake(
    "LeaveOneOut",
    hint="The mask of each copy is all True, save one: padding may be looked at. Start from the "
    "mask that hides it.",
)
class ShowsThePadding(_Leaving):
    def hide(self, source, seen, j):
        without = torch.ones_like(seen)
        without[:, :, j] = False
        return source, without


@mistake(
    "LeaveOneOut",
    hint="This is log p without the token. Return how much is lost: the difference from log p "
    "with all tokens.",
)
class ForgetsTheWhole(_Leaving):
    def compare(self, whole, without):
        return without


@mistake(
    "LeaveOneOut",
    hint="The source tokens are along the wrong axis: (B, T_q, T_k) has them last.",
)
class StacksInTheMiddle(_Leaving):
    def join(self, losses):
        return torch.stack(losses, dim=1)


@mistake(
    "LeaveOneOut",
    hint="The source tokens are along the first axis: (B, T_q, T_k) has them last.",
)
class StacksInFront(_Leaving):
    def join(self, losses):
        return torch.stack(losses)


class _HalfHidden(Explained):
    """Hides a token from one side alone: `masks` says what each side sees."""

    @torch.no_grad()
    def forward(self, source, target):
        read = shift_right(target)
        seen, read_mask = masks_from_tokens(source, read)
        whole, losses = self.log_p(source, target, seen), []
        for j in range(source.shape[1]):
            without = seen.clone()
            without[:, :, j] = False
            encoder, decoder = self.masks(seen, without)
            memory = self.model.encode(source, encoder)
            logits = self.model.decode(read, memory, read_mask, decoder)
            log_p = logits.log_softmax(-1).gather(2, target.unsqueeze(2)).squeeze(2)
            losses.append(whole - log_p)
        return torch.stack(losses, dim=-1)


@mistake(
    "LeaveOneOut",
    hint="The token is hidden from the decoder only. The encoder still sees it, and tells the "
    "other tokens of it: hide it from both.",
)
class HidesFromTheDecoder(_HalfHidden):
    def masks(self, seen, without):
        return seen, without


@mistake(
    "LeaveOneOut",
    hint="The token is hidden from the encoder only. The decoder still looks at its place: hide it "
    "from both.",
)
class HidesFromTheEncoder(_HalfHidden):
    def masks(self, seen, without):
        return without, seen


@mistake(
    "LeaveOneOut",
    hint="The token is taken from the tensor, and those after it move up: all get other positions. "
    "Hide it with the mask instead.",
)
class CutsTheSource(_Leaving):
    @torch.no_grad()
    def forward(self, source, target):
        whole, losses = self.log_p(source, target), []
        for j in range(source.shape[1]):
            ids = torch.cat([source[:, :j], source[:, j + 1 :]], dim=1)
            if not ids.shape[1]:
                ids = torch.full_like(source, PAD)
            losses.append(whole - self.log_p(ids, target))
        return torch.stack(losses, dim=-1)


@mistake(
    "LeaveOneOut",
    hint="The last source token is left out of the loop. There is one effect for each of the T_k.",
)
class ForgetsTheLast(_Leaving):
    def join(self, losses):
        return torch.stack(losses[:-1] or losses, dim=-1)


@mistake(
    "LeaveOneOut",
    hint="The effects on all target tokens are added up. Return one number for each.",
)
class AddsTheTargets(_Leaving):
    def join(self, losses):
        return torch.stack(losses, dim=-1).sum(1, keepdim=True).expand(-1, losses[0].shape[1], -1)


@mistake(
    "LeaveOneOut",
    hint="Sizes without signs come out. Where the model does better without a token, its effect is "
    "negative.",
)
class TakesSizes(_Leaving):
    def compare(self, whole, without):
        return (whole - without).abs()


@mistake(
    "LeaveOneOut",
    hint="The loop runs over the target. It is the source tokens that are left out.",
)
class LoopsOverTheTarget(_Leaving):
    @torch.no_grad()
    def forward(self, source, target):
        seen, _ = masks_from_tokens(source, target)
        whole, losses = self.log_p(source, target, seen), []
        for j in range(target.shape[1]):
            without = seen.clone()
            without[:, :, j] = False
            losses.append(whole - self.log_p(source, target, without))
        return torch.stack(losses, dim=-1)


@alternative("LeaveOneOut")
class LeavesInSteps(_Leaving):
    pass


@alternative("LeaveOneOut")
class LeavesPaddingAtZero(_Leaving):
    """What stands where the target is padding is open."""

    def forward(self, source, target):
        return super().forward(source, target) * (target != PAD).unsqueeze(2)


@alternative("LeaveOneOut")
class LeavesInOneBatch(Explained):
    """All copies of all sentences at once."""

    @torch.no_grad()
    def forward(self, source, target):
        B, T = source.shape
        seen = (source != PAD).repeat_interleave(T, 0)  # (B · T, T)
        seen = seen & ~torch.eye(T, dtype=torch.bool, device=source.device).repeat(B, 1)
        many = [ids.repeat_interleave(T, 0) for ids in (source, target)]
        without = self.log_p(*many, seen.unsqueeze(1)).unflatten(0, (B, T))
        return (self.log_p(source, target).unsqueeze(1) - without).transpose(1, 2)


@alternative("LeaveOneOut")
class LeavesByPadding(Explained):
    """A token that is PAD is hidden by the model itself."""

    @torch.no_grad()
    def forward(self, source, target):
        result = []
        for j in range(source.shape[1]):
            ids = source.clone()
            ids[:, j] = PAD
            result.append(-self.log_p(ids, target) + self.log_p(source, target))
        return torch.stack(result, 2)


@careless("LeaveOneOut")
class WritesLossesIntoZeros(_Leaving):
    def join(self, losses):
        effects = torch.zeros(*losses[0].shape, len(losses))
        for j, lost in enumerate(losses):
            effects[:, :, j] = lost
        return effects


@careless("LeaveOneOut")
class HidesWithAMaskOfTheCpu(_Leaving):
    def hide(self, source, seen, j):
        return source, seen & (torch.arange(source.shape[1]) != j)


# --- ActivationPatching ------------------------------------------------------------------------


class _Patching(Explained):
    """A right ActivationPatching in small methods; a mistake overrides what it gets wrong."""

    def memories(self, source, other, places):
        mine, theirs = (
            self.model.encode(ids, (ids != PAD).unsqueeze(1)) for ids in (source, other)
        )
        return mine, theirs

    def choose(self, mine, theirs, places):
        return torch.where(places.unsqueeze(2), theirs, mine)

    def seen(self, source, other):
        return (source != PAD).unsqueeze(1)

    def read(self, target):
        return shift_right(target)

    def finish(self, logits):
        return logits.softmax(dim=-1)

    @torch.no_grad()
    def forward(self, source, target, other, places):
        memory = self.choose(*self.memories(source, other, places), places)
        read = self.read(target)
        _, target_mask = masks_from_tokens(source, read)
        return self.finish(self.model.decode(read, memory, target_mask, self.seen(source, other)))


@mistake(
    "ActivationPatching",
    hint="The words are exchanged before the encoder reads them, so that it mixes them with their "
    "new neighbours. Encode both sentences as they are; exchange what comes out.",
)
class PatchesTheTokens(_Patching):
    def memories(self, source, other, places):
        mixed = torch.where(places, other, source)
        return super().memories(mixed, mixed, places)


@mistake(
    "ActivationPatching",
    hint="All vectors come from the other sentence. Only those at `places` should.",
)
class PatchesEverything(_Patching):
    def choose(self, mine, theirs, places):
        return theirs


@mistake(
    "ActivationPatching",
    hint="The vectors at `places` are kept and all others replaced. It should be the other way "
    "round.",
)
class PatchesTheRest(_Patching):
    def choose(self, mine, theirs, places):
        return torch.where(places.unsqueeze(2), mine, theirs)


@mistake(
    "ActivationPatching",
    hint="A vector is added to the one that was there. It should take its place.",
)
class AddsTheVectors(_Patching):
    def choose(self, mine, theirs, places):
        return mine + theirs * places.unsqueeze(2)


@mistake(
    "ActivationPatching",
    hint="A place that is replaced in one sentence is replaced in all of the batch. `places` has a "
    "row for each sentence.",
)
class PatchesTheWholeBatch(_Patching):
    def choose(self, mine, theirs, places):
        return super().choose(mine, theirs, places.any(dim=0, keepdim=True))


@mistake(
    "ActivationPatching",
    hint="The other sentence is encoded under the mask of the source. Its padding is somewhere "
    "else: make a mask from its own ids.",
)
class EncodesUnderOneMask(_Patching):
    def memories(self, source, other, places):
        seen = (source != PAD).unsqueeze(1)
        return self.model.encode(source, seen), self.model.encode(other, seen)


@mistake(
    "ActivationPatching",
    hint="The decoder looks where the other sentence has tokens. What it may look at should stay "
    "as it was: the places of the source.",
)
class LooksWhereTheOtherIs(_Patching):
    def seen(self, source, other):
        return (other != PAD).unsqueeze(1)


@mistake(
    "ActivationPatching",
    hint="The decoder reads each letter before it is to write it. It should read the true ones "
    "before: shift_right.",
)
class ForgetsToShift(_Patching):
    def read(self, target):
        return target


@mistake(
    "ActivationPatching",
    hint="Scores come out. Return probabilities: softmax over the vocabulary.",
)
class ReturnsScores(_Patching):
    def finish(self, logits):
        return logits


@mistake(
    "ActivationPatching",
    hint="Log-probabilities come out. Return probabilities.",
)
class ReturnsLogProbabilities(_Patching):
    def finish(self, logits):
        return logits.log_softmax(dim=-1)


@mistake(
    "ActivationPatching",
    hint="The softmax runs over the places of the target. The probabilities of one letter should "
    "sum to 1: dim=-1.",
)
class SharesAmongPlaces(_Patching):
    def finish(self, logits):
        return logits.softmax(dim=1)


@mistake(
    "ActivationPatching",
    hint="Only the true letter's probability comes out. Return that of every token of the "
    "vocabulary.",
)
class ReturnsTheTrueLetters(_Patching):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        return super().forward(source, target, other, places).gather(2, target.unsqueeze(2))


@alternative("ActivationPatching")
class PatchesByMultiplying(_Patching):
    def choose(self, mine, theirs, places):
        share = places.unsqueeze(-1).to(mine.dtype)
        return share * theirs + (1 - share) * mine


@alternative("ActivationPatching")
class PatchesByIndex(_Patching):
    def choose(self, mine, theirs, places):
        memory = mine.clone()
        memory[places] = theirs[places]
        return memory


@alternative("ActivationPatching")
class PatchesWithAHook(Explained):
    """The model runs as it always does; a hook on its encoder exchanges what comes out."""

    @torch.no_grad()
    def forward(self, source, target, other, places):
        theirs = self.model.encode(other, (other != PAD).unsqueeze(1))

        def hook(_, args, memory):
            return torch.where(places[..., None], theirs, memory)

        handle = self.model.encoder.register_forward_hook(hook)
        try:
            return self.model(source, target).log_softmax(2).exp()
        finally:
            handle.remove()


@careless("ActivationPatching")
class TicksOffThePlaces(_Patching):
    def choose(self, mine, theirs, places):
        memory = mine.clone()
        for b, j in places.nonzero().tolist():
            memory[b, j] = theirs[b, j]
            places[b, j] = False
        return memory


@careless("ActivationPatching")
class PatchesOnTheCpu(_Patching):
    def choose(self, mine, theirs, places):
        memory = torch.zeros(mine.shape)
        for b, row in enumerate(places.tolist()):
            for j, replaced in enumerate(row):
                memory[b, j] = (theirs if replaced else mine)[b, j]
        return memory.to(mine.dtype)


# --- HiddenTokenAttribution --------------------------------------------------------------------


def _jacobian(encoder, x):
    """Derivatives: (B, T out, d out, T in, d in)."""
    x = x.detach().requires_grad_()
    hidden = encoder(x)
    B, T, d = hidden.shape
    rows = [
        torch.autograd.grad(hidden[:, i, f].sum(), x, retain_graph=True)[0]
        for i in range(T)
        for f in range(d)
    ]
    return torch.stack(rows, dim=1).view(B, T, d, T, d)


class _Encoded(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder if isinstance(encoder, nn.Module) else Encoder(**encoder)


class _Attribution(_Encoded):
    """A right HiddenTokenAttribution in small methods; a mistake overrides one."""

    def size(self, blocks):
        return blocks.square().sum(dim=(2, 4)).sqrt()

    def share(self, sizes):
        return sizes / sizes.sum(-1, keepdim=True)

    def forward(self, x):
        return self.share(self.size(_jacobian(self.encoder, x)))


@mistake(
    "HiddenTokenAttribution",
    hint="The sizes are not divided by their sum. Return shares: each row sums to 1.",
)
class KeepsTheSizes(_Attribution):
    def share(self, sizes):
        return sizes


@mistake(
    "HiddenTokenAttribution",
    hint="The columns sum to 1. It is the shares of a hidden vector, a row, that should.",
)
class DividesTheColumns(_Attribution):
    def share(self, sizes):
        return sizes / sizes.sum(1, keepdim=True)


@mistake(
    "HiddenTokenAttribution",
    hint="The squares are divided by their sum. The root comes before.",
)
class ForgetsTheRoot(_Attribution):
    def size(self, blocks):
        return blocks.square().sum(dim=(2, 4))


@mistake(
    "HiddenTokenAttribution",
    hint="Absolute values are added up. The size is the root of the sum of the squares.",
)
class AddsAbsoluteValues(_Attribution):
    def size(self, blocks):
        return blocks.abs().sum(dim=(2, 4))


@mistake(
    "HiddenTokenAttribution",
    hint="The derivatives of all features are added up before their size is taken, and cancel. "
    "Differentiate feature by feature.",
)
class AddsTheFeatures(_Attribution):
    def size(self, blocks):
        return blocks.sum(2).square().sum(-1).sqrt()


@mistake(
    "HiddenTokenAttribution",
    hint="The sizes of each feature's derivative are added up. Add up the squares of all "
    "derivatives, then take one root.",
)
class AddsTheRoots(_Attribution):
    def size(self, blocks):
        return blocks.square().sum(-1).sqrt().sum(2)


@mistake(
    "HiddenTokenAttribution",
    hint="Rows and columns are exchanged: entry (i, j) belongs to hidden vector i and input j.",
)
class ExchangesTheAxes(_Attribution):
    def share(self, sizes):
        return super().share(sizes.mT)


@mistake(
    "HiddenTokenAttribution",
    hint="Rows and columns are exchanged after the division: entry (i, j) belongs to hidden "
    "vector i and input j, and rows sum to 1.",
)
class ExchangesTheAxesAtTheEnd(_Attribution):
    def share(self, sizes):
        return super().share(sizes).mT


@mistake(
    "HiddenTokenAttribution",
    hint="The largest of the derivatives is taken. The size is the root of the sum of the squares.",
)
class TakesTheLargestDerivative(_Attribution):
    def size(self, blocks):
        return blocks.abs().amax(dim=(2, 4))


@mistake(
    "HiddenTokenAttribution",
    hint="The derivatives are multiplied by the input. That is another measure; here only their "
    "size counts.",
)
class MultipliesByTheInput(_Attribution):
    def forward(self, x):
        blocks = _jacobian(self.encoder, x) * x.detach()[:, None, None]
        return self.share(self.size(blocks))


@mistake(
    "HiddenTokenAttribution",
    hint="A softmax makes shares of the sizes. Divide by their sum instead.",
)
class TakesASoftmax(_Attribution):
    def share(self, sizes):
        return sizes.softmax(-1)


@mistake(
    "HiddenTokenAttribution",
    hint="The sum is taken over the whole batch. Each row has its own.",
)
class DividesByTheWhole(_Attribution):
    def share(self, sizes):
        return sizes / sizes.sum(dim=(0, 1, 2), keepdim=True)


@mistake(
    "HiddenTokenAttribution",
    hint="x.grad adds up: each backward() comes on top of those before, also of other hidden "
    "vectors. Set it to None in between, or ask torch.autograd.grad.",
)
class LetsGradientsAddUp(_Attribution):
    def forward(self, x):
        B, T, d = x.shape
        sums = _jacobian(self.encoder, x).flatten(1, 2).cumsum(1)
        return self.share(self.size(sums.view(B, T, d, T, d)))


@mistake(
    "HiddenTokenAttribution",
    hint="The length of the hidden vector is differentiated, one number. Differentiate all "
    "its features: a vector that turns keeps its length.",
)
class DifferentiatesTheLength(_Attribution):
    def forward(self, x):
        x = x.detach().requires_grad_()
        rows = [
            torch.autograd.grad(length.sum(), x, retain_graph=True)[0].norm(dim=-1)
            for length in self.encoder(x).norm(dim=-1).unbind(1)
        ]
        return self.share(torch.stack(rows, dim=1))


@mistake(
    "HiddenTokenAttribution",
    hint="The first feature alone is differentiated. A hidden vector has d_model of them.",
)
class TakesTheFirstFeature(_Attribution):
    def size(self, blocks):
        return blocks[:, :, 0].square().sum(-1).sqrt()


@alternative("HiddenTokenAttribution")
class AttributesByBlocks(_Attribution):
    pass


@alternative("HiddenTokenAttribution")
class AttributesSentenceBySentence(_Encoded):
    """PyTorch's own Jacobian."""

    def forward(self, x):
        rows = []
        for sentence in x.detach():
            blocks = torch.autograd.functional.jacobian(
                lambda y: self.encoder(y.unsqueeze(0)).squeeze(0), sentence
            )
            rows.append(F.normalize(blocks.transpose(1, 2).flatten(2).norm(dim=2), p=1, dim=1))
        return torch.stack(rows)


@alternative("HiddenTokenAttribution")
class AttributesWithBackward(_Encoded):
    """A forward pass for each derivative."""

    def forward(self, x):
        T, d = x.shape[1:]
        rows = []
        for i in range(T):
            parts = []
            for f in range(d):
                leaf = x.detach().clone().requires_grad_()
                with torch.enable_grad():
                    one = self.encoder(leaf)[:, i, f].sum()
                parts.append(torch.autograd.grad(one, leaf)[0])
            size = torch.stack(parts, dim=-1).flatten(2).norm(dim=-1)  # (B, T)
            rows.append(size / size.sum(dim=-1, keepdim=True))
        return torch.stack(rows, dim=1)


@careless("HiddenTokenAttribution")
class AttributesIntoZeros(_Attribution):
    def size(self, blocks):
        B, T = blocks.shape[:2]
        sizes = torch.zeros(B, T, T)
        for i in range(T):
            sizes[:, i] = blocks[:, i].square().sum(dim=(1, 3)).sqrt()
        return sizes


@careless("HiddenTokenAttribution")
class AttributesInNumpy(_Attribution):
    def size(self, blocks):
        return torch.from_numpy(numpy.sqrt((blocks.numpy() ** 2).sum(axis=(2, 4))))


# --- HeadImportance ----------------------------------------------------------------------------


class _Importance(Explained):
    """A right HeadImportance in small methods; a mistake overrides what it gets wrong."""

    def loss(self, log_p, target):
        return -log_p.masked_fill(target == PAD, 0.0).sum()

    def begin(self, source):
        return self.gates(len(source))

    def mean(self, gradient):
        return gradient.abs().mean(dim=0)

    def forward(self, source, target):
        gates = self.begin(source)
        with watch_attention(self.model, gates):
            log_p = self.log_p(source, target)
        gradients = torch.autograd.grad(self.loss(log_p, target), list(gates.values()))
        return {n: self.mean(g) for n, g in zip(gates, gradients, strict=True)}


@mistake(
    "HeadImportance",
    hint="The signs are kept: a head that helps one sentence and harms another would seem to do "
    "nothing. Take the size of each sentence's derivative, then the mean.",
)
class KeepsTheSigns(_Importance):
    def mean(self, gradient):
        return gradient.mean(dim=0)


@mistake(
    "HeadImportance",
    hint="The mean comes before the absolute value, so the sentences cancel. Take the size of each "
    "sentence's derivative first.",
)
class AveragesFirst(_Importance):
    def mean(self, gradient):
        return gradient.mean(dim=0).abs()


@mistake(
    "HeadImportance",
    hint="The sizes are added up over the sentences. Take their mean.",
)
class AddsTheSentences(_Importance):
    def mean(self, gradient):
        return gradient.abs().sum(dim=0)


@mistake(
    "HeadImportance",
    hint="What the model gives to PAD counts in the loss. Only real target tokens should.",
)
class CountsThePadding(_Importance):
    def loss(self, log_p, target):
        return -log_p.sum()


@mistake(
    "HeadImportance",
    hint="The loss is divided by the number of tokens of the batch. The loss of a sentence is the "
    "sum over its tokens.",
)
class TakesTheMeanLoss(_Importance):
    def loss(self, log_p, target):
        return -log_p[target != PAD].mean()


@mistake(
    "HeadImportance",
    hint="The loss of each sentence is divided by its length. It is the sum over its tokens.",
)
class DividesByTheLengths(_Importance):
    def loss(self, log_p, target):
        real = target != PAD
        return -((log_p * real).sum(1) / real.sum(1)).sum()


@mistake(
    "HeadImportance",
    hint="Probabilities are added up. The loss is -log p.",
)
class AddsProbabilities(_Importance):
    def loss(self, log_p, target):
        return super().loss(log_p.exp(), target)


@mistake(
    "HeadImportance",
    hint="The derivatives are squared. Take their size, the absolute value.",
)
class SquaresThem(_Importance):
    def mean(self, gradient):
        return gradient.square().mean(dim=0)


@mistake(
    "HeadImportance",
    hint="The derivatives of all sentences come out, (B, H). Return their mean, (H,).",
)
class KeepsTheSentences(_Importance):
    def mean(self, gradient):
        return gradient.abs()


@mistake(
    "HeadImportance",
    hint="The mean is taken over the heads. The first axis, that of the sentences, should go.",
)
class AveragesTheHeads(_Importance):
    def mean(self, gradient):
        return gradient.abs().mean(dim=1)


@mistake(
    "HeadImportance",
    hint="It is divided by the number of sentences twice: in the loss, and in the mean. In the "
    "loss, the sentences are added up.",
)
class DividesTwice(_Importance):
    def loss(self, log_p, target):
        return super().loss(log_p, target) / len(target)


@mistake(
    "HeadImportance",
    hint="The root of the mean of the squares comes out. Return the mean of the sizes.",
)
class TakesTheRootOfTheMeanSquare(_Importance):
    def mean(self, gradient):
        return gradient.square().mean(dim=0).sqrt()


class _Normalised(_Importance):
    """The importances of one attention are divided by something."""

    def forward(self, source, target):
        found = super().forward(source, target)
        return {name: sizes / self.size(sizes) for name, sizes in found.items()}


NORMALISED = (
    "The importances of each attention are divided by their {}, as some papers do to compare "
    "layers. Here they stay as they are."
)


@mistake("HeadImportance", hint=NORMALISED.format("length"))
class DividesByTheLength(_Normalised):
    def size(self, sizes):
        return sizes.norm()


@mistake("HeadImportance", hint=NORMALISED.format("sum"))
class DividesByTheSum(_Normalised):
    def size(self, sizes):
        return sizes.sum()


@mistake("HeadImportance", hint=NORMALISED.format("largest"))
class DividesByTheLargest(_Normalised):
    def size(self, sizes):
        return sizes.max()


class _Silenced(_Importance):
    """Each head is turned off, and the losses are compared."""

    @torch.no_grad()
    def forward(self, source, target):
        def losses(gates):
            with watch_attention(self.model, gates):
                log_p = self.log_p(source, target)
            return -log_p.masked_fill(target == PAD, 0.0).sum(1)  # (B,)

        whole, found = losses({}), {}
        for name, gates in self.gates(len(source)).items():
            found[name] = []
            for head in range(gates.shape[1]):
                off = gates.clone()
                off[:, head] = 0.0
                found[name].append(self.one(losses({name: off}) - whole))
        return {name: torch.stack(rows) for name, rows in found.items()}


SILENCED = (
    "Heads are silenced, and the loss is asked again. Return the derivative where all gates are 1: "
    "one backward pass for all heads."
)


@mistake("HeadImportance", hint=SILENCED)
class SilencesTheHeads(_Silenced):
    def one(self, lost):
        return lost.abs().mean()


@mistake("HeadImportance", hint=SILENCED)
class SilencesTheHeadsWithSigns(_Silenced):
    def one(self, lost):
        return lost.mean()


@mistake("HeadImportance", hint=SILENCED)
class SilencesTheHeadsAndTakesTheSize(_Silenced):
    def one(self, lost):
        return lost.mean().abs()


END = (
    "EOS counts, too: it is a token that the model has to write. Only PAD is left out of the loss."
)


@mistake("HeadImportance", hint=END)
class LeavesOutTheEnd(_Importance):
    def loss(self, log_p, target):
        return -log_p.masked_fill((target == PAD) | (target == EOS), 0.0).sum()


@mistake("HeadImportance", hint=END)
class LeavesOutTheLastToken(_Importance):
    def loss(self, log_p, target):
        after = torch.cat([target[:, 1:], torch.full_like(target[:, :1], PAD)], dim=1)
        return -log_p.masked_fill(after == PAD, 0.0).sum()


NO_GATES = (
    "The loss does not depend on the gates. `watch_attention` takes them as its second argument, "
    "and they are in place only within the `with`."
)


@mistake("HeadImportance", hint=NO_GATES)
class ForgetsTheGates(_Importance):
    def forward(self, source, target):
        gates = self.begin(source)
        with watch_attention(self.model):
            log_p = self.log_p(source, target)
        gradients = torch.autograd.grad(self.loss(log_p, target), list(gates.values()))
        return {n: self.mean(g) for n, g in zip(gates, gradients, strict=True)}


@mistake("HeadImportance", hint=NO_GATES)
class AsksTooLate(_Importance):
    def forward(self, source, target):
        gates = self.begin(source)
        with watch_attention(self.model, gates):
            pass
        log_p = self.log_p(source, target)
        gradients = torch.autograd.grad(self.loss(log_p, target), list(gates.values()))
        return {n: self.mean(g) for n, g in zip(gates, gradients, strict=True)}


@mistake(
    "HeadImportance",
    hint="All sentences share one gate per head, so their derivatives are added up, and cancel, "
    "before the size is taken. A gate per sentence keeps them apart.",
)
class SharesTheGates(_Importance):
    def begin(self, source):
        return self.gates(1)


@mistake(
    "HeadImportance",
    hint="A list comes out. Return a dict with the names of the attentions.",
)
class ReturnsAList(_Importance):
    def forward(self, source, target):
        return list(super().forward(source, target).values())


@alternative("HeadImportance")
class WeighsWithBackward(_Importance):
    def forward(self, source, target):
        gates = self.begin(source)
        with watch_attention(self.model, gates):
            log_p = self.log_p(source, target)
        self.loss(log_p, target).backward()
        return {name: self.mean(gate.grad) for name, gate in gates.items()}


@alternative("HeadImportance")
class WeighsInSteps(_Importance):
    pass


@alternative("HeadImportance")
class WeighsWithAHistory(_Importance):
    """The importances can be differentiated, too: nobody asked for that, nobody forbade it."""

    def forward(self, source, target):
        gates = self.begin(source)
        with watch_attention(self.model, gates):
            log_p = self.log_p(source, target)
        loss, leaves = self.loss(log_p, target), list(gates.values())
        gradients = torch.autograd.grad(loss, leaves, create_graph=True)
        return {n: self.mean(g) for n, g in zip(gates, gradients, strict=True)}


@alternative("HeadImportance")
class WeighsSentenceBySentence(Explained):
    """One sentence, and one attention, at a time."""

    def forward(self, source, target):
        found = {name: [] for name in self.gates(1)}
        for ids, wanted in zip(source, target, strict=True):
            for name, rows in found.items():
                gate = self.gates(1)[name]
                with watch_attention(self.model, {name: gate}):
                    log_p = self.log_p(ids.unsqueeze(0), wanted.unsqueeze(0))
                loss = -sum(log_p[0, t] for t in range(len(wanted)) if wanted[t] != PAD)
                rows.append(torch.autograd.grad(loss, gate)[0][0].abs())
        return {name: sum(rows) / len(rows) for name, rows in found.items()}


@alternative("HeadImportance")
class WeighsByCrossEntropy(Explained):
    """With a loss of PyTorch, which leaves PAD out by itself."""

    def forward(self, source, target):
        gates = self.gates(source.shape[0])
        with watch_attention(self.model, gates):
            logits = self.model(source, target)
        loss = F.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum"
        )
        found = torch.autograd.grad(loss, tuple(gates.values()))
        sizes = [torch.where(one < 0, -one, one) for one in found]
        return dict(zip(gates, [size.sum(0) / len(source) for size in sizes], strict=True))


@careless("HeadImportance")
class MakesGatesOfItsOwn(_Importance):
    def begin(self, source):
        gates = self.gates(len(source))
        return {name: torch.ones(gate.shape, requires_grad=True) for name, gate in gates.items()}


@careless("HeadImportance")
class ReturnsCopiesOfNumbers(_Importance):
    def mean(self, gradient):
        return torch.tensor(gradient.abs().mean(dim=0).tolist())


NO_GRADIENT = "what comes out has no gradient, or none that is asked for: the check says why"
ONE_SIZE = "both have the same size, or are on the same device"
FACTOR = "a factor that is the same for all goes in the division"

# What the checks cannot tell from a right answer, because it is one.
EQUIVALENT = {
    "null_space_dimension: with one bound of a slice left out: ones = "
    "torch.ones_like(values[..., :])": "several columns of ones have the rank of one",
    "null_space_dimension: with one whole number off by one: ones = "
    "torch.ones_like(values[..., :2])": "several columns of ones have the rank of one",
    "null_space_dimension: whose result is cut off from the gradient: return (values.shape[-2] - "
    "torch.linalg.matrix_rank(both, rtol=tolerance)).detach()": NO_GRADIENT,
    "perturb_attention: whose result is cut off from the gradient: return (weights + step * "
    "change).detach()": NO_GRADIENT,
    "perturb_attention: whose result is cut off from the gradient: return "
    "weights.detach()": NO_GRADIENT,
    "token_identifiability: with the two sides of one `-` exchanged: far = (inputs.unsqueeze(1) - "
    "hidden.unsqueeze(2)).norm(dim=-1)": "the sign goes",
    "token_identifiability: with `inputs` once where `hidden` belongs: own = "
    "torch.arange(inputs.shape[1], device=hidden.device)": ONE_SIZE,
    "token_identifiability: with `mask` once where `hidden` belongs: own = "
    "torch.arange(mask.shape[1], device=hidden.device)": ONE_SIZE,
    "token_identifiability: with `inputs` once where `hidden` belongs: own = "
    "torch.arange(hidden.shape[1], device=inputs.device)": ONE_SIZE,
    "token_identifiability: with `mask` once where `hidden` belongs: own = "
    "torch.arange(hidden.shape[1], device=mask.device)": ONE_SIZE,
    "token_identifiability: whose result is cut off from the gradient: return ((far.argmin(dim=-1) "
    "== own) & mask).detach()": NO_GRADIENT,
    "token_identifiability: with one call of `normalize` left out: hidden, inputs = (hidden, "
    "F.normalize(inputs, dim=-1))": "of inputs of length 1, the nearest has the smallest angle, "
    "however long the hidden vector is",
    "LeaveOneOut: with `source` once where `target` belongs: seen, _ = masks_from_tokens(source, "
    "source)": "the mask of the target is not used",
    "LeaveOneOut: whose result is cut off from the gradient: return torch.stack(losses, "
    "dim=-1).detach()": NO_GRADIENT,
    "ActivationPatching: with one call of `shift_right` left out: seen, target_mask = "
    "masks_from_tokens(source, target)": "only rows of padding get another mask",
    "ActivationPatching: whose result is cut off from the gradient: return "
    "logits.softmax(dim=-1).detach()": NO_GRADIENT,
    "HiddenTokenAttribution: whose result is cut off from the gradient: return (sizes / "
    "sizes.sum(dim=-1, keepdim=True)).detach()": NO_GRADIENT,
    "HiddenTokenAttribution: with `mean` once where `sum` belongs: gradient, = "
    "torch.autograd.grad(feature.mean(), x, retain_graph=True)": FACTOR,
    "HiddenTokenAttribution: with `mean` once where `sum` belongs: squares = squares + "
    "gradient.square().mean(dim=-1)": FACTOR,
    "HeadImportance: with one minus sign left out: loss = log_p.masked_fill(target == PAD, "
    "0.0).sum()": "the sign goes",
    "HeadImportance: with one call of `list` left out: gradients = torch.autograd.grad(loss, "
    "gates.values())": "autograd takes any sequence here",
    "HeadImportance: without `strict` in one call of `zip`: return {name: "
    "gradient.abs().mean(dim=0) for name, gradient in zip(gates, gradients)}": (
        "there are as many of both"
    ),
    "HeadImportance: with False once where True belongs: return {name: gradient.abs().mean(dim=0) "
    "for name, gradient in zip(gates, gradients, strict=False)}": "there are as many of both",
}
