"""Lesson 18: a task that needs distant memory, what attention costs, and the lesson's figures.

In the task a sequence holds ``pairs`` positions that show a key and its value, then as many that
show one of these keys each, in another order. The answer is the value that stood beside it.
`make bench-efficient-attention` measures what the figures read from data/efficient_attention.json;
`python -m benchmarks.efficient_attention --parts PART` measures one part again.
"""

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Experiment, read
from attention.masked_attention import masked_attention
from attention.provided import demand
from attention.provided.figures import plots
from attention.provided.files import ROOT
from attention.provided.measuring.memory import peak_mib
from attention.provided.measuring.timing import device_at_hand, shortest
from attention.provided.progress import Bar
from attention.provided.training_steps import descend, fewer
from attention.scaled_dot_product_attention import attention_multiplications

KEYS, VALUES, PAIRS = 64, 16, 32
D_MODEL = 64
BATCH, LEARNING_RATE, STEPS = 64, 3e-3, 500
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
Features = Callable[[Tensor], Tensor]


def make(count: int, pairs: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Draw sequences: keys (B, 2 · pairs), shown values (B, pairs), and answers (B, pairs).

    The keys of a sequence are different ones. Answer i belongs to the key at position pairs + i.
    Raises ValueError for more pairs than there are keys, or for less than one.

    >>> keys, shown, answers = make(5, 3, torch.Generator().manual_seed(0))
    >>> keys.shape, shown.shape, answers.shape
    (torch.Size([5, 6]), torch.Size([5, 3]), torch.Size([5, 3]))
    """
    demand.counts(count=count)
    demand.counts(1, KEYS, pairs=pairs)
    keys = torch.rand(count, KEYS, generator=draw).argsort(dim=1)[:, :pairs]
    shown = torch.randint(VALUES, (count, pairs), generator=draw)
    order = torch.rand(count, pairs, generator=draw).argsort(dim=1)
    return torch.cat([keys, keys.gather(1, order)], dim=1), shown, shown.gather(1, order)


class Recaller(nn.Module):
    """One layer of attention with one head: embeddings, q, k and v, a score for each value.

    attention  any function of q, k, v, (B, T, d_k), (B, T, d_k) and (B, T, D_MODEL)
    d_k        length of queries and keys; all other vectors have D_MODEL numbers
    """

    def __init__(self, attention: Attention, d_k: int = D_MODEL):
        super().__init__()
        self.attention = attention
        self.keys, self.values = nn.Embedding(KEYS, D_MODEL), nn.Embedding(VALUES, D_MODEL)
        self.W_q, self.W_k = nn.Linear(D_MODEL, d_k), nn.Linear(D_MODEL, d_k)
        self.W_v, self.head = nn.Linear(D_MODEL, D_MODEL), nn.Linear(D_MODEL, VALUES)

    def forward(self, keys: Tensor, shown: Tensor) -> Tensor:
        """Score the values: keys (B, 2 · pairs) and shown (B, pairs) to (B, pairs, VALUES)."""
        pairs = shown.shape[1]
        x = self.keys(keys) + F.pad(self.values(shown), (0, 0, 0, pairs))  # (B, 2 · pairs, d)
        context = self.attention(self.W_q(x), self.W_k(x), self.W_v(x))
        scores: Tensor = self.head(context[:, pairs:])
        return scores


def train(model: nn.Module, steps: int = STEPS, seed: int = 0, label: str = "training") -> None:
    """Train on fresh sequences; their pairs grow from 4 to PAIRS over the first half of the steps.

    While nbgrader runs the notebook, there are a few steps only.
    """
    steps, draw = fewer(steps), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.1
    )

    def loss(step: int) -> Tensor:
        pairs = min(PAIRS, 4 + round((PAIRS - 4) * 2 * step / steps))
        keys, shown, answers = make(BATCH, pairs, draw)
        return F.cross_entropy(model(keys, shown).flatten(0, 1), answers.flatten())

    with Bar(steps, label) as bar:
        descend(model, map(loss, range(steps)), optimizer, schedule, bar)


@torch.no_grad()
def right(model: nn.Module, count: int = 500, pairs: int = PAIRS) -> tuple[float, Tensor]:
    """Return the share of right answers, and the share by how far back the pair stood.

    The second one is (2 · pairs,): entry n is for n positions back. Entry 0 is NaN.
    """
    keys, shown, answers = make(count, pairs, torch.Generator().manual_seed(1_000_000))
    found = model(keys, shown).argmax(dim=2) == answers  # (B, pairs)
    same = keys[:, pairs:, None] == keys[:, None, :pairs]  # (B, pairs, pairs)
    distance = torch.arange(pairs, 2 * pairs) - same.int().argmax(dim=2)  # (B, pairs)
    sums = torch.zeros(2 * pairs).index_add(0, distance.flatten(), found.flatten().float())
    return found.double().mean().item(), sums / distance.flatten().bincount(minlength=2 * pairs)


SEEDS = (0, 1, 2)
D_K = 16
FEATURES: dict[str, Callable[[Tensor], Tensor]] = {
    "elu(x) + 1": lambda x: F.elu(x) + 1,
    "its square": lambda x: (F.elu(x) + 1) ** 2,
    "its fourth power": lambda x: (F.elu(x) + 1) ** 4,
    "exp(x)": lambda x: x.clamp(max=20).exp(),
    "softmax of x": lambda x: x.softmax(-1),
    "exp(x), exp(−x)": lambda x: torch.cat([x, -x], -1).clamp(max=20).exp(),
}


def recall_with(
    features: str, seed: int, linear_attention: Any, steps: int = STEPS
) -> dict[str, float]:
    """Train one layer of linear attention with these features; shares right of PAIRS pairs, and 4.

    All positions see all others, and the features are positive: a sum of them is never 0.
    """
    phi = FEATURES[features]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with mock.patch.dict(linear_attention.__globals__, positive_features=phi):
            context: Tensor = linear_attention(q, k, v)
        return context

    shares = _trained(attend, D_K, seed, steps, (PAIRS, 4))
    return dict(zip(("right", "right of 4"), shares, strict=True))


def _trained(attend: Attention, d_k: int, seed: int, steps: int, asked: Any) -> list[float]:
    """The shares right of as many pairs as are ``asked``, after a training with a seed."""
    torch.manual_seed(seed)
    model = Recaller(attend, d_k)
    train(model, steps, seed)
    return [round(right(model, pairs=pairs)[0], 4) for pairs in asked]


def recall_undivided(features: str, d_k: int, seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Train one layer whose similarity is φ(q) · φ(k), not divided by the sum of all of them.

    features  "signed": φ(x) = x; "elu(x)", from −1 upwards; or one of FEATURES
    returns   shares right of 4, 8, 16 and 32 pairs
    """
    phi = {"signed": lambda x: x, "elu(x)": F.elu, **FEATURES}[features]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return phi(q) @ (phi(k).mT @ v) / math.sqrt(d_k)

    return {"right": _trained(attend, d_k, seed, steps, PAIRS_SHOWN)}


PAIRS_SHOWN = (4, 8, 16, PAIRS)
SHORT = {"features": "exp(x), exp(−x)", "seed": 0, "steps": 100}
SHORT_SIGNED = {"features": "signed", "d_k": 8, "seed": 0, "steps": 100}

EXPERIMENTS = {
    "features": Experiment(
        points=[*({"features": name, "seed": n} for name in FEATURES for n in SEEDS), SHORT],
        run=recall_with,
        again=SHORT,
    ),
    "signed or positive": Experiment(
        points=[
            *({"features": "signed", "d_k": d, "seed": n} for d in (8, 16, 32, 64) for n in SEEDS),
            *({"features": "elu(x)", "d_k": D_K, "seed": n} for n in SEEDS),
            *({"features": "elu(x) + 1", "d_k": D_K, "seed": n} for n in SEEDS),
            SHORT_SIGNED,
        ],
        run=recall_undivided,
        again=SHORT_SIGNED,
    ),
}


@functools.cache
def stored() -> dict[str, Any]:
    """What `make bench-efficient-attention` measured, by part."""
    return dict(json.loads((ROOT / "data" / "efficient_attention.json").read_text("utf-8")))


def qkv(T: int, heads: int = 4, d: int = 32) -> list[Tensor]:
    """Queries, keys and values of standard normal numbers, (1, heads, T, d) each."""
    torch.manual_seed(0)
    return [torch.randn(1, heads, T, d, device=device_at_hand()) for _ in range(3)]


def causal_linear_attention(
    features: Features, q: Tensor, k: Tensor, v: Tensor, block: int = 128
) -> Tensor:
    """Do for all positions at once what the lesson's linear_attention_step does for one.

    features  positive features of queries and keys
    q, k      (..., T, d_k)
    v         (..., T, d_v)
    block     within so many positions there are scores; all before them are in the state
    returns   (..., T, d_v)

    Raises ValueError for a block below 1.
    """
    demand.counts(block=block)
    q, k = features(q), features(k)
    v = F.pad(v, (0, 1), value=1.0)  # (..., T, d_v + 1): the last column gathers the normaliser
    state: Any = 0.0
    parts = list[Tensor]()
    for rows in (slice(i, i + block) for i in range(0, q.shape[-2], block)):
        queries, keys, values = q[..., rows, :], k[..., rows, :], v[..., rows, :]
        within = (queries @ keys.transpose(-2, -1)).tril() @ values  # (..., block, d_v + 1)
        before = queries @ state if parts else state
        parts.append(within + before)
        state = state + keys.transpose(-2, -1) @ values  # (..., d_k, d_v + 1)
    sums = torch.cat(parts, dim=-2)
    return sums[..., :-1] / sums[..., -1:]


def window_in_blocks(q: Tensor, k: Tensor, v: Tensor, window: int) -> Tensor:
    """Attention to a window on both sides, in blocks: few large products, no (T, T) matrix.

    q, k     (..., T, d_k)
    v        (..., T, d_v)
    window   neighbours on each side, at least 1
    returns  (..., T, d_v)

    The positions are cut into blocks of `window`. What a query sees lies in its own block and in
    those beside it, so a block of queries meets three blocks of keys.
    Raises ValueError for a window below 1.
    Source: Beltagy et al. (2020), section 3.1.
    """
    demand.counts(window=window)
    T, n = q.shape[-2], -(-q.shape[-2] // window)  # n blocks
    end = n * window - T
    q = F.pad(q, (0, 0, 0, end)).unflatten(-2, (n, window))  # (..., n, w, d_k)
    k, v = (F.pad(x, (0, 0, window, window + end)) for x in (k, v))  # (..., (n + 2) · w, d)
    k, v = (x.unfold(-2, 3 * window, window).transpose(-2, -1) for x in (k, v))  # (..., n, 3w, d)
    query = torch.arange(window, device=q.device).unsqueeze(1)
    key = torch.arange(-window, 2 * window, device=q.device)  # counted from the block's beginning
    place = window * torch.arange(n, device=q.device)[:, None, None] + key  # (n, 1, 3w)
    near = ((key - query).abs() <= window) & (place >= 0) & (place < T)  # (n, w, 3w)
    context: Tensor = masked_attention(q, k, v, near).flatten(-3, -2)
    return context[..., :T, :]


def kv_cache_bytes(
    T: int, n_layers: int, n_kv_heads: int, d_head: int, bytes_per_number: int = 2
) -> int:
    """Count the bytes that the keys and values of T positions take in a decoder's cache.

    T                 positions that were read
    n_kv_heads        heads of keys and values in each layer
    bytes_per_number  2 for float16 and bfloat16, 4 for float32
    returns           an int

    Raises ValueError for a T below 0, and for other numbers below 1.

    >>> kv_cache_bytes(T=10, n_layers=3, n_kv_heads=2, d_head=5)
    1200
    """
    demand.counts(0, T=T)
    demand.counts(n_layers=n_layers, n_kv_heads=n_kv_heads, d_head=d_head)
    demand.counts(bytes_per_number=bytes_per_number)
    return 2 * T * n_layers * n_kv_heads * d_head * bytes_per_number


def _mib(peak: float | None) -> str:
    return "peak not measured" if peak is None else f"peak {peak:8.1f} MiB"


def _peak(action: Callable[[], object]) -> str:
    return _mib(peak_mib(action, device_at_hand()))


@torch.no_grad()
def dense_memory() -> None:
    """Print the peak memory of dense attention beyond its inputs: four heads, d = 32, float32."""
    for T in (1024, 2048, fewer(4096, 2048)):
        peak = _peak(functools.partial(masked_attention, *qkv(T)))
        print(f"T {T:9,d}   context {4 * T * 32 * 4 / 2**20:6.2f} MiB   {peak}")
    for T in (32_768, 1_000_000):
        print(f"T {T:9,d}   one table of scores {4 * T * T * 4 / 2**30:12,.0f} GiB")


def large_scores(online_softmax: Any) -> None:
    """Print averages over 4 096 keys in 16 blocks: online, and by sums that subtract nothing.

    Only the size of the scores changes. The exact average is computed in float64.
    """
    torch.manual_seed(0)
    noise, v = torch.randn(4096), torch.randn(4096, 1)
    for scale in (1, 20, 40):
        scores = scale * noise
        exact = (scores.double().softmax(0) @ v.double()).item()
        state = torch.zeros(1, 1), torch.zeros(1), torch.tensor([-math.inf])
        for block, values in zip(scores.split(256), v.split(256), strict=True):
            state = online_softmax(*state, block[None], values)
        online, plain = (state[0] / state[1]).item(), (scores.exp() @ v / scores.exp().sum()).item()
        print(f"scores up to {scores.max():5.1f}   exact {exact:8.5f}", end="   ")
        print(f"online {online:8.5f}   plain {plain:8.5f}")


@torch.no_grad()
def time_and_memory(flash_attention: Any) -> float:
    """Print time and peak memory of dense attention, the learner's tiles and the fused kernel.

    Here and now, with the same inputs; also how far each is from the fused kernel. The control is
    dense attention that writes all scores and weights into one table, made beforehand.
    returns  time of the tiles, if that of dense attention is 1
    """
    q, k, v = qkv(fewer(4096, 1024))
    table = q.new_zeros(*q.shape[:-1], q.shape[-2])

    def kept() -> Tensor:
        torch.matmul(q / math.sqrt(q.shape[-1]), k.mT, out=table)
        return torch.softmax(table, dim=-1, out=table) @ v

    ways: dict[str, Callable[[], Tensor]] = {
        "dense": lambda: masked_attention(q, k, v),
        "dense, kept": kept,
        "tiles": lambda: flash_attention(q, k, v, 256)[0],
        "fused kernel": lambda: F.scaled_dot_product_attention(q, k, v),
    }
    expected, clock = ways["fused kernel"](), {}
    for name, way in ways.items():
        off, clock[name] = (way() - expected).abs().max(), shortest(way, device_at_hand(), least=2)
        print(f"{name:<13} {clock[name]:7.1f} ms   {_peak(way)}   off by {off:.0e}")
    return clock["tiles"] / clock["dense"]


def numbers_moved(T: int, d: int = 32, block: int | None = None) -> int:
    """Numbers to and from main memory for one head; a tile is taken to stay in fast memory.

    >>> numbers_moved(1024), numbers_moved(1024, block=256)
    (4325376, 327680)
    """
    if block is None:
        return 4 * T * T + 4 * T * d
    return 2 * T * d + 2 * T * d * -(-T // block)


def counted_costs() -> dict[str, list[int]]:
    """Draw operations, bytes moved and bytes held against T: one head, d = 32, float32; counted."""
    lengths = [2**n for n in range(8, 18)]
    counted = {
        "multiplications, both": [attention_multiplications(T, T, 32, 32) for T in lengths],
        "bytes moved, dense": [4 * numbers_moved(T) for T in lengths],
        "bytes moved, tiles of 256": [4 * numbers_moved(T, block=256) for T in lengths],
        "bytes held, dense": [4 * 2 * T * T for T in lengths],
        "bytes held, tiles of 256": [4 * (2 * 256 * 256 + T * 32) for T in lengths],
    }
    ax = plots.lines(lengths, counted, xlabel="T", ylabel="how many, for one head", log=True)
    ax.set_yscale("log")
    for name, numbers in counted.items():
        print(f"{name:<26} T = 4 096: {numbers[4]:14,d}   T = 131 072: {numbers[-1]:18,d}")
    return counted


def block_sizes() -> int:
    """Draw the recorded time of tiles against their size, dense attention = 1, at T = 2 048.

    The same multiplications everywhere, measured in turn.
    returns  the quickest block
    """
    machine, ((_, dense), *rows) = stored()["machine"], stored()["blocks"]
    print(f"measured on: {machine['device']}, {machine['name']}, PyTorch {machine['torch']}")
    shares = {block: ms / dense for block, ms in rows}
    shown = {"tiles": list(shares.values())}
    ax = plots.lines(list(shares), shown, xlabel="block", ylabel="time, dense = 1", log=True)
    ax.axhline(1, color=plots.GREY, linestyle="--", linewidth=1.2)
    ax.annotate("dense attention", (128, 1.04), color=plots.GREY)
    best = min(shares, key=lambda block: shares[block])
    ax.plot(best, shares[best], "o", color=plots.BLUE)
    ax.annotate(f"quickest: {best}", (best, shares[best] - 0.2), ha="center", color=plots.BLUE)
    ax.set_xticks(list(shares), list(shares))
    ax.minorticks_off()
    ax.set_ylim(0)
    print(*(f"{block}: {share:.2f}" for block, share in shares.items()), sep="   ")
    return best


def lookup(features: Features) -> None:
    """Draw the weights of softmax and of linear attention, where each query equals one of 24 keys.

    Queries and keys are the same in both: 8 numbers each, all vectors equally long. Drawn: norm 7
    and one draw. Printed: 20 draws, and the norm that numbers of variance 1 have.
    """
    axes = plots.panels(columns=2, width=4.4, height=3.6)
    for norm in (7.0, math.sqrt(8)):
        drawn = [_looked_up(features, norm, seed) for seed in range(20)]
        for ax, name in zip(axes, ("softmax", "linear"), strict=True):
            found = [(own, tables[name]) for own, tables in drawn]
            there = [table.gather(1, own[:, None]).mean().item() for own, table in found]
            most = [(table.argmax(dim=1) == own).float().mean().item() for own, table in found]
            own, table = found[1]
            rank = torch.linalg.matrix_rank(table.double(), rtol=1e-6).item()
            print(f"norm {norm:.2f}, {name:<8} own key: weight {sum(there) / 20:.2f}", end=", ")
            print(f"the largest for {sum(most) / 20:.2f} of the queries   rank {rank}")
            if norm == 7:
                plots.heatmap(table / table.max(), ax, f"{name}, largest {table.max():.2f}")
                ax.plot(own, range(24), ".", color=plots.VERMILION, markersize=4)


def _looked_up(features: Features, norm: float, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
    """The place of each query's own key, and the weights of 24 queries on 24 keys."""
    torch.manual_seed(seed)
    k, own = norm * F.normalize(torch.randn(24, 8), dim=1), torch.randperm(24)
    similarity = features(k[own]) @ features(k).T
    return own, {
        "softmax": (k[own] @ k.T / math.sqrt(8)).softmax(dim=1),
        "linear": similarity / similarity.sum(dim=1, keepdim=True),
    }


def one_more_token() -> None:
    """Draw the recorded time of one more token against how many were read: four heads, d = 32."""
    found = stored()["step"]
    named = {"softmax, keys and values in a cache": "cache", "linear, recurrent": "recurrent"}
    clock = {label: [us for _, us in found[name]] for label, name in named.items()}
    read = [T for T, _ in found["cache"]]
    ax = plots.lines(read, clock, xlabel="tokens read before", ylabel="µs for one more", log=True)
    ax.set_yscale("log")
    for T, cache, recurrent in zip(read, *clock.values(), strict=True):
        print(f"after {T:6,d} tokens: cache {cache:8.1f} µs   recurrent {recurrent:5.1f} µs")
    for dtype, rows in found["error"].items():
        print(f"error in {dtype}:", *(f"{off:.0e} after {T} tokens" for T, off in rows))


def five_ways() -> int:
    """Draw recorded time and peak memory of a forward pass against T: four heads, d = 32, float32.

    returns  how many of the five have a slope of more than 1.5 in time, at their last points
    """
    axes, slopes = plots.panels(columns=2, width=4.2, height=3.4, share=False), []
    for name, rows in stored()["cost"].items():
        lengths, clock, peaks = zip(*rows, strict=True)
        axes[0].plot(lengths, clock, "o-", markersize=3, label=name)
        held = [(T, peak) for T, peak in zip(lengths, peaks, strict=True) if peak]
        if held:
            axes[1].plot(*zip(*held, strict=True), "o-", markersize=3)
        slopes.append(math.log(clock[-1] / clock[-4], lengths[-1] / lengths[-4]))
        shown = f"{clock[-1]:9.1f} ms   {_mib(peaks[-1])}"
        print(f"{name:<13} T = {lengths[-1]:6,d} {shown}   last points: time ∝ T^{slopes[-1]:.1f}")
    budget = stored()["settings"]["budget"]
    axes[1].axhline(budget, color=plots.GREY, linestyle="--", linewidth=1.2)
    axes[1].annotate(f"budget: {budget:,} MiB", (512, budget), (0, 3), textcoords="offset points")
    for ax, label in zip(axes, ("milliseconds", "peak MiB"), strict=True):
        ax.set(xscale="log", yscale="log", xlabel="T", ylabel=label)
        ax.set_xticks([512, 2048, 8192, 32768], ["512", "2 048", "8 192", "32 768"])
        ax.minorticks_off()
    plots.legend(axes[0], fontsize=8)
    return sum(slope > 1.5 for slope in slopes)


def show_recall() -> None:
    """Print one sequence of the task, with 4 pairs."""
    keys, shown, answers = make(1, 4, torch.Generator().manual_seed(0))
    pairs = zip(keys[0].tolist(), shown[0].tolist(), strict=False)
    print("shown   ", *(f"key {key} → {value}   " for key, value in pairs))
    print("asked   ", *(f"key {key} → ?   " for key in keys[0, 4:].tolist()))
    print("answers ", *answers[0].tolist())


def recall_live(steps: int = 300, d_k: int = D_K, **attentions: Attention) -> dict[str, float]:
    """Train the model once with each attention, seed 0: its share of right answers with 32 pairs.

    All but the attention is equal: first weights, sequences, steps.
    """
    found = {}
    for name, attention in attentions.items():
        torch.manual_seed(0)
        model = Recaller(attention, d_k)
        train(model, steps=steps, label=f"{name}, d_k = {d_k}")
        few, found[name] = (right(model, pairs=pairs)[0] for pairs in (4, PAIRS))
        print(f"{name:<7} right with 4 pairs {few:.3f}, with {PAIRS} pairs {found[name]:.3f}")
    return found


KINDS = {
    "dense": (plots.BLUE, "o"),
    "linear": (plots.VERMILION, "s"),
    "window": (plots.GREEN, "^"),
    "signed": (plots.PURPLE, "D"),
}


def recall_by_width_pairs_and_distance() -> float:
    """Draw the recorded shares of right answers, a dot or line for each of three seeds.

    Changed: the attention, and d_k, the number of pairs or their distance. Task, steps and rate
    stay. “Signed” is linear attention with q · k itself as similarity, not divided by its sum.
    returns  the window's share at d_k = 16 and 32 pairs, median of the seeds
    """
    settings, wanted = stored()["settings"], stored()["settings"]["steps"]
    rows = [row for row in stored()["recall"] if row["steps"] == wanted]
    undivided = [
        row for row in read("efficient_attention", "signed or positive") if "steps" not in row
    ]
    for row in undivided:
        if row["features"] == "signed":
            shares = dict(zip(map(str, PAIRS_SHOWN), row["right"], strict=True))
            rows.append({"kind": "signed", "d_k": row["d_k"], "right": shares, "by distance": []})
    axes = plots.panels(columns=3, width=3.4, height=3.2, share=False)
    beside = {"dense": 0.93, "linear": 1.0, "signed": 1.0, "window": 1.07}  # no dot hides another
    for row in rows:
        kind, d_k = row["kind"], row["d_k"]
        colour, shape = KINDS[kind]
        style: Any = {"color": colour, "alpha": 0.6}
        axes[0].plot(d_k * beside[kind], row["right"]["32"], shape, **style)
        if d_k == D_K:
            counts, line = [int(pairs) * beside[kind] for pairs in row["right"]], shape + "-"
            axes[1].plot(counts, row["right"].values(), line, ms=4, lw=1, label=kind, **style)
            places = range(1, len(row["by distance"]) + 1)
            axes[2].plot(places, row["by distance"], line, ms=4, lw=1, markevery=9, **style)
    _recall_axes(axes, 1 / settings["values"])
    _recall_numbers(rows)
    for name in ("elu(x)", "elu(x) + 1"):
        found = [row["right"][-1] for row in undivided if row["features"] == name]
        print(f"{name}, not divided, d_k {D_K}, 32 pairs:", *found)
    return sorted(_shares(rows, "window", D_K))[1]


def _recall_axes(axes: Sequence[Any], chance: float) -> None:
    titles = ("32 pairs", "d_k = 16", "d_k = 16, 32 pairs")
    labels = ("d_k", "pairs shown", "how far back the pair stood")
    for ax, title, label in zip(axes, titles, labels, strict=True):
        ax.axhline(chance, color=plots.GREY, linestyle="--", linewidth=1.2)
        ax.set(ylim=(0, 1.05), title=title, xlabel=label)
    for ax, ticks in ((axes[0], (8, 16, 32, 64, 128)), (axes[1], (4, 8, 16, 32))):
        ax.set_xscale("log")
        ax.set_xticks(ticks, ticks)
        ax.minorticks_off()
    axes[0].set_ylabel("right")
    named = {line.get_label(): line for line in axes[1].lines[:-1]}
    where: Any = {"loc": "outside upper center", "ncols": 4, "fontsize": 8}
    axes[0].figure.legend(named.values(), named, **where)


def _shares(rows: Sequence[Mapping[str, Any]], kind: str, d_k: int) -> list[float]:
    return [row["right"]["32"] for row in rows if (row["kind"], row["d_k"]) == (kind, d_k)]


def _recall_numbers(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the shares of each seed; with more steps; and the window's within and beyond reach."""
    for kind in KINDS:
        for d_k in sorted({row["d_k"] for row in rows if row["kind"] == kind}):
            shares = (f"{share:.3f}" for share in _shares(rows, kind, d_k))
            print(f"{kind:<7} d_k {d_k:<4} 32 pairs:", *shares)
    longer = [row for row in stored()["recall"] if row["steps"] > rows[0]["steps"]]
    steps = f"{longer[0]['steps']} steps instead of {rows[0]['steps']}"
    print(f"linear, d_k {longer[0]['d_k']}, {steps}:", *(row["right"]["32"] for row in longer))
    window = [row["by distance"] for row in rows if row["kind"] == "window"]
    reach = stored()["settings"]["reach"]
    near = [sum(shares[:reach]) / reach for shares in window]  # means over the distances
    far = [sum(shares[reach:]) / len(shares[reach:]) for shares in window]
    print(f"window within its reach: {min(near):.3f} to {max(near):.3f}", end="   ")
    print(f"beyond: {min(far):.3f} to {max(far):.3f}   chance: {1 / VALUES:.3f}")


def cache_sizes() -> None:
    """Print what one sequence takes in the cache at the sizes of Llama 2 70B: 2 bytes a number.

    Only the number of key and value heads changes. The last line is a state of linear attention.
    """
    print(f"{'':<24}{'T = 4 096':>14}{'T = 100 000':>14}")
    for heads, name in {64: "multi-head", 8: "grouped-query", 1: "multi-query"}.items():
        sizes = [kv_cache_bytes(T, 80, heads, 128) / 2**30 for T in (4096, 100_000)]
        print(f"{name:<14} {heads:3} heads {sizes[0]:10.2f} GiB {sizes[1]:10.2f} GiB")
    state = 80 * 64 * (128 * 128 + 128) * 2 / 2**30
    print(f"state of linear attention{state:9.2f} GiB {state:10.2f} GiB")


def prefill_and_decode(operations_per_byte: Any) -> float:
    """Print operations for each byte read, d_model = 8 192, 4 096 tokens; counted.

    returns  those of decode with 256 sequences and no sharing
    """
    print(f"prefill of 4 096 tokens, one sequence: {operations_per_byte(4096, 0, 1, 8192):,.0f}")
    for batch in (1, 16, 256):
        found = {group: operations_per_byte(1, 4096, batch, 8192, group) for group in (1, 8, 64)}
        told = "   ".join(f"{found[group]:5.1f} in groups of {group}" for group in found)
        print(f"decode, {batch:3} sequences: {told}")
    return float(found[1])


def backward_memory(forward: Any, backward: Any) -> None:
    """Print the peak memory of forward and backward: autograd's table, and the learner's tiles."""

    def dense(q: Tensor, k: Tensor, v: Tensor) -> None:
        leaves = [x.requires_grad_() for x in (q, k, v)]
        masked_attention(*leaves).sum().backward()

    def tiles(q: Tensor, k: Tensor, v: Tensor) -> None:
        with torch.no_grad():
            context, lse = forward(q, k, v, 256)
            backward(q, k, v, context, lse, torch.ones_like(context), 256)

    for T in (1024, fewer(2048, 1024)):
        shown = [_peak(functools.partial(run, *qkv(T))) for run in (dense, tiles)]
        print(f"T {T:5,d}   forward and back: dense {shown[0]}   tiles {shown[1]}")
