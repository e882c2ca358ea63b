"""Wrong and right answers to the exercises of lesson 20."""

import math
import re

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.modern_decoder import NEWTON_SCHULZ, SwiGLU
from attention.modern_decoder import ModernDecoder as Decoder
from attention.modern_decoder import ModernDecoderLayer as Layer
from attention.modern_decoder import newton_schulz as newton_schulz
from attention.multi_head_attention import merge_heads, share_heads, split_heads
from attention.provided import demand
from attention.provided.data.tokens import EOS, PAD
from attention.tokens_and_positions import rotary
from autograder.checking.toolbox.registry import alternative, careless, mistake


@mistake("rms_norm", hint="The mean is subtracted, as in a LayerNorm. RMSNorm leaves it out.")
def subtracts_the_mean(x, weight, eps=1e-6):
    return F.layer_norm(x, x.shape[-1:], weight, None, eps)


@mistake(
    "rms_norm",
    hint="The root is of the variance, whose mean is subtracted inside. It should be the root of "
    "the mean of the squares.",
)
def divides_by_the_deviation(x, weight, eps=1e-6):
    return x / (x.var(-1, keepdim=True, correction=0) + eps).sqrt() * weight


@mistake("rms_norm", hint="eps is added outside of the root. It belongs inside.")
def adds_eps_outside(x, weight, eps=1e-6):
    return x / (x.square().mean(-1, keepdim=True).sqrt() + eps) * weight


@mistake("rms_norm", hint="eps has no effect.")
def forgets_eps(x, weight, eps=1e-6):
    return x / x.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-30) * weight


@mistake(
    "rms_norm",
    hint="It is divided by the length of the vector: the root of the sum of the squares. The mean "
    "of the squares is asked for.",
)
def adds_up_the_squares(x, weight, eps=1e-6):
    return x / (x.square().sum(-1, keepdim=True) + eps).sqrt() * weight


@mistake("rms_norm", hint="The root is missing: it is divided by the mean of the squares itself.")
def forgets_the_root(x, weight, eps=1e-6):
    return x / (x.square().mean(-1, keepdim=True) + eps) * weight


@mistake(
    "rms_norm",
    hint="One root is taken of all numbers together. Each vector has its own, along the last axis.",
)
def takes_one_root_for_all(x, weight, eps=1e-6):
    return x / (x.square().mean() + eps).sqrt() * weight


@mistake("rms_norm", hint="The mean runs along the first axis. A vector lies along the last one.")
def runs_along_the_first_axis(x, weight, eps=1e-6):
    return x / (x.square().mean(0, keepdim=True) + eps).sqrt() * weight


@mistake("rms_norm", hint="`weight` has no effect: each feature is scaled at the end.")
def forgets_the_weight(x, weight, eps=1e-6):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


@mistake("rms_norm", hint="The weight is multiplied in first, so that the root depends on it, too.")
def scales_first(x, weight, eps=1e-6):
    x = x * weight
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


@mistake("rms_norm", hint="1 is added to the weight, as in Gemma. Here the weight is the factor.")
def adds_one_to_the_weight(x, weight, eps=1e-6):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * (1 + weight)


@mistake(
    "rms_norm",
    hint="The squares are divided by d_model − 1, as for a variance. Here the mean divides by "
    "d_model.",
)
def divides_by_one_less(x, weight, eps=1e-6):
    d_model = x.shape[-1]
    return x / (x.square().sum(-1, keepdim=True) / max(1, d_model - 1) + eps).sqrt() * weight


@alternative("rms_norm")
def asks_pytorch(x, weight, eps=1e-6):
    return F.rms_norm(x, weight.shape, weight, eps)


@alternative("rms_norm")
def adds_up_features(x, weight, eps=1e-6):
    total = sum(x[..., i] ** 2 for i in range(x.shape[-1]))
    root = torch.sqrt(total / x.shape[-1] + eps)
    return x / root[..., None] * weight


@alternative("rms_norm")
def takes_a_norm(x, weight, eps=1e-6):
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return weight * x * (length**2 / x.size(-1) + eps) ** -0.5


@careless("rms_norm")
def takes_each_vector_alone(x, weight, eps=1e-6):
    rows = [row / math.sqrt(row.square().mean().item() + eps) for row in x.reshape(-1, len(weight))]
    return torch.stack(rows).view(x.shape) * weight


@careless("rms_norm")
def squares_on_the_cpu(x, weight, eps=1e-6):
    total = torch.zeros(*x.shape[:-1], 1)
    total = total + (x * x).mean(dim=-1, keepdim=True)
    return x / (total + eps).sqrt() * weight


@careless("rms_norm")
def writes_into_x(x, weight, eps=1e-6):
    x /= (x.square().mean(-1, keepdim=True) + eps).sqrt()
    return x * weight


@mistake(
    "swiglu_units",
    hint="It is rounded down to a multiple. The number should not be below 2/3 · d_ff.",
)
def rounds_down(d_ff, multiple=1):
    return 2 * d_ff // 3 // multiple * multiple


@mistake(
    "swiglu_units",
    hint="It is rounded to the nearest multiple, which may be below 2/3 · d_ff.",
)
def rounds_to_the_nearest(d_ff, multiple=1):
    return int(2 * d_ff / 3 / multiple + 0.5) * multiple


