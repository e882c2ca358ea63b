"""What the layers of lesson 09 are made of, and a look at the attention inside a model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from attention.multi_head_attention import MultiHeadAttention
from attention.provided import demand


class Sublayers(nn.Module):
    """The parts of an encoder or decoder layer, which decides in `forward` how to join them.

    d_model   length of the vectors that come in and go out
    n_heads   number of heads
    d_ff      number of hidden units of the feed-forward network
    dropout   probability of dropout on weights, hidden units and updates in training
    pre_norm  True: normalise what goes into a sublayer; False: normalise the sum behind it
    fused     use PyTorch's attention kernel
    cross     whether there is an attention to a second sequence

    attention, cross_attention and feed_forward are the sublayers; norm_1 to norm_3 belong to them
    in the order of use. An attention is only ever called as attention(query, key, value, mask):
    a module with the same call, such as one with a cache, can take its place.

    Raises ValueError for a size below 1, or for a dropout that is not from 0 to 1.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        pre_norm: bool = False,
        fused: bool = False,
        cross: bool = False,
    ):
        super().__init__()
        demand.counts(d_ff=d_ff)
        self.pre_norm = pre_norm
        self.attention = MultiHeadAttention(d_model, n_heads, dropout, fused)
        if cross:
            self.cross_attention = MultiHeadAttention(d_model, n_heads, dropout, fused)
            self.norm_3 = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential()
        self.feed_forward.linear_1 = nn.Linear(d_model, d_ff)
        self.feed_forward.relu = nn.ReLU()
        self.feed_forward.dropout = nn.Dropout(dropout)
        self.feed_forward.linear_2 = nn.Linear(d_ff, d_model)
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)


@contextmanager
def watch_attention(
    model: nn.Module, head_masks: Mapping[str, Tensor] | None = None
) -> Iterator[dict[str, Tensor]]:
    """Collect the weights of every attention in a model while it runs, and gate heads.

    model       any module with MultiHeadAttention layers in it
    head_masks  None, or {name of an attention: gates (H,) or (B, H)} to multiply its heads with
    yields      a dict {name of an attention: weights (B, H, T_q, T_k)}, filled by the last call

    >>> import torch
    >>> layer, x = Sublayers(d_model=12, n_heads=3, d_ff=48), torch.zeros(2, 5, 12)
    >>> with watch_attention(layer) as weights:
    ...     output = layer.attention(x, x, x)
    >>> weights["attention"].shape
    torch.Size([2, 3, 5, 5])
    """
    collected: dict[str, Tensor] = {}
    hooks, gates_of = [], head_masks or {}

    def watch(name: str, attention: nn.Module) -> None:
        def before(_: object, args: Any, kwargs: Any) -> tuple[Any, Any]:
            gates = {"head_mask": gates_of[name]} if name in gates_of else {}
            return args, kwargs | gates | {"return_weights": True}

        def after(_: object, args: Any, result: Any) -> Any:
            output, collected[name] = result
            return output

        hooks.append(attention.register_forward_pre_hook(before, with_kwargs=True))
        hooks.append(attention.register_forward_hook(after))

    attentions = {n: m for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    if unknown := gates_of.keys() - attentions.keys():
        raise ValueError(f"no attention is called {', '.join(unknown)}; there are {[*attentions]}")
    for name, attention in attentions.items():
        watch(name, attention)
    try:
        yield collected
    finally:
        for hook in hooks:
            hook.remove()
