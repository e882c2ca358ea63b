"""The device of a training or a translation: which there is, and what it is called."""

import os

import torch
from torch import distributed

from attention.train.core.step import world_size


def best_device() -> torch.device:
    """CUDA if there is one, else Apple's MPS, else the CPU."""
    for kind in ("cuda", "mps"):
        if getattr(torch, kind).is_available():
            return torch.device(kind)
    return torch.device("cpu")


def choose_device(name: str | None) -> torch.device:
    """Return the torch.device called ``name``, or the best there is; ValueError if it is absent."""
    if name is None:
        device = best_device()
    else:
        if name not in ("cuda", "mps", "cpu"):
            raise ValueError(f"--device must be cuda, mps or cpu, not {name!r}")
        device = torch.device(name)
        if name != "cpu" and not getattr(torch, name).is_available():
            raise ValueError(f"--device {name}: this machine, or this PyTorch, has none")
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")  # TF32 where something stays in float32
    return device


def dtype_of_products(setting: str, device: torch.device) -> torch.dtype | None:
    """The type in which a training multiplies matrices: None is float32.

    setting  one of settings.DTYPES; auto is bfloat16 on a GPU that has it, else float32
    """
    has = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.bfloat16 if setting == "bfloat16" or (setting == "auto" and has) else None


def join(device: torch.device) -> None:
    """Join the processes that torchrun started, if it did."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")


def describe(device: torch.device) -> str:
    """What a training runs on, for the table of results."""
    processes = world_size()
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = f"{device.type}, {torch.get_num_threads()} threads"
    return name if processes == 1 else f"{processes} processes: {name} each"
