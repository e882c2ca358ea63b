"""The speed ladder of training, beside nn.Transformer: ``make bench-train``.

    python -m benchmarks.training [--size mini|tiny|base] [--device cpu|cuda] [--compile] [--quick]

Each rung adds one thing to the rungs below it. All train the same model, with dropout, on the same
batches in the same loop: zero the gradients, loss, backward, clip, AdamW. A rung takes turns with
nn.Transformer and with the best rung so far, so that a busy machine slows all of them alike; a step
counts with the shortest time that it took. A rung that is slower is printed, but not built upon.
Tokens are those of both sides. MFU is the share of the fastest matrix product that was measured on
this machine, in float32, or in bfloat16 from the rung bf16 on.
"""

import argparse
import functools
import math
import time
import warnings
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided.data.tokens import PAD
from attention.provided.measuring.memory import peak_mib
from attention.sequence_to_sequence import shift_right
from attention.tokens_and_positions import sinusoidal_positions
from attention.train.speed.acceleration import FastLoss, prepare
from attention.training import ModelAndLoss
from attention.training_on_gpu import training_flops
from attention.transformer import Transformer

SIZES = {
    "mini": {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1, "vocab_size": 300},  # a try
    "tiny": {"d_model": 128, "n_heads": 4, "d_ff": 256, "n_layers": 4, "vocab_size": 9700},
    "base": {"d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 6, "vocab_size": 37000},
}
DROPOUT, SMOOTHING, LENGTH = 0.1, 0.1, 16  # LENGTH: tokens of a sentence
PRODUCTS = {  # kinds of matrix product, the type of their numbers, and PyTorch's precision
    "float32": (torch.float32, "highest"),
    "TF32": (torch.float32, "high"),  # on a GPU alone
    "bfloat16": (torch.bfloat16, "highest"),
}


class PyTorchTransformer(nn.Module):
    """The peer: nn.Transformer with the same embeddings, tied likewise."""

    def __init__(self, d_model, n_heads, d_ff, n_layers, vocab_size):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.dropout = nn.Dropout(DROPOUT)
        sizes = (d_model, n_heads, n_layers, n_layers, d_ff, DROPOUT)
        with warnings.catch_warnings():  # it warns that pre-norm layers have no fast path
            warnings.simplefilter("ignore")
            self.stacks = nn.Transformer(*sizes, batch_first=True, norm_first=True)
        for module in self.stacks.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0  # as in attention.train.speed.acceleration

    def embed(self, tokens):
        x = self.table(tokens)
        wide = torch.promote_types(x.dtype, torch.float32)
        positions = torch.arange(x.shape[1], dtype=wide, device=x.device)
        places = sinusoidal_positions(positions, x.shape[2]).to(x.dtype)
        return self.dropout(x * math.sqrt(x.shape[2]) + places)

    def forward(self, source, target):
        read = shift_right(target)
        T = read.shape[1]
        future = torch.ones(T, T, dtype=torch.bool, device=read.device).triu(1)
        y = self.stacks(
            self.embed(source),
            self.embed(read),
            tgt_mask=future,
            tgt_is_causal=True,
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=read == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return F.linear(y, self.table.weight)


@dataclass(frozen=True)
class Rung:
    """What a training uses: each field is one thing that can be added."""

    name: str
    tf32: bool = False
    bf16: bool = False
    fused_attention: bool = False
    fused_adamw: bool = False
    accelerated: bool = False
    compiled: bool = False
    peer: bool = False


def trainer(rung, size, device):
    """A function of (source, target) that takes one step of training as the rung says."""
    torch.manual_seed(0)
    if rung.peer:
        model = PyTorchTransformer(**size).to(device)
    else:
        sizes = {name: value for name, value in size.items() if name != "vocab_size"}
        vocabularies = (size["vocab_size"], size["vocab_size"])
        model = Transformer(
            *vocabularies, **sizes, dropout=DROPOUT, tied="all", fused=rung.fused_attention
        ).to(device)
        for module in model.modules():
            if hasattr(module, "n_heads"):
                module.dropout = 0.0
    dtype = torch.bfloat16 if rung.bf16 else None
    if rung.accelerated:
        loss = FastLoss(prepare(model, device), SMOOTHING, dtype)
    else:
        loss = ModelAndLoss(model, SMOOTHING, dtype).loss
    if rung.compiled:
        for stack in [model.stacks] if rung.peer else [model.encoder, model.decoder]:
            stack.compile()
    fused = {"fused": True} if rung.fused_adamw else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **fused)

    def step(source, target):
        torch.set_float32_matmul_precision("high" if rung.tf32 else "highest")
        optimizer.zero_grad()
        loss(source, target).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def times(actions, device, seconds, least=3):
    """Least milliseconds of each action; the actions take turns."""
    found = [[] for _ in actions]
    alone = device == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    for run in 3 * actions:  # warm up
        run()
    start = time.perf_counter()
    while time.perf_counter() - start < seconds or len(found[0]) < least:
        for run, samples in zip(actions, found, strict=True):
            wait()
            begin = clock()
            run()
            wait()
            samples.append(1000 * (clock() - begin))
    return [min(samples) for samples in found]


def peak_flops(device, dtype):
    """The most floating-point operations per second of a product of large (n, n) matrices."""
    n = 8192 if device.type == "cuda" else 2048
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    (spent,) = times([lambda: a @ b], device.type, seconds=1.0)
    return 2 * n**3 / (spent / 1000)


def rungs(device, compiled):
    """The changes of the ladder, in order: (name, what is added)."""
    yield "float32, eager", {}
    if device.type == "cuda":
        yield "+ TF32", {"tf32": True}
    yield "+ bf16", {"bf16": True}
    yield "+ fused attention", {"fused_attention": True}
    yield "+ fused AdamW", {"fused_adamw": True}
    yield "+ packed, bytes, rows", {"accelerated": True}
    if compiled:
        yield "+ compile", {"compiled": True}


class Ladder:
    """Measures rungs of one size on one device, and prints each as soon as it is known."""

    def __init__(self, size, device, tokens, budget):
        self.size, self.device, self.budget = size, device, budget
        shape = (tokens // LENGTH, LENGTH)
        draw = torch.Generator().manual_seed(0)
        self.batch = [
            torch.randint(3, size["vocab_size"], shape, generator=draw).to(device) for _ in range(2)
        ]
        self.tokens = 2 * shape[0] * LENGTH
        sizes = {name: value for name, value in size.items() if name != "n_heads"}
        self.flops = shape[0] * training_flops(LENGTH, LENGTH, **sizes)
        self.peaks = {}
        for name, (dtype, precision) in PRODUCTS.items():
            if name != "TF32" or device.type == "cuda":
                torch.set_float32_matmul_precision(precision)
                self.peaks[name] = peak_flops(device, dtype)

    def measure(self, *chosen):
        """The seconds of a step for each of the rungs."""
        steps = [
            functools.partial(trainer(rung, self.size, self.device), *self.batch) for rung in chosen
        ]
        return [spent / 1000 for spent in times(steps, self.device.type, self.budget)]

    def show(self, rung, spent, peer):
        """Print a rung's row: ``spent`` seconds a step, while the peer needed ``peer``."""
        step = trainer(rung, self.size, self.device)
        step(*self.batch)
        memory = peak_mib(lambda: step(*self.batch), self.device.type) or math.nan
        peak = self.peaks["bfloat16" if rung.bf16 else "TF32" if rung.tf32 else "float32"]
        print(
            f"  {rung.name:<30}{self.tokens / spent:>12,.0f}{peer / spent:>9.2f}{memory:>10,.0f}"
            f"{self.flops / spent / peak:>8.1%}",
            flush=True,
        )

    def climb(self, compiled):
        """Print all rungs; returns the ratio of the best to the best that the peer can do."""
        peer = Rung("nn.Transformer, float32", peer=True)
        (spent,) = self.measure(peer)
        self.show(peer, spent, spent)
        best = None
        for name, change in rungs(self.device, compiled):
            rung = replace(best or Rung(name), name=name, **change)
            theirs, *before, spent = self.measure(peer, *([best] if best else []), rung)
            self.show(rung, spent, theirs)
            if not before or spent < before[0]:
                best = rung
        usable = replace(best, accelerated=False, fused_attention=False, peer=True)
        usable = replace(usable, name="nn.Transformer, with what helped")
        plain, theirs, ours = self.measure(peer, usable, best)
        self.show(usable, theirs, plain)
        self.show(replace(best, name="the best rung, once more"), ours, plain)
        return theirs / ours


def main(arguments=None):
    """Print the ladder, and how its top compares with nn.Transformer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, help="of the model (default: tiny; base on CUDA)")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--tokens", type=int, help="of a batch, on each side")
    parser.add_argument("--compile", action="store_true", help="climb the rung of torch.compile")
    parser.add_argument("--quick", action="store_true", help="shorter runs, for a first look")
    options = parser.parse_args(arguments)
    device = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    size = options.size or ("base" if device.type == "cuda" else "tiny")
    tokens = options.tokens or (16384 if device.type == "cuda" else 2048)
    shown = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"{shown}, {torch.get_num_threads()} threads, torch {torch.__version__}, {size} model,")
    print(f"{tokens} tokens a side in sentences of {LENGTH}")
    ladder = Ladder(SIZES[size], device, tokens, budget=1.0 if options.quick else 5.0)
    for name, peak in ladder.peaks.items():
        print(f"matrix product in {name}: {peak / 1e12:.2f} TFLOP/s")
    print(f"  {'':<30}{'tokens/s':>12}{'ratio':>9}{'MiB':>10}{'MFU':>8}")
    ratio = ladder.climb(options.compile)
    print(f"The best rung over nn.Transformer with what helped: {ratio:.2f}")


if __name__ == "__main__":
    main()
