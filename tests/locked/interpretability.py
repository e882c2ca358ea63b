"""Answers to lesson 17 that were written without a look at its checks."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.multi_head_attention import MultiHeadAttention
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.provided.models.attention_weights import watch_attention
from attention.sequence_to_sequence import shift_right
from attention.transformer import Encoder, Transformer, Translator, masks_from_tokens
from tests.locked import right, wrong

TOLERANCE = 1e-5


class _Explained(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model if isinstance(model, nn.Module) else Transformer(**model)

    def log_p(self, source, target, source_mask=None):
        real, target_mask = masks_from_tokens(source, shift_right(target))
        seen = real if source_mask is None else source_mask
        logits = Translator.forward(self.model, source, target, seen, target_mask)
        return logits.log_softmax(dim=-1).gather(2, target.unsqueeze(2)).squeeze(2)

    def gates(self, B):
        return {
            name: part.W_o.weight.new_ones(B, part.n_heads).requires_grad_()
            for name, part in self.model.named_modules()
            if isinstance(part, MultiHeadAttention)
        }


# --- LeaveOneOut -----------------------------------------------------------------------------


@wrong("LeaveOneOut", cause="hides the token in the first sentence of the batch only")
class LeaveOneOut_10(_Explained):
    @torch.no_grad()
    def forward(self, source, target):
        mask, _ = masks_from_tokens(source, shift_right(target))
        full = self.log_p(source, target)
        columns = []
        for j in range(source.shape[1]):
            less = mask.clone()
            less[0, 0, j] = False
            columns.append(full - self.log_p(source, target, less))
        return torch.stack(columns, dim=-1)


@right("LeaveOneOut", how="writes PAD into a copy of the source, which hides it as well")
class LeaveOneOut_11(_Explained):
    @torch.no_grad()
    def forward(self, source, target):
        full = self.log_p(source, target)
        columns = []
        for j in range(source.shape[1]):
            gone = source.clone()
            gone[:, j] = PAD
            columns.append(full - self.log_p(gone, target))
        return torch.stack(columns, dim=-1)


@right("LeaveOneOut", how="all copies in one large batch")
class LeaveOneOut_12(_Explained):
    @torch.no_grad()
    def forward(self, source, target):
        B, T_k = source.shape
        keep = ~torch.eye(T_k, dtype=torch.bool, device=source.device)  # (T_k, T_k)
        masks = (source != PAD).unsqueeze(1) & keep  # (B, T_k, T_k)
        many = self.log_p(
            source.repeat_interleave(T_k, dim=0),
            target.repeat_interleave(T_k, dim=0),
            masks.reshape(B * T_k, 1, T_k),
        )
        full = self.log_p(source, target)[:, None]
        return (full - many.unflatten(0, (B, T_k))).mT


@right("LeaveOneOut", how="fills a tensor of zeros, and skips what is padding in all sentences")
class LeaveOneOut_13(_Explained):
    @torch.no_grad()
    def forward(self, source, target):
        full = self.log_p(source, target)
        places = torch.arange(source.shape[1], device=source.device)
        lost = full.new_zeros(*full.shape, source.shape[1])
        for j in range(source.shape[1]):
            if (source[:, j] != PAD).any():
                seen = (source != PAD) & (places != j)
                lost[..., j] = full - self.log_p(source, target, seen.unsqueeze(1))
        return lost


# --- perturb_attention -----------------------------------------------------------------------


def _null_space(values, tolerance=TOLERANCE):
    both = torch.cat([values, torch.ones_like(values[:, :1])], dim=1)  # (T, d + 1)
    columns, strength, _ = torch.linalg.svd(both, full_matrices=True)  # (T, T), largest first
    rank = int((strength > tolerance * strength[0]).sum())
    return columns[:, rank:]


@wrong("perturb_attention", cause="weights that grow limit the step as well")
def perturb_attention_3(weights, values, direction):
    basis = _null_space(values)
    if basis.shape[1] == 0:
        return weights
    change = basis @ (basis.T @ direction)
    step = (weights / change.abs()).min()
    return weights + step * change


@wrong("perturb_attention", cause="the steepest change limits the step, not the first zero")
def perturb_attention_8(weights, values, direction):
    basis = _null_space(values)
    if basis.shape[1] == 0:
        return weights
    change = basis @ (basis.T @ direction)
    steepest = change.argmin()
    return weights - weights[steepest] / change[steepest] * change


@wrong("perturb_attention", cause="projects on the first vector of the basis only")
def perturb_attention_10(weights, values, direction):
    basis = _null_space(values)
    if basis.shape[1] == 0:
        return weights
    change = basis[:, 0] * (basis[:, 0] @ direction)
    down = change < 0
    if not down.any():
        return weights
    return weights + (weights[down] / -change[down]).min() * change


@wrong(
    "perturb_attention", cause="the smallest weight that shrinks limits the step, however slowly"
)
def perturb_attention_11(weights, values, direction):
    basis = _null_space(values)
    if basis.shape[1] == 0:
        return weights
    change = basis @ (basis.T @ direction)
    smallest = weights.masked_fill(change >= 0, math.inf).argmin()
    return weights - weights[smallest] / change[smallest] * change


@right("perturb_attention", how="a loop over the weights looks for the first zero")
def perturb_attention_12(weights, values, direction):
    basis = _null_space(values)
    change = torch.zeros_like(weights)
    for column in basis.unbind(dim=1):
        change = change + column * (column * direction).sum()
    step = None
    for w, c in zip(weights, change, strict=True):
        if c < 0 and (step is None or w / -c < step):
            step = w / -c
    return weights.clone() if step is None else weights + step * change


@right("perturb_attention", how="the projection matrix, the change brought to length 1")
def perturb_attention_13(weights, values, direction):
    basis = _null_space(values)
    if not basis.numel():
        return weights
    change = F.normalize((basis @ basis.mT) @ direction, dim=0)
    falls = change < 0
    if not falls.any():
        return weights
    steps = weights / torch.where(falls, change.abs(), torch.ones_like(change))
    first, _ = steps.masked_fill(~falls, math.inf).sort()
    return torch.add(weights, change * first[0])


# --- HiddenTokenAttribution ------------------------------------------------------------------


class _Attribution(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder if isinstance(encoder, nn.Module) else Encoder(**encoder)


@wrong(
    "HiddenTokenAttribution",
    cause="backward() adds to x.grad: each feature's gradient has all the earlier ones in it",
)
class HiddenTokenAttribution_6(_Attribution):
    def forward(self, x):
        x = x.detach().clone().requires_grad_()
        hidden = self.encoder(x)
        rows = []
        for i in range(x.shape[1]):
            squares = 0
            x.grad = None
            for f in range(hidden.shape[2]):
                hidden[:, i, f].sum().backward(retain_graph=True, inputs=[x])
                squares = squares + x.grad.square().sum(dim=-1)
            rows.append(squares.sqrt())
        sizes = torch.stack(rows, dim=1)
        return sizes / sizes.sum(dim=-1, keepdim=True)


@wrong("HiddenTokenAttribution", cause="asks the given x itself for a gradient", kind="state")
class HiddenTokenAttribution_9(_Attribution):
    def forward(self, x):
        x.requires_grad_()
        hidden = self.encoder(x)
        rows = []
        for i in range(x.shape[1]):
            squares = 0
            for feature in hidden[:, i].sum(dim=0):
                (slope,) = torch.autograd.grad(feature, x, retain_graph=True)
                squares = squares + slope.square().sum(dim=-1)
            rows.append(squares.sqrt())
        sizes = torch.stack(rows, dim=1)
        return sizes / sizes.sum(dim=-1, keepdim=True)


@wrong("HiddenTokenAttribution", cause="the result is float32, whatever x is", kind="dtype")
class HiddenTokenAttribution_10(_Attribution):
    def forward(self, x):
        x = x.detach().requires_grad_()
        B, T, d_model = x.shape
        hidden = self.encoder(x)
        squares = torch.zeros(B, T, T)
        for i in range(T):
            for f in range(d_model):
                (slope,) = torch.autograd.grad(hidden[:, i, f].sum(), x, retain_graph=True)
                squares[:, i] += slope.square().sum(dim=-1)
        sizes = squares.sqrt()
        return sizes / sizes.sum(dim=-1, keepdim=True)


@right("HiddenTokenAttribution", how="PyTorch's Jacobian of one sentence after another")
class HiddenTokenAttribution_12(_Attribution):
    def forward(self, x):
        shares = []
        for sentence in x.detach():
            slopes = torch.autograd.functional.jacobian(
                lambda row: self.encoder(row[None])[0], sentence
            )  # (T, d_model, T, d_model)
            sizes = torch.linalg.vector_norm(slopes, dim=(1, 3))
            shares.append(sizes / sizes.sum(dim=1, keepdim=True))
        return torch.stack(shares)


@right(
    "HiddenTokenAttribution", how="means of squares, which cancel; features outside, tokens inside"
)
class HiddenTokenAttribution_13(_Attribution):
    def forward(self, x):
        start = x.detach().clone().requires_grad_(True)
        hidden = self.encoder(start)
        T, d_model = hidden.shape[1:]
        squares = [[] for _ in range(T)]
        for f in range(d_model):
            for i in range(T):
                (slope,) = torch.autograd.grad(hidden[:, i, f].sum(), start, retain_graph=True)
                squares[i].append(slope.pow(2).mean(dim=2))
        sizes = torch.stack([torch.stack(row).mean(dim=0) for row in squares], dim=1) ** 0.5
        return F.normalize(sizes, p=1, dim=2)


# --- HeadImportance --------------------------------------------------------------------------


@right("HeadImportance", how="each sentence on its own, with gates of its own")
class HeadImportance_12(_Explained):
    def forward(self, source, target):
        sizes = {}
        for s, t in zip(source.split(1), target.split(1), strict=True):
            gates = self.gates(1)
            with watch_attention(self.model, head_masks=gates):
                log_p = self.log_p(s, t)[0]
            loss = -sum(log_p[n] for n in range(len(log_p)) if t[0, n] != PAD)
            slopes = torch.autograd.grad(loss, tuple(gates.values()))
            for name, slope in zip(gates, slopes, strict=True):
                sizes[name] = sizes.get(name, 0) + slope[0].abs()
        return {name: size / len(source) for name, size in sizes.items()}


@right("HeadImportance", how="one attention after another; a sum of log p, as signs do not matter")
class HeadImportance_13(_Explained):
    def forward(self, source, target):
        gates = self.gates(source.shape[0])
        with watch_attention(self.model, gates):
            log_p = self.log_p(source, target).masked_fill(target == PAD, 0.0).sum(dim=1)
            sizes = {}
            for name in gates:
                (slope,) = torch.autograd.grad(log_p.sum(), gates[name], retain_graph=True)
                sizes[name] = torch.linalg.vector_norm(slope, ord=1, dim=0) / len(slope)
        return sizes


@wrong("HeadImportance", cause="the loss of a sentence is the mean over its tokens, not the sum")
class HeadImportance_14(_Explained):
    def forward(self, source, target):
        gates = self.gates(len(source))
        with watch_attention(self.model, gates):
            log_p = self.log_p(source, target)
        real = target != PAD
        loss = -((log_p * real).sum(dim=1) / real.sum(dim=1)).sum()
        slopes = torch.autograd.grad(loss, list(gates.values()))
        return {name: slope.abs().mean(0) for name, slope in zip(gates, slopes, strict=True)}


@wrong("HeadImportance", cause="the root of the mean square over sentences, not the mean size")
class HeadImportance_15(_Explained):
    def forward(self, source, target):
        gates = self.gates(len(source))
        with watch_attention(self.model, gates):
            log_p = self.log_p(source, target)
        slopes = torch.autograd.grad(-log_p[target != PAD].sum(), list(gates.values()))
        return {
            name: slope.pow(2).mean(dim=0).sqrt() for name, slope in zip(gates, slopes, strict=True)
        }


@wrong("HeadImportance", cause="the mean of signed derivatives, and its size afterwards")
class HeadImportance_16(_Explained):
    def forward(self, source, target):
        gates = self.gates(len(source))
        with watch_attention(self.model, gates):
            loss = -self.log_p(source, target)[target != PAD].sum()
        slopes = torch.autograd.grad(loss, list(gates.values()))
        return {name: slope.mean(dim=0).abs() for name, slope in zip(gates, slopes, strict=True)}


@right("HeadImportance", how="calls backward and reads what lies at the gates")
class HeadImportance_17(_Explained):
    def forward(self, source, target):
        gates = self.gates(len(source))
        with watch_attention(self.model, gates):
            losses = -self.log_p(source, target)
            losses[target == PAD] = 0
            losses.sum().backward()
        importance = {}
        for name in gates:
            importance[name] = gates[name].grad.abs().mean(dim=0)
        return importance


@right("HeadImportance", how="a list of losses, one a sentence, and sizes added up in loops")
class HeadImportance_18(_Explained):
    def forward(self, source, target):
        gates = self.gates(len(source))
        with watch_attention(self.model, gates):
            log_p = self.log_p(source, target)
        losses = [-row[ids.ne(PAD)].sum() for row, ids in zip(log_p, target, strict=True)]
        slopes = torch.autograd.grad(losses, tuple(gates.values()))
        result = {}
        for name, slope in zip(gates, slopes, strict=True):
            total = torch.zeros_like(slope[0])
            for of_sentence in slope:
                total += torch.where(of_sentence < 0, -of_sentence, of_sentence)
            result[name] = total / len(slope)
        return result


# --- ActivationPatching ----------------------------------------------------------------------


@wrong("ActivationPatching", cause="returns the probability of the true token alone", kind="shape")
class ActivationPatching_9(_Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read = shift_right(target)
        mask, target_mask = masks_from_tokens(source, read)
        other_mask, _ = masks_from_tokens(other, read)
        memory = self.model.encode(source, mask)
        memory = torch.where(places[..., None], self.model.encode(other, other_mask), memory)
        p = self.model.decode(read, memory, target_mask, mask).softmax(dim=-1)
        return p.gather(2, target.unsqueeze(2)).squeeze(2)


@wrong("ActivationPatching", cause="a sentence with one place gets all vectors of the other")
class ActivationPatching_11(_Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read = shift_right(target)
        mask, target_mask = masks_from_tokens(source, read)
        other_mask, _ = masks_from_tokens(other, read)
        memory = self.model.encode(source, mask)
        patched = places.any(dim=1)
        memory[patched] = self.model.encode(other, other_mask)[patched]
        return self.model.decode(read, memory, target_mask, mask).softmax(dim=-1)


@wrong("ActivationPatching", cause="every sentence is patched at the places of the first")
class ActivationPatching_12(_Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read = shift_right(target)
        mask, target_mask = masks_from_tokens(source, read)
        other_mask, _ = masks_from_tokens(other, read)
        memory = self.model.encode(source, mask)
        memory[:, places[0]] = self.model.encode(other, other_mask)[:, places[0]]
        return self.model.decode(read, memory, target_mask, mask).softmax(dim=-1)


@wrong("ActivationPatching", cause="places of (B, T_k) meet a memory of (B, T_k, d)", kind="crash")
class ActivationPatching_13(_Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read = shift_right(target)
        mask, target_mask = masks_from_tokens(source, read)
        other_mask, _ = masks_from_tokens(other, read)
        mine, theirs = self.model.encode(source, mask), self.model.encode(other, other_mask)
        memory = torch.where(places, theirs, mine)
        return self.model.decode(read, memory, target_mask, mask).softmax(dim=-1)


@right("ActivationPatching", how="assigns to the memory where the places are")
class ActivationPatching_14(_Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read = shift_right(target)
        mask, target_mask = masks_from_tokens(source, read)
        other_mask = masks_from_tokens(other, read)[0]
        memory = self.model.encode(source, mask).clone()
        memory[places] = self.model.encode(other, other_mask)[places]
        return F.softmax(self.model.decode(read, memory, target_mask, mask), dim=-1)


@right("ActivationPatching", how="encodes both sentences in one batch of 2 B")
class ActivationPatching_15(_Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read = shift_right(target)
        _, target_mask = masks_from_tokens(source, read)
        both = torch.cat([source, other])
        seen = (both != PAD).unsqueeze(1)
        mine, theirs = self.model.encode(both, seen).chunk(2)
        p = places.unsqueeze(2).to(mine.dtype)
        memory = p * theirs + (1 - p) * mine
        return self.model.decode(read, memory, target_mask, seen[: len(source)]).softmax(dim=-1)


@right("ActivationPatching", how="one pair of sentences after the other")
class ActivationPatching_16(_Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read, results = shift_right(target), []
        for b in range(len(source)):
            one, two = source[b : b + 1], other[b : b + 1]
            mask, target_mask = masks_from_tokens(one, read[b : b + 1])
            memory = self.model.encode(one, mask)
            theirs = self.model.encode(two, masks_from_tokens(two, two)[0])
            chosen = places[b].nonzero().flatten()
            memory = memory.index_copy(1, chosen, theirs[:, chosen])
            scores = self.model.decode(read[b : b + 1], memory, target_mask, mask)
            results.append(scores.softmax(dim=-1))
        return torch.cat(results)


@right("ActivationPatching", how="the mask of the target from the target that is not shifted")
class ActivationPatching_17(_Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        source_mask, target_mask = masks_from_tokens(source, target)
        other_mask, _ = masks_from_tokens(other, target)
        memory = self.model.encode(source, source_mask)
        memory = torch.where(places[..., None], self.model.encode(other, other_mask), memory)
        scores = self.model.decode(shift_right(target), memory, target_mask, source_mask)
        return scores.log_softmax(dim=-1).exp()


@right("ActivationPatching", how="adds the difference of the two memories")
class ActivationPatching_18(_Explained):
    @torch.no_grad()
    def forward(self, source, target, other, places):
        demand.masks(places=places)
        read = shift_right(target)
        mask, target_mask = masks_from_tokens(source, read)
        other_mask, _ = masks_from_tokens(other, read)
        memory = self.model.encode(source, mask)
        change = self.model.encode(other, other_mask) - memory
        memory = memory + change.masked_fill(~places[..., None], 0)
        exps = self.model.decode(read, memory, target_mask, mask)
        exps = (exps - exps.amax(dim=-1, keepdim=True)).exp()
        return exps / exps.sum(dim=-1, keepdim=True)


# --- induction_score -------------------------------------------------------------------------


@wrong("induction_score", cause="a mean for each sentence, then the mean of these")
def induction_score_1(weights, tokens):
    scores = []
    for of_heads, ids in zip(weights, tokens, strict=True):
        before = (ids[:, None] == ids).tril(-1)  # (T, T)
        sums = (of_heads[:, :, 1:] * before[:, :-1]).sum(dim=2)  # (H, T)
        seen = before.any(dim=1)
        if seen.any():
            scores.append(sums[:, seen].mean(dim=1))
    return torch.stack(scores).mean(dim=0)


@wrong("induction_score", cause="only the last of the earlier occurrences counts")
def induction_score_2(weights, tokens):
    found = []
    for b, row in enumerate(tokens.tolist()):
        for i, token in enumerate(row):
            for j in range(i - 1, -1, -1):
                if row[j] == token:
                    found.append(weights[b, :, i, j + 1])
                    break
    return torch.stack(found).mean(dim=0)


@wrong("induction_score", cause="the mean over pairs of query and occurrence, not over queries")
def induction_score_3(weights, tokens):
    before = (tokens[:, :, None] == tokens[:, None, :]).tril(-1)  # (B, T, T)
    before = before[:, :, :-1].unsqueeze(1)  # (B, 1, T, T - 1)
    return (weights[..., 1:] * before).sum(dim=(0, 2, 3)) / before.sum()


@right("induction_score", how="query by query, key by key, in loops")
def induction_score_4(weights, tokens):
    B, H, T, _ = weights.shape
    total, count = weights.new_zeros(H), 0
    for b in range(B):
        for i in range(T):
            repeats = False
            for j in range(i):
                if tokens[b, j] == tokens[b, i]:
                    repeats = True
                    total = total + weights[b, :, i, j + 1]
            count += repeats
    return total / count


@right("induction_score", how="moves the occurrences one key on, and picks the queries that count")
def induction_score_5(weights, tokens):
    T = tokens.shape[1]
    place = torch.arange(T, device=tokens.device)
    equal = tokens.unsqueeze(2).eq(tokens.unsqueeze(1)) & (place < place[:, None])
    after = F.pad(equal, (1, 0))[:, :, :T]
    on_them = torch.einsum("bhij,bij->bih", weights, after.to(weights.dtype))
    return on_them[equal.any(dim=2)].mean(dim=0)