@mistake(
    "swiglu_units",
    hint="2/3 · d_ff is cut off to a whole number before it is rounded up to a multiple: 66.67 "
    "becomes 66.",
)
def cuts_off_first(d_ff, multiple=1):
    return -(-(2 * d_ff // 3) // multiple) * multiple


@mistake("swiglu_units", hint="A whole multiple is added even where 2/3 · d_ff is one already.")
def always_adds_one(d_ff, multiple=1):
    return (2 * d_ff // (3 * multiple) + 1) * multiple


@mistake("swiglu_units", hint="This is d_ff rounded up. Three matrices need 2/3 of it.")
def forgets_the_two_thirds(d_ff, multiple=1):
    return -(-d_ff // multiple) * multiple


@mistake("swiglu_units", hint="This is 3/2 of d_ff. Three matrices need fewer units, not more.")
def takes_three_halves(d_ff, multiple=1):
    return -(-3 * d_ff // (2 * multiple)) * multiple


@mistake("swiglu_units", hint="`multiple` has no effect.")
def forgets_the_multiple(d_ff, multiple=1):
    return -(-2 * d_ff // 3)


@mistake("swiglu_units", hint="This is how many multiples there are. Multiply by `multiple`.")
def counts_the_multiples(d_ff, multiple=1):
    return -(-2 * d_ff // (3 * multiple))


@alternative("swiglu_units")
def rounds_up_with_math(d_ff, multiple=1):
    if d_ff > 2**50:
        return -(-2 * d_ff // 3 // multiple) * multiple
    return math.ceil(2 * d_ff / 3 / multiple) * multiple


@alternative("swiglu_units")
def adds_what_is_missing(d_ff, multiple=1):
    units = (2 * d_ff + 2) // 3
    return units + -units % multiple


@mistake("SwiGLU", hint="Gate and up are exchanged: the silu belongs behind W_gate.")
class ExchangesGateAndUp(SwiGLU):
    def forward(self, x):
        return self.W_down(self.W_gate(x) * F.silu(self.W_up(x)))


@mistake("SwiGLU", hint="This is a sigmoid. silu(z) is z times the sigmoid of z.")
class TakesASigmoid(SwiGLU):
    def forward(self, x):
        return self.W_down(torch.sigmoid(self.W_gate(x)) * self.W_up(x))


@mistake("SwiGLU", hint="This is a GELU, not a silu.")
class TakesAGelu(SwiGLU):
    def forward(self, x):
        return self.W_down(F.gelu(self.W_gate(x)) * self.W_up(x))


@mistake("SwiGLU", hint="This is a ReLU, not a silu.")
class TakesARelu(SwiGLU):
    def forward(self, x):
        return self.W_down(torch.relu(self.W_gate(x)) * self.W_up(x))


@mistake("SwiGLU", hint="The two are added. They should be multiplied, number by number.")
class AddsTheTwo(SwiGLU):
    def forward(self, x):
        return self.W_down(F.silu(self.W_gate(x)) + self.W_up(x))


@mistake("SwiGLU", hint="W_up has no part in the result.")
class ForgetsUp(SwiGLU):
    def forward(self, x):
        return self.W_down(F.silu(self.W_gate(x)))


@mistake("SwiGLU", hint="The silu is taken of the product. It belongs behind W_gate alone.")
class TakesSiluOfTheProduct(SwiGLU):
    def forward(self, x):
        return self.W_down(F.silu(self.W_gate(x) * self.W_up(x)))


@mistake("SwiGLU", hint="The layers have a bias. All three are without: bias=False.")
class HasBiases(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_gate, self.W_up = nn.Linear(d_model, d_ff), nn.Linear(d_model, d_ff)
        self.W_down = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.W_down(F.silu(self.W_gate(x)) * self.W_up(x))


@mistake("SwiGLU", hint="Nothing happens between the layers: the silu is missing.")
class ForgetsTheSilu(SwiGLU):
    def forward(self, x):
        return self.W_down(self.W_gate(x) * self.W_up(x))


@alternative("SwiGLU")
class MultipliesByTheSigmoid(SwiGLU):
    def forward(self, x):
        gate = self.W_gate(x)
        return self.W_down(gate * torch.sigmoid(gate) * self.W_up(x))


@alternative("SwiGLU")
class HasASiluOfItsOwn(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.activation = nn.SiLU()

    def forward(self, x):
        up = x @ self.W_up.weight.T
        return torch.matmul(up * self.activation(x @ self.W_gate.weight.T), self.W_down.weight.T)


@careless("SwiGLU")
class AddsUnitsOnTheCpu(SwiGLU):
    def forward(self, x):
        hidden = torch.zeros(*x.shape[:-1], self.W_up.out_features, dtype=x.dtype)
        hidden += F.silu(self.W_gate(x)) * self.W_up(x)
        return self.W_down(hidden)


@careless("SwiGLU")
class RaisesEToTheNumber(SwiGLU):
    def forward(self, x):
        z = self.W_gate(x)
        return self.W_down(z * torch.exp(z) / (1 + torch.exp(z)) * self.W_up(x))


class _Attention(nn.Module):
    """The right answer in small methods, of which a mistake overrides what it gets wrong."""

    bias = False

    def __init__(self, d_model, n_heads, n_kv_heads, qk_norm=False, window=None):
        super().__init__()
        demand.counts(d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads)
        demand.counts(window=1 if window is None else window)
        if d_model % n_heads:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        if n_heads % n_kv_heads:
            raise ValueError(f"n_kv_heads={n_kv_heads} does not divide n_heads={n_heads}")
        self.n_heads, self.n_kv_heads, self.window = n_heads, n_kv_heads, window
        d_head = d_model // n_heads
        self.norm_q = nn.RMSNorm(d_head, eps=1e-6) if qk_norm else nn.Identity()
        self.norm_k = nn.RMSNorm(d_head, eps=1e-6) if qk_norm else nn.Identity()
        self.make(d_model, d_head)

    def make(self, d_model, d_head):
        inner = self.n_kv_heads * d_head
        self.W_q = nn.Linear(d_model, d_model, bias=self.bias)
        self.W_k = nn.Linear(d_model, inner, bias=self.bias)
        self.W_v = nn.Linear(d_model, inner, bias=self.bias)
        self.W_o = nn.Linear(d_model, d_model, bias=self.bias)

    def project(self, x):
        q = split_heads(self.W_q(x), self.n_heads)
        k, v = (split_heads(W(x), self.n_kv_heads) for W in (self.W_k, self.W_v))
        return self.norm(q, k, v)

    def norm(self, q, k, v):
        return self.norm_q(q), self.norm_k(k), v

    def join(self, past, k, v):
        if past is None:
            return k, v
        return torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)

    def positions(self, x, T, n):
        position = torch.arange(n, dtype=torch.float32, device=x.device)
        return position[n - T :], position

    def turn(self, q, k, v):
        of_queries, of_keys = self.positions(q, q.shape[2], k.shape[2])
        return rotary(q, of_queries), rotary(k, of_keys), v

    def allowed(self, before):
        mask = before >= 0
        return mask if self.window is None else mask & (before < self.window)

    def hide(self, mask, real, T, n):
        return mask if real is None else mask & real[:, None, None, -n:]

    def mask(self, q, k, real):
        T, n = q.shape[2], k.shape[2]
        place = torch.arange(n, device=q.device)
        return self.hide(self.allowed(place[n - T :, None] - place), real, T, n)

    def share(self, x):
        return share_heads(x, self.n_heads)

    def attend(self, q, k, v, mask):
        return masked_attention(q, k, v, mask)

    def out(self, context):
        return self.W_o(merge_heads(context))

    def keep(self, k, v):
        kept = slice(-self.window if self.window else None, None)
        return k[:, :, kept], v[:, :, kept]

    def forward(self, x, past=None, real=None):
        q, k, v = self.project(x)
        k, v = self.join(past, k, v)
        turned = self.turn(q, k, v)
        mask = self.mask(q, k, real)
        context = self.attend(turned[0], self.share(turned[1]), self.share(turned[2]), mask)
        return self.out(context), self.keep(k, v)


SHARED, NORMS = "shared heads, turned", "norms of queries and keys"
WINDOW, PAST = "a window", "a past and padding"
BUT_SHARED, BUT_NORMS = (NORMS, WINDOW, PAST), (SHARED, WINDOW, PAST)
BUT_WINDOW, BUT_PAST = (SHARED, NORMS, PAST), (SHARED, NORMS, WINDOW)


@mistake(
    "ModernAttention",
    hint="The heads of keys and values are repeated in turn, 0 1 2 0 1 2. Query heads beside each "
    "other should share one: 0 0 1 1 2 2.",
    earns=BUT_SHARED,
)
class RepeatsHeadsInTurn(_Attention):
    def share(self, x):
        return x.repeat(1, self.n_heads // self.n_kv_heads, 1, 1)


@mistake(
    "ModernAttention",
    hint="The values are turned as well. Only queries and keys are.",
    earns=BUT_SHARED,
)
class TurnsValues(_Attention):
    def turn(self, q, k, v):
        q, k, _ = super().turn(q, k, v)
        return q, k, rotary(v, self.positions(q, q.shape[2], k.shape[2])[1])


@mistake(
    "ModernAttention",
    hint="Nothing is turned, so that positions have no part in the scores. Turn queries and keys "
    "with `rotary`.",
    earns=BUT_SHARED,
)
class TurnsNothing(_Attention):
    def turn(self, q, k, v):
        return q, k, v


@mistake(
    "ModernAttention",
    hint="Only the queries are turned. The score depends on the difference of positions only if "
    "keys are turned, too.",
    earns=BUT_SHARED,
)
class TurnsQueriesOnly(_Attention):
    def turn(self, q, k, v):
        return super().turn(q, k, v)[0], k, v


@mistake(
    "ModernAttention",
    hint="Only the keys are turned. The score depends on the difference of positions only if "
    "queries are turned, too.",
    earns=BUT_SHARED,
)
class TurnsKeysOnly(_Attention):
    def turn(self, q, k, v):
        return q, super().turn(q, k, v)[1], v


@mistake(
    "ModernAttention",
    hint="All heads are turned as one long vector, so that the angles of a pair depend on its "
    "head. Split into heads first, then turn.",
    earns=BUT_SHARED,
)
class TurnsBeforeSplitting(_Attention):
    def turn(self, q, k, v):
        of_queries, of_keys = self.positions(q, q.shape[2], k.shape[2])
        q = split_heads(rotary(merge_heads(q), of_queries), self.n_heads)
        return q, split_heads(rotary(merge_heads(k), of_keys), self.n_kv_heads), v


@mistake(
    "ModernAttention",
    hint="Feature i is turned together with feature i + d_head / 2, as in published code. `rotary` "
    "of lesson 08 turns neighbours.",
    earns=BUT_SHARED,
)
class TurnsHalves(_Attention):
    def turn(self, q, k, v):
        def halves(x, position):
            order = [*range(0, x.shape[3], 2), *range(1, x.shape[3], 2)]
            back = [order.index(place) for place in range(len(order))]
            return rotary(x[..., back], position)[..., order]

        of_queries, of_keys = self.positions(q, q.shape[2], k.shape[2])
        return halves(q, of_queries), halves(k, of_keys), v


@mistake(
    "ModernAttention",
    hint="Positions look at what comes after them. What do you hide from a query?",
    earns=(NORMS, PAST),
)
class SeesTheFuture(_Attention):
    def allowed(self, before):
        return before > -1000 if self.window is None else before < self.window


@mistake(
    "ModernAttention",
    hint="A position does not see itself. It may look at itself and at what came before it.",
)
class LeavesItselfOut(_Attention):
    def allowed(self, before):
        return super().allowed(before) & (before > 0)


@mistake(
    "ModernAttention",
    hint="The mask is the wrong way round: positions see what comes after them, and not what came "
    "before.",
)
class SeesOnlyTheFuture(_Attention):
    def allowed(self, before):
        return super().allowed(-before)


@mistake(
    "ModernAttention",
    hint="The scores are divided by √d_head twice: `masked_attention` does that already.",
    earns=BUT_SHARED,
)
class ScalesTwice(_Attention):
    def attend(self, q, k, v, mask):
        return masked_attention(q / math.sqrt(q.shape[3]), k, v, mask)


@mistake(
    "ModernAttention",
    hint="The scores are not divided by √d_head.",
    earns=BUT_SHARED,
)
class ForgetsTheScale(_Attention):
    def attend(self, q, k, v, mask):
        return masked_attention(q * math.sqrt(q.shape[3]), k, v, mask)


@mistake(
    "ModernAttention",
    hint="The scores are divided by √d_model. A head compares d_head numbers: divide by √d_head.",
    earns=BUT_SHARED,
)
class ScalesByTheModel(_Attention):
    def attend(self, q, k, v, mask):
        return masked_attention(q / math.sqrt(self.n_heads), k, v, mask)


@mistake("ModernAttention", hint="The last projection, W_o, is missing.")
class ForgetsTheOutput(_Attention):
    def out(self, context):
        return merge_heads(context)


@mistake(
    "ModernAttention",
    hint="The heads are put together in the wrong order. `merge_heads` brings the positions back "
    "in front of the heads first.",
)
class MergesWithoutExchange(_Attention):
    def out(self, context):
        B, _, T, _ = context.shape
        return self.W_o(context.reshape(B, T, -1))


@mistake("ModernAttention", hint="Keys and values are exchanged: W_k makes keys, W_v values.")
class ExchangesKeysAndValues(_Attention):
    def project(self, x):
        q = split_heads(self.W_q(x), self.n_heads)
        k, v = (split_heads(W(x), self.n_kv_heads) for W in (self.W_v, self.W_k))
        return self.norm(q, k, v)


@mistake("ModernAttention", hint="The projections have a bias. They are without: bias=False.")
class HasABias(_Attention):
    bias = True


@mistake(
    "ModernAttention",
    hint="There are as many heads of keys and values as of queries. W_k and W_v make n_kv_heads "
    "heads of d_head numbers.",
)
class MakesAllHeads(_Attention):
    def make(self, d_model, d_head):
        names = ("W_q", "W_k", "W_v", "W_o")
        for name in names:
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@mistake(
    "ModernAttention",
    hint="With qk_norm=True nothing is normed: `norm_q` and `norm_k` are there and not used.",
)
class ForgetsTheNorms(_Attention):
    def norm(self, q, k, v):
        return q, k, v


@mistake(
    "ModernAttention",
    hint="The norms come behind the turning. With weights that differ from feature to feature the "
    "order counts: norm first, then turn.",
    earns=BUT_NORMS,
)
class NormsWhatIsTurned(_Attention):
    def norm(self, q, k, v):
        return q, k, v

    def turn(self, q, k, v):
        q, k, v = super().turn(q, k, v)
        return self.norm_q(q), self.norm_k(k), v


@mistake(
    "ModernAttention",
    hint="The values go through `norm_k`, too. Only queries and keys have norms.",
    earns=BUT_NORMS,
)
class NormsValues(_Attention):
    def norm(self, q, k, v):
        return self.norm_q(q), self.norm_k(k), self.norm_k(v)


@mistake(
    "ModernAttention",
    hint="`norm_q` and `norm_k` are exchanged.",
    earns=BUT_NORMS,
)
class ExchangesTheNorms(_Attention):
    def norm(self, q, k, v):
        return self.norm_k(q), self.norm_q(k), v


@mistake(
    "ModernAttention",
    hint="Both go through one norm. Queries have `norm_q`, keys `norm_k`.",
)
class UsesOneNorm(_Attention):
    def norm(self, q, k, v):
        return self.norm_q(q), self.norm_q(k), v


@mistake(
    "ModernAttention",
    hint="`window` has no effect on what a position sees.",
)
class ForgetsTheWindow(_Attention):
    def allowed(self, before):
        return before >= 0


@mistake(
    "ModernAttention",
    hint="The window is one too wide: with window=1 a position should see itself alone.",
    earns=BUT_WINDOW,
)
class OpensTheWindowTooWide(_Attention):
    def allowed(self, before):
        mask = before >= 0
        return mask if self.window is None else mask & (before <= self.window)


@mistake(
    "ModernAttention",
    hint="With a window, positions see what comes after them. The window only looks back.",
    earns=BUT_WINDOW,
)
class LooksToBothSides(_Attention):
    def allowed(self, before):
        return before >= 0 if self.window is None else before.abs() < self.window


@mistake(
    "ModernAttention",
    hint="All positions see the last `window` positions of the text. Each has a window of its own, "
    "which ends with itself.",
    earns=BUT_WINDOW,
)
class HasOneWindowForAll(_Attention):
    def allowed(self, before):
        mask, n = before >= 0, before.shape[1]
        late = torch.arange(n, device=before.device) >= n - (self.window or n)
        return mask & late


@mistake(
    "ModernAttention",
    hint="Keys and values are cut to the window before the attention, so that the first of several "
    "new positions miss what they may see. Cut only what you return.",
    earns=BUT_WINDOW,
)
class CutsBeforeAttending(_Attention):
    def join(self, past, k, v):
        return self.keep(*super().join(past, k, v))

    def mask(self, q, k, real):
        T, n = q.shape[2], k.shape[2]
        place = torch.arange(max(n, T), device=q.device)
        before = place[len(place) - T :, None] - place[len(place) - n :]
        return self.hide(self.allowed(before), real, T, n)

    def positions(self, x, T, n):
        position = torch.arange(max(n, T), dtype=torch.float32, device=x.device)
        return position[len(position) - T :], position[len(position) - n :]


@mistake(
    "ModernAttention",
    hint="Only the output comes back. The pair of keys and values for the next call belongs to it.",
    earns=BUT_PAST,
)
class ReturnsNoPair(_Attention):
    def forward(self, x, past=None, real=None):
        return super().forward(x, past, real)[0]


@mistake(
    "ModernAttention",
    hint="The past is not used: new positions see only each other.",
    earns=BUT_PAST,
)
class ForgetsThePast(_Attention):
    def join(self, past, k, v):
        return k, v


@mistake(
    "ModernAttention",
    hint="The past is put in front of the keys and not of the values: there are more weights than "
    "values.",
    earns=BUT_PAST,
)
class ForgetsPastValues(_Attention):
    def join(self, past, k, v):
        return super().join(past, k, v)[0], v


@mistake(
    "ModernAttention",
    hint="The new keys and values stand in front of the past. They come behind it.",
    earns=BUT_PAST,
)
class PutsThePastBehind(_Attention):
    def join(self, past, k, v):
        if past is None:
            return k, v
        return torch.cat([k, past[0]], 2), torch.cat([v, past[1]], 2)


@mistake(
    "ModernAttention",
    hint="The past is joined along another axis than that of the positions. In (B, H_kv, P, "
    "d_head), which axis is P?",
    earns=BUT_PAST,
)
class JoinsHeads(_Attention):
    def join(self, past, k, v):
        if past is None:
            return k, v
        return torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)


@mistake(
    "ModernAttention",
    hint="The new queries count their positions from 0. With a past, the first is number P.",
    earns=BUT_PAST,
)
class CountsQueriesFromZero(_Attention):
    def positions(self, x, T, n):
        position = torch.arange(n, dtype=torch.float32, device=x.device)
        return position[:T], position


@mistake(
    "ModernAttention",
    hint="The causal mask is square: T × T. With a past there are P + T keys, and the queries are "
    "the last T of all positions.",
    earns=BUT_PAST,
)
class MasksASquare(_Attention):
    def mask(self, q, k, real):
        T, n = q.shape[2], k.shape[2]
        place = torch.arange(T, device=q.device)
        return self.hide(self.allowed(place[:, None] - place), real, T, n)


@mistake(
    "ModernAttention",
    hint="With a past, the mask counts the queries from 0: they see only the oldest keys, and not "
    "themselves.",
    earns=BUT_PAST,
)
class MasksFromZero(_Attention):
    def mask(self, q, k, real):
        T, n = q.shape[2], k.shape[2]
        place = torch.arange(n, device=q.device)
        return self.hide(self.allowed(place[:T, None] - place), real, T, n)


@mistake(
    "ModernAttention",
    hint="The keys that you return are turned. At the next call they are turned once more: keep "
    "them as they were before.",
    earns=BUT_PAST,
)
class KeepsTurnedKeys(_Attention):
    def forward(self, x, past=None, real=None):
        q, k, v = self.project(x)
        k, v = self.join(past, k, v)
        q, k, _ = self.turn(q, k, v)
        context = self.attend(q, self.share(k), self.share(v), self.mask(q, k, real))
        return self.out(context), self.keep(k, v)


@mistake(
    "ModernAttention",
    hint="Keys are turned before the past is put in front of them, and kept so. The past comes as "
    "it was before it was turned: join first, turn all of it, and keep what was not turned.",
    earns=BUT_PAST,
)
class TurnsTheNewOnly(_Attention):
    def forward(self, x, past=None, real=None):
        q, k, v = self.project(x)
        P = 0 if past is None else past[0].shape[2]
        position = torch.arange(P, P + q.shape[2], dtype=torch.float32, device=x.device)
        q = rotary(q, position)
        k, v = self.join(past, rotary(k, position), v)
        context = self.attend(q, self.share(k), self.share(v), self.mask(q, k, real))
        return self.out(context), self.keep(k, v)


@mistake(
    "ModernAttention",
    hint="The pair holds the new keys and values only. The next call wants those of the past, too.",
    earns=BUT_PAST,
)
class ReturnsOnlyTheNew(_Attention):
    def forward(self, x, past=None, real=None):
        output, (k, v) = super().forward(x, past, real)
        return output, (k[:, :, -x.shape[1] :], v[:, :, -x.shape[1] :])


@mistake(
    "ModernAttention",
    hint="The pair holds the shared keys and values, n_heads heads of them. Kept are n_kv_heads: "
    "that saves the memory.",
    earns=BUT_PAST,
)
class KeepsSharedHeads(_Attention):
    def share(self, x):
        return x if x.shape[1] == self.n_heads else super().share(x)

    def keep(self, k, v):
        return super().keep(self.share(k), self.share(v))


@mistake(
    "ModernAttention",
    hint="With a window, all keys and values come back. Only the last `window` positions are ever "
    "asked for again.",
    earns=BUT_PAST,
)
class KeepsAllInAWindow(_Attention):
    def keep(self, k, v):
        return k, v


@mistake(
    "ModernAttention",
    hint="With a window, the first `window` positions are kept. The next position asks for the "
    "last ones.",
    earns=BUT_PAST,
)
class KeepsTheFirstOfAWindow(_Attention):
    def keep(self, k, v):
        return k[:, :, : self.window], v[:, :, : self.window]


@mistake(
    "ModernAttention",
    hint="With a window, one position fewer than `window` is kept.",
    earns=BUT_PAST,
)
class KeepsOneFewer(_Attention):
    def keep(self, k, v):
        first = 0 if self.window is None else max(0, k.shape[2] - self.window + 1)
        return k[:, :, first:], v[:, :, first:]


@mistake("ModernAttention", hint="`real` has no effect: padding is seen.", earns=BUT_PAST)
class ForgetsPadding(_Attention):
    def hide(self, mask, real, T, n):
        return mask


@mistake(
    "ModernAttention",
    hint="`real` is asked about the new positions only: padding in the past is seen.",
    earns=BUT_PAST,
)
class HidesNewPaddingOnly(_Attention):
    def hide(self, mask, real, T, n):
        if real is None:
            return mask
        seen = real[:, -n:].clone()
        seen[:, : n - T] = True
        return mask & seen[:, None, None]


@mistake(
    "ModernAttention",
    hint="`real` hides what the padding sees, and not the padding: it stands along the queries. "
    "Along which axis lie the keys?",
    earns=BUT_PAST,
)
class HidesQueries(_Attention):
    def hide(self, mask, real, T, n):
        return mask if real is None else mask & real[:, None, -T:, None]


@mistake(
    "ModernAttention",
    hint="True in `real` is no padding. Here the padding is seen, and the rest is hidden.",
    earns=BUT_PAST,
)
class SeesOnlyPadding(_Attention):
    def hide(self, mask, real, T, n):
        return mask if real is None else mask & ~real[:, None, None, -n:]


@mistake(
    "ModernAttention",
    hint="The columns of `real` are taken from the front. Where a window has cut off the past, "
    "the last ones belong to the keys that are left.",
    earns=BUT_PAST,
)
class ReadsRealFromTheFront(_Attention):
    def hide(self, mask, real, T, n):
        return mask if real is None else mask & real[:, None, None, :n]


@mistake(
    "ModernAttention",
    hint="A query that may look at nothing, as padding in front, becomes NaN: a softmax of −∞ "
    "alone. `masked_attention` of lesson 06 gives zeros.",
    earns=BUT_PAST,
)
class MakesNaN(_Attention):
    def attend(self, q, k, v, mask):
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v


@alternative("ModernAttention")
class TakesTheFusedAttention(_Attention):
    def share(self, x):
        return x.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1)

    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@alternative("ModernAttention")
class ExpandsHeads(_Attention):
    def share(self, x):
        B, H_kv, n, d_head = x.shape
        groups = self.n_heads // H_kv
        return x[:, :, None].expand(B, H_kv, groups, n, d_head).reshape(B, -1, n, d_head)

    def attend(self, q, k, v, mask):
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[3] ** 0.5
        weights = scores.masked_fill(~mask, -1e9).softmax(-1)
        return torch.einsum("bhij,bhjd->bhid", weights, v)


@alternative("ModernAttention")
class CountsFromAnywhere(_Attention):
    def positions(self, x, T, n):
        position = torch.arange(7, 7 + n, dtype=torch.float64, device=x.device)
        return position[n - T :], position


@alternative("ModernAttention")
class HidesPaddingTwice(_Attention):
    def hide(self, mask, real, T, n):
        if real is None:
            return mask
        real = real[:, real.shape[1] - n :]
        return mask & real[:, None, None, :] & real[:, None, n - T :, None]


@alternative("ModernAttention")
class LetsPaddingSeeItself(_Attention):
    def mask(self, q, k, real):
        T, n = q.shape[2], k.shape[2]
        causal = torch.ones(T, n, dtype=torch.bool, device=q.device).tril(n - T)
        if self.window is not None:
            causal = causal.triu(n - T - self.window + 1)
        if real is None:
            return causal
        itself = torch.zeros_like(causal)
        itself[range(T), range(n - T, n)] = True
        return causal & real[:, None, None, -n:] | itself


@alternative("ModernAttention")
class GoesHeadByHead(_Attention):
    def forward(self, x, past=None, real=None):
        q, k, v = self.project(x)
        k, v = self.join(past, k, v)
        mask, group, heads = self.mask(q, k, real), self.n_heads // self.n_kv_heads, []
        of_queries, of_keys = self.positions(x, q.shape[2], k.shape[2])
        for h in range(self.n_heads):
            query, key = rotary(q[:, h], of_queries), rotary(k[:, h // group], of_keys)
            seen = mask if mask.dim() == 2 else mask[:, 0]
            heads.append(masked_attention(query, key, v[:, h // group], seen))
        output = self.W_o(torch.cat(heads, dim=-1))
        if self.window is not None and k.shape[2] > self.window:
            k, v = k[:, :, k.shape[2] - self.window :], v[:, :, v.shape[2] - self.window :]
        return output, (k, v)


@careless("ModernAttention")
class CountsPositionsOnTheCpu(_Attention):
    def positions(self, x, T, n):
        position = torch.arange(n, dtype=torch.float32)
        return position[n - T :], position


@careless("ModernAttention")
class CountsInTheDtypeOfX(_Attention):
    def positions(self, x, T, n):
        position = torch.arange(n, dtype=x.dtype, device=x.device)
        return position[n - T :], position


@careless("ModernAttention")
class MasksOnTheCpu(_Attention):
    def mask(self, q, k, real):
        T, n = q.shape[2], k.shape[2]
        place = torch.arange(n)
        return self.hide(self.allowed(place[n - T :, None] - place), real, T, n)


@mistake(
    "pair_up",
    hint="The halves of the whole weight are interleaved, so that heads mix. Cut the rows into "
    "heads first.",
)
def pairs_over_all_heads(weight, n_heads):
    """Interleave the two halves of the rows."""
    if len(weight) % (2 * n_heads):
        raise ValueError(f"{len(weight)} rows are no {n_heads} heads of an even number of features")
    halves = weight.unflatten(0, (2, -1))  # (2, H · d_head / 2, d_model)
    return halves.transpose(0, 1).flatten(0, 1)


def _fits(weight, n_heads):
    if len(weight) % (2 * n_heads):
        raise ValueError(f"{len(weight)} rows are no {n_heads} heads of an even number of features")


@mistake(
    "pair_up",
    hint="This is the way back: neighbours become halves. The rows that come out should be 0, "
    "d_head / 2, 1, …",
)
def goes_the_way_back(weight, n_heads):
    _fits(weight, n_heads)
    return weight.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).flatten(0, 2)


@mistake("pair_up", hint="The rows come out as they went in: the axes are never exchanged.")
def exchanges_nothing(weight, n_heads):
    _fits(weight, n_heads)
    return weight.unflatten(0, (n_heads, 2, -1)).flatten(0, 2)


@mistake(
    "pair_up",
    hint="The two halves of a head are exchanged as a whole. A row of the first half and one of "
    "the second should stand side by side.",
)
def exchanges_the_halves(weight, n_heads):
    _fits(weight, n_heads)
    return weight.unflatten(0, (n_heads, 2, -1)).flip(1).flatten(0, 2)


@mistake(
    "pair_up",
    hint="In each pair the row of the second half comes first. It should be 0, d_head / 2, 1, …",
)
def begins_with_the_second_half(weight, n_heads):
    _fits(weight, n_heads)
    return weight.unflatten(0, (n_heads, 2, -1)).flip(1).transpose(1, 2).flatten(0, 2)


@mistake("pair_up", hint="The columns are paired. The features of a head are rows of the weight.")
def pairs_the_columns(weight, n_heads):
    _fits(weight, n_heads)
    half = weight.shape[1] // 2
    order = [place for i in range(half) for place in (i, half + i)]
    return weight[:, order + list(range(len(order), weight.shape[1]))]


@mistake(
    "pair_up",
    hint="The heads are interleaved with each other: rows of different heads stand side by side.",
)
def mixes_the_heads(weight, n_heads):
    _fits(weight, n_heads)
    return weight.unflatten(0, (n_heads, 2, -1)).permute(2, 0, 1, 3).flatten(0, 2)


@alternative("pair_up")
def goes_row_by_row(weight, n_heads):
    _fits(weight, n_heads)
    d_head, rows = len(weight) // n_heads, []
    for first in range(0, len(weight), d_head):
        for i in range(first, first + d_head // 2):
            rows.extend([i, i + d_head // 2])
    return weight[rows]


@alternative("pair_up")
def writes_to_every_second_row(weight, n_heads):
    _fits(weight, n_heads)
    heads = []
    for head in weight.chunk(n_heads):
        first, second = head.chunk(2)
        paired = torch.empty_like(head)
        paired[0::2], paired[1::2] = first, second
        heads.append(paired)
    return torch.cat(heads)


@alternative("pair_up")
def stacks_the_halves(weight, n_heads):
    _fits(weight, n_heads)
    first, second = weight.reshape(n_heads, 2, -1, weight.shape[1]).unbind(1)
    return torch.stack([first, second], 2).reshape(weight.shape)


@careless("pair_up")
def gathers_on_the_cpu(weight, n_heads):
    _fits(weight, n_heads)
    paired = torch.empty(weight.shape, dtype=weight.dtype)
    heads = weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)
    paired[:] = heads
    return paired


@careless("pair_up")
def moves_rows_in_place(weight, n_heads):
    _fits(weight, n_heads)
    paired = weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)
    weight[:] = paired
    return weight


@careless("pair_up")
def makes_floats(weight, n_heads):
    _fits(weight, n_heads)
    paired = torch.zeros(weight.shape, device=weight.device)
    paired[:] = weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)
    return paired


@mistake(
    "break_pair_up",
    hint="With one head, the whole weight is that head: both answers do the same.",
    where=lambda weight, n_heads: n_heads == 1,
)
def has_one_head():
    return torch.arange(8.0).view(8, 1), 1


@mistake(
    "break_pair_up",
    hint="All rows are alike: whatever stands where, nobody sees it. Number the rows.",
    where=lambda weight, n_heads: n_heads > 1 and bool((weight == weight[:1]).all()),
)
def has_equal_rows():
    return torch.ones(8, 3), 2


@mistake(
    "break_pair_up",
    hint="The rows differ, but some stand twice, just where the two answers differ. Number them.",
    where=lambda weight, n_heads: n_heads > 1 and 1 < len(weight.unique(dim=0)) < len(weight),
)
def repeats_the_rows():
    return torch.tensor([0.0, 1.0, 2.0, 3.0, 2.0, 3.0, 4.0, 5.0]).view(8, 1), 2


@alternative("break_pair_up")
def draws_a_weight():
    return torch.randn(12, 5), 3


@alternative("break_pair_up")
def numbers_eight_rows():
    return torch.arange(8.0).view(8, 1), 2


class _Layer(Layer):
    """The right answer in small methods."""

    def attend(self, x, past, real):
        return self.attention(self.norm_1(x), past, real)

    def feed(self, x):
        return self.feed_forward(self.norm_2(x))

    def forward(self, x, past=None, real=None):
        update, pair = self.attend(x, past, real)
        x = x + update
        return x + self.feed(x), pair


@mistake(
    "ModernDecoderLayer",
    hint="The layer is post-norm: the sums are normed. Here the norms stand in front of attention "
    "and feed-forward network.",
)
class IsPostNorm(_Layer):
    def forward(self, x, past=None, real=None):
        update, pair = self.attention(x, past, real)
        x = self.norm_1(x + update)
        return self.norm_2(x + self.feed_forward(x)), pair


@mistake(
    "ModernDecoderLayer",
    hint="What attention and feed-forward network give is normed. The norms stand in front.",
)
class NormsTheUpdates(_Layer):
    def forward(self, x, past=None, real=None):
        update, pair = self.attention(x, past, real)
        x = x + self.norm_1(update)
        return x + self.norm_2(self.feed_forward(x)), pair


@mistake(
    "ModernDecoderLayer",
    hint="Nothing is added to x: what attention and feed-forward network give replaces it.",
)
class AddsNothing(_Layer):
    def forward(self, x, past=None, real=None):
        x, pair = self.attend(x, past, real)
        return self.feed(x), pair


@mistake("ModernDecoderLayer", hint="What the attention gives replaces x. It should be added.")
class AddsNoAttention(_Layer):
    def forward(self, x, past=None, real=None):
        x, pair = self.attend(x, past, real)
        return x + self.feed(x), pair


@mistake(
    "ModernDecoderLayer",
    hint="What the feed-forward network gives replaces the sum. It should be added.",
)
class AddsNoFeedForward(_Layer):
    def forward(self, x, past=None, real=None):
        update, pair = self.attend(x, past, real)
        return self.feed(x + update), pair


@mistake(
    "ModernDecoderLayer",
    hint="What comes out of the norm is carried on: the updates are added to the normed x. They "
    "are added to x itself.",
)
class AddsToTheNormed(_Layer):
    def forward(self, x, past=None, real=None):
        x = self.norm_1(x)
        update, pair = self.attention(x, past, real)
        x = self.norm_2(x + update)
        return x + self.feed_forward(x), pair


@mistake("ModernDecoderLayer", hint="The norms have no part in it.")
class ForgetsTheNormsOfALayer(_Layer):
    def attend(self, x, past, real):
        return self.attention(x, past, real)

    def feed(self, x):
        return self.feed_forward(x)


@mistake(
    "ModernDecoderLayer",
    hint="`norm_1` is used twice. In front of the feed-forward network stands `norm_2`.",
)
class UsesOneNormTwice(_Layer):
    def feed(self, x):
        return self.feed_forward(self.norm_1(x))


@mistake("ModernDecoderLayer", hint="`norm_1` and `norm_2` are exchanged.")
class ExchangesTheNormsOfALayer(_Layer):
    def attend(self, x, past, real):
        return self.attention(self.norm_2(x), past, real)

    def feed(self, x):
        return self.feed_forward(self.norm_1(x))


@mistake(
    "ModernDecoderLayer",
    hint="Attention and feed-forward network both read x as it came in. The second reads the sum "
    "of x and what the first gave.",
)
class WorksInParallel(_Layer):
    def forward(self, x, past=None, real=None):
        update, pair = self.attend(x, past, real)
        return x + update + self.feed(x), pair


@mistake("ModernDecoderLayer", hint="The attention is not given the past.")
class DropsThePast(_Layer):
    def attend(self, x, past, real):
        return self.attention(self.norm_1(x), None, real if past is None else None)


@mistake("ModernDecoderLayer", hint="The attention is not told what is `real`.")
class DropsReal(_Layer):
    def attend(self, x, past, real):
        return self.attention(self.norm_1(x), past)


@mistake(
    "ModernDecoderLayer",
    hint="The past that came in is returned. The next call wants the pair that the attention gave.",
)
class ReturnsTheOldPast(_Layer):
    def forward(self, x, past=None, real=None):
        return super().forward(x, past, real)[0], past


@mistake("ModernDecoderLayer", hint="The pair of the attention is missing in what you return.")
class ReturnsNoPairOfALayer(_Layer):
    def forward(self, x, past=None, real=None):
        return super().forward(x, past, real)[0]


@mistake(
    "ModernDecoderLayer",
    hint="What the attention returns is added as a whole: it is the update and the pair. Take it "
    "apart first.",
)
class AddsATuple(_Layer):
    def forward(self, x, past=None, real=None):
        x = x + self.attend(x, past, real)
        return x + self.feed(x), None


@alternative("ModernDecoderLayer")
class TakesItApart(_Layer):
    def forward(self, x, past=None, real=None):
        result = self.attention(self.norm_1(x), past=past, real=real)
        middle = x + result[0]
        return [self.feed_forward(self.norm_2(middle)) + middle, result[1]]


@alternative("ModernDecoderLayer")
class AddsToACopy(_Layer):
    def forward(self, x, past=None, real=None):
        stream = x.clone()
        update, pair = self.attend(stream, past, real)
        stream = stream + update
        stream = stream + self.feed(stream)
        return stream, pair


@mistake(
    "ModernDecoderLayer",
    hint="`x += …` writes into x, which the norm needs once more for its gradients. `x = x + …` "
    "makes a new tensor.",
)
class AddsInPlace(_Layer):
    def forward(self, x, past=None, real=None):
        update, pair = self.attend(x, past, real)
        x += update
        x += self.feed(x)
        return x, pair


@careless("ModernDecoderLayer")
class DropsTheAxisOfOneText(_Layer):
    def forward(self, x, past=None, real=None):
        x, pair = super().forward(x, past, real)
        return (x.squeeze(0) if len(x) == 1 else x), pair


@careless("ModernDecoderLayer")
class AddsUpOnTheCpu(_Layer):
    def forward(self, x, past=None, real=None):
        stream = torch.zeros(x.shape, dtype=x.dtype)
        stream = stream + x
        update, pair = self.attend(x, past, real)
        stream = stream + update
        return stream + self.feed(stream), pair


class _Decoder(Decoder):
    """The right answer in small methods."""

    def embed(self, tokens):
        return self.embedding(tokens)

    def stack(self, x, past, real):
        kept = []
        for number, layer in enumerate(self.layers):
            x, pair = layer(x, None if past is None else past[number], real)
            kept.append(pair)
        return x, kept

    def score(self, x):
        return self.norm(x) @ self.embedding.weight.T

    def forward(self, tokens, past=None, real=None):
        x, kept = self.stack(self.embed(tokens), past, real)
        return self.score(x), kept


SCORES, BEFORE, PADDING = "scores", "with a past", "padding"
BUT_SCORES = (BEFORE, PADDING)


@mistake(
    "ModernDecoder",
    hint="The last norm, behind the layers, is missing.",
    earns=BUT_SCORES,
)
class ForgetsTheLastNorm(_Decoder):
    def score(self, x):
        return x @ self.embedding.weight.T


@mistake(
    "ModernDecoder",
    hint="The rows of the table are multiplied by √d_model, as in lesson 08. Here they stay as "
    "they are.",
    earns=BUT_SCORES,
)
class ScalesTheRows(_Decoder):
    def embed(self, tokens):
        return self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)


@mistake(
    "ModernDecoder",
    hint="The scores are divided by √d_model. Here they are the dot products as they are.",
    earns=BUT_SCORES,
)
class ScalesTheScores(_Decoder):
    def score(self, x):
        return super().score(x) / math.sqrt(x.shape[-1])


@mistake(
    "ModernDecoder",
    hint="The norm stands in front of the layers. It belongs behind the last one.",
    earns=BUT_SCORES,
)
class NormsInFront(_Decoder):
    def embed(self, tokens):
        return self.norm(self.embedding(tokens))

    def score(self, x):
        return x @ self.embedding.weight.T


@mistake(
    "ModernDecoder",
    hint="The norm comes behind every layer. Only the last has one behind it.",
    earns=BUT_SCORES,
)
class NormsEveryLayer(_Decoder):
    def stack(self, x, past, real):
        kept = []
        for number, layer in enumerate(self.layers):
            x, pair = layer(x, None if past is None else past[number], real)
            x = self.norm(x)
            kept.append(pair)
        return x, kept

    def score(self, x):
        return x @ self.embedding.weight.T


@mistake(
    "ModernDecoder",
    hint="Probabilities come out, or their logarithms. The scores as they are were asked for.",
    earns=BUT_SCORES,
)
class ReturnsProbabilities(_Decoder):
    def score(self, x):
        return super().score(x).softmax(-1)


@mistake(
    "ModernDecoder",
    hint="The vectors behind the norm come out. The scores are their dot products with the rows "
    "of the table.",
)
class ReturnsVectors(_Decoder):
    def score(self, x):
        return self.norm(x)


@mistake(
    "ModernDecoder",
    hint="The layers are used from the last to the first.",
    earns=BUT_SCORES,
)
class GoesBackwards(_Decoder):
    def stack(self, x, past, real):
        kept = []
        for number, layer in enumerate(reversed(self.layers)):
            x, pair = layer(x, None if past is None else past[number], real)
            kept.append(pair)
        return x, kept


@mistake(
    "ModernDecoder",
    hint="No gradient reaches the table from the scores: it is detached there. Both uses of it "
    "should learn.",
)
class DetachesTheTable(_Decoder):
    def score(self, x):
        return self.norm(x) @ self.embedding.weight.detach().T


@mistake(
    "ModernDecoder",
    hint="All layers get the past of layer 0. Each has its own: `past[number]`.",
    earns=(SCORES, PADDING),
)
class SharesThePastOfLayer0(_Decoder):
    def stack(self, x, past, real):
        return super().stack(x, past and [past[0]] * len(self.layers), real)


@mistake(
    "ModernDecoder",
    hint="The pair that a layer returns goes into the next layer as its past. Each layer gets its "
    "own pair of the last call, or None.",
)
class HandsThePastOn(_Decoder):
    def stack(self, x, past, real):
        kept, pair = [], past
        for layer in self.layers:
            x, pair = layer(x, pair if isinstance(pair, tuple) else None, None)
            kept.append(pair)
        return x, kept


@mistake(
    "ModernDecoder",
    hint="The layers are not given the past: new tokens are read as if nothing came before.",
    earns=(SCORES, PADDING),
)
class DropsThePastOfTheDecoder(_Decoder):
    def stack(self, x, past, real):
        return super().stack(x, None, real if past is None else None)


@mistake(
    "ModernDecoder",
    hint="Only the pair of the last layer comes back. The list holds one for each layer.",
    earns=(SCORES, PADDING),
)
class ReturnsTheLastPair(_Decoder):
    def stack(self, x, past, real):
        x, kept = super().stack(x, past, real)
        return x, kept[-1]


@mistake(
    "ModernDecoder",
    hint="Only the scores come back. The list of pairs is needed for the next call.",
    earns=(SCORES, PADDING),
)
class ReturnsOnlyScores(_Decoder):
    def forward(self, tokens, past=None, real=None):
        return super().forward(tokens, past, real)[0]


@mistake(
    "ModernDecoder",
    hint="The pairs of this call are put behind those of the past, so that the list grows. Each "
    "pair holds its past already.",
    earns=(SCORES, PADDING),
)
class AddsToTheList(_Decoder):
    def stack(self, x, past, real):
        x, kept = super().stack(x, past, real)
        return x, [*(past or []), *kept]


@mistake(
    "ModernDecoder",
    hint="The layers are not told what is `real`.",
    earns=(SCORES, BEFORE),
)
class DropsRealOfTheDecoder(_Decoder):
    def stack(self, x, past, real):
        return super().stack(x, past, None)


@mistake(
    "ModernDecoder",
    hint="Only the first layer is told what is `real`. Every layer must know.",
    earns=(SCORES, BEFORE),
)
class TellsTheFirstLayerOnly(_Decoder):
    def stack(self, x, past, real):
        kept = []
        for number, layer in enumerate(self.layers):
            x, pair = layer(x, None if past is None else past[number], None if number else real)
            kept.append(pair)
        return x, kept


@mistake(
    "ModernDecoder",
    hint="`real` is cut to the new tokens. It says of all tokens so far which are padding.",
    earns=(SCORES, BEFORE),
)
class CutsReal(_Decoder):
    def stack(self, x, past, real):
        return super().stack(x, past, None if real is None else real[:, -x.shape[1] :])


@alternative("ModernDecoder")
class ZipsLayersAndPast(_Decoder):
    def forward(self, tokens, past=None, real=None):
        x, kept = F.embedding(tokens, self.embedding.weight), []
        for layer, pair in zip(self.layers, past or [None] * len(self.layers), strict=True):
            x, pair = layer(x, past=pair, real=real)
            kept += [pair]
        return F.linear(self.norm(x), self.embedding.weight), tuple(kept)


@alternative("ModernDecoder")
class ScoresWithEinsum(_Decoder):
    def embed(self, tokens):
        return self.embedding.weight[tokens]

    def score(self, x):
        return torch.einsum("btd,vd->btv", self.norm(x), self.embedding.weight)


@careless("ModernDecoder")
class ScoresOnTheCpu(_Decoder):
    def score(self, x):
        scores = torch.zeros(*x.shape[:2], len(self.embedding.weight), dtype=x.dtype)
        scores += super().score(x)
        return scores


@careless("ModernDecoder")
class DropsAxesOfOne(_Decoder):
    def score(self, x):
        scores = super().score(x)
        return scores.squeeze(1) if x.shape[1] == 1 and len(x) == 1 else scores


class _Writer:
    """The right loop in small methods."""

    def begin(self, tokens):
        return tokens != PAD

    def read(self, model, read, past, real):
        return model(read, past, real)

    def next(self, text, chosen):
        return chosen[:, None]

    def last(self, scores):
        return scores[:, -1]

    def choose(self, choose, scores, ended):
        return choose(scores).masked_fill(ended, PAD)

    def has_ended(self, ended, chosen):
        return ended | (chosen == EOS)

    def goes_on(self, ended):
        return not ended.all()

    def grow(self, real):
        return torch.cat([real, torch.ones_like(real[:, :1])], 1)

    def room(self, written, max_length):
        return len(written) < max_length

    def result(self, tokens, written):
        return torch.stack(written, 1) if written else tokens[:, :0]

    @torch.no_grad()
    def __call__(self, model, tokens, choose, max_length):
        demand.counts(0, max_length=max_length)
        read, past, real, written = tokens, None, self.begin(tokens), []
        ended = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
        while self.room(written, max_length) and self.goes_on(ended):
            scores, past = self.read(model, read, past, real)
            chosen = self.choose(choose, self.last(scores), ended)
            written.append(chosen)
            ended = self.has_ended(ended, chosen)
            read = self.next(torch.cat([tokens, *(one[:, None] for one in written)], 1), chosen)
            real = self.grow(real)
        return self.result(tokens, written)


def _writer(kind):
    """A function that writes as this kind of _Writer does: of ReadsAllAgain, reads_all_again."""

    def write(model, tokens, choose, max_length):
        return kind()(model, tokens, choose, max_length)

    write.__name__ = re.sub("(?<=.)([A-Z])", r"_\1", kind.__name__).lower()
    return write


@mistake(
    "generate_with_cache",
    hint="The past is not handed back to the model, so that the whole text must be read again for "
    "each token, or is forgotten.",
)
@_writer
class ReadsAllAgain(_Writer):
    def read(self, model, read, past, real):
        return model(read, None, real)

    def next(self, text, chosen):
        return text


@mistake(
    "generate_with_cache",
    hint="The past is not handed back to the model, so that the whole text must be read again for "
    "each token, or is forgotten.",
)
@_writer
class ForgetsThePastOfTheText(_Writer):
    def read(self, model, read, past, real):
        return model(read, None, real)


@mistake(
    "generate_with_cache",
    hint="The model gets its past and, with it, the whole text once more. What it has read is in "
    "the past: hand over only the new tokens.",
)
@_writer
class ReadsTheTextWithItsPast(_Writer):
    def next(self, text, chosen):
        return text


@mistake(
    "generate_with_cache",
    hint="The model is not told what is `real`: the padding in front is read like words.",
)
@_writer
class SaysNothingOfPadding(_Writer):
    def read(self, model, read, past, real):
        return model(read, past)


LATER = (
    "From the second call on, all is said to be real, the padding in front as well. The model asks "
    "about the past at every call: what `real` said of the prompt stays."
)


@mistake(
    "generate_with_cache",
    hint=LATER,
)
@_writer
class TellsOfThePromptOnly(_Writer):
    def read(self, model, read, past, real):
        return model(read, past, real if past is None else None)


@mistake(
    "generate_with_cache",
    hint=LATER,
)
@_writer
class CallsAllReal(_Writer):
    def grow(self, real):
        return torch.ones(len(real), real.shape[1] + 1, dtype=torch.bool, device=real.device)


@mistake(
    "generate_with_cache",
    hint="`real` stays as long as the prompt. It needs a column for each token so far.",
)
@_writer
class LetsRealStay(_Writer):
    def grow(self, real):
        return real


@mistake(
    "generate_with_cache",
    hint="`real` speaks of the new tokens only. It needs a column for each token so far.",
)
@_writer
class SpeaksOfNewTokensOnly(_Writer):
    def grow(self, real):
        return torch.ones_like(real[:, :1])


@mistake(
    "generate_with_cache",
    hint="True and False are exchanged in `real`: True is where a token is no padding.",
)
@_writer
class MarksThePadding(_Writer):
    def begin(self, tokens):
        return tokens == PAD


@mistake(
    "generate_with_cache",
    hint="What is written is marked as padding. It counts as real.",
)
@_writer
class MarksWhatIsWritten(_Writer):
    def grow(self, real):
        return torch.cat([real, torch.zeros_like(real[:, :1])], 1)


@mistake(
    "generate_with_cache",
    hint="The scores behind the first token are used. The last one of those that were read counts.",
)
@_writer
class TakesTheFirstScores(_Writer):
    def last(self, scores):
        return scores[:, 0]


@mistake(
    "generate_with_cache",
    hint="`choose` gets the scores of all positions. It wants one row for each text: those behind "
    "the last token.",
)
@_writer
class HandsOverAllScores(_Writer):
    def last(self, scores):
        return scores


@mistake("generate_with_cache", hint="`choose` is not used: the best token is always taken.")
@_writer
class TakesTheBest(_Writer):
    def choose(self, choose, scores, ended):
        return scores.argmax(1).masked_fill(ended, PAD)


@mistake(
    "generate_with_cache",
    hint="A row goes on after its EOS. Behind it there should be PAD only.",
)
@_writer
class GoesOnAfterTheEnd(_Writer):
    def choose(self, choose, scores, ended):
        return choose(scores)


@mistake(
    "generate_with_cache",
    hint="EOS itself is replaced by PAD. It is kept: whoever chose it has ended behind it.",
)
@_writer
class DropsTheEnd(_Writer):
    def result(self, tokens, written):
        written = super().result(tokens, written)
        return written.masked_fill(written == EOS, PAD)


@mistake(
    "generate_with_cache",
    hint="Rows that have ended are filled up with EOS. Behind the first EOS stands PAD.",
)
@_writer
class FillsUpWithEnds(_Writer):
    def choose(self, choose, scores, ended):
        return choose(scores).masked_fill(ended, EOS)


@mistake(
    "generate_with_cache",
    hint="It stops as soon as one row has ended. Stop when all of them have.",
)
@_writer
class StopsWithTheFirst(_Writer):
    def goes_on(self, ended):
        return not ended.any()


@mistake(
    "generate_with_cache",
    hint="It never stops early: columns of PAD alone follow when every row has ended.",
)
@_writer
class NeverStopsEarly(_Writer):
    def goes_on(self, ended):
        return True


@mistake(
    "generate_with_cache",
    hint="Only the last token says whether a row has ended, and PAD follows EOS: so an ended row "
    "wakes up again. Once ended, a row stays so.",
)
@_writer
class ForgetsWhoHasEnded(_Writer):
    def has_ended(self, ended, chosen):
        return chosen == EOS


@mistake("generate_with_cache", hint="The prompt comes back, too. Only the new tokens should.")
@_writer
class ReturnsThePrompt(_Writer):
    def result(self, tokens, written):
        return torch.cat([tokens, super().result(tokens, written)], 1)


@mistake("generate_with_cache", hint="One token too many is written.")
@_writer
class WritesOneTooMany(_Writer):
    def room(self, written, max_length):
        return len(written) <= max_length


@mistake("generate_with_cache", hint="One token is missing at the end.")
@_writer
class WritesOneTooFew(_Writer):
    def room(self, written, max_length):
        return len(written) < max(max_length - 1, 1 if max_length == 1 else 0)


@mistake(
    "generate_with_cache",
    hint="The tokens are stacked below one another: (T, B). They belong side by side, (B, T).",
)
@_writer
class StacksRows(_Writer):
    def result(self, tokens, written):
        return torch.stack(written) if written else tokens[:, :0]


@alternative("generate_with_cache")
@torch.no_grad()
def reads_the_prompt_token_by_token(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    real, past, P = tokens != PAD, None, tokens.shape[1]
    if max_length == 0:
        return tokens[:, :0]
    for t in range(P):
        scores, past = model(tokens[:, t : t + 1], past, real[:, : t + 1])
    ended = torch.zeros_like(tokens[:, 0]).bool()
    while True:
        token = torch.where(ended, PAD, choose(scores[:, -1]))
        tokens = torch.cat([tokens, token.unsqueeze(1)], dim=-1)
        ended = ended | token.eq(EOS)
        if tokens.shape[1] == P + max_length or bool(ended.all()):
            return tokens[:, P:]
        real = torch.cat([real, real.new_ones(len(real), 1)], dim=-1)
        scores, past = model(token.unsqueeze(1), past, real)


@alternative("generate_with_cache")
def fills_a_table(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    written = torch.full((len(tokens), max_length), PAD, device=tokens.device)
    going, read, past = set(range(len(tokens))), tokens, None
    real = tokens.ne(PAD)
    for t in range(max_length):
        scores, past = model(read, past=past, real=real)
        chosen = choose(scores[:, -1, :])
        for row in list(going):
            written[row, t] = chosen[row]
            if chosen[row].item() == EOS:
                going.remove(row)
        if not going:
            return written[:, : t + 1]
        read = written[:, t : t + 1]
        real = torch.cat([real, read >= 0], dim=1)
    return written


@careless("generate_with_cache")
@_writer
class TakesAWrittenPadForPadding(_Writer):
    def read(self, model, read, past, real):
        self.seen = torch.cat([*([self.seen] if past else []), read != PAD], 1)
        return model(read, past, self.seen)


@careless("generate_with_cache")
def stacks_nothing(model, tokens, choose, max_length):
    demand.counts(0, max_length=max_length)
    read, past, real, written = tokens, None, tokens != PAD, []
    ended = torch.zeros_like(tokens[:, 0]).bool()
    while len(written) < max_length and not ended.all():
        scores, past = model(read, past, real)
        chosen = choose(scores[:, -1]).masked_fill(ended, PAD)
        written.append(chosen)
        ended |= chosen == EOS
        read = chosen[:, None]
        real = torch.cat([real, torch.ones_like(read).bool()], 1)
    return torch.stack(written, 1)


@careless("generate_with_cache")
@_writer
class CountsEndsOnTheCpu(_Writer):
    def grow(self, real):
        return torch.cat([real, torch.ones(len(real), 1, dtype=torch.bool)], 1)


@mistake(
    "cache_bytes",
    hint="Half is missing: keys are counted, and values as well take their place.",
)
def counts_keys_only(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    kept = T if window is None else min(T, window)
    return n_layers * n_kv_heads * d_head * kept * bytes_per_number


@mistake("cache_bytes", hint="`window` has no effect.")
def keeps_the_whole_text(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    return 2 * n_layers * n_kv_heads * d_head * T * bytes_per_number


@mistake(
    "cache_bytes",
    hint="With a window, as many positions are counted as it has. A shorter text has fewer.",
)
def fills_the_window(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    return 2 * n_layers * n_kv_heads * d_head * (window or T) * bytes_per_number


@mistake("cache_bytes", hint="The larger of text and window is taken. It should be the smaller.")
def takes_the_larger(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    return 2 * n_layers * n_kv_heads * d_head * max(T, window or 0) * bytes_per_number


@mistake("cache_bytes", hint="These are numbers, not bytes: `bytes_per_number` has no effect.")
def counts_numbers(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    kept = T if window is None else min(T, window)
    return 2 * n_layers * n_kv_heads * d_head * kept


@mistake(
    "cache_bytes", hint="A number always takes 2 bytes here: `bytes_per_number` has no effect."
)
def takes_two_bytes(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    kept = T if window is None else min(T, window)
    return 2 * n_layers * n_kv_heads * d_head * kept * 2


@mistake("cache_bytes", hint="This is the cache of one layer. Each layer has its own.")
def counts_one_layer(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    kept = T if window is None else min(T, window)
    return 2 * n_kv_heads * d_head * kept * bytes_per_number


@mistake("cache_bytes", hint="This is the cache of one head. There are n_kv_heads of them.")
def counts_one_head(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    kept = T if window is None else min(T, window)
    return 2 * n_layers * d_head * kept * bytes_per_number


@mistake("cache_bytes", hint="These are bits. A byte has eight of them.")
def counts_bits(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    kept = T if window is None else min(T, window)
    return 16 * n_layers * n_kv_heads * d_head * kept * bytes_per_number


@alternative("cache_bytes")
def adds_keys_and_values(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    if window is not None and window < T:
        T = window
    keys = values = T * n_kv_heads * d_head
    return (keys + values) * n_layers * bytes_per_number


@alternative("cache_bytes")
def multiplies_a_list(T, n_layers, n_kv_heads, d_head, window=None, bytes_per_number=2):
    kept = min([T] + ([window] if window else []))
    return math.prod([2, n_layers, n_kv_heads, kept, d_head, bytes_per_number])


def _newton(matrix, steps, norm=lambda x: x.norm() + 1e-7, numbers=NEWTON_SCHULZ):
    demand.counts(0, steps=steps)
    a, b, c = numbers
    X = matrix / norm(matrix)
    for _ in range(steps):
        A = X @ X.T
        X = a * X + b * A @ X + c * A @ A @ X
    return X


@mistake(
    "newton_schulz",
    hint="It is divided by the largest singular value. The Frobenius norm is the root of the sum "
    "of all squares.",
)
def divides_by_the_largest(matrix, steps=5):
    return _newton(matrix, steps, lambda x: torch.linalg.matrix_norm(x, 2) + 1e-7)


@mistake("newton_schulz", hint="Each row is divided by its own length. There is one norm for all.")
def divides_each_row(matrix, steps=5):
    return _newton(matrix, steps, lambda x: x.norm(dim=1, keepdim=True) + 1e-7)


@mistake("newton_schulz", hint="It is divided by the sum of the squares. Its root is missing.")
def divides_by_the_square(matrix, steps=5):
    return _newton(matrix, steps, lambda x: x.square().sum() + 1e-7)


@mistake("newton_schulz", hint="It is divided by the largest number. The Frobenius norm is asked.")
def divides_by_the_largest_number(matrix, steps=5):
    return _newton(matrix, steps, lambda x: x.abs().max() + 1e-7)


@mistake("newton_schulz", hint="The matrix is not divided by anything before the first step.")
def divides_by_nothing(matrix, steps=5):
    return _newton(matrix, steps, lambda x: 1.0)


@mistake(
    "newton_schulz",
    hint="1e-7 is missing beside the norm: it counts for tiny numbers, and zeros become NaN.",
)
def forgets_the_small_number(matrix, steps=5):
    return _newton(matrix, steps, lambda x: x.norm())


@mistake(
    "newton_schulz",
    hint="X is multiplied with itself number by number. X Xᵀ is a product of matrices: `@`.",
)
def multiplies_number_by_number(matrix, steps=5):
    a, b, c = NEWTON_SCHULZ
    X = matrix / (matrix.norm() + 1e-7)
    for _ in range(steps):
        X = a * X + b * X**3 + c * X**5
    return X


@mistake(
    "newton_schulz",
    hint="The square of A is taken number by number. (X Xᵀ)² is a product of matrices: A @ A.",
)
def squares_number_by_number(matrix, steps=5):
    a, b, c = NEWTON_SCHULZ
    X = matrix / (matrix.norm() + 1e-7)
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A * A) @ X
    return X


@mistake("newton_schulz", hint="b and c are exchanged.")
def exchanges_b_and_c(matrix, steps=5):
    a, b, c = NEWTON_SCHULZ
    return _newton(matrix, steps, numbers=(a, c, b))


@mistake("newton_schulz", hint="The last part, with c, is missing.")
def forgets_the_fifth_power(matrix, steps=5):
    a, b, _ = NEWTON_SCHULZ
    return _newton(matrix, steps, numbers=(a, b, 0.0))


@mistake("newton_schulz", hint="`steps` has no effect: five are always taken.")
def always_takes_five(matrix, steps=5):
    return _newton(matrix, 5)


@mistake(
    "newton_schulz",
    hint="The norm is divided out in every step. Only the matrix that comes in is divided.",
)
def divides_in_every_step(matrix, steps=5):
    demand.counts(0, steps=steps)
    X = _newton(matrix, 0)
    for _ in range(steps):
        X = _newton(X, 1)
    return X


@mistake(
    "newton_schulz",
    hint="This is the exact result, U Vᵀ, in which all singular values are 1. The steps asked for "
    "bring them near 1 only.",
)
def takes_the_svd(matrix, steps=5):
    U, _, V = torch.linalg.svd(matrix, full_matrices=False)
    return U @ V


@alternative("newton_schulz")
def works_on_the_short_side(matrix, steps=5):
    a, b, c = NEWTON_SCHULZ
    X = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    X = X / (torch.linalg.norm(X) + 1e-7)
    for _ in range(steps):
        A = X @ X.mT
        X = a * X + (b * A + c * (A @ A)) @ X
    return X.mT if matrix.shape[0] > matrix.shape[1] else X


@alternative("newton_schulz")
def multiplies_from_the_right(matrix, steps=5):
    a, b, c = NEWTON_SCHULZ
    X = matrix / ((matrix**2).sum() ** 0.5 + 1e-7)
    for _ in range(steps):
        cubed = X @ X.T @ X
        X = a * X + b * cubed + c * X @ X.T @ cubed
    return X


@careless("newton_schulz")
def adds_a_tensor_of_the_cpu(matrix, steps=5):
    return _newton(matrix, steps, lambda x: (x.norm() + 1e-7) * torch.ones(x.shape, dtype=x.dtype))


@careless("newton_schulz")
def divides_in_place(matrix, steps=5):
    matrix /= matrix.norm() + 1e-7
    a, b, c = NEWTON_SCHULZ
    X = matrix.clone()
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X


def _muon(parameter, gradient, m, rate, momentum=0.95, weight_decay=0.0, **how):
    """The right step, of which ``how`` replaces a part."""
    demand.within(0, learning_rate=rate, weight_decay=weight_decay)
    demand.share(momentum=momentum)
    m = how.get("sum", lambda m, gradient: momentum * m + gradient)(m, gradient)
    ahead = how.get("ahead", lambda m, gradient: gradient + momentum * m)(m, gradient)
    rows, columns = parameter.shape
    scale = how.get("scale", lambda rows, columns: max(1, rows / columns) ** 0.5)(rows, columns)
    shrunk = parameter * (1 - how.get("decay", rate * weight_decay))
    return shrunk - rate * scale * newton_schulz(ahead), m


@mistake(
    "muon_step",
    hint="m itself is made orthogonal, which is also gradient + momentum · the old m. Look one "
    "step ahead: with the new m.",
)
def forgets_nesterov(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    return _muon(
        parameter, gradient, m, learning_rate, momentum, weight_decay, ahead=lambda m, gradient: m
    )


@mistake(
    "muon_step",
    hint="Only the gradient is made orthogonal: the running sum has no part in the step.",
)
def forgets_the_sum(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    return _muon(
        parameter,
        gradient,
        m,
        learning_rate,
        momentum,
        weight_decay,
        ahead=lambda m, gradient: gradient,
    )


@mistake(
    "muon_step",
    hint="m is a mean, as in Adam: the gradient is multiplied by 1 − momentum. Here it is a sum, "
    "and the gradient is added whole.",
)
def takes_a_mean(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    def mean(m, gradient):
        return momentum * m + (1 - momentum) * gradient

    return _muon(parameter, gradient, m, learning_rate, momentum, weight_decay, sum=mean)


@mistake("muon_step", hint="The scale is upside down: rows / columns, not columns / rows.")
def turns_the_scale(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    def scale(rows, columns):
        return max(1, columns / rows) ** 0.5

    return _muon(parameter, gradient, m, learning_rate, momentum, weight_decay, scale=scale)


@mistake("muon_step", hint="The step is not multiplied by √max(1, rows / columns).")
def forgets_the_scale(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    def scale(rows, columns):
        return 1.0

    return _muon(parameter, gradient, m, learning_rate, momentum, weight_decay, scale=scale)


@mistake(
    "muon_step",
    hint="A wide matrix is scaled down. The scale is 1 where there are fewer rows than columns.",
)
def scales_wide_matrices(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    def scale(rows, columns):
        return (rows / columns) ** 0.5

    return _muon(parameter, gradient, m, learning_rate, momentum, weight_decay, scale=scale)


@mistake("muon_step", hint="The scale lacks its root.")
def forgets_the_root_of_the_scale(
    parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0
):
    def scale(rows, columns):
        return max(1, rows / columns)

    return _muon(parameter, gradient, m, learning_rate, momentum, weight_decay, scale=scale)


@mistake("muon_step", hint="`weight_decay` has no effect.")
def forgets_the_decay(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    return _muon(parameter, gradient, m, learning_rate, momentum)


@mistake(
    "muon_step",
    hint="The decay is not multiplied by the learning rate.",
)
def decays_at_full_rate(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    return _muon(parameter, gradient, m, learning_rate, momentum, decay=weight_decay)


@mistake(
    "muon_step",
    hint="The decay is added to the gradient, so that it passes through the sum and newton_schulz. "
    "As in AdamW, the parameter shrinks directly.",
)
def adds_decay_to_the_gradient(
    parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0
):
    return _muon(parameter, gradient + weight_decay * parameter, m, learning_rate, momentum)


@mistake("muon_step", hint="The step goes uphill: it is added. Take it off.")
def goes_uphill(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    new, m = _muon(parameter, gradient, m, learning_rate, momentum, weight_decay)
    shrunk = parameter * (1 - learning_rate * weight_decay)
    return 2 * shrunk - new, m


@mistake("muon_step", hint="Nothing is made orthogonal: the step is the sum of gradients itself.")
def skips_newton_schulz(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    _, m = _muon(parameter, gradient, m, learning_rate, momentum, weight_decay)
    scale = max(1, parameter.shape[0] / parameter.shape[1]) ** 0.5
    shrunk = parameter * (1 - learning_rate * weight_decay)
    return shrunk - learning_rate * scale * (gradient + momentum * m), m


@mistake("muon_step", hint="Both are right, in another order: (parameter, m).")
def returns_m_first(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    return _muon(parameter, gradient, m, learning_rate, momentum, weight_decay)[::-1]


@mistake(
    "muon_step",
    hint="What was made orthogonal is returned as m. The sum of the gradients is to be kept.",
)
def keeps_the_orthogonal(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    new, m = _muon(parameter, gradient, m, learning_rate, momentum, weight_decay)
    return new, newton_schulz(gradient + momentum * m)


@mistake(
    "muon_step",
    hint="What was looked ahead to is returned as m, so that the next step looks farther still. "
    "Return the sum itself.",
)
def keeps_what_is_ahead(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    new, m = _muon(parameter, gradient, m, learning_rate, momentum, weight_decay)
    return new, gradient + momentum * m


@alternative("muon_step")
def takes_it_step_by_step(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    new_m = m.mul(momentum).add(gradient)
    direction = newton_schulz(gradient.add(new_m, alpha=momentum), steps=5)
    rows, columns = parameter.shape
    if rows > columns:
        direction = direction * math.sqrt(rows / columns)
    decayed = parameter - learning_rate * weight_decay * parameter
    return [decayed - learning_rate * direction, new_m]


@alternative("muon_step")
def writes_newton_schulz_out(
    parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0
):
    m = momentum * m + gradient
    X = gradient + momentum * m
    X = X / (X.norm() + 1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(5):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    X = X * max(1, len(X) / len(X[0])) ** 0.5
    return parameter * (1 - learning_rate * weight_decay) - learning_rate * X, m


@careless("muon_step")
def writes_into_m(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    m.mul_(momentum).add_(gradient)
    scale = max(1, parameter.shape[0] / parameter.shape[1]) ** 0.5
    step = newton_schulz(gradient + momentum * m)
    return parameter * (1 - learning_rate * weight_decay) - learning_rate * scale * step, m


@careless("muon_step")
def scales_on_the_cpu(parameter, gradient, m, learning_rate, momentum=0.95, weight_decay=0.0):
    def scale(rows, columns):
        return torch.full((rows, columns), max(1, rows / columns) ** 0.5)

    return _muon(parameter, gradient, m, learning_rate, momentum, weight_decay, scale=scale)


OUTSIDE = "an optimiser takes its step outside of the graph"
EQUIVALENT = {
    "ModernDecoder: without `strict` in one call of `zip`: for layer, before in zip(self.layers, "
    "pasts): x, pair = layer(x, before, real) kept.append(pair)": (
        "there are as many pasts as layers"
    ),
    "ModernDecoder: with False once where True belongs: for layer, before in zip(self.layers, "
    "pasts, strict=False): x, pair = layer(x, before, real) kept.append(pair)": (
        "there are as many pasts as layers"
    ),
    "ModernAttention: with two arguments of one call of `promote_types` exchanged: wide = "
    "torch.promote_types(torch.float32, x.dtype)": "the wider of two is the same either way",
    "ModernAttention: without `dtype` in one call of `arange`: position = torch.arange(n, "
    "device=x.device)": "whole numbers make angles in float32, too",
    "generate_with_cache: with one whole number off by one: ended = torch.zeros_like(tokens[:, "
    "-1], dtype=torch.bool)": "one column is as good as another: only its form counts",
    "generate_with_cache: whose result is cut off from the gradient: return torch.stack(new, "
    "dim=1).detach() if new else tokens[:, :0].detach()": "ids have no gradient",
    "newton_schulz: whose result is cut off from the gradient: return X.detach()": OUTSIDE,
    "newton_schulz: with the two sides of one `@` exchanged: X = a * X + (b * A + A @ (c * A)) @ "
    "X": "a matrix commutes with itself",
    "muon_step: with `gradient` once where `parameter` belongs: scale = max(1, gradient.shape[0] "
    "/ parameter.shape[1]) ** 0.5": "all three have one shape",
    "muon_step: with `m` once where `parameter` belongs: scale = max(1, m.shape[0] / "
    "parameter.shape[1]) ** 0.5": "all three have one shape",
    "muon_step: with `gradient` once where `parameter` belongs: scale = max(1, parameter.shape[0] "
    "/ gradient.shape[1]) ** 0.5": "all three have one shape",
    "muon_step: with `m` once where `parameter` belongs: scale = max(1, parameter.shape[0] / "
    "m.shape[1]) ** 0.5": "all three have one shape",
    "muon_step: whose result is cut off from the gradient: return ((parameter - learning_rate * "
    "scale * update).detach(), m.detach())": OUTSIDE,
}
