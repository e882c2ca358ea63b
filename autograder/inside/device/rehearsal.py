"""A device for rehearsals: it behaves like a GPU where there is none.

Its tensors say that they live on another device, hold real numbers on the CPU and compute with
them, and refuse what CUDA refuses: to meet a tensor of the CPU in one operation. As on CUDA, a
tensor of the CPU without axes, or one that serves as an index, may take part. The device borrows
the name "meta", which every PyTorch knows, so nothing of PyTorch is changed for good.
"""

import contextlib
import copy
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from autograder.inside.device.rehearsed_torch import in_its_type, replaced
from autograder.inside.messages.values import within

DEVICE = torch.device("meta")
CPU = torch.device("cpu")
INDEXING = {
    torch.ops.aten.index,
    torch.ops.aten.index_put,
    torch.ops.aten.index_put_,
    torch.ops.aten._index_put_impl_,
}
INDEXED = {torch.Tensor.__getitem__, torch.Tensor.__setitem__}
MOVING = {torch.ops.aten._to_copy, torch.ops.aten.copy_, torch.ops.aten.copy}
OF_EVERY_MODULE = vars(torch.nn.Module()).keys()  # parameters, buffers, parts, hooks, settings


class DeviceMismatch(RuntimeError):
    """Tensors of two devices met in one operation, as CUDA would have said."""


class Unrehearsable(RuntimeError):
    """PyTorch went a way on which the rehearsal cannot follow: it proves nothing."""


class Rehearsed(torch.Tensor):
    """A tensor on the rehearsal device; ``held`` has its numbers."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor, requires_grad: bool = False) -> "Rehearsed":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
            requires_grad=requires_grad,
        )
        made.held = held
        return made

    def __init__(self, held: torch.Tensor, requires_grad: bool = False) -> None:
        pass

    def __repr__(self) -> str:  # type: ignore[override]
        return f"rehearsed({self.held!r})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})

    def tolist(self) -> Any:
        """As a CUDA tensor's: plain numbers."""
        return self.held.tolist()

    def untyped_storage(self) -> Any:
        """That of its numbers: it has an address and a size."""
        return self.held.untyped_storage()

    @property
    def data(self) -> torch.Tensor:
        """The same numbers, outside of the graph; what takes their place comes with its own."""
        return torch.Tensor.data.__get__(self)  # type: ignore[attr-defined]

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        torch.Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self.held = _held(value)

    def numpy(self, *_: object, **__: object) -> Any:
        """Refused, as for a CUDA tensor."""
        raise TypeError(
            "can't convert a tensor on a GPU to numpy: use .cpu() first (it leaves the graph, too)"
        )

    __array__ = numpy


class _Factories(TorchDispatchMode):
    """Tensors made with ``device=`` the rehearsal device are made there."""


