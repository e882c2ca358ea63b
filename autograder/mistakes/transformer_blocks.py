"""Wrong and right answers to the exercises of lesson 09."""

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, combine_masks
from attention.multi_head_attention import Sublayers
from autograder.checking.toolbox.registry import alternative, careless, mistake


class _Norm(nn.Module):
    """A right answer in small methods; a mistake overrides what it gets wrong."""

    dim = -1

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def centre(self, x):
        return x - x.mean(self.dim, keepdim=True)

    def variance(self, x):
        return x.var(self.dim, keepdim=True, correction=0)

    def root(self, x):
        return torch.sqrt(self.variance(x) + self.eps)

    def finish(self, normed):
        return normed * self.weight + self.bias

    def forward(self, x):
        return self.finish(self.centre(x) / self.root(x))


@mistake(
    "LayerNorm",
    hint="Mean and variance are taken over the batch (axis 0), so what one sentence becomes "
    "depends on its neighbours. Each vector is normalised by itself.",
    earns=("weight and bias",),
)
class NormalisesOverTheBatch(_Norm):
    dim = 0


@mistake(
    "LayerNorm",
    hint="Mean and variance are taken over the positions. Each position has its own: which axis "
    "holds the features?",
)
class NormalisesOverPositions(_Norm):
    dim = -2

    def forward(self, x):
        self.dim = -1 if x.dim() == 1 else -2
        return super().forward(x)


@mistake(
    "LayerNorm",
    hint="One mean and one variance for the whole tensor. Every vector has its own.",
)
class NormalisesAllAtOnce(_Norm):
    def forward(self, x):
        return self.finish((x - x.mean()) / torch.sqrt(x.var(correction=0) + self.eps))


@mistake(
    "LayerNorm",
    hint="A mean and a variance per sentence, over positions and features together. Then a "
    "position depends on the others. Only the features belong together.",
)
class NormalisesWholeSentences(_Norm):
    def forward(self, x):
        self.dim = list(range(min(1, x.dim() - 1), x.dim()))
        return super().forward(x)


@mistake(
    "LayerNorm",
    hint="The variance is divided by d_model - 1, which is what var and std do unless told "
    "otherwise. Here it is the plain mean of the squares: unbiased=False, or correction=0.",
    earns=("mean 0", "weight and bias"),
)
class DividesByOneLess(_Norm):
    def variance(self, x):
        return x.var(self.dim, keepdim=True)


@mistake(
    "LayerNorm",
    hint="eps is added to the standard deviation. It belongs inside the root, to the variance.",
    earns=("mean 0", "weight and bias"),
)
class AddsEpsOutsideTheRoot(_Norm):
    def root(self, x):
        return torch.sqrt(self.variance(x)) + self.eps


@mistake(
    "LayerNorm",
    hint="Two slips at once: std divides by d_model - 1, and eps is added outside the root.",
)
class TakesStdPlusEps(_Norm):
    def root(self, x):
        return x.std(self.dim, keepdim=True) + self.eps


@mistake(
    "LayerNorm",
    hint="Two slips at once: std divides by d_model - 1, and eps is not used.",
)
class TakesStdAlone(_Norm):
    def root(self, x):
        return x.std(self.dim, keepdim=True)


@mistake("LayerNorm", hint="eps is not used: a vector of equal numbers would give 0 / 0.")
class ForgetsEps(_Norm):
    def root(self, x):
        return torch.sqrt(self.variance(x))


@mistake(
    "LayerNorm",
    hint="The vectors are divided by the variance. Divide by its root, the standard deviation.",
)
class DividesByTheVariance(_Norm):
    def root(self, x):
        return self.variance(x) + self.eps


@mistake(
    "LayerNorm",
    hint="The mean is not subtracted from the vector. (Nor is it in RMSNorm, a later invention, "
    "which also leaves it out of the variance.)",
    earns=("variance 1 and eps", "weight and bias"),
)
class KeepsTheMean(_Norm):
    def centre(self, x):
        return x


@mistake(
    "LayerNorm",
    hint="This is RMSNorm: it divides by the root mean square and never subtracts the mean. "
    "LayerNorm does.",
)
class IsRmsNorm(KeepsTheMean):
    def variance(self, x):
        return x.square().mean(-1, keepdim=True)


@mistake(
    "LayerNorm",
    hint="weight, the learned scale, is not used in forward.",
    earns=("mean 0", "variance 1 and eps"),
)
class ForgetsTheWeight(_Norm):
    def finish(self, normed):
        return normed + self.bias


@mistake("LayerNorm", hint="bias, the learned shift, is not used in forward.")
class ForgetsTheBias(_Norm):
    def finish(self, normed):
        return normed * self.weight


@mistake(
    "LayerNorm",
    hint="The bias is added before the scale. It is scale first, then shift.",
    earns=("mean 0", "variance 1 and eps"),
)
class ShiftsBeforeItScales(_Norm):
    def finish(self, normed):
        return (normed + self.bias) * self.weight


@mistake(
    "LayerNorm",
    hint="weight and bias are plain tensors: no optimiser would find them. nn.Parameter makes a "
    "tensor part of the module.",
)
class HasPlainTensors(_Norm):
    def __init__(self, d_model, eps=1e-5):
        nn.Module.__init__(self)
        self.eps, self.weight, self.bias = eps, torch.ones(d_model), torch.zeros(d_model)


