"""How fast lesson 13 writes a thousand sentences: ``make bench-decoding``.

    python -m benchmarks.decoding [--sentences 1000] [--beam 5] [--device cpu]

Greedy and beam search run with and without kept keys and values, one after the other in one
process, on one thread: several wait for each other after every small matrix. Without a cache only
every tenth sentence is translated, and its time is scaled up. The model has the sizes of a small
translator (4 + 4 layers, d_model = 128, 9 700 tokens in one table) and random weights. Since such a
model hardly ever says EOS, a translation ends at the length of its source: about 14 tokens. The
last line is ``ratio: R``, the time of a beam search without a cache over that with one.
"""

import argparse
import functools
import os
import sys
import time

import torch

from attention.decoding import beam_search, greedy
from attention.provided.data.tokens import EOS, PAD
from attention.transformer import Transformer

VOCABULARY, SIZES = 9_700, {"d_model": 128, "n_heads": 4, "d_ff": 256, "n_layers": 4}


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


def rows(model, beam):
    """Name, function of the source, and whether few sentences are translated, for each row."""
    for cache in (True, False):
        name = "with a cache" if cache else "without a cache"
        most = {"max_length": (1, 0), "cache": cache}
        yield f"greedy, {name}", functools.partial(greedy, model, **most), not cache
        searches = functools.partial(beam_search, model, beam=beam, batch=128, **most)
        yield f"beam of {beam}, {name}", searches, not cache


def main(arguments=None):
    """Print a row for each way of writing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=1_000)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Transformer(VOCABULARY, VOCABULARY, **SIZES, tied="all", fused=True).to(options.device)
    source = random_sources(options.sentences, VOCABULARY, options.device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters:,} parameters, {len(source)} sentences", end=", ")
    load = f"load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    print(f"1 thread, {load}")
    beam_search(model, source[:8], options.beam, max_length=4)  # so that nobody pays for the start
    times = {}
    for name, write, few in rows(model, options.beam):
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
