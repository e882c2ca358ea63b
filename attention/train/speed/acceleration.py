"""Where training spends its time, done faster: products, and on a CPU dropout and the loss."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.multi_head_attention import MultiHeadAttention, Sublayers, attend
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.sequence_to_sequence import shift_right
from attention.training import ModelAndLoss
from attention.transformer import Transformer, masks_from_tokens

ROWS = 128  # of the logits at a time: they stay in the processor's cache


class ByteDropout(nn.Module):
    """Dropout that spends one random byte on each number, so p is a multiple of 1 / 256.

    p  probability that a number is dropped in training, rounded to such a multiple

    Raises ValueError for a p that is not from 0 on and below 1.
    """

    def __init__(self, p: float):
        super().__init__()
        demand.share(p=p)
        self.threshold = min(255, round(256 * p))  # not all of it, however near 1 p is
        # The compiler cannot draw in place. A decorator would load it, 3 s, in every command.
        self.drop = torch.compiler.disable(drop)

    def forward(self, x: Tensor) -> Tensor:
        """Drop entries of x (...) and scale the others up; out of training, return x."""
        if not self.training or not self.threshold:
            return x
        return self.drop(x, self.threshold, Dropped)


def drop(x: Tensor, threshold: int, function: type[torch.autograd.Function]) -> Any:
    """Apply Dropped or DroppedReLU to x (...), with random bytes; those below threshold drop."""
    n = x.numel()
    noise = torch.empty(n // 8 + 1, dtype=torch.int64).random_(-(2**63), None)
    kept = noise.view(torch.uint8)[:n].view(x.shape)
    # In place, so that they stay numbers: PyTorch is many times as slow with bool.
    return function.apply(x, kept.ge_(threshold), 256 / (256 - threshold))


class Dropped(torch.autograd.Function):
    """Dropout that remembers one byte for each number: apply(x (...), kept (...) uint8, scale)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kept: Tensor, scale: float) -> Tensor:
        """Return x times the scale where it is kept, 0 elsewhere, (...)."""
        ctx.save_for_backward(kept)
        ctx.scale = scale
        return kept.to(x.dtype).mul_(x).mul_(scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Treat the gradient likewise."""
        (kept,) = ctx.saved_tensors
        return kept.to(grad.dtype).mul_(grad).mul_(ctx.scale), None, None


class ByteDropoutOfReLU(ByteDropout):
    """ReLU and ByteDropout in one, which remembers nothing but what it returns."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the positive entries of x (...), in training those of them that are kept."""
        if not self.training or not self.threshold:
            return torch.relu(x)
        return self.drop(x, self.threshold, DroppedReLU)


class DroppedReLU(torch.autograd.Function):
    """ReLU, then dropout: apply(x (...), kept (...) uint8, scale).

    The next layer remembers the result anyway, and only where that is positive does a gradient
    pass, so there is nothing else to remember.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, kept: Tensor, scale: float) -> Tensor:
        """Return x times the scale where it is kept and positive, 0 elsewhere, (...)."""
        y = kept.to(x.dtype).mul_(x).mul_(scale).relu_()
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Let the gradient pass where the number passed, as ReLU does."""
        (y,) = ctx.saved_tensors
        passed: Tensor = torch.ops.aten.threshold_backward(grad, y, 0)
        return passed.mul_(ctx.scale), None, None


class PackedAttention(MultiHeadAttention):
    """Multi-head attention that makes queries, keys and values of one sequence in one product."""

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        head_mask: Tensor | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Do what MultiHeadAttention does; whatever is unusual is left to it."""
        usual = key is value and head_mask is None and not return_weights and self.fused
        if not usual:
            return super().forward(query, key, value, mask, head_mask, return_weights)
        if query is key:
            q, k, v = self._project(query, self.W_q, self.W_k, self.W_v)
        else:
            (q,), (k, v) = self._project(query, self.W_q), self._project(key, self.W_k, self.W_v)
        if mask is not None and mask.dim() == 3:  # PyTorch's fast kernel takes 2 or 4 axes
            mask = mask.unsqueeze(1)  # (B, 1, T_q, T_k)
        dropout = self.dropout if self.training else 0.0
        with torch.autocast(q.device.type, enabled=False):
            if q.dtype == torch.bfloat16 and q.device.type == "cpu":
                context = attend_in_float32(q, k, v, mask, dropout)
            else:
                context, _ = attend(q, k, v, mask, dropout, fused=True)  # (B, H, T_q, d_head)
        return self.W_o(context.transpose(1, 2).flatten(2))

    def _project(self, x: Tensor, *layers: nn.Linear) -> tuple[Tensor, ...]:
        """Apply several linear layers to x (B, T, d_model); returns a (B, H, T, d_head) each."""
        weights, biases = [one.weight for one in layers], [one.bias for one in layers]
        y = F.linear(x, joined(weights), joined(biases))
        y = y.unflatten(-1, (len(layers), self.n_heads, self.d_head))  # (B, T, n, H, d_head)
        return y.permute(2, 0, 3, 1, 4).unbind()


def joined(parts: Sequence[Tensor]) -> Tensor:
    """The tensors one below the other, without a copy if there is one."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def attend_in_float32(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
) -> Tensor:
    """Attend to tensors in bfloat16 as if they were in float32: (B, H, T_q, d_head), in float32.

    For sentences, PyTorch's kernel for CPUs goes back many times as slowly in bfloat16.
    """

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        context: Tensor = attend(q, k, v, mask, dropout, fused=True)[0]
        return context

    return in_float32(attention, q, k, v)


