"""How fast lesson 13 writes a thousand sentences: ``make bench-decoding``.

    python benchmarks/decoding.py [--checkpoint FILE] [--sentences 1000] [--beam 5] [--threads 1]

Greedy and beam search run with and without kept keys and values, one after the other in one
process. Without a cache only every tenth sentence is translated, and its time is scaled up, unless
--full is given. One thread is the default: more of them wait for each other after every small
matrix, which takes many times as long where other programs run beside. The model has the sizes of a
small translator (4 + 4 layers, d_model = 128, 9 700 tokens in one table); without a checkpoint its
weights are random, and since such a model hardly ever says EOS, a translation ends at the length of
its source: about 14 tokens. A checkpoint is the model.safetensors of a training's folder. The last
line is ``ratio: R``, the time of a beam search without a cache over that with one.
"""

import argparse
import os
import sys
import time

import torch

from attention.decoding import beam_search, greedy
from attention.provided.data.tokens import EOS, PAD
from attention.train.core.model import load_model
from attention.transformer import Transformer

VOCABULARY, SIZES = 9_700, {"d_model": 128, "n_heads": 4, "d_ff": 256, "n_layers": 4}


def model_and_ends(checkpoint, device):
    """The model, and the largest lengths (a, b): a · length of the source + b."""
    torch.manual_seed(0)
    if checkpoint is None:
        model = Transformer(VOCABULARY, VOCABULARY, **SIZES, tied="all", fused=True)
        return model.to(device), (1, 0)
    model, _, _ = load_model(checkpoint)
    return model.to(device), (1.5, 10)


def random_sources(n, size, device):
    """Random sentences (n, T) of about 14 tokens, EOS included."""
    draw = torch.Generator().manual_seed(0)
    lengths = (14 + 4 * torch.randn(n, generator=draw)).round().clamp(5, 40).long()
    ids = torch.randint(3, size, (n, int(lengths.max())), generator=draw)
    ids[torch.arange(n), lengths - 1] = EOS
    return ids.masked_fill(torch.arange(ids.shape[1]) >= lengths[:, None], PAD).to(device)


def seconds(write, source, device):
    """Wall time and processor time of ``write(source)``, and what it returns."""
    begin, used = time.perf_counter(), time.process_time()
    ids = write(source)
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin, time.process_time() - used, ids


def rows(options, model, most):
    """Name, function of the source, and whether all sentences are translated, for each row."""
    for cache in (True, False):
        few = not cache and not options.full
        name = "with a cache" if cache else "without a cache"
        yield f"greedy, {name}", lambda x, c=cache: greedy(model, x, most, c), few
        settings = {"beam": options.beam, "max_length": most, "cache": cache}
        settings |= {"batch": options.batch}
        yield (
            f"beam of {options.beam}, {name}",
            lambda x, s=settings: beam_search(model, x, **s),
            few,
        )


def main(arguments=None):
    """Print a row for each way of writing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", help="weights to use instead of random ones")
    parser.add_argument("--sentences", type=int, default=1_000)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128, help="sources searched for at once")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="of the processor (default: 1)")
    parser.add_argument("--full", action="store_true", help="all sentences also without a cache")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    model, most = model_and_ends(options.checkpoint, options.device)
    source = random_sources(options.sentences, len(model.source_embedding.weight), options.device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters:,} parameters, {len(source)} sentences", end=", ")
    load = f"load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    print(f"{torch.get_num_threads()} threads, {load}")
    beam_search(model, source[:8], options.beam, max_length=4)  # so that nobody pays for the start
    times = {}
    for name, write, few in rows(options, model, most):
        part = source[::10] if few else source
        wall, used, ids = seconds(write, part, options.device)
        scale = len(source) / len(part)
        times[name] = wall * scale
        tokens = (ids != PAD).sum().item()
        note = f"   ({len(part)} sentences, scaled up)" if few else ""
        print(
            f"{name:<28} {wall * scale:7.1f} s  {used * scale:7.1f} s of processor  "
            f"{tokens / wall:8.0f} tokens/s{note}",
            flush=True,
        )
    ratio = times[f"beam of {options.beam}, without a cache"]
    print(f"ratio: {ratio / times[f'beam of {options.beam}, with a cache']:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
