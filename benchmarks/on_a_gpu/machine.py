"""What was measured on: card, driver, versions."""

import importlib.metadata
import os
import platform
import subprocess

import torch

PEERS = ("x-transformers", "transformers")


def facts(device, small):
    """A dict of what a row is only true for: results of another machine are not mixed with it."""
    found = {
        "device": device,
        "card": torch.cuda.get_device_name() if device == "cuda" else processor(),
        "driver": driver() if device == "cuda" else None,
        "cuda": torch.version.cuda if device == "cuda" else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "small": small,
    }
    return found | {name: version(name) for name in PEERS}


def driver():
    """The version of NVIDIA's driver, or "unknown"."""
    question = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(question, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def processor():
    """What Linux calls the processor, or its architecture elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
        return names[0]
    except (OSError, IndexError):
        return platform.machine()


def version(package):
    """The version of an installed package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def sentence(found):
    """The facts in words."""
    parts = [found["card"]]
    if found["device"] == "cuda":
        parts += [f"driver {found['driver']}", f"CUDA {found['cuda']}"]
    parts += [f"torch {found['torch']}", f"Python {found['python']}"]
    return ", ".join([*parts, f"{found['cores']} cores of the processor"])