@mistake("LayerNorm", hint="weight begins with zeros: every output would be 0. Begin with ones.")
class BeginsWithZeros(_Norm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        self.weight = nn.Parameter(torch.zeros(d_model))


@mistake(
    "LayerNorm",
    hint="One scale and one shift for all features. Each of the d_model features has its own.",
)
class HasASingleScale(_Norm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(1, eps)


@mistake(
    "LayerNorm",
    hint="The mean has lost an axis, so it is paired with the wrong one. Keep it: keepdim=True.",
)
class DropsTheAxis(_Norm):
    def centre(self, x):
        return x - x.mean(-1)


@mistake(
    "LayerNorm",
    hint="The values are right, but no gradient flows through mean and variance. They depend on x "
    "too: no detach and no torch.no_grad here.",
    earns=("mean 0", "variance 1 and eps"),
)
class DetachesTheStatistics(_Norm):
    def forward(self, x):
        fixed = x.detach()
        normed = (x - fixed.mean(-1, keepdim=True)) / self.root(fixed)
        return self.finish(normed)


@mistake("LayerNorm", hint="eps is 1e-5 whatever was asked for. self.eps has what was given.")
class FixesEps(_Norm):
    def root(self, x):
        return torch.sqrt(self.variance(x) + 1e-5)


@mistake(
    "LayerNorm",
    hint="x -= … writes into the caller's tensor, which others still need. Make a new one: x - …",
)
class WritesIntoItsInput(_Norm):
    def forward(self, x):
        x -= x.mean(self.dim, keepdim=True)
        return self.finish(x / self.root(x))


@alternative("LayerNorm")
class WithTheKernel(_Norm):
    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


@alternative("LayerNorm")
class WithVarMean(_Norm):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(self.bias, (x - mean) * (variance + self.eps).rsqrt(), self.weight)


@mistake(
    "LayerNorm",
    hint="The variance is the mean of the squares minus the square of the mean: two large numbers "
    "whose difference has few digits left. Subtract the mean first, then square.",
    earns=("mean 0", "weight and bias"),
)
class SquaresMinusSquare(_Norm):
    def variance(self, x):
        return (x**2).mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2


@careless("LayerNorm")
class MakesATensorOfEps(_Norm):
    def root(self, x):
        return torch.sqrt(self.variance(x) + torch.full((1,), self.eps))


@careless("LayerNorm")
class FillsTheVectors(_Norm):
    def forward(self, x):
        result, vectors = torch.zeros(x.shape).view(-1, x.shape[-1]), x.reshape(-1, x.shape[-1])
        for i, vector in enumerate(vectors):
            result[i] = super().forward(vector)
        return result.view(x.shape)


class _Wide(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.p = dropout
        self.dropout = nn.Dropout(dropout)
        self.linear_1, self.linear_2 = self.layers(d_model, d_ff)

    def layers(self, d_model, d_ff):
        return nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear_2(self.dropout(torch.relu(self.linear_1(x))))


@mistake(
    "FeedForward",
    hint="There is no ReLU. Two linear layers in a row are one linear layer, however wide.",
)
class ForgetsTheRelu(_Wide):
    def forward(self, x):
        return self.linear_2(self.dropout(self.linear_1(x)))


@mistake(
    "FeedForward",
    hint="The ReLU comes after the second layer. There it is too late for the hidden units, and "
    "no output could be negative. It stands between the two.",
)
class AppliesReluAtTheEnd(_Wide):
    def forward(self, x):
        return torch.relu(self.linear_2(self.dropout(self.linear_1(x))))


@mistake(
    "FeedForward",
    hint="A ReLU after each layer: no output can be negative. Only the first has one.",
)
class AppliesReluTwice(_Wide):
    def forward(self, x):
        return torch.relu(super().forward(x))


@mistake("FeedForward", hint="The ReLU comes before the first layer. It stands between the two.")
class AppliesReluFirst(_Wide):
    def forward(self, x):
        return self.linear_2(self.dropout(self.linear_1(torch.relu(x))))


@mistake(
    "FeedForward",
    hint="This is GELU, as in later models. The Transformer of this lesson has a ReLU.",
)
class UsesGelu(_Wide):
    def forward(self, x):
        return self.linear_2(self.dropout(F.gelu(self.linear_1(x))))


@mistake("FeedForward", hint="x is added to the result. The residual belongs to the layer around.")
class AddsItsInput(_Wide):
    def forward(self, x):
        return x + super().forward(x)


@mistake(
    "FeedForward",
    hint="Both layers go from d_model to d_model. The first leads to d_ff, the second back.",
)
class HasNoWideLayer(_Wide):
    def layers(self, d_model, d_ff):
        return nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)


@mistake("FeedForward", hint="The sizes are swapped. nn.Linear takes: features in, features out.")
class SwapsTheSizes(_Wide):
    def layers(self, d_model, d_ff):
        return nn.Linear(d_ff, d_model), nn.Linear(d_model, d_ff)


@mistake("FeedForward", hint="The linear layers have no bias. These two have one each.")
class HasNoBiases(_Wide):
    def layers(self, d_model, d_ff):
        return nn.Linear(d_model, d_ff, False), nn.Linear(d_ff, d_model, False)


@mistake(
    "FeedForward",
    hint="Dropout is on also after eval(). self.dropout knows the mode; F.dropout has to be told.",
)
class DropsUnitsInEvaluation(_Wide):
    def forward(self, x):
        return self.linear_2(F.dropout(torch.relu(self.linear_1(x)), self.p))


@mistake("FeedForward", hint="Dropout is not used: self.dropout belongs after the ReLU.")
class NeverDropsUnits(_Wide):
    def forward(self, x):
        return self.linear_2(torch.relu(self.linear_1(x)))


@mistake(
    "FeedForward",
    hint="The output is dropped, not the hidden units. Dropout on the output is the residual's.",
)
class DropsTheOutput(_Wide):
    def forward(self, x):
        return self.dropout(self.linear_2(torch.relu(self.linear_1(x))))


@mistake("FeedForward", hint="The input is dropped. Dropout belongs after the ReLU.")
class DropsTheInput(_Wide):
    def forward(self, x):
        return self.linear_2(torch.relu(self.linear_1(self.dropout(x))))


@mistake("FeedForward", hint="The hidden units pass through dropout twice. Once is enough.")
class DropsUnitsTwice(_Wide):
    def forward(self, x):
        hidden = self.dropout(torch.relu(self.linear_1(x)))
        return self.linear_2(self.dropout(hidden))


@mistake(
    "FeedForward",
    hint="Hidden units and output are both dropped. Dropout on the output is the residual's.",
)
class DropsUnitsAndOutput(_Wide):
    def forward(self, x):
        return self.dropout(super().forward(x))


@mistake("FeedForward", hint="The input is dropped too. Dropout belongs on the hidden units only.")
class DropsInputAndUnits(_Wide):
    def forward(self, x):
        return super().forward(self.dropout(x))


@alternative("FeedForward")
class PositionAfterPosition(_Wide):
    def forward(self, x):
        rows = [super(PositionAfterPosition, self).forward(row) for row in x.view(-1, x.shape[-1])]
        return torch.stack(rows).view(x.shape)


@alternative("FeedForward")
class DropsBeforeTheRelu(_Wide):
    """Dropout and ReLU may change places: one scales by a positive number or 0."""

    def forward(self, x):
        hidden = self.dropout(x @ self.linear_1.weight.T + self.linear_1.bias)
        return hidden.clamp(min=0) @ self.linear_2.weight.T + self.linear_2.bias


@careless("FeedForward")
class ComparesWithZeros(_Wide):
    def forward(self, x):
        hidden = self.linear_1(x)
        return self.linear_2(self.dropout(torch.maximum(hidden, torch.zeros(hidden.shape))))


@careless("FeedForward")
class FillsThePositions(_Wide):
    def forward(self, x):
        result, rows = torch.zeros(x.shape).view(-1, x.shape[-1]), x.reshape(-1, x.shape[-1])
        for i, row in enumerate(rows):
            result[i] = super().forward(row)
        return result.view(x.shape)


class _Sum(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.p = dropout

    def scale(self):
        return 1 / (1 - self.p)

    def keeps(self, noise):
        return noise >= self.p

    def rest(self, update, noise):
        return update * self.keeps(noise) * self.scale() if self.training else update

    def forward(self, x, update, noise=None):
        noise = torch.rand_like(update) if noise is None else noise
        return x + self.rest(update, noise)


@mistake(
    "Residual",
    hint="What is kept is not enlarged. With a share of p gone, the update is too small on "
    "average: by which factor?",
)
class ForgetsToRescale(_Sum):
    def scale(self):
        return 1.0


@mistake(
    "Residual",
    hint="What is kept is multiplied by 1 - p, which makes the update smaller still.",
)
class ScalesTheWrongWay(_Sum):
    def scale(self):
        return 1 - self.p


@mistake("Residual", hint="The update is divided by p. The share that is kept is another one.")
class DividesByP(_Sum):
    def scale(self):
        return 1 / self.p


@mistake(
    "Residual",
    hint="Dropout is on also after eval(). self.training says which mode the module is in.",
)
class DropsWhenEvaluated(_Sum):
    def rest(self, update, noise):
        return update * self.keeps(noise) * self.scale()


@mistake("Residual", hint="There is no dropout in training.")
class NeverDropsUpdates(_Sum):
    def rest(self, update, noise):
        return update


@mistake("Residual", hint="It is the wrong way round: dropout in evaluation, none in training.")
class ConfusesTheModes(_Sum):
    def rest(self, update, noise):
        return update if self.training else update * self.keeps(noise) * self.scale()


@mistake(
    "Residual",
    hint="In training nothing is rescaled, and in evaluation the update is multiplied by 1 - p. "
    "That balances too, but here training does the work, so that evaluation is a plain sum.",
)
class RescalesInEvaluation(_Sum):
    def rest(self, update, noise):
        return update * self.keeps(noise) if self.training else update * (1 - self.p)


@mistake(
    "Residual", hint="The update is enlarged also after eval(), where nothing was dropped from it."
)
class EnlargesInBothModes(_Sum):
    def rest(self, update, noise):
        return update * (self.keeps(noise) if self.training else 1) * self.scale()


@mistake("Residual", hint="Kept and dropped are swapped: noise below p means dropped.")
class KeepsWhatShouldGo(_Sum):
    def keeps(self, noise):
        return noise < self.p


@mistake("Residual", hint="Noise of exactly p is dropped too. Below p means dropped, p is kept.")
class DropsTheBorder(_Sum):
    def keeps(self, noise):
        return noise > self.p


@mistake(
    "Residual",
    hint="Dropout is on the sum, so x is dropped too. The skip connection stays untouched.",
)
class DropsTheSum(_Sum):
    def forward(self, x, update, noise=None):
        noise = torch.rand_like(update) if noise is None else noise
        return self.rest(x + update, noise)


@mistake("Residual", hint="Dropout is on x instead of the update.")
class DropsTheWrongOne(_Sum):
    def forward(self, x, update, noise=None):
        return super().forward(update, x, noise)


@mistake("Residual", hint="x is not added: only what is left of the update comes back.")
class ForgetsX(_Sum):
    def forward(self, x, update, noise=None):
        return super().forward(torch.zeros_like(x), update, noise)


@mistake(
    "Residual",
    hint="x += … writes into the tensor that was handed in, which others still need. Make a new "
    "one: x + …",
)
class WritesIntoX(_Sum):
    def forward(self, x, update, noise=None):
        noise = torch.rand_like(update) if noise is None else noise
        x += self.rest(update, noise)
        return x


@mistake(
    "Residual",
    hint="The noise that was given is not used: other noise is drawn. Compare the given noise with "
    "self.p.",
)
class DrawsItsOwnNoise(_Sum):
    def forward(self, x, update, noise=None):
        noise = torch.rand_like(update) if noise is None else noise
        return x + F.dropout(update, self.p, self.training)


@mistake(
    "Residual",
    hint="The update is multiplied by the noise itself. The noise only decides: below p an entry "
    "goes, else it stays.",
)
class MultipliesByTheNoise(_Sum):
    def keeps(self, noise):
        return noise


@mistake(
    "Residual",
    hint="An entry is kept where its noise is below 1 - p. As often, but here the noise below p "
    "says what is dropped.",
)
class KeepsBelowOneMinusP(_Sum):
    def keeps(self, noise):
        return noise < 1 - self.p


@mistake(
    "Residual", hint="x is divided by 1 - p as well. Only what is kept of the update is enlarged."
)
class EnlargesXToo(_Sum):
    def forward(self, x, update, noise=None):
        noise = torch.rand_like(update) if noise is None else noise
        if not self.training:
            return x + update
        return (x + update * self.keeps(noise)) / (1 - self.p)


@alternative("Residual")
class ScalesInSinglePrecision(_Sum):
    """A table of True and False divided by a number is float32, whatever the update is."""

    def rest(self, update, noise):
        return update * (self.keeps(noise) / (1 - self.p)) if self.training else update


@alternative("Residual")
class WithWhere(_Sum):
    def rest(self, update, noise):
        if not self.training:
            return update
        return torch.where(noise < self.p, 0.0, update) / (1 - self.p)


@alternative("Residual")
class FillsWithZeros(_Sum):
    def forward(self, x, update, noise=None):
        if not self.training:
            return torch.add(update, x)
        noise = torch.rand_like(update) if noise is None else noise
        return x + update.masked_fill(noise < self.p, 0).div(1 - self.p)


@careless("Residual")
class FillsWhatIsKept(_Sum):
    def keeps(self, noise):
        kept = torch.zeros(noise.shape)
        kept[noise >= self.p] = 1.0
        return kept


@careless("Residual")
class AddsToZeros(_Sum):
    def forward(self, x, update, noise=None):
        result = torch.zeros(x.shape)
        result += super().forward(x, update, noise)
        return result


@careless("Residual")
class WritesIntoTheUpdate(_Sum):
    def rest(self, update, noise):
        if self.training:
            update *= self.keeps(noise) * self.scale()
        return update


class _Layer(Sublayers):
    """A right encoder layer in small methods."""

    def drop(self, update):
        return self.dropout(update)

    def look(self, h, mask):
        return self.attention(h, h, h, mask)

    def before(self, number, x):
        return getattr(self, f"norm_{number}")(x)

    def add(self, number, x, update):
        return x + self.drop(update)

    def join(self, number, x, sublayer):
        """Residual and norm around a sublayer."""
        if self.pre_norm:
            return self.add(number, x, sublayer(self.before(number, x)))
        return self.before(number, self.add(number, x, sublayer(x)))

    def forward(self, x, mask=None):
        x = self.join(1, x, lambda h: self.look(h, mask))
        return self.join(2, x, self.feed_forward)


@mistake(
    "EncoderLayer",
    hint="It is always pre-norm. With pre_norm=False the norm comes after the sum.",
    earns=("pre-norm", "with a mask", "with dropout"),
)
class IsAlwaysPreNorm(_Layer):
    def join(self, number, x, sublayer):
        return x + self.drop(sublayer(self.before(number, x)))


@mistake(
    "EncoderLayer",
    hint="It is always post-norm. With pre_norm=True only what goes into a sublayer is normalised.",
)
class IsAlwaysPostNorm(_Layer):
    def join(self, number, x, sublayer):
        return self.before(number, x + self.drop(sublayer(x)))


@mistake("EncoderLayer", hint="pre_norm is read the wrong way round.")
class SwapsPreAndPost(_Layer):
    def join(self, number, x, sublayer):
        if not self.pre_norm:
            return x + self.drop(sublayer(self.before(number, x)))
        return self.before(number, x + self.drop(sublayer(x)))


@mistake(
    "EncoderLayer",
    hint="In the pre-norm layer the update is added to the normalised x. Then every path leads "
    "through the norms. Add it to x as it came in.",
    earns=("post-norm", "with a mask", "with dropout"),
)
class AddsToTheNormed(_Layer):
    def join(self, number, x, sublayer):
        if self.pre_norm:
            x = self.before(number, x)
            return x + self.drop(sublayer(x))
        return super().join(number, x, sublayer)


@mistake(
    "EncoderLayer",
    hint="There is no residual connection: x is not added to any update.",
    earns=("with a mask",),
)
class HasNoResidual(_Layer):
    def add(self, number, x, update):
        return self.drop(update)


@mistake("EncoderLayer", hint="The residual connection around the attention is missing.")
class HasNoFirstResidual(_Layer):
    missing = 1

    def add(self, number, x, update):
        return self.drop(update) if number == self.missing else super().add(number, x, update)


@mistake("EncoderLayer", hint="The residual connection around the feed-forward network is missing.")
class HasNoSecondResidual(HasNoFirstResidual):
    missing = 2


@mistake(
    "EncoderLayer",
    hint="norm_1 and norm_2 are swapped: norm_1 belongs to the attention.",
    earns=("with a mask", "with dropout"),
)
class SwapsTheNorms(_Layer):
    def before(self, number, x):
        return super().before(3 - number, x)


@mistake("EncoderLayer", hint="norm_1 is used for both sublayers. Each has a norm of its own.")
class UsesOneNorm(_Layer):
    def before(self, number, x):
        return self.norm_1(x)


NORMS_THE_UPDATE = (
    "In the post-norm layer the update is normalised by itself, then added. The norm belongs to "
    "the sum."
)


@mistake("EncoderLayer", hint=NORMS_THE_UPDATE)
class NormalisesTheUpdate(_Layer):
    def join(self, number, x, sublayer):
        if self.pre_norm:
            return super().join(number, x, sublayer)
        return x + self.drop(self.before(number, sublayer(x)))


@mistake("EncoderLayer", hint=NORMS_THE_UPDATE)
class NormalisesWhatIsLeftOfTheUpdate(_Layer):
    def join(self, number, x, sublayer):
        if self.pre_norm:
            return super().join(number, x, sublayer)
        return x + self.before(number, self.drop(sublayer(x)))


NORMS_EVERY_UPDATE = (
    "Updates are normalised by themselves, in both cases. Post-norm normalises the sum, pre-norm "
    "what goes into the sublayer."
)


@mistake("EncoderLayer", hint=NORMS_EVERY_UPDATE)
class NormalisesEveryUpdate(_Layer):
    def join(self, number, x, sublayer):
        return x + self.drop(self.before(number, sublayer(x)))


@mistake("EncoderLayer", hint=NORMS_EVERY_UPDATE)
class NormalisesWhatIsLeftOfEveryUpdate(_Layer):
    def join(self, number, x, sublayer):
        return x + self.before(number, self.drop(sublayer(x)))


@mistake(
    "EncoderLayer",
    hint="In the pre-norm layer only the queries are normalised. Keys and values are made of the "
    "same normalised vectors.",
)
class NormalisesQueriesOnly(_Layer):
    def forward(self, x, mask=None):
        if not self.pre_norm:
            return super().forward(x, mask)
        x = x + self.drop(self.attention(self.norm_1(x), x, x, mask))
        return self.join(2, x, self.feed_forward)


@mistake("EncoderLayer", hint="The norm in front of the feed-forward network is missing.")
class ForgetsTheSecondNorm(_Layer):
    def before(self, number, x):
        return x if self.pre_norm and number == 2 else super().before(number, x)


@mistake(
    "EncoderLayer",
    hint="The pre-norm layer normalises its output too. In a stack of them that is done once, "
    "after the last layer.",
)
class NormalisesTwice(_Layer):
    def join(self, number, x, sublayer):
        joined = super().join(number, x, sublayer)
        return self.before(number, joined) if self.pre_norm and number == 2 else joined


@mistake(
    "EncoderLayer",
    hint="Attention and feed-forward network both start from the x that came in. The second starts "
    "from what the first has made.",
)
class RunsInParallel(_Layer):
    def forward(self, x, mask=None):
        first = self.join(1, x, lambda h: self.look(h, mask))
        if self.pre_norm:
            return first + self.drop(self.feed_forward(self.norm_2(x)))
        return self.norm_2(first + self.drop(self.feed_forward(x)))


FROM_THE_FIRST_NORM = (
    "In the pre-norm layer the feed-forward network starts from what went into the attention, and "
    "never sees what that has added. It works on the sum, normalised anew."
)


@mistake("EncoderLayer", hint=FROM_THE_FIRST_NORM)
class NormalisesTheNormedAgain(_Layer):
    def second(self, h):
        return self.norm_2(h)

    def forward(self, x, mask=None):
        if not self.pre_norm:
            return super().forward(x, mask)
        h = self.norm_1(x)
        x = x + self.drop(self.look(h, mask))
        return x + self.drop(self.feed_forward(self.second(h)))


@mistake("EncoderLayer", hint=FROM_THE_FIRST_NORM)
class FeedsTheFirstNormForward(NormalisesTheNormedAgain):
    def second(self, h):
        return h


@mistake(
    "EncoderLayer",
    hint="In the post-norm layer only the feed-forward network gets the output of norm_1: its "
    "update is added to the sum from before that norm. The normalised sum takes the place of x for "
    "good.",
)
class KeepsTheFirstSum(_Layer):
    def forward(self, x, mask=None):
        if self.pre_norm:
            return super().forward(x, mask)
        x = x + self.drop(self.look(x, mask))
        return self.norm_2(x + self.drop(self.feed_forward(self.norm_1(x))))


@mistake("EncoderLayer", hint="The feed-forward network comes first. Attention does.")
class FeedsForwardFirst(_Layer):
    def forward(self, x, mask=None):
        return self.join(1, self.join(2, x, self.feed_forward), lambda h: self.look(h, mask))


@mistake("EncoderLayer", hint="The feed-forward network and its residual are missing.")
class ForgetsTheFeedForward(_Layer):
    def forward(self, x, mask=None):
        return self.join(1, x, lambda h: self.look(h, mask))


@mistake(
    "EncoderLayer",
    hint="The mask is not handed on to the attention.",
    earns=("post-norm", "pre-norm", "with dropout"),
)
class ForgetsTheMaskOfTheLayer(_Layer):
    def look(self, h, mask):
        return self.attention(h, h, h)


@mistake("EncoderLayer", hint="The mask is inverted. True means: may attend.")
class InvertsTheMaskOfTheLayer(_Layer):
    def look(self, h, mask):
        return self.attention(h, h, h, None if mask is None else ~mask)


@mistake(
    "EncoderLayer",
    hint="Dropout stays on after eval(). self.dropout knows the mode; F.dropout has to be told.",
    earns=("post-norm", "pre-norm", "with a mask"),
)
class DropsUpdatesInEvaluation(_Layer):
    def drop(self, update):
        return F.dropout(update, self.dropout.p)


@mistake(
    "EncoderLayer",
    hint="The updates are not dropped in training: self.dropout is not used.",
    earns=("post-norm", "pre-norm", "with a mask"),
)
class ForgetsTheDropout(_Layer):
    def drop(self, update):
        return update


@mistake(
    "EncoderLayer",
    hint="Dropout is on the sum, so x is dropped too. It belongs to the update, before the sum.",
)
class DropsSums(_Layer):
    def add(self, number, x, update):
        return self.drop(x + update)


@mistake("EncoderLayer", hint="The updates pass through dropout twice. Once is enough.")
class DropsUpdatesTwice(_Layer):
    def drop(self, update):
        return self.dropout(self.dropout(update))


@mistake("EncoderLayer", hint="The update of the feed-forward network is not dropped.")
class DropsTheFirstUpdateOnly(_Layer):
    spared = 2

    def add(self, number, x, update):
        return x + update if number == self.spared else super().add(number, x, update)


@mistake("EncoderLayer", hint="The update of the attention is not dropped.")
class DropsTheSecondUpdateOnly(DropsTheFirstUpdateOnly):
    spared = 1


@mistake(
    "EncoderLayer",
    hint="In the pre-norm layer only queries and keys are normalised. The values are made of the "
    "same normalised vectors.",
)
class LeavesTheValuesAsTheyAre(_Layer):
    def forward(self, x, mask=None):
        if not self.pre_norm:
            return super().forward(x, mask)
        h = self.norm_1(x)
        x = x + self.drop(self.attention(h, h, x, mask))
        return self.join(2, x, self.feed_forward)


@alternative("EncoderLayer")
class JoinsInOnePlace(_Layer):
    """The right answer from which the mistakes are made."""


@alternative("EncoderLayer")
class ChoosesTheNormAtEveryStep(Sublayers):
    def forward(self, x, mask=None):
        h = self.norm_1(x) if self.pre_norm else x
        x = self.dropout(self.attention(h, h, h, mask)) + x
        x = x if self.pre_norm else self.norm_1(x)
        h = self.norm_2(x) if self.pre_norm else x
        x = self.dropout(self.feed_forward(h)) + x
        return x if self.pre_norm else self.norm_2(x)


@careless("EncoderLayer")
class MakesAMaskOfOnes(_Layer):
    def look(self, h, mask):
        ones = torch.ones(h.shape[1], h.shape[1], dtype=torch.bool)
        return super().look(h, ones if mask is None else mask)


@careless("EncoderLayer")
class CollectsTheStreamOnTheCpu(_Layer):
    def add(self, number, x, update):
        stream = torch.zeros(x.shape, dtype=x.dtype)
        return stream + x + self.drop(update)


class _Decoder(_Layer):
    """A right decoder layer in small methods."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, pre_norm=False, fused=False):
        Sublayers.__init__(self, d_model, n_heads, d_ff, dropout, pre_norm, fused, cross=True)

    def past(self, x, mask):
        return combine_masks(causal_mask(x.shape[1], x.device), mask)

    def masks(self, x, mask, memory_mask):
        return self.past(x, mask), memory_mask

    def cross(self, h, memory, mask):
        return self.cross_attention(h, memory, memory, mask)

    def forward(self, x, memory, mask=None, memory_mask=None):
        mask, memory_mask = self.masks(x, mask, memory_mask)
        x = self.join(1, x, lambda h: self.look(h, mask))
        x = self.join(2, x, lambda h: self.cross(h, memory, memory_mask))
        return self.join(3, x, self.feed_forward)


@mistake(
    "DecoderLayer",
    hint="The causal mask is missing in the self-attention: every position sees the words that it "
    "should guess.",
    earns=("post-norm", "pre-norm", "with dropout"),
)
class SeesTheFuture(_Decoder):
    def past(self, x, mask):
        return mask


@mistake(
    "DecoderLayer",
    hint="The causal mask is used only if there is no other mask. Combine them: both must allow.",
)
class LetsTheMaskReplaceThePast(_Decoder):
    def past(self, x, mask):
        return causal_mask(x.shape[1], x.device) if mask is None else mask


@mistake(
    "DecoderLayer",
    hint="The two masks are joined with or. A position may look where both allow it.",
)
class AllowsWhatEitherAllows(_Decoder):
    def past(self, x, mask):
        return (
            causal_mask(x.shape[1], x.device)
            if mask is None
            else causal_mask(x.shape[1], x.device) | mask
        )


@mistake(
    "DecoderLayer",
    hint="The causal mask is turned round: positions see the future and not the past.",
)
class SeesOnlyTheFuture(_Decoder):
    def past(self, x, mask):
        return combine_masks(causal_mask(x.shape[1], x.device).mT, mask)


@mistake(
    "DecoderLayer",
    hint="Which target positions are real is not taken into account: mask is not used.",
)
class ForgetsTheTargetMask(_Decoder):
    def past(self, x, mask):
        return causal_mask(x.shape[1], x.device)


@mistake(
    "DecoderLayer",
    hint="The source's mask is used on the target as well. The self-attention looks at the target, "
    "whose mask is `mask`.",
)
class MasksTheTargetLikeTheSource(_Decoder):
    def masks(self, x, mask, memory_mask):
        return self.past(x, memory_mask), memory_mask


@mistake(
    "DecoderLayer",
    hint="The target's mask is used on the source. The cross-attention looks at memory, whose mask "
    "is memory_mask.",
)
class MasksTheSourceLikeTheTarget(_Decoder):
    def masks(self, x, mask, memory_mask):
        return self.past(x, mask), mask


@mistake(
    "DecoderLayer",
    hint="The two masks are swapped: memory_mask belongs to the cross-attention.",
)
class SwapsTheMasks(_Decoder):
    def masks(self, x, mask, memory_mask):
        return self.past(x, memory_mask), mask


@mistake(
    "DecoderLayer",
    hint="The causal mask is used on the source too. The source is there from the beginning: all "
    "of its real tokens may be seen.",
    earns=("post-norm", "pre-norm", "with dropout"),
)
class HidesTheSourcesFuture(_Decoder):
    def masks(self, x, mask, memory_mask):
        return self.past(x, mask), self.past(x, memory_mask)


@mistake("DecoderLayer", hint="memory_mask is not passed on to the cross-attention.")
class ForgetsTheMemoryMask(_Decoder):
    def masks(self, x, mask, memory_mask):
        return self.past(x, mask), None


@mistake(
    "DecoderLayer",
    hint="The cross-attention gets its own keys and values: it is a second self-attention, and "
    "memory is never looked at.",
)
class CrossesWithItself(_Decoder):
    def cross(self, h, memory, mask):
        return self.cross_attention(h, h, h)


@mistake(
    "DecoderLayer",
    hint="Query and memory are swapped in the cross-attention: now the source asks. The "
    "decoder should ask, and the source has keys and values.",
)
class LetsTheSourceAsk(_Decoder):
    def cross(self, h, memory, mask):
        return self.cross_attention(memory, h, h)


@mistake(
    "DecoderLayer",
    hint="Values come from the target. Keys and values belong together: both come from memory.",
    earns=("with dropout",),
)
class TakesValuesFromTheTarget(_Decoder):
    def cross(self, h, memory, mask):
        return self.cross_attention(h, memory, h, mask)


@mistake(
    "DecoderLayer",
    hint="The first attention's layer is used again for the cross-attention. It has one of its "
    "own: self.cross_attention.",
)
class UsesTheFirstAttentionTwice(_Decoder):
    def cross(self, h, memory, mask):
        return self.attention(h, memory, memory, mask)


@mistake(
    "DecoderLayer",
    hint="memory is normalised with the decoder's norm. The encoder has finished it: only the "
    "query passes through norm_2.",
    earns=("post-norm", "the causal mask and the others", "with dropout"),
)
class NormalisesTheMemory(_Decoder):
    def cross(self, h, memory, mask):
        memory = self.norm_2(memory) if self.pre_norm else memory
        return self.cross_attention(h, memory, memory, mask)


@mistake(
    "DecoderLayer",
    hint="In the pre-norm layer the query of the cross-attention is not normalised. Only memory "
    "goes into a sublayer as it is.",
)
class AsksWithoutANorm(_Decoder):
    def before(self, number, x):
        return x if self.pre_norm and number == 2 else super().before(number, x)


@mistake("DecoderLayer", hint="The cross-attention is missing: memory is never looked at.")
class ForgetsTheSource(_Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.join(1, x, lambda h: self.look(h, self.past(x, mask)))
        return self.join(3, x, self.feed_forward)


@mistake(
    "DecoderLayer",
    hint="The cross-attention comes before the self-attention. It is the other way round, and "
    "norm_1 belongs to the first.",
)
class CrossesFirst(_Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.join(2, x, lambda h: self.cross(h, memory, memory_mask))
        x = self.join(1, x, lambda h: self.look(h, self.past(x, mask)))
        return self.join(3, x, self.feed_forward)


@mistake(
    "DecoderLayer",
    hint="norm_2 and norm_3 are swapped: norm_2 belongs to the cross-attention, norm_3 to the "
    "feed-forward network.",
)
class SwapsTheLastNorms(_Decoder):
    def before(self, number, x):
        return super().before({1: 1, 2: 3, 3: 2}[number], x)


@mistake(
    "DecoderLayer",
    hint="There is no residual connection: x is not added to any update.",
    earns=("the causal mask and the others",),
)
class DecodesWithoutResidual(_Decoder):
    def add(self, number, x, update):
        return self.drop(update)


@mistake("DecoderLayer", hint="The residual connection around the cross-attention is missing.")
class CrossesWithoutResidual(_Decoder):
    def add(self, number, x, update):
        return self.drop(update) if number == 2 else super().add(number, x, update)


@mistake(
    "DecoderLayer",
    hint="In the pre-norm layer the update is added to the normalised x. Then every path leads "
    "through the norms. Add it to x as it came in.",
)
class AddsUpdatesToTheNormed(_Decoder):
    def join(self, number, x, sublayer):
        if self.pre_norm:
            x = self.before(number, x)
            return x + self.drop(sublayer(x))
        return super().join(number, x, sublayer)


@mistake(
    "DecoderLayer",
    hint="It is always pre-norm. Look at self.pre_norm.",
    earns=("pre-norm", "the causal mask and the others", "with dropout"),
)
class DecodesAlwaysPreNorm(_Decoder):
    def join(self, number, x, sublayer):
        return self.add(number, x, sublayer(self.before(number, x)))


@mistake("DecoderLayer", hint="It is always post-norm. Look at self.pre_norm.")
class DecodesAlwaysPostNorm(_Decoder):
    def join(self, number, x, sublayer):
        return self.before(number, self.add(number, x, sublayer(x)))


@mistake(
    "DecoderLayer",
    hint="pre_norm is read the wrong way round.",
    earns=("the causal mask and the others", "with dropout"),
)
class ConfusesPreAndPost(_Decoder):
    def join(self, number, x, sublayer):
        if self.pre_norm:
            return self.before(number, self.add(number, x, sublayer(x)))
        return self.add(number, x, sublayer(self.before(number, x)))


@mistake(
    "DecoderLayer",
    hint="The updates are not dropped in training: self.dropout is not used.",
    earns=("post-norm", "pre-norm", "the causal mask and the others"),
)
class NeverDropsItsUpdates(_Decoder):
    def drop(self, update):
        return update


@mistake(
    "DecoderLayer",
    hint="Dropout stays on after eval(). self.dropout knows the mode; F.dropout has to be told.",
)
class DropsItsUpdatesInEvaluation(_Decoder):
    def drop(self, update):
        return F.dropout(update, self.dropout.p)


@mistake("DecoderLayer", hint="The updates pass through dropout twice. Once is enough.")
class DropsItsUpdatesTwice(_Decoder):
    def drop(self, update):
        return self.dropout(self.dropout(update))


@mistake("DecoderLayer", hint="The update of the cross-attention is not dropped.")
class SparesTheSecondUpdate(_Decoder):
    spared = 2

    def add(self, number, x, update):
        return x + update if number == self.spared else super().add(number, x, update)


@mistake("DecoderLayer", hint="The update of the feed-forward network is not dropped.")
class SparesTheThirdUpdate(SparesTheSecondUpdate):
    spared = 3


@mistake(
    "DecoderLayer",
    hint="What goes into the sublayers passes through dropout, too. Only the updates do.",
)
class DropsWhatGoesIn(_Decoder):
    def join(self, number, x, sublayer):
        return super().join(number, x, lambda h: sublayer(self.drop(h)))


@mistake(
    "DecoderLayer",
    hint="A position does not see itself. The diagonal belongs to the past: what is read there is "
    "the token before the one that is to be said.",
    earns=("post-norm", "pre-norm", "with dropout"),
)
class DoesNotSeeItself(_Decoder):
    def past(self, x, mask):
        return combine_masks(causal_mask(x.shape[1], x.device).tril(-1), mask)


@alternative("DecoderLayer")
class DecodesInSmallMethods(_Decoder):
    """The right answer from which the mistakes are made."""


@alternative("DecoderLayer")
class DecodesStepByStep(_Decoder):
    def forward(self, x, memory, mask=None, memory_mask=None):
        pre, position = self.pre_norm, torch.arange(x.shape[1], device=x.device)
        seen = position[:, None] >= position
        seen = seen if mask is None else seen & mask
        h = self.norm_1(x) if pre else x
        x = x + self.dropout(self.attention(h, h, h, seen))
        x = x if pre else self.norm_1(x)
        h = self.norm_2(x) if pre else x
        x = x + self.dropout(self.cross_attention(h, memory, memory, memory_mask))
        x = x if pre else self.norm_2(x)
        h = self.norm_3(x) if pre else x
        x = x + self.dropout(self.feed_forward(h))
        return x if pre else self.norm_3(x)


@careless("DecoderLayer")
class HidesTheFutureOnTheCpu(_Decoder):
    def past(self, x, mask):
        return combine_masks(causal_mask(x.shape[1]), mask)


@careless("DecoderLayer")
class CountsPositionsOnTheCpu(_Decoder):
    def past(self, x, mask):
        position = torch.arange(x.shape[1])
        return combine_masks(position[:, None] >= position, mask)


def _count(d_model, d_ff, cross, attention=None, feed_forward=None, norms=None, norm=None):
    """A layer's count from the counts of its parts, which a mistake gets wrong."""
    attention = 4 * d_model * (d_model + 1) if attention is None else attention
    feed_forward = d_ff * (2 * d_model + 1) + d_model if feed_forward is None else feed_forward
    norms = 2 + cross if norms is None else norms
    norm = 2 * d_model if norm is None else norm
    return (1 + cross) * attention + feed_forward + norms * norm


@mistake("layer_parameters", hint="The norms are missing: each has a weight and a bias.")
def forgets_the_norms(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, norms=0)


@mistake("layer_parameters", hint="Each norm has a weight and a bias, of d_model numbers each.")
def counts_the_scales_only(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, norm=d_model)


@mistake("layer_parameters", hint="There is one norm for every sublayer, not one for the layer.")
def counts_one_norm(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, norms=1)


@mistake("layer_parameters", hint="A decoder layer has a third norm, for its cross-attention.")
def forgets_the_third_norm(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, norms=2)


@mistake("layer_parameters", hint="An encoder layer has two norms, one for each sublayer.")
def counts_three_norms_always(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, norms=3)


@mistake("layer_parameters", hint="The projections of the attention have biases too.")
def forgets_the_biases_of_attention(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, attention=4 * d_model**2)


@mistake("layer_parameters", hint="An attention has four projections: W_o is one of them.")
def forgets_the_output_projection(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, attention=3 * d_model * (d_model + 1))


@mistake("layer_parameters", hint="The two layers of the feed-forward network have biases too.")
def forgets_the_biases_of_feed_forward(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, feed_forward=2 * d_model * d_ff)


@mistake("layer_parameters", hint="The feed-forward network has two layers: there and back.")
def counts_one_linear_layer(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, feed_forward=d_model * d_ff + d_ff)


@mistake(
    "layer_parameters",
    hint="The second linear layer leads to d_model features, so its bias has d_model numbers.",
)
def counts_two_wide_biases(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, cross, feed_forward=2 * (d_model * d_ff + d_ff))


@mistake("layer_parameters", hint="cross is not looked at: a decoder layer has a second attention.")
def ignores_the_cross_attention(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, False)


@mistake(
    "layer_parameters",
    hint="The whole layer counts twice. A decoder layer has a second attention and a third norm, "
    "but one feed-forward network.",
)
def doubles_the_layer(d_model, d_ff, cross=False):
    return _count(d_model, d_ff, False) * (2 if cross else 1)


@mistake("layer_parameters", hint="No layer has biases here. All of them have, and the norms too.")
def forgets_all_biases(d_model, d_ff, cross=False):
    parts = {"attention": 4 * d_model**2, "feed_forward": 2 * d_model * d_ff, "norm": d_model}
    return _count(d_model, d_ff, cross, **parts)


@mistake(
    "layer_parameters",
    hint="d_ff is not used. Four times d_model is the paper's choice, and no rule.",
)
def takes_four_times_d_model(d_model, d_ff, cross=False):
    times = 2 if cross else 1
    projections = times * 4 * d_model * (d_model + 1)
    hidden = 8 * d_model**2 + 5 * d_model
    return projections + hidden + 2 * (times + 1) * d_model


@mistake(
    "break_layer_parameters",
    hint="Here d_ff is four times d_model, and the smallest such layer is no exception.",
    where=lambda d_model, d_ff, cross=False: (d_model, d_ff) == (1, 4),
)
def the_smallest_layer():
    return 1, 4


@mistake(
    "break_layer_parameters",
    hint="Here d_ff is four times d_model, with and without a cross-attention.",
    where=lambda d_model, d_ff, cross=False: cross and d_ff == 4 * d_model,
)
def a_decoder_layer_of_these_sizes():
    return 16, 64, True


@mistake(
    "break_layer_parameters",
    hint="Here d_ff is four times d_model, as in the paper, and so this answer is right.",
    where=lambda d_model, d_ff, cross=False: d_ff == 4 * d_model,
)
def the_papers_sizes():
    return 512, 2048


@alternative("break_layer_parameters")
def as_wide_as_the_model():
    return 16, 16


@alternative("break_layer_parameters")
def a_decoder_layer():
    return 10, 20, True


@alternative("layer_parameters")
def builds_the_parts(d_model, d_ff, cross=False):
    linear = [(d_model, d_model)] * (8 if cross else 4) + [(d_model, d_ff), (d_ff, d_model)]
    parts = [nn.Linear(*sizes, device="meta") for sizes in linear]
    parts += [nn.LayerNorm(d_model, device="meta") for _ in range(3 if cross else 2)]
    return sum(p.numel() for part in parts for p in part.parameters())


@alternative("layer_parameters")
def multiplies_out(d_model, d_ff, cross=False):
    decoder = 4 * d_model**2 + 6 * d_model
    return 4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff + (decoder if cross else 0)


def _run(x, weights, skip, update=None):
    """The last output of the stack."""
    update = update or (lambda h, weight: torch.tanh(h @ weight))
    h = x
    for weight in weights:
        h = h + update(h, weight) if skip else update(h, weight)
    return h


def _gradient(x, weights, skip, loss=None, **options):
    weights = weights.detach().clone().requires_grad_()
    h = _run(x, weights, skip, **options)
    return torch.autograd.grad(h.square().mean() if loss is None else loss(h), weights)[0]


def _norms(gradient):
    return gradient.flatten(1).norm(dim=1)


@mistake(
    "gradient_norms",
    hint="The squares are summed. The loss is their mean.",
    earns=("the course without skip", "the course with skip"),
)
def sums_the_squares(x, weights, skip):
    return _norms(_gradient(x, weights, skip, loss=lambda h: h.square().sum()))


@mistake("gradient_norms", hint="The loss is the mean of the numbers themselves, not of squares.")
def forgets_the_squares(x, weights, skip):
    return _norms(_gradient(x, weights, skip, loss=torch.mean))


@mistake(
    "gradient_norms",
    hint="There is no tanh: without it, the stack is one linear map.",
    earns=("the course with skip",),
)
def forgets_the_tanh(x, weights, skip):
    return _norms(_gradient(x, weights, skip, update=torch.matmul))


@mistake(
    "gradient_norms",
    hint="skip has no effect: with skip=True, h is added to the update.",
    earns=("the course without skip", "the exact norms"),
)
def never_skips(x, weights, skip):
    return _norms(_gradient(x, weights, False))


@mistake(
    "gradient_norms",
    hint="h is added in any case. Look at skip.",
    earns=("the course with skip", "the exact norms"),
)
def always_skips(x, weights, skip):
    return _norms(_gradient(x, weights, True))


@mistake(
    "gradient_norms",
    hint="Every layer adds the x from the very beginning. It should add what it was given itself.",
    earns=("the course without skip", "the exact norms"),
)
def adds_the_first_x(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    h = x
    for weight in weights:
        h = torch.tanh(h @ weight) + (x if skip else 0)
    return _norms(torch.autograd.grad(h.square().mean(), weights)[0])


@mistake(
    "gradient_norms",
    hint="These are squared norms: the root is missing.",
    earns=("the course without skip", "the course with skip"),
)
def forgets_the_root(x, weights, skip):
    return _gradient(x, weights, skip).flatten(1).square().sum(1)


@mistake("gradient_norms", hint="One norm for all layers together. Each layer has its own.")
def takes_one_norm(x, weights, skip):
    return _gradient(x, weights, skip).norm()


@mistake(
    "gradient_norms",
    hint="A norm for each row of the matrices. A layer has one, over rows and columns.",
)
def takes_norms_of_rows(x, weights, skip):
    return _gradient(x, weights, skip).norm(dim=-1)


@mistake(
    "gradient_norms",
    hint="This is the largest singular value. Here the norm is the root of the sum of squares.",
)
def takes_the_spectral_norm(x, weights, skip):
    return torch.linalg.matrix_norm(_gradient(x, weights, skip), ord=2)


@mistake("gradient_norms", hint="The weights are measured, not their gradients.")
def measures_the_weights(x, weights, skip):
    return _norms(weights)


@mistake(
    "gradient_norms",
    hint="No operation was recorded: the weights do not ask for a gradient. Make a copy that does, "
    "with requires_grad_(), before the stack is run.",
)
def forgets_to_record(x, weights, skip):
    return _norms(torch.autograd.grad(_run(x, weights, skip).square().mean(), weights)[0])


@mistake(
    "gradient_norms",
    hint="torch.autograd.grad returns a tuple, also for a single tensor. Take the tensor out.",
)
def keeps_the_tuple(x, weights, skip):
    weights = weights.detach().clone().requires_grad_()
    return _norms(torch.autograd.grad(_run(x, weights, skip).square().mean(), weights))


@mistake(
    "gradient_norms",
    hint="The layers come in reverse order. Entry 0 is the first layer's.",
    earns=("the exact norms",),
)
def counts_from_the_end(x, weights, skip):
    return _norms(_gradient(x, weights, skip)).flip(0)


@mistake(
    "gradient_norms",
    hint="The product is with the transpose of weights[l]: h @ weights[l] needs none.",
)
def transposes_the_weights(x, weights, skip):
    return _norms(_gradient(x, weights, skip, update=lambda h, weight: torch.tanh(h @ weight.T)))


@alternative("gradient_norms")
def with_a_leaf_per_layer(x, weights, skip):
    leaves = [weight.detach().clone().requires_grad_() for weight in weights]
    _run(x, leaves, skip).pow(2).mean().backward()
    return torch.stack([leaf.grad.norm() for leaf in leaves])


@alternative("gradient_norms")
def by_the_chain_rule(x, weights, skip):
    states = [x]
    for weight in weights:
        states.append(_run(states[-1], weight[None], skip))
    back, norms = 2 * states[-1] / x.numel(), []
    for weight, h in zip(reversed(list(weights)), states[-2::-1], strict=True):
        inner = back / torch.cosh(h @ weight) ** 2
        norms.insert(0, torch.linalg.vector_norm(h.T @ inner))
        back = inner @ weight.T + (back if skip else 0)
    return torch.stack(norms)


@careless("gradient_norms")
def fills_the_norms(x, weights, skip):
    norms = torch.zeros(len(weights))
    for layer, gradient in enumerate(_gradient(x, weights, skip)):
        norms[layer] = gradient.norm()
    return norms


@careless("gradient_norms")
def makes_a_tensor_of_numbers(x, weights, skip):
    return torch.tensor([gradient.norm().item() for gradient in _gradient(x, weights, skip)])


EQUIVALENT = {
    "gradient_norms: with one call of `clone` left out: weights = "
    "weights.detach().requires_grad_()": "what is detached is a new tensor, and nothing writes",
    "gradient_norms: with one call of `detach` left out: weights = "
    "weights.clone().requires_grad_()": "a copy has the same gradient, whatever it came from",
    "gradient_norms: whose result is cut off from the gradient: return "
    "gradient.flatten(1).norm(dim=1).detach()": "no graph of the gradients was made",
    "DecoderLayer: with two arguments of one call of `combine_masks` exchanged: mask = "
    "combine_masks(mask, causal_mask(x.shape[1], x.device))": "both must allow, in any order",
    "DecoderLayer: with `memory` once where `x` belongs: mask = combine_masks(causal_mask("
    "x.shape[1], memory.device), mask)": "the target and the memory are on the same device",
}