def _dispatch(_: object, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return _run(func, args, kwargs or {})


# Set here, not in the class, where PyTorch would wrap it and import its compiler: for seconds.
_Factories.__torch_dispatch__ = _dispatch  # type: ignore[method-assign]


class _Literals(TorchFunctionMode):
    """What the dispatcher sees too late: ``torch.tensor(…, device=…)``, and autocast."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.new_tensor and isinstance(args[0], Rehearsed):
            return _new_tensor(*args, **kwargs)
        if func in INDEXED and isinstance(args[0], Rehearsed):
            args = (args[0], _indices(args[1]), *args[2:])
        makes = func in (torch.tensor, torch.as_tensor, torch.asarray)
        if makes and _is_here(kwargs.get("device")):
            del kwargs["device"]
            made = func(*args, **kwargs)
            return made if isinstance(made, Rehearsed) else rehearsed(made)
        return func(*in_its_type(func, args), **in_its_type(func, kwargs))


def _indices(index: Any) -> Any:
    """An index whose lists are tensors: PyTorch would make them on "meta", without numbers."""
    if isinstance(index, tuple):
        return tuple(map(_indices, index))
    return rehearsed(torch.tensor(index)) if isinstance(index, list) and index else index


def _new_tensor(
    like: Rehearsed,
    data: Any,
    dtype: torch.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """``like.new_tensor(data)``, which makes its tensor before the dispatcher sees it."""
    made = like.held.new_tensor(data, dtype=dtype, requires_grad=requires_grad)
    return rehearsed(made) if device is None or _is_here(device) else made


@contextlib.contextmanager
def rehearsal() -> Iterator[torch.device]:
    """Let tensors be made on the rehearsal device meanwhile."""
    with replaced(), _Literals(), _Factories():
        yield DEVICE


def rehearsed(value: Any) -> Any:
    """A copy of plain values, or of a module, on the rehearsal device; see ``moved``."""
    if isinstance(value, Rehearsed):
        return value
    if isinstance(value, torch.nn.Module):
        return moved(value, loose_tensors(value))
    if isinstance(value, torch.Tensor):
        leaf = value.requires_grad and value.is_leaf
        return Rehearsed(value.detach().clone(), requires_grad=leaf)
    return within(value, rehearsed)


def moved(module: torch.nn.Module, at_first: Iterable[torch.Tensor]) -> Any:
    """A copy of a module on the rehearsal device.

    What it keeps as a plain attribute stays behind, as on a GPU, if it is one of ``at_first``; what
    a call left there since would have been made on the GPU.
    """
    first = {id(x) for x in at_first}
    known: dict[int, Any] = {
        id(x): x.detach().clone() if id(x) in first else rehearsed(x.detach())
        for x in loose_tensors(module)
        if not isinstance(x, torch.nn.Parameter)
    }
    # What a copy would make only to be moved is made where it belongs; tied weights stay tied.
    known |= {id(x): rehearsed(x.detach()) for x in module.buffers()}
    known |= {id(x): _parameter(x) for x in module.parameters()}
    return copy.deepcopy(module, known)


def loose_tensors(module: Any) -> list[torch.Tensor]:
    """The tensors that a module keeps as plain attributes, which ``module.to`` does not move."""
    if not isinstance(module, torch.nn.Module):
        return []
    try:
        kept = [
            value
            for part in module.modules()
            for name, value in vars(part).items()
            if name not in OF_EVERY_MODULE
        ]
    except Exception:  # its constructor never called that of Module
        return []
    return [x for x in _pytree.tree_leaves(kept) if isinstance(x, torch.Tensor)]


def landed(value: Any) -> Any:
    """A copy of values in which tensors of the rehearsal device are those of the CPU."""
    if isinstance(value, Rehearsed):
        return value.held.detach()
    return within(value, landed)


def stayed(value: Any) -> bool:
    """Whether a tensor with axes, among these values, is not on the rehearsal device."""
    if type(value) in (list, tuple, dict):
        return any(map(stayed, value.values() if type(value) is dict else value))
    plain = type(value) in (torch.Tensor, torch.nn.Parameter)  # an object may lie about its class
    return plain and value.dim() > 0 and value.device != DEVICE


def _parameter(x: torch.nn.Parameter) -> torch.nn.Parameter:
    return torch.nn.Parameter(rehearsed(x.detach()), x.requires_grad)


def _is_here(device: Any) -> bool:
    return device is not None and torch.device(device).type == DEVICE.type


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation on the numbers that its tensors hold; its results are where they were."""
    tensors = list(_tensors((*args, *kwargs.values())))
    here = any(isinstance(x, Rehearsed) for x in tensors)
    wanted = kwargs.get("device")
    if wanted is not None:
        here = _is_here(wanted)
        kwargs = {**kwargs, "device": CPU} if here else kwargs
    if any(x.device == DEVICE and not isinstance(x, Rehearsed) for x in tensors):
        raise Unrehearsable("a tensor without numbers")
    if here and func.overloadpacket not in MOVING:
        _refuse_mixed(func, args, tensors)
    elif func.overloadpacket in (torch.ops.aten.copy_, torch.ops.aten.copy):
        here = isinstance(args[0], Rehearsed)
    return _results(tensors, func(*_held(args), **_held(kwargs)), here)


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among an operation's arguments: lists of them at most."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _held(value: Any) -> Any:
    return value.held if isinstance(value, Rehearsed) else within(value, _held)


def _results(tensors: list[torch.Tensor], result: Any, here: bool) -> Any:
    """Wrap what is new; what an in-place operation returns is the very tensor it was given."""
    given = {id(x.held): x for x in tensors if isinstance(x, Rehearsed)}

    def wrap(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return within(x, wrap)
        if id(x) in given:
            return given[id(x)]
        return Rehearsed(x) if here else x

    return wrap(result)


def _refuse_mixed(func: Any, args: tuple[Any, ...], tensors: list[torch.Tensor]) -> None:
    foreign = [x for x in tensors if not isinstance(x, Rehearsed) and x.dim() > 0]
    if func.overloadpacket in INDEXING and isinstance(args[0], Rehearsed):
        indices = {id(x) for x in _tensors(args[1:2])}
        foreign = [x for x in foreign if id(x) not in indices]
    if foreign:
        raise DeviceMismatch(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"the GPU and cpu! (in {func.overloadpacket.__name__}; the tensor on the cpu has "
            f"shape {tuple(foreign[0].shape)})"
        )
