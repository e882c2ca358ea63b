"""Wrong and right answers to the exercises of lesson 07."""

import functools
import math

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from attention.multi_head_attention import attend
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _refuses_uneven_pieces(target):
    """With the lines that are given."""

    @functools.wraps(target)
    def answer(x, n_heads):
        if x.shape[2] % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={x.shape[2]}")
        return target(x, n_heads)

    return answer


def _refuses_uneven_groups(target):
    """With the lines that are given."""

    @functools.wraps(target)
    def answer(x, n_heads):
        if n_heads % x.shape[1]:
            raise ValueError(f"H_kv={x.shape[1]} does not divide n_heads={n_heads}")
        return target(x, n_heads)

    return answer


def _split(x, n_heads):
    return torch.stack(x.chunk(n_heads, -1), 1)


@mistake(
    "split_heads",
    hint="view(B, n_heads, T, d_head) has the right shape, but it cuts across positions: which "
    "axis is contiguous? Split the features first, then swap two axes.",
)
@_refuses_uneven_pieces
def view_without_transpose(x, n_heads):
    B, T, d_model = x.shape
    return x.reshape(B, n_heads, T, d_model // n_heads)


@mistake(
    "split_heads",
    hint="The features are dealt out like cards: head 0 has features 0, 3, 6, … Each head should "
    "get neighbouring ones. Which of H and d_head comes first when the last axis is split?",
)
@_refuses_uneven_pieces
def deals_features_out(x, n_heads):
    B, T, d_model = x.shape
    return x.reshape(B, T, d_model // n_heads, n_heads).permute(0, 3, 1, 2)


@mistake("split_heads", hint="This is (B, T, H, d_head). Swap the positions and the heads.")
@_refuses_uneven_pieces
def leaves_positions_first(x, n_heads):
    return _split(x, n_heads).transpose(1, 2)


@mistake(
    "split_heads",
    hint="Positions and features of a head are swapped: (B, H, d_head, T). That is what keys look "
    "like in the product with the queries, but not yet here.",
)
@_refuses_uneven_pieces
def swaps_positions_and_features(x, n_heads):
    return _split(x, n_heads).transpose(2, 3)


@mistake(
    "split_heads",
    hint="The heads are folded into the batch: (B · H, T, d_head). Keep them on an axis of their "
    "own.",
)
@_refuses_uneven_pieces
def folds_heads_into_the_batch(x, n_heads):
    return _split(x, n_heads).flatten(0, 1)


@mistake(
    "split_heads",
    hint="The heads are the first axis, before the batch: (H, B, T, d_head). The batch stays in "
    "front, and the heads come after it.",
)
@_refuses_uneven_pieces
def puts_the_heads_before_the_batch(x, n_heads):
    return torch.stack(x.chunk(n_heads, -1))


@mistake(
    "split_heads",
    hint="The axis of d_model was cut into pieces of n_heads features. There should be n_heads "
    "pieces.",
)
@_refuses_uneven_pieces
def makes_pieces_of_n_heads(x, n_heads):
    return _split(x, x.shape[-1] // n_heads)


@mistake(
    "split_heads",
    hint="The sizes are not tested first: d_model // n_heads drops the remainder, and the error "
    "comes from deep inside. Raise a ValueError if n_heads does not divide d_model.",
)
def cuts_whatever_comes(x, n_heads):
    B, T, d_model = x.shape
    return x.reshape(B, T, n_heads, d_model // n_heads).transpose(1, 2)


@alternative("split_heads")
@_refuses_uneven_pieces
def unflattens(x, n_heads):
    return x.unflatten(2, (n_heads, -1)).permute(0, 2, 1, 3)


@alternative("split_heads")
@_refuses_uneven_pieces
def cuts_slices(x, n_heads):
    d_head = x.shape[2] // n_heads
    return torch.stack([x[..., h * d_head : h * d_head + d_head] for h in range(n_heads)], dim=1)


@careless("split_heads")
@_refuses_uneven_pieces
def fills_heads_on_the_cpu(x, n_heads):
    B, T, d_model = x.shape
    heads = torch.zeros(B, n_heads, T, d_model // n_heads, dtype=x.dtype)
    for h, piece in enumerate(x.chunk(n_heads, dim=-1)):
        heads[:, h] = piece
    return heads


@careless("split_heads")
@_refuses_uneven_pieces
def fills_heads_in_float32(x, n_heads):
    B, T, d_model = x.shape
    heads = torch.zeros(B, n_heads, T, d_model // n_heads)
    for h, piece in enumerate(x.chunk(n_heads, dim=-1)):
        heads[:, h] = piece
    return heads


@careless("split_heads")
@_refuses_uneven_pieces
def splits_in_numpy(x, n_heads):
    return torch.from_numpy(numpy.stack(numpy.split(x.numpy(), n_heads, axis=-1), axis=1))


@careless("split_heads")
@_refuses_uneven_pieces
def splits_a_rebuilt_tensor(x, n_heads):
    return torch.tensor(x.tolist()).unflatten(-1, (n_heads, -1)).transpose(1, 2)


@mistake(
    "merge_heads",
    hint="The heads are merged without swapping the axes back: a row now holds one head at several "
    "positions. Positions must stand before heads when the two last axes are joined.",
)
def merges_without_transpose(x):
    B, H, T, d_head = x.shape
    return x.reshape(B, T, H * d_head)


@mistake(
    "merge_heads",
    hint="The pieces are shuffled together: feature 0 of all heads, then feature 1. Each head's "
    "piece should stay whole.",
)
def shuffles_the_pieces(x):
    return x.permute(0, 2, 3, 1).flatten(2)


@mistake("merge_heads", hint="The axes are swapped, but heads and features are not joined yet.")
def forgets_to_join(x):
    return x.transpose(1, 2)


@mistake(
    "merge_heads",
    hint="The heads are averaged. They should stand side by side: nothing is lost.",
)
def averages_the_heads(x):
    return x.mean(1, dtype=torch.float64).to(x.dtype)


@mistake(
    "merge_heads",
    hint="Heads and positions are joined: (B, H · T, d_head). Join heads and features.",
)
def joins_heads_and_positions(x):
    return x.flatten(1, 2)


@mistake(
    "merge_heads",
    hint="Positions and features are joined: (B, H, T · d_head). Heads and features belong "
    "together, and they are not neighbours yet.",
)
def joins_positions_and_features(x):
    return x.flatten(2)


@mistake(
    "merge_heads",
    hint="After a transpose the numbers no longer lie one after the other in memory, and view "
    "cannot join them. reshape copies where it must.",
)
def views_after_the_transpose(x):
    B, H, T, d_head = x.shape
    return x.transpose(1, 2).view(B, T, H * d_head)


@mistake(
    "merge_heads",
    hint="Positions and features are exchanged. It is the heads and the positions that change "
    "places, so that heads and features stand side by side.",
)
def exchanges_positions_and_features(x):
    B, H, T, d_head = x.shape
    return x.transpose(2, 3).reshape(B, T, H * d_head)


@mistake("merge_heads", hint="The heads are added up. They should stand side by side.")
def adds_up_the_heads(x):
    return x.sum(1)


@alternative("merge_heads")
def concatenates(x):
    return torch.cat(list(x.unbind(1)), dim=-1)


@alternative("merge_heads")
def copies_then_views(x):
    B, H, T, d_head = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(B, T, -1)


@careless("merge_heads")
def fills_features_on_the_cpu(x):
    B, H, T, d_head = x.shape
    merged = torch.zeros(B, T, H * d_head, dtype=x.dtype)
    for h in range(H):
        merged[:, :, h * d_head : (h + 1) * d_head] = x[:, h]
    return merged


@careless("merge_heads")
def fills_features_in_float32(x):
    B, H, T, d_head = x.shape
    merged = torch.zeros(B, T, H * d_head)
    for h in range(H):
        merged[:, :, h * d_head : (h + 1) * d_head] = x[:, h]
    return merged


@careless("merge_heads")
def merges_in_numpy(x):
    return torch.from_numpy(numpy.concatenate(list(x.numpy().swapaxes(0, 1)), axis=-1))


class _Heads(nn.Module):
    """A right answer in small methods; a mistake overrides what it gets wrong."""

    layers = ("W_q", "W_k", "W_v", "W_o")
    average = False

    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        self.n_heads, self.p = n_heads, dropout
        for name in self.layers:
            setattr(self, name, nn.Linear(d_model, d_model))

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_v(value)

    def split(self, x):
        return _split(x, self.n_heads)

    def merge(self, x):
        return torch.cat(x.unbind(1), -1)

    def rate(self):
        return self.p if self.training else 0.0

    def attend(self, q, k, v, mask):
        return attend(q, k, v, mask, self.rate())

    def gate(self, context, head_mask):
        return context if head_mask is None else context * head_mask[..., None, None]

    def finish(self, context):
        return self.W_o(context)

    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        mask = None if mask is None else mask.unsqueeze(-3)
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        context, weights = self.attend(q, k, v, mask)
        output = self.finish(self.merge(self.gate(context, head_mask)))
        weights = weights.mean(1) if self.average else weights
        return (output, weights) if return_weights else output


@mistake(
    "MultiHeadAttention",
    hint="The heads are cut across positions: reshaped straight to (B, H, T, d_head). Split the "
    "features first, then swap two axes.",
)
class CutsAcrossPositions(_Heads):
    def split(self, x):
        return x.reshape(len(x), self.n_heads, x.shape[1], -1)


@mistake(
    "MultiHeadAttention",
    hint="The heads are merged without swapping the axes back, so positions are mixed up.",
)
class MergesWithoutTranspose(_Heads):
    def merge(self, x):
        B, H, T, d_head = x.shape
        return x.reshape(B, T, H * d_head)


@mistake(
    "MultiHeadAttention",
    hint="Both splitting and merging are a reshape only. They undo each other, but in between each "
    "head attends within a few positions.",
)
class ReshapesBothWays(MergesWithoutTranspose):
    def split(self, x):
        return x.reshape(len(x), self.n_heads, x.shape[1], -1)


@mistake(
    "MultiHeadAttention",
    hint="The heads stand behind the positions, (B, T, H, d_head), so at every position the heads "
    "attend to each other.",
)
class AttendsAmongHeads(_Heads):
    def split(self, x):
        return _split(x, self.n_heads).transpose(1, 2)

    def merge(self, x):
        return x.flatten(2)


@mistake(
    "MultiHeadAttention",
    hint="The projections have no bias. Those of a single head in lesson 05 had none; these do.",
)
class ForgetsTheBiases(_Heads):
    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__(d_model, n_heads, dropout, fused)
        for name in self.layers:
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@mistake(
    "MultiHeadAttention",
    hint="W_q leads to d_head features: enough for one head. It makes the queries of all heads at "
    "once.",
)
class ProjectsForOneHead(_Heads):
    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__(d_model, n_heads, dropout, fused)
        for name in self.layers[:3]:
            setattr(self, name, nn.Linear(d_model, d_model // n_heads))


@mistake(
    "MultiHeadAttention",
    hint="W_q and W_k are the same layer under two names. Queries and keys need one each.",
)
class SharesAProjection(_Heads):
    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__(d_model, n_heads, dropout, fused)
        self.W_k = self.W_q


@mistake("MultiHeadAttention", hint="W_k exists, but the keys are made with W_q.")
class MakesKeysWithWq(_Heads):
    def project(self, query, key, value):
        return self.W_q(query), self.W_q(key), self.W_v(value)


@mistake(
    "MultiHeadAttention",
    hint="W_o is missing. Without it every head writes to its own features only.",
)
class HasNoOutputLayer(_Heads):
    layers = ("W_q", "W_k", "W_v")

    def finish(self, context):
        return context


@mistake("MultiHeadAttention", hint="W_o exists, but the merged heads do not pass through it.")
class SkipsTheOutputLayer(_Heads):
    def finish(self, context):
        return context


@mistake(
    "MultiHeadAttention",
    hint="The scores are divided by √d_model. A head's query has d_head entries.",
)
class ScalesByTheWholeWidth(_Heads):
    def attend(self, q, k, v, mask):
        return super().attend(q / math.sqrt(self.n_heads), k, v, mask)


@mistake(
    "MultiHeadAttention",
    hint="Dropout is on also after eval(). self.training says which mode the module is in.",
    earns=(
        "without a mask",
        "with a mask",
        "with head_mask",
    ),
)
class DropsInEvaluation(_Heads):
    def rate(self):
        return self.p


@mistake("MultiHeadAttention", hint="Dropout has no effect in training.")
class NeverDrops(_Heads):
    def rate(self):
        return 0.0


@mistake(
    "MultiHeadAttention",
    hint="Keys are made from value, and values from key. It shows only where the two differ.",
)
class SwapsKeyAndValue(_Heads):
    def project(self, query, key, value):
        return self.W_q(query), self.W_k(value), self.W_v(key)


@mistake(
    "MultiHeadAttention",
    hint="Keys and values are made from query, which is right for self-attention only.",
)
class LooksOnlyAtItself(_Heads):
    def project(self, query, key, value):
        return self.W_q(query), self.W_k(query), self.W_v(query)


@mistake(
    "MultiHeadAttention",
    hint="Values are made from key. In most calls key and value are the same, but not in all.",
)
class MakesValuesFromKey(_Heads):
    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_v(key)


@mistake(
    "MultiHeadAttention",
    hint="The mask is inverted. True means: may attend (nn.MultiheadAttention reads it the other "
    "way round).",
)
class InvertsTheMask(_Heads):
    def attend(self, q, k, v, mask):
        return super().attend(q, k, v, None if mask is None else ~mask)


@mistake(
    "MultiHeadAttention",
    hint="The mask is not handed on to the heads.",
    earns=(
        "without a mask",
        "with head_mask",
        "with dropout, fused and return_weights",
    ),
)
class ForgetsTheMask(_Heads):
    def attend(self, q, k, v, mask):
        return super().attend(q, k, v, None)


@mistake(
    "MultiHeadAttention",
    hint="head_mask has no effect.",
    earns=(
        "without a mask",
        "with a mask",
        "with dropout, fused and return_weights",
    ),
)
class IgnoresTheGates(_Heads):
    def gate(self, context, head_mask):
        return context


@mistake(
    "MultiHeadAttention",
    hint="The gates are lined up with another axis than the heads. With (B, H, T_q, d_head), a "
    "gate per head needs two more axes behind it.",
)
class GatesAnotherAxis(_Heads):
    def gate(self, context, head_mask):
        return context if head_mask is None else context * head_mask[..., None]


@mistake(
    "MultiHeadAttention",
    hint="This fits a head_mask of shape (H,) only. With (B, H) the two new axes belong behind the "
    "last one.",
    earns=(
        "without a mask",
        "with a mask",
        "with dropout, fused and return_weights",
    ),
)
class GatesOneBatchOnly(_Heads):
    def gate(self, context, head_mask):
        return context if head_mask is None else context * head_mask[:, None, None]


@mistake(
    "MultiHeadAttention",
    hint="The gates multiply a head's scores, and so change where it looks: with a gate of 0 it "
    "looks everywhere evenly, and still adds its update. Multiply what the head has found.",
)
class GatesTheQueries(_Heads):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        self.gates = head_mask
        return super().forward(query, key, value, mask, None, return_weights)

    def attend(self, q, k, v, mask):
        return super().attend(self.gate(q, self.gates), k, v, mask)


@mistake(
    "MultiHeadAttention",
    hint="return_weights has no effect: only the output comes back.",
    earns=(
        "without a mask",
        "with a mask",
        "with head_mask",
    ),
)
class NeverReturnsWeights(_Heads):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        return super().forward(query, key, value, mask, head_mask)


@mistake(
    "MultiHeadAttention",
    hint="The weights come back even where return_weights is False.",
)
class AlwaysReturnsWeights(_Heads):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        return super().forward(query, key, value, mask, head_mask, return_weights=True)


@mistake(
    "MultiHeadAttention",
    hint="The returned weights are averaged over the heads. Every head has its own.",
    earns=(
        "without a mask",
        "with a mask",
        "with head_mask",
    ),
)
class AveragesTheWeights(_Heads):
    average = True


@mistake(
    "MultiHeadAttention",
    hint="After dropout on the weights, the context is dropped once more. `attend` does all of it.",
)
class DropsTwice(_Heads):
    def attend(self, q, k, v, mask):
        context, weights = super().attend(q, k, v, mask)
        return F.dropout(context, self.rate()), weights


DROPS_THE_CONTEXT = (
    "Dropout falls on the context of the heads. It belongs to the weights: hand the probability to "
    "`attend`."
)


@mistake("MultiHeadAttention", hint=DROPS_THE_CONTEXT)
class DropsTheContext(_Heads):
    def attend(self, q, k, v, mask):
        context, weights = attend(q, k, v, mask)
        return F.dropout(context, self.rate()), weights


@mistake(
    "MultiHeadAttention",
    hint="Dropout falls on the output. It belongs to the weights: hand the probability to "
    "`attend`.",
)
class DropsTheOutput(_Heads):
    def attend(self, q, k, v, mask):
        return attend(q, k, v, mask)

    def finish(self, context):
        return F.dropout(super().finish(context), self.rate())


@mistake(
    "MultiHeadAttention",
    hint="The queries are divided by √d_head, and then `attend` divides once more.",
)
class ScalesTwice(_Heads):
    def attend(self, q, k, v, mask):
        return super().attend(q / math.sqrt(q.shape[-1]), k, v, mask)


@mistake("MultiHeadAttention", hint="The scores are not divided by √d_head.")
class NeverScales(_Heads):
    def attend(self, q, k, v, mask):
        return super().attend(q * math.sqrt(q.shape[-1]), k, v, mask)


@mistake(
    "MultiHeadAttention",
    hint="A query that may attend to nothing gets NaN. Its weights should be 0: `attend` takes "
    "care of that.",
    earns=(
        "without a mask",
        "with head_mask",
        "with dropout, fused and return_weights",
    ),
)
class LeavesNaN(_Heads):
    def attend(self, q, k, v, mask):
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
        weights = torch.softmax(scores, -1)
        return F.dropout(weights, self.rate()) @ v, weights


@mistake(
    "MultiHeadAttention",
    hint="A query that may attend to nothing attends to everything alike: a large negative number "
    "in all of its scores makes them equal. Its weights should be 0: `attend` sees to that.",
)
class FillsWithALargeNumber(_Heads):
    def attend(self, q, k, v, mask):
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
        weights = torch.softmax(scores, -1)
        return F.dropout(weights, self.rate()) @ v, weights


@mistake(
    "MultiHeadAttention",
    hint="The pair is the wrong way round: the output comes first, then the weights.",
)
class ReturnsTheWeightsFirst(_Heads):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        result = super().forward(query, key, value, mask, head_mask, return_weights)
        return result[::-1] if return_weights else result


@mistake(
    "MultiHeadAttention",
    hint="With fused=True the weights come back as None: PyTorch's attention returns none. When "
    "they are asked for, the other way has to be taken.",
)
class LosesTheWeightsWhenFused(_Heads):
    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__(d_model, n_heads, dropout, fused)
        self.fused = fused

    def attend(self, q, k, v, mask):
        return attend(q, k, v, mask, self.rate(), self.fused)


class _Given(_Heads):
    """With the lines of `forward` that are given."""

    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__(d_model, n_heads, dropout, fused)
        self.fused = fused

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)
        self.by_kernel = self.fused and not return_weights
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        context, weights = self.attend(q, k, v, mask)
        output = self.finish(self.merge(self.gate(context, head_mask)))
        return (output, weights) if return_weights else output


@mistake(
    "MultiHeadAttention",
    hint="The features are split into (d_head, heads): a head gets every n_heads-th feature. It "
    "should get d_head neighbours, as in 7.1.",
)
class TakesEveryNthFeature(_Heads):
    def split(self, x):
        return x.unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)


@mistake(
    "MultiHeadAttention",
    hint="Head h works with the features h, h + n_heads and so on: they are split so, and merged "
    "so. A head has d_head neighbours, as in 7.1, and other weights fit to other features.",
)
class InterleavesTheHeads(TakesEveryNthFeature):
    def merge(self, x):
        return x.permute(0, 2, 3, 1).flatten(2)


@mistake(
    "MultiHeadAttention",
    hint="After the merge the heads take turns, feature by feature. Before the last two axes are "
    "joined, they should be (H, d_head), in this order.",
)
class MergesFeatureByFeature(_Heads):
    def merge(self, x):
        return x.permute(0, 2, 3, 1).flatten(2)


@mistake(
    "MultiHeadAttention",
    hint="The merge joins the positions of a head with its features: the heads still stand before "
    "the positions. Swap these two axes back first.",
)
class JoinsPositionsAndFeatures(_Given):
    def merge(self, x):
        return x.flatten(2)


@mistake(
    "MultiHeadAttention",
    hint="The merge joins positions and heads. In (B, T_q, H, d_head) it is the last two axes that "
    "belong together.",
)
class JoinsPositionsAndHeads(_Given):
    def merge(self, x):
        return x.transpose(1, 2).flatten(1, 2)


@mistake(
    "MultiHeadAttention",
    hint="The weights that come back are multiplied by head_mask. It silences what a head says, "
    "not where it looks: they are those without it.",
)
class GatesTheWeights(_Heads):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        output, weights = super().forward(query, key, value, mask, head_mask, True)
        weights = weights if head_mask is None else weights * head_mask[..., None, None]
        return (output, weights) if return_weights else output


@mistake(
    "MultiHeadAttention",
    hint="`if head_mask` asks several numbers at once whether they are true, which PyTorch "
    "refuses. Ask whether it is None.",
)
class AsksWhetherTheGatesAreTrue(_Given):
    def gate(self, context, head_mask):
        return context * head_mask[..., None, None] if head_mask else context


@mistake(
    "MultiHeadAttention",
    hint="A gate only opens or shuts here. It is any number, and the head's context is multiplied "
    "by it.",
)
class OpensOrShuts(_Heads):
    def gate(self, context, head_mask):
        return context if head_mask is None else context * (head_mask[..., None, None] != 0)


@mistake(
    "MultiHeadAttention",
    hint="With fused=True nothing is dropped in training. `attend` takes the probability in both "
    "cases.",
)
class DropsOnlyUnfused(_Given):
    def attend(self, q, k, v, mask):
        return attend(q, k, v, mask, 0.0 if self.by_kernel else self.rate())


@mistake("MultiHeadAttention", hint=DROPS_THE_CONTEXT)
class DropsTheKernelsContext(_Given):
    def attend(self, q, k, v, mask):
        context, weights = attend(q, k, v, mask, 0.0, self.by_kernel)
        return F.dropout(context, self.rate()), weights


@mistake(
    "MultiHeadAttention",
    hint="`fused` is handed to `attend` where the probability of dropout belongs: with fused=True "
    "all weights are dropped, without it none.",
)
class HandsOnFusedAsDropout(_Given):
    def attend(self, q, k, v, mask):
        return attend(q, k, v, mask, self.by_kernel)


@mistake(
    "MultiHeadAttention",
    hint="Where no mask is given, mask is None and has no methods: ask first whether one came.",
    earns=("with a mask",),
)
class NeedsAMask(_Heads):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        mask = mask.unsqueeze(-3)
        return super().forward(query, key, value, mask.squeeze(-3), head_mask, return_weights)


@mistake(
    "MultiHeadAttention",
    hint="The mask gets an axis for the heads twice: the given lines have done it already.",
)
class UnsqueezesTheMaskAgain(_Given):
    def attend(self, q, k, v, mask):
        mask = None if mask is None else mask.unsqueeze(1)
        return attend(q, k, v, mask, self.rate(), self.by_kernel)


@mistake(
    "MultiHeadAttention",
    hint="query is added to the output. That is not part of this layer: lesson 09 adds it around "
    "the layer.",
)
class AddsTheQuery(_Heads):
    def forward(self, query, key, value, mask=None, head_mask=None, return_weights=False):
        output, weights = super().forward(query, key, value, mask, head_mask, True)
        return (query + output, weights) if return_weights else query + output


@mistake("MultiHeadAttention", hint="W_v exists, but the values are made with W_k.")
class MakesValuesWithWk(_Heads):
    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_k(value)


@mistake(
    "MultiHeadAttention", hint="W_k and W_v exist, but keys and values are made with W_q, too."
)
class MakesAllWithWq(_Heads):
    def project(self, query, key, value):
        return self.W_q(query), self.W_q(key), self.W_q(value)


@mistake(
    "MultiHeadAttention",
    hint="W_q, W_k and W_v exist, but query, key and value do not pass through them.",
)
class SkipsTheProjections(_Heads):
    def project(self, query, key, value):
        return query, key, value


@mistake("MultiHeadAttention", hint="W_v exists, but value does not pass through it.")
class SkipsWv(_Heads):
    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), value


@mistake(
    "MultiHeadAttention",
    hint="The weights of W_q, W_k and W_v are used transposed: nn.Linear stores (out, in). Call "
    "the layers.",
)
class UsesTransposedWeights(_Heads):
    def project(self, query, key, value):
        pairs = ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        return (x @ layer.weight + layer.bias for layer, x in pairs)


ONE_HEAD = (
    "Nothing is split: this is one head over all d_model features. Each of the n_heads has d_head "
    "of them, and weights of its own."
)


@mistake("MultiHeadAttention", hint=ONE_HEAD)
class HasOneHead(_Given):
    def split(self, x):
        return x

    def merge(self, x):
        return x


@mistake("MultiHeadAttention", hint=ONE_HEAD)
class HasOneHeadWithAnAxis(_Given):
    def split(self, x):
        return x.unsqueeze(1)


@mistake("MultiHeadAttention", hint="W_o has no bias. All four layers have one.")
class ForgetsTheOutputBias(_Heads):
    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__(d_model, n_heads, dropout, fused)
        self.W_o = nn.Linear(d_model, d_model, False)


@mistake("MultiHeadAttention", hint="W_q, W_k and W_v have no bias. All four layers have one.")
class ForgetsTheInnerBiases(_Heads):
    def __init__(self, d_model, n_heads, dropout=0.0, fused=False):
        super().__init__(d_model, n_heads, dropout, fused)
        for name in self.layers[:3]:
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@alternative("MultiHeadAttention")
class HeadAfterHead(_Heads):
    def attend(self, q, k, v, mask):
        mask = None if mask is None else mask.expand(len(q), 1, q.shape[2], k.shape[2])[:, 0]
        triples = zip(q.unbind(1), k.unbind(1), v.unbind(1), strict=True)
        one = [attend(*x, mask, self.rate()) for x in triples]
        return tuple(torch.stack(parts, 1) for parts in zip(*one, strict=True))


@alternative("MultiHeadAttention")
class SumsOverHeads(_Heads):
    """W_o cut into one slice per head: concatenating and projecting is a sum of projections."""

    def merge(self, x):
        return x

    def finish(self, context):
        slices = self.W_o.weight.unflatten(1, (self.n_heads, -1))  # (d_model, H, d_head)
        return torch.einsum("bhtd,mhd->btm", context, slices) + self.W_o.bias


@careless("MultiHeadAttention")
class MakesOnesForGates(_Heads):
    def gate(self, context, head_mask):
        gates = torch.ones(self.n_heads) if head_mask is None else head_mask
        return context * gates[..., None, None]


@careless("MultiHeadAttention")
class MakesAMaskOfOnes(_Heads):
    def attend(self, q, k, v, mask):
        ones = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
        return super().attend(q, k, v, ones if mask is None else mask)


@careless("MultiHeadAttention")
class FillsTheMergedHeads(_Heads):
    def merge(self, x):
        B, H, T, d_head = x.shape
        merged = torch.zeros(B, T, H * d_head)
        for h in range(H):
            merged[:, :, h * d_head : (h + 1) * d_head] = x[:, h]
        return merged


@mistake(
    "head_updates",
    hint="The heads are added up: this is the output itself. What does each head add to it?",
)
def adds_the_heads_up(heads, W_o):
    return heads.transpose(1, 2).flatten(2) @ W_o


@mistake(
    "head_updates",
    hint="The rows of W_o are dealt out like cards: head 0 gets rows 0, H, 2H, … Each head has "
    "neighbouring rows. Which of H and d_head comes first when the rows are split?",
)
def deals_the_rows_out(heads, W_o):
    parts = W_o.unflatten(0, (heads.shape[3], heads.shape[1])).transpose(0, 1)
    return heads @ parts


@mistake(
    "head_updates",
    hint="Every head is multiplied by the rows of head 0. Each has rows of its own.",
)
def takes_the_rows_of_the_first(heads, W_o):
    return heads @ W_o[: heads.shape[3]]


@mistake(
    "head_updates",
    hint="The sum is right, because every head gets an equal share of the output. But each head "
    "adds something of its own: its context times its rows of W_o.",
)
def shares_the_output_out(heads, W_o):
    output = heads.transpose(1, 2).flatten(2) @ W_o
    return (output / heads.shape[1])[:, None].expand(-1, heads.shape[1], -1, -1)


@mistake(
    "head_updates",
    hint="The heads stand behind the positions: (B, T, H, d_model). They come before them.",
)
def leaves_the_heads_behind(heads, W_o):
    return torch.stack(_updates_in_a_loop(heads, W_o), dim=2)


@mistake(
    "head_updates",
    hint="W_o is read transposed, as nn.Linear keeps its weight. Here it is (H · d_head, d_model): "
    "its rows belong to the heads.",
)
def reads_it_transposed(heads, W_o):
    return torch.stack(_updates_in_a_loop(heads, W_o.T), dim=1)


@mistake(
    "head_updates",
    hint="Each head writes to its own features only: its rows of W_o are cut to d_head columns. "
    "They have d_model columns, so a head can write to every feature.",
)
def cuts_the_columns_too(heads, W_o):
    B, H, T, d_head = heads.shape
    return heads @ torch.stack(
        [W_o[h * d_head :][:d_head, h * d_head :][:, :d_head] for h in range(H)]
    )


def _updates_in_a_loop(heads, W_o):
    d_head = heads.shape[3]
    return [heads[:, h] @ W_o[h * d_head : (h + 1) * d_head] for h in range(heads.shape[1])]


@alternative("head_updates")
def one_head_after_the_other(heads, W_o):
    return torch.stack(_updates_in_a_loop(heads, W_o), dim=1)


@alternative("head_updates")
def with_einsum(heads, W_o):
    B, H, T, d_head = heads.shape
    return torch.einsum("bhtd,hdm->bhtm", heads, W_o.reshape(H, d_head, -1))


@alternative("head_updates")
def silences_all_others(heads, W_o):
    alone = torch.eye(heads.shape[1], dtype=heads.dtype, device=heads.device)  # (H, H)
    only = heads[:, None] * alone[None, :, :, None, None]  # (B, H, H, T, d_head)
    return only.transpose(2, 3).flatten(3) @ W_o


@careless("head_updates")
def fills_updates_on_the_cpu(heads, W_o):
    B, H, T, d_head = heads.shape
    updates = torch.zeros(B, H, T, W_o.shape[1], dtype=heads.dtype)
    for h, update in enumerate(_updates_in_a_loop(heads, W_o)):
        updates[:, h] = update
    return updates


@careless("head_updates")
def fills_updates_in_float32(heads, W_o):
    B, H, T, d_head = heads.shape
    updates = torch.zeros(B, H, T, W_o.shape[1])
    for h, update in enumerate(_updates_in_a_loop(heads, W_o)):
        updates[:, h] = update
    return updates


@careless("head_updates")
def updates_in_numpy(heads, W_o):
    parts = W_o.numpy().reshape(heads.shape[1], heads.shape[3], -1)
    return torch.from_numpy(heads.numpy() @ parts)


def _energy(matrix):
    return torch.linalg.svdvals(matrix).square()


@mistake(
    "captured_variance",
    hint="The singular values are not squared. Variance goes with their squares.",
)
def sums_plain_singular_values(matrix):
    values = torch.linalg.svdvals(matrix)
    return values.cumsum(-1) / values.sum(-1, keepdim=True)


@mistake("captured_variance", hint="This is each direction's own share. Add them up as you go.")
def does_not_add_up(matrix):
    return _energy(matrix) / _energy(matrix).sum(-1, keepdim=True)


@mistake("captured_variance", hint="The sums are not divided by the total: the last should be 1.")
def forgets_the_total(matrix):
    return _energy(matrix).cumsum(-1)


@mistake(
    "captured_variance",
    hint="The sums are divided by the smallest square. Divide them by the sum of all squares.",
)
def divides_by_the_weakest(matrix):
    return _energy(matrix).cumsum(-1) / _energy(matrix)[..., -1:]


@mistake(
    "captured_variance",
    hint="The sums are divided by the squares at [-1]: for one matrix that is its smallest square, "
    "for several it is all squares of the last matrix. Divide by the sum of all squares.",
)
def divides_by_the_last_squares(matrix):
    return _energy(matrix).cumsum(-1) / _energy(matrix)[-1]


@mistake(
    "captured_variance",
    hint="The last of the sums is the total, but [-1] counts along the first axis: for several "
    "matrices it is all the sums of the last one. Each matrix has a total of its own.",
)
def divides_by_the_last_sums(matrix):
    sums = _energy(matrix).cumsum(-1)
    return sums / sums[-1]


@mistake(
    "captured_variance",
    hint="With several matrices the totals have lost an axis, and are lined up with the wrong axis "
    "of the sums. Keep it, so that every matrix is divided by its own total.",
)
def loses_the_axis_of_the_totals(matrix):
    return _energy(matrix).cumsum(-1) / _energy(matrix).sum(-1)


@mistake("captured_variance", hint="The smallest come first. Begin with the strongest direction.")
def begins_with_the_weakest(matrix):
    energy = _energy(matrix).flip(-1)
    return energy.cumsum(-1) / energy.sum(-1, keepdim=True)


@mistake(
    "captured_variance",
    hint="All matrices together are divided by one total. Each has its own: keep the axis.",
)
def divides_by_the_grand_total(matrix):
    return _energy(matrix).cumsum(-1) / _energy(matrix).sum()


@mistake("captured_variance", hint="The shares are cumulated along the wrong axis or all at once.")
def cumulates_over_the_matrices(matrix):
    energy = _energy(matrix)
    return energy.cumsum(0) / energy.sum(0, keepdim=True)


@mistake(
    "captured_variance",
    hint="All along axis 0: right for one matrix, but with more of them the singular values stand "
    "on the last axis.",
)
def cumulates_along_the_first_axis(matrix):
    return _energy(matrix).cumsum(0) / _energy(matrix).sum()


@mistake("captured_variance", hint="These are percentages. A share is a number from 0 to 1.")
def gives_percentages(matrix):
    energy = torch.linalg.svdvals(matrix) ** 2
    return 100 * energy.cumsum(-1) / energy.sum(-1, keepdim=True)


@mistake(
    "captured_variance",
    hint="The squares are divided by the largest. Add them up as you go, and divide by their "
    "total.",
)
def divides_by_the_strongest(matrix):
    energy = torch.linalg.svdvals(matrix) ** 2
    return energy / energy.amax(-1, keepdim=True)


@alternative("captured_variance")
def with_the_full_svd(matrix):
    energy = torch.linalg.svd(matrix, full_matrices=False).S ** 2
    return energy.cumsum(-1) / matrix.square().sum((-2, -1))[..., None]


@alternative("captured_variance")
def with_eigenvalues(matrix):
    small = matrix if matrix.shape[-2] <= matrix.shape[-1] else matrix.mT
    energy = torch.linalg.eigvalsh(small @ small.mT).flip(-1).clamp(min=0)
    return torch.cumsum(energy / energy.sum(-1, keepdim=True), -1)


@careless("captured_variance")
def measures_in_numpy(matrix):
    energy = numpy.linalg.svd(matrix.numpy(), compute_uv=False) ** 2
    return torch.from_numpy(energy.cumsum(-1) / energy.sum(-1, keepdims=True))


@careless("captured_variance")
def fills_shares_one_by_one(matrix):
    energy = _energy(matrix)
    shares = torch.zeros(energy.shape)
    for i in range(energy.shape[-1]):
        shares[..., i] = energy[..., : i + 1].sum(-1) / energy.sum(-1)
    return shares


@careless("captured_variance")
def measures_in_float32(matrix):
    energy = _energy(matrix.float())
    return energy.cumsum(-1) / energy.sum(-1, keepdim=True)


@mistake(
    "share_heads",
    hint="The heads are repeated as a whole: 0, 1, 2, 0, 1, 2. Neighbours should "
    "share: 0, 0, 1, 1, 2, 2.",
)
def repeats_the_whole(x, n_heads):
    copies, rest = divmod(n_heads, x.shape[1])
    if rest:
        raise ValueError(f"{n_heads} heads cannot share {x.shape[1]}")
    return torch.cat([x] * copies, dim=1)


@mistake("share_heads", hint="Every head is repeated n_heads times: that is too many.")
@_refuses_uneven_groups
def repeats_too_often(x, n_heads):
    return x.repeat_interleave(n_heads, 1)


@mistake("share_heads", hint="The positions are repeated. The heads stand on axis 1.")
@_refuses_uneven_groups
def repeats_positions(x, n_heads):
    return x.repeat_interleave(n_heads // x.shape[1], 2)


@mistake(
    "share_heads",
    hint="All query heads get the keys of head 0. That is multi-query attention; with more heads "
    "of keys, every group has its own.",
)
@_refuses_uneven_groups
def takes_the_first_only(x, n_heads):
    return x[:, :1].expand(-1, n_heads, -1, -1)


@mistake(
    "share_heads",
    hint="The heads are repeated the other way round: head 0 only once, the last ones too often. "
    "How many query heads share each head of keys?",
)
@_refuses_uneven_groups
def repeats_by_the_number_of_keys(x, n_heads):
    return x.repeat_interleave(x.shape[1], 1)[:, -n_heads:]


@mistake(
    "share_heads",
    hint="The sizes are not tested first: n_heads // H_kv rounds down, and too few heads come "
    "back. Raise a ValueError if H_kv does not divide n_heads.",
)
def shares_whatever_comes(x, n_heads):
    return x.repeat_interleave(n_heads // x.shape[1], dim=1)


@alternative("share_heads")
@_refuses_uneven_groups
def expands_a_new_axis(x, n_heads):
    B, H_kv, T, d_head = x.shape
    return x[:, :, None].expand(B, H_kv, n_heads // H_kv, T, d_head).reshape(B, n_heads, T, d_head)


@alternative("share_heads")
@_refuses_uneven_groups
def picks_by_index(x, n_heads):
    return x[:, torch.arange(n_heads) // (n_heads // x.shape[1])]


@careless("share_heads")
@_refuses_uneven_groups
def fills_heads_in_a_loop(x, n_heads):
    B, H_kv, T, d_head = x.shape
    heads = torch.zeros(B, n_heads, T, d_head)
    for h in range(n_heads):
        heads[:, h] = x[:, h // (n_heads // H_kv)]
    return heads


@careless("share_heads")
@_refuses_uneven_groups
def repeats_in_numpy(x, n_heads):
    return torch.from_numpy(numpy.repeat(x.numpy(), n_heads // x.shape[1], axis=1))


def _collaborate(q, k, v, mixing, scale, dim=-1):
    scores = (q[:, None] * mixing[None, :, None]) @ k[:, None].mT / scale
    return torch.softmax(scores, dim) @ v


@mistake(
    "collaborative_heads",
    hint="The scores are divided by √d_shared. Here it is √d_head, the size of an ordinary head.",
    earns=("one head", "several heads"),
)
def scales_by_the_shared_width(q, k, v, mixing, d_head):
    return _collaborate(q, k, v, mixing, math.sqrt(q.shape[-1]))


@mistake("collaborative_heads", hint="The scores are divided by d_head instead of its root.")
def scales_by_d_head(q, k, v, mixing, d_head):
    return _collaborate(q, k, v, mixing, d_head)


@mistake(
    "collaborative_heads",
    hint="There is no scale: divide the scores by √d_head.",
    earns=("one head", "several heads"),
)
def collaborates_without_scale(q, k, v, mixing, d_head):
    return _collaborate(q, k, v, mixing, 1.0)


@mistake(
    "collaborative_heads",
    hint="The mixture is applied to the queries and to the keys, so it counts twice.",
)
def mixes_twice(q, k, v, mixing, d_head):
    return _collaborate(q, k, v, mixing.square(), math.sqrt(d_head))


@mistake(
    "collaborative_heads",
    hint="The mixture has no effect: all heads have the same weights.",
    earns=("the scale",),
)
def does_not_mix(q, k, v, mixing, d_head):
    return _collaborate(q, k, v, torch.ones_like(mixing), math.sqrt(d_head))


@mistake(
    "collaborative_heads",
    hint="The mixtures of all heads are added up, so all heads have the same weights: einsum sums "
    "over a letter that is missing on the right. Keep that of the heads.",
    earns=("one head", "the scale"),
)
def sums_over_the_heads(q, k, v, mixing, d_head):
    scores = torch.einsum("bqd,hd,bkd->bqk", q, mixing, k) / math.sqrt(d_head)
    return torch.softmax(scores, -1)[:, None] @ v


@mistake("collaborative_heads", hint="The softmax runs over the queries, not over the keys.")
def softmax_over_positions_that_ask(q, k, v, mixing, d_head):
    return _collaborate(q, k, v, mixing, math.sqrt(d_head), dim=-2)


@mistake("collaborative_heads", hint="The softmax runs over the heads, not over the keys.")
def softmax_over_heads(q, k, v, mixing, d_head):
    return _collaborate(q, k, v, mixing, math.sqrt(d_head), dim=1)


@alternative("collaborative_heads")
def mixes_the_keys(q, k, v, mixing, d_head):
    keys = k.unsqueeze(1) * mixing.unsqueeze(1)  # (B, H, T_k, d_shared)
    scores = torch.einsum("bqd,bhkd->bhqk", q, keys) * d_head**-0.5
    return torch.einsum("bhqk,bhkv->bhqv", torch.softmax(scores, -1), v)


@alternative("collaborative_heads")
def with_the_kernel(q, k, v, mixing, d_head):
    queries = q[:, None] * mixing[:, None] * math.sqrt(q.shape[-1] / d_head)
    return F.scaled_dot_product_attention(queries, k[:, None].expand(-1, len(mixing), -1, -1), v)


@careless("collaborative_heads")
def fills_contexts_head_by_head(q, k, v, mixing, d_head):
    contexts = torch.zeros(len(q), len(mixing), q.shape[1], v.shape[-1])
    for h in range(len(mixing)):
        scores = (q * mixing[h]) @ k.mT / math.sqrt(d_head)
        contexts[:, h] = torch.softmax(scores, dim=-1) @ v[:, h]
    return contexts


@careless("collaborative_heads")
def collaborates_in_float32(q, k, v, mixing, d_head):
    return _collaborate(q.float(), k.float(), v.float(), mixing.float(), math.sqrt(d_head))


@careless("collaborative_heads")
def changes_the_queries(q, k, v, mixing, d_head):
    q /= math.sqrt(d_head)
    return _collaborate(q, k, v, mixing, 1.0)


EQUIVALENT = {
    "captured_variance: whose result is cut off from the gradient: return (energy.cumsum(dim=-1) "
    "/ energy.sum(dim=-1, keepdim=True)).detach()": "a measurement: nothing is trained through it",
}


@mistake(
    "break_share_heads",
    hint="There is only one head of keys, so the order of the copies does not matter.",
    where=lambda x, n_heads: x.shape[1] == 1,
)
def with_one_head_of_keys():
    return torch.randn(2, 1, 3, 4), 6


@mistake(
    "break_share_heads",
    hint="Every query head has keys of its own here, so nothing is repeated.",
    where=lambda x, n_heads: x.shape[1] == n_heads,
)
def with_as_many_heads_of_keys():
    return torch.randn(2, 4, 3, 5), 4


@mistake(
    "break_share_heads",
    hint="n_heads is not a multiple of the number of heads of keys: both functions refuse it.",
    where=lambda x, n_heads: n_heads % x.shape[1] != 0,
)
def with_uneven_groups():
    return torch.randn(1, 2, 3, 4), 5


@mistake(
    "break_share_heads",
    hint="All heads of x hold the same numbers, so nobody can tell which one was repeated.",
    where=lambda x, n_heads: bool((x == x[:, :1]).all()),
)
def with_equal_heads():
    return torch.ones(1, 2, 3, 4), 4


@alternative("break_share_heads")
def with_three_heads_for_six():
    return torch.arange(3.0).view(1, 3, 1, 1), 6


@alternative("break_share_heads")
def with_random_heads():
    x = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    return x.double(), 8
