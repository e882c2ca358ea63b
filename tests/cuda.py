"""The rehearsal device in the place of CUDA: the library goes the ways that it goes there.

The device says that it is CUDA, and PyTorch answers what the library asks it about one.
"""

import contextlib

import torch
from torch.optim import optimizer

from autograder.inside.device.rehearsal import DEVICE, Rehearsed, rehearsal

NAME = "a GPU that is rehearsed"


class Cuda(str):
    """The name of the rehearsal device, which PyTorch takes for one; its type is CUDA's."""

    type = "cuda"


def pin_memory(self):
    """A copy, for there is no memory to pin here; what is on the GPU is refused, as by CUDA."""
    if isinstance(self, Rehearsed):
        raise RuntimeError("cannot pin a tensor on a GPU: only dense CPU tensors can be pinned")
    copy = self.clone()
    copy.pinned = True
    return copy


@contextlib.contextmanager
def cuda(monkeypatch):
    """Let a device that says that it is CUDA be there meanwhile; yields it."""
    known = optimizer._get_fused_kernels_supported_devices()
    monkeypatch.setattr(
        optimizer, "_get_fused_kernels_supported_devices", lambda: [*known, DEVICE.type]
    )
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: NAME)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 10**6)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for tensors this small several are slower
    try:
        with rehearsal():
            yield Cuda(DEVICE.type)
    finally:
        torch.set_num_threads(threads)
