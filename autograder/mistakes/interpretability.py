"""Wrong and right answers to the exercises of lesson 17."""

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from attention.interpretability import Explained, null_space
from attention.provided.data.tokens import EOS, PAD
from attention.provided.models.attention_weights import watch_attention
from attention.sequence_to_sequence import shift_right
from attention.transformer import Encoder, masks_from_tokens
from autograder.checking.toolbox.registry import alternative, careless, mistake

# --- perturb_attention -------------------------------------------------------------------------


def _change(values, direction):
    basis = null_space(values)
    return basis @ (basis.T @ direction)


def _steps(weights, change):
    never = torch.full_like(weights, torch.inf)
    return torch.where(change < 0, weights / -change, never)


def _go(weights, change):
    """weights + step · change, with the largest step."""
    if not (change < 0).any():
        return weights
    return weights + _steps(weights, change).min() * change


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


# --- LeaveOneOut -------------------------------------------------------------------------------


class _Leaving(Explained):
    """A right LeaveOneOut in small methods; others override what they do in another way."""

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
    """A right ActivationPatching in small methods; others override what they do in another way."""

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
    """A right HiddenTokenAttribution in small methods; careless ones override one."""

    def size(self, blocks):
        return blocks.square().sum(dim=(2, 4)).sqrt()

    def share(self, sizes):
        return sizes / sizes.sum(-1, keepdim=True)

    def forward(self, x):
        return self.share(self.size(_jacobian(self.encoder, x)))


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
    """A right HeadImportance in small methods; others override what they do in another way."""

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


# --- induction_score ---------------------------------------------------------------------------


def _repeats(tokens):
    """Which tokens stood before, and where: (B, T, T), query and earlier occurrence."""
    return (tokens.unsqueeze(2) == tokens.unsqueeze(1)).tril(-1)


@alternative("induction_score")
def scores_by_rolling(weights, tokens):
    after = _repeats(tokens).roll(1, dims=2).unsqueeze(1)  # the last column holds no occurrence
    return (weights * after).sum((0, 2, 3)) / after.any(dim=3).sum()


@alternative("induction_score")
def scores_of_chosen_queries(weights, tokens):
    after = F.pad(_repeats(tokens)[..., :-1], (1, 0))
    looked = torch.einsum("bhij,bij->bih", weights, after.to(weights.dtype))
    return looked[after.any(dim=2)].mean(dim=0)


@alternative("induction_score")
def scores_place_by_place(weights, tokens):
    found = []
    for b, row in enumerate(tokens.tolist()):
        for t in range(1, len(row)):
            places = [j + 1 for j in range(t) if row[j] == row[t]]
            if places:
                found.append(weights[b, :, t, places].sum(dim=1))
    return sum(found) / len(found)


@careless("induction_score")
def makes_its_triangle_on_the_cpu(weights, tokens):
    T = tokens.shape[1]
    earlier = torch.ones(T, T, dtype=torch.bool).tril(-1)
    after = ((tokens.unsqueeze(2) == tokens.unsqueeze(1)) & earlier).roll(1, dims=2)
    return (weights * after.unsqueeze(1)).sum((0, 2, 3)) / after.any(dim=2).sum()


@careless("induction_score")
def writes_scores_into_zeros(weights, tokens):
    after = _repeats(tokens).roll(1, dims=2)
    scores = torch.zeros(weights.shape[1])
    for head in range(len(scores)):
        scores[head] = (weights[:, head] * after).sum() / after.any(dim=2).sum()
    return scores


NO_GRADIENT = "what comes out has no gradient, or none that is asked for: the check says why"
FACTOR = "a factor that is the same for all goes in the division"
ADDED_UP = "queries and keys are all added up in the end"
AS_MANY = "as many tokens come again later as stood before"

# What the checks cannot tell from a right answer, because it is one.
EQUIVALENT = {
    "perturb_attention: whose result is cut off from the gradient: return (weights + step * "
    "change).detach()": NO_GRADIENT,
    "perturb_attention: whose result is cut off from the gradient: return "
    "weights.detach()": NO_GRADIENT,
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
    "induction_score: with another axis in one place: looked = (weights[..., 1:] * "
    "same.unsqueeze(1)).sum(dim=-2)": ADDED_UP,
    "induction_score: with one whole number off by one: looked = (weights[..., 1:] * "
    "same.unsqueeze(1)).sum(dim=-2)": ADDED_UP,
    "induction_score: with the two items of a pair exchanged: return looked.sum(dim=(2, 0)) / "
    "same.any(dim=-1).sum()": "the order of the axes is the same sum",
    "induction_score: with another axis in one place: return looked.sum(dim=(0, 2)) / "
    "same.any(dim=-2).sum()": AS_MANY,
    "induction_score: with one minus sign left out: return looked.sum(dim=(0, 2)) / "
    "same.any(dim=1).sum()": AS_MANY,
    "induction_score: with one whole number off by one: return looked.sum(dim=(0, 2)) / "
    "same.any(dim=-2).sum()": AS_MANY,
}
