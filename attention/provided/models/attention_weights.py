"""A look at the attention weights inside a model while it runs, and gates for its heads."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

PARTS = ("W_q", "W_k", "W_v", "W_o", "n_heads", "d_head")  # by which an attention is recognised


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

    attentions = {
        name: module
        for name, module in model.named_modules()
        if all(hasattr(module, part) for part in PARTS)
    }
    if unknown := gates_of.keys() - attentions.keys():
        raise ValueError(f"no attention is called {', '.join(unknown)}; there are {[*attentions]}")
    for name, attention in attentions.items():
        watch(name, attention)
    try:
        yield collected
    finally:
        for hook in hooks:
            hook.remove()