def in_float32(attention: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return attention(q, k, v) of tensors in bfloat16, (B, H, T, d_head) each, all in float32.

    What is remembered of q, k and v stays in bfloat16: that loses nothing.
    """
    q32, k32, v32 = q.float(), k.float(), v.float()
    if torch.compiler.is_compiling():  # which knows no hooks
        return attention(q32, k32, v32)
    short = {q32.data_ptr(): q, k32.data_ptr(): k, v32.data_ptr(): v}

    def remember(x: Tensor) -> Tensor:
        return short.get(x.data_ptr(), x)

    def recall(x: Tensor) -> Tensor:
        return x.float() if x.dtype == torch.bfloat16 else x

    with torch.autograd.graph.saved_tensors_hooks(remember, recall):
        return attention(q32, k32, v32)


def prepare(model: Transformer, device: torch.device) -> Transformer:
    """Move a Transformer to a device, and make it train fast there; returns it.

    Weights of the attention are not dropped: PyTorch's kernel for CPUs has no dropout, and the
    dropout behind it suffices. On a CPU, the other dropouts draw bytes.
    """
    for attention in model.modules():
        if isinstance(attention, MultiHeadAttention):
            attention.__class__ = PackedAttention  # the same parameters under the same names
            attention.dropout = 0.0
    if device.type == "cpu":
        for module in list(model.modules()):
            if isinstance(module, Sublayers):
                parts: Any = module.feed_forward
                parts.relu, parts.dropout = nn.Identity(), ByteDropoutOfReLU(parts.dropout.p)
            for name, child in module.named_children():
                if isinstance(child, nn.Dropout):
                    setattr(module, name, ByteDropout(child.p))
    return model.to(device)


class FastLoss(ModelAndLoss):
    """Lesson 11's loss, called as a module, so that what wraps it sees all of the work.

    model      a Transformer
    smoothing  share of the probability that the targets spread over the vocabulary
    dtype      None, or the type of the matrix products, such as torch.bfloat16
    by_rows    work out the loss a few rows at a time; None: on a CPU, where it is faster
    """

    model: Transformer

    def __init__(
        self,
        model: Transformer,
        smoothing: float,
        dtype: torch.dtype | None = None,
        by_rows: bool | None = None,
    ):
        super().__init__(model, smoothing, dtype)
        self.by_rows = by_rows

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss per real token, (): source (B, T_k), target (B, T_q), ids."""
        by_rows = self.by_rows if self.by_rows is not None else source.device.type == "cpu"
        return self._loss_by_rows(source, target) if by_rows else self.loss(source, target)

    def _loss_by_rows(self, source: Tensor, target: Tensor) -> Tensor:
        """The same loss, but only the real tokens' logits are made, and never all at once."""
        read = shift_right(target)
        with torch.autocast(source.device.type, self.dtype, enabled=self.dtype is not None):
            source_mask, target_mask = masks_from_tokens(source, read)
            memory = self.model.encode(source, source_mask)
            y = self.model.embed(read, self.model.target_embedding)
            y = self.model.decoder(y, memory, target_mask, source_mask)  # (B, T_q, d_model)
        real, table = target != PAD, self.model.generator.weight
        rows = y[real].to(table.dtype)  # (n, d_model)
        return LinearCrossEntropy.apply(rows, table, target[real], self.smoothing, self.dtype)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to a total (n, m) in place: left (n, k), right (k, m), of any float type.

    What is of another type is made a few rows at a time: the processor's cache holds them until
    they are added.
    """
    if left.dtype == total.dtype:
        total.addmm_(left, right)
        return
    for some, of in zip(total.split(32 * ROWS), left.split(32 * ROWS), strict=True):
        some += of @ right


class LinearCrossEntropy(torch.autograd.Function):
    """Mean label-smoothed cross-entropy of x @ table.T, without ever storing all the logits.

    Called as apply(x (n, d_model), table (vocab_size, d_model), target (n,), smoothing, dtype).
    Both gradients are worked out on the way, a few rows at a time. dtype is that of the matrix
    products, None for that of x.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        table: Tensor,
        target: Tensor,
        smoothing: float,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        """Return the loss, (): 0 if n is 0."""
        n, vocab_size = len(x), len(table)
        left, right = x.to(dtype or x.dtype), table.to(dtype or x.dtype)
        grad_x, grad_table = torch.empty_like(x), torch.zeros_like(table)
        total = x.new_zeros(())
        for start in range(0, n, ROWS):
            rows = slice(start, start + ROWS)
            chosen = target[rows, None]  # (ROWS, 1)
            logits = (left[rows] @ right.T).to(x.dtype)  # (ROWS, vocab_size)
            logits -= logits.amax(dim=1, keepdim=True)
            total -= (1 - smoothing) * logits.gather(1, chosen).sum()
            total -= smoothing / vocab_size * logits.sum()
            sums = logits.exp_().sum(dim=1, keepdim=True)  # (ROWS, 1)
            total += sums.log().sum()
            # The gradient of the logits is what the model expects minus what is wanted.
            logits /= sums
            logits -= smoothing / vocab_size
            logits.scatter_add_(1, chosen, logits.new_full(chosen.shape, smoothing - 1))
            logits = logits.to(right.dtype)
            grad_x[rows] = logits @ right
            # In bfloat16, too, the sum is in float32, else it would forget small gradients.
            add_product(grad_table, logits.T, left[rows])
        ctx.save_for_backward(grad_x.div_(n or 1), grad_table.div_(n or 1))
        return total / (n or 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that `forward` worked out, in place: once, else PyTorch complains."""
        grad_x, grad_table = ctx.saved_tensors
        return grad_x.mul_(grad), grad_table.mul_(grad), None, None, None
