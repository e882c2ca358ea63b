"""A look at the attention weights inside a model while it runs, and gates for its heads."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

PARTS = ("W_q", "W_k", "W_v", "W_o", "n_heads", "d_head")  # by which an attention is recognised


def attentions(model: nn.Module) -> dict[str, Any]:
    """The attentions of a model, by name."""
    return {
        name: module
        for name, module in model.named_modules()
        if all(hasattr(module, part) for part in PARTS)
    }


@contextmanager
def watch_attention(
    model: nn.Module, head_masks: Mapping[str, Tensor] | None = None
) -> Iterator[dict[str, Tensor]]:
    """Collect the weights of every attention in a model while it runs, and gate heads.

    model       any module with layers like lesson 07's MultiHeadAttention in it
    head_masks  None, or {name of an attention: gates (H,) or (B, H)} to multiply its heads with
    yields      a dict {name of an attention: weights (B, H, T_q, T_k)}, filled by the last call

    >>> import torch
    >>> from attention.multi_head_attention import MultiHeadAttention
    >>> model, x = nn.ModuleDict({"attention": MultiHeadAttention(12, 3)}), torch.zeros(2, 5, 12)
    >>> with watch_attention(model) as weights:
    ...     output = model["attention"](x, x, x)
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

    found = attentions(model)
    if unknown := gates_of.keys() - found.keys():
        raise ValueError(f"no attention is called {', '.join(unknown)}; there are {[*found]}")
    for name, attention in found.items():
        watch(name, attention)
    try:
        yield collected
    finally:
        for hook in hooks:
            hook.remove()


class Look(NamedTuple):
    """What one attention did: weights (B, H, T_q, T_k), and the values (B, H, T_k, d_head)."""

    weights: Tensor
    values: Tensor


def look_at(model: nn.Module, *inputs: Tensor) -> dict[str, Look]:
    """Run a model once, and return what every attention in it did, by name."""
    values: dict[str, Tensor] = {}
    hooks = []

    def keep(name: str, part: Any) -> Callable[..., None]:
        def hook(_: object, args: Any, result: object) -> None:
            split = part.W_v(args[2]).unflatten(-1, (part.n_heads, part.d_head))
            values[name] = split.transpose(1, 2)

        return hook

    for name, part in attentions(model).items():
        hooks.append(part.register_forward_hook(keep(name, part)))
    try:
        with watch_attention(model) as weights, torch.no_grad():
            model(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return {name: Look(weights[name], values[name]) for name in weights}
