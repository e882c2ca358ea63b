"""Lesson 15: spellers of numbers, a writer of English, what attention costs, readers of texts."""

import functools
import json
import math
import random
import string
import textwrap
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.decoding import sample_tokens
from attention.experiments import recorded
from attention.experiments.recorded import Experiment
from attention.masked_attention import causal_mask, masked_attention
from attention.provided.data import docstrings, novels
from attention.provided.data.numbers import in_words, is_test
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.figures import plots, seeds
from attention.provided.files import ROOT
from attention.provided.measuring import timing
from attention.provided.measuring.memory import megabytes
from attention.provided.models import model_file
from attention.provided.models.ngrams import NGrams
from attention.provided.models.translators import made_again
from attention.provided.progress import Bar
from attention.provided.training_steps import descend, fewer
from attention.tokens_and_positions import (
    bpe_decode,
    bpe_encode,
    count_words,
    split_words,
    train_bpe,
)

LESSON, SEEDS = "language_models", (0, 1, 2)

# Numbers, letter by letter

STEPS, WRITTEN, LONGEST = 300, 400, 50
LETTERS = " " + string.ascii_lowercase  # the id of a letter is its place here, plus 3
KEPT_BACK = "seven hundred"
BEGINNINGS = (KEPT_BACK, "two thousand seven hundred")


@functools.cache
def _numbers() -> tuple[str, ...]:
    """All numbers below ten thousand, in words."""
    return tuple(in_words(number, "en") for number in range(10_000))


def known_and_unseen() -> tuple[list[str], set[str]]:
    """The numbers below ten thousand to learn from, and the one in ten that is kept back."""
    unseen = {text for number, text in enumerate(_numbers()) if is_test(number)}
    return [text for text in _numbers() if text not in unseen], unseen


def batch_of(texts: Sequence[str]) -> Tensor:
    """Ids (B, T) of texts, with BOS and EOS."""
    rows = [[BOS, *(LETTERS.index(c) + 3 for c in text), EOS] for text in texts]
    T = max(map(len, rows))
    return torch.tensor([row + [PAD] * (T - len(row)) for row in rows])


def spelled(rows: Tensor) -> list[str]:
    """The texts of ids (B, T)."""
    return ["".join(LETTERS[i - 3] for i in row if i >= 3) for row in rows.tolist()]


def learn_numbers(
    DecoderOnly: Callable[..., Any],
    language_model_loss: Callable[..., Tensor],
    known: Sequence[str],
    seed: int = 0,
    steps: int = STEPS,
) -> tuple[Any, list[float]]:
    """A speller of two layers, trained on batches of 32 numbers; its losses, in nats per letter."""
    torch.manual_seed(seed)
    steps = fewer(steps)  # in the notebook, while nbgrader runs it
    model = DecoderOnly(30, d_model=64, n_heads=4, d_ff=128, n_layers=2, dropout=0.0)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
    draw = random.Random(seed)
    batches = (batch_of(draw.sample(known, 32)) for _ in range(steps))
    losses = (language_model_loss(model(tokens), tokens) for tokens in batches)
    with Bar(steps, "a speller of numbers") as bar:
        return model, descend(model, losses, optimizer, schedule, bar)


def draw_losses(losses: Sequence[float], unit: str) -> Axes:
    """Draw losses against training steps; ``unit`` is theirs."""
    return plots.lines(range(1, len(losses) + 1), {"loss": losses}, xlabel="step", ylabel=unit)


def sampler(temperature: float, seed: int = 0) -> Callable[[Tensor], Tensor]:
    """Draw from scores at a temperature, with this seed's noise: (B, vocab_size) -> (B,)."""
    noise = torch.Generator().manual_seed(seed)
    return lambda scores: sample_tokens(
        scores, torch.rand(len(scores), generator=noise), temperature
    )


def goes_on(model: Any, generate: Callable[..., Tensor]) -> None:
    """Print how a speller goes on greedily from beginnings, two of which it cannot have read."""
    for begin in ("", "seven hundred", "forty thousand", "nine thousand e", "twenty million"):
        prompt = batch_of([begin])[:, :-1]
        ids = generate(model, prompt, lambda logits: logits.argmax(dim=1), LONGEST)
        print(f"{begin or '(nothing)':<15} → {begin}{spelled(ids)[0]}")


def draws(model: Any, generate: Callable[..., Tensor]) -> dict[float, int]:
    """Print how many of 200 texts are numbers, and kept back, by temperature; returns the first."""
    count, every, unseen, right = fewer(200), set(_numbers()), known_and_unseen()[1], {}
    for t in (0.5, 1.0, 1.5):
        texts = spelled(generate(model, torch.full((count, 1), BOS), sampler(t), LONGEST))
        new, right[t] = (sum(text in some for text in texts) for some in (unseen, every))
        print(
            f"temperature {t}: {right[t]} of {count} are numbers, {new} kept back; one:", texts[0]
        )
    return right


def keep_back(
    seed: int,
    DecoderOnly: Callable[..., Any],
    language_model_loss: Callable[..., Tensor],
    generate: Callable[..., Tensor],
    steps: int = STEPS,
    written: int = WRITTEN,
) -> dict[str, float]:
    """Train without any number with KEPT_BACK in it; how many of the texts written are numbers.

    By itself the model writes so many texts, and half as many from each beginning on.
    """
    every = set(_numbers())
    kept = {text for text in every if KEPT_BACK in text}
    known = [text for text in _numbers() if text not in kept]
    model, losses = learn_numbers(DecoderOnly, language_model_loss, known, seed, steps)
    choose = sampler(1.0, seed)
    texts = spelled(generate(model, torch.full((written, 1), BOS), choose, LONGEST))
    found = {"loss": round(sum(losses[-20:]) / len(losses[-20:]), 4)}
    found["right"] = sum(text in every for text in texts)
    found["kept back"] = sum(text in kept for text in texts)
    for begin in BEGINNINGS:
        prompt = batch_of([begin])[:, :-1].repeat(written // 2, 1)
        ends = spelled(generate(model, prompt, choose, LONGEST))
        found[begin] = sum(begin + end in every for end in ends)
    return found


def spell(
    seed: int,
    DecoderOnly: Callable[..., Any],
    language_model_loss: Callable[..., Tensor],
    generate: Callable[..., Tensor],
    steps: int = STEPS,
    written: int = 200,
) -> dict[str, int]:
    """The lesson's speller: how many of its texts are numbers, and how many of those kept back."""
    known, unseen = known_and_unseen()
    model, _ = learn_numbers(DecoderOnly, language_model_loss, known, seed, steps)
    texts = spelled(generate(model, torch.full((written, 1), BOS), sampler(1.0, seed), LONGEST))
    numbers = set(_numbers())
    found = {"right": sum(text in numbers for text in texts)}
    return found | {"kept back": sum(text in unseen for text in texts)}


# English

MERGES, READ, PASSAGES, RATE, BRIEFLY, LEARNED = 768, 128, 8, 6e-3, 700, 3000
SIZES = {"d_model": 128, "n_heads": 4, "d_ff": 512, "n_layers": 2, "dropout": 0.0}
NOVELIST = ROOT / "data" / "novelist.safetensors"


@functools.cache
def merges() -> list[tuple[int, int]]:
    """768 merges of lesson 08's BPE, learned from the three novels to learn from."""
    words, counts = count_words([novels.split()[0]])
    learned: list[tuple[int, int]] = train_bpe(words, counts, MERGES)
    return learned


@functools.cache
def _tokens_of(word: str) -> list[int]:
    return bpe_encode(word, merges())


def tokens_of(text: str) -> Tensor:
    """(T,) ids of a text; a word that comes again is looked up."""
    return torch.tensor([i for word in split_words(text) for i in _tokens_of(word)])


def learn_novels(
    model: Any,
    language_model_loss: Callable[..., Tensor],
    steps: int,
    seed: int = 0,
    text: str | None = None,
    rate: float = RATE,
) -> list[float]:
    """Train on passages of READ tokens of a text, or of three novels; losses in nats per token."""
    ids = tokens_of(text or novels.split()[0])
    draw = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps, pct_start=max(0.1, 2 / steps)
    )

    def loss(_: int) -> Tensor:
        begin = torch.randint(len(ids) - READ, (PASSAGES, 1), generator=draw)
        passages = ids[begin + torch.arange(READ + 1)]
        return language_model_loss(model(passages), passages)

    with Bar(steps, "passages") as bar:
        return descend(model, map(loss, range(steps)), optimizer, schedule, bar, max_norm=1.0)


def novelist(DecoderOnly: Callable[..., Any]) -> Any:
    """A DecoderOnly with the stored weights: those of seed 0, after LEARNED steps."""
    model = DecoderOnly(256 + MERGES, **SIZES)
    with made_again("python -m benchmarks.novelist"):
        model_file.put(model_file.load(NOVELIST)[0], model, NOVELIST)
    return model.eval()


def go_on(
    model: Any, generate: Callable[..., Tensor], begin: str, temperature: float, seed: int = 0
) -> str:
    """A beginning, and the hundred tokens that a model draws after it, on lines of 96 letters."""
    ids = generate(model, tokens_of(begin)[None], sampler(temperature, seed), 100)
    lines = (begin + bpe_decode(ids[0].tolist(), merges())).split("\n")
    return "\n".join(textwrap.fill(line, 96) for line in lines)


@torch.no_grad()
def bits_a_character(model: Any, text: str) -> float:
    """What a model needs for a text it has not read: each token sees READ / 2 or more before it."""
    ids, half, total = tokens_of(text), READ // 2, 0.0
    starts = torch.arange(0, len(ids) - READ, half)
    for begin in starts.split(16):
        passages = ids[begin[:, None] + torch.arange(READ + 1)]
        log_p = torch.log_softmax(model(passages[:, :-1]), dim=2)[:, half:]
        total -= log_p.gather(2, passages[:, half + 1 :, None]).sum().item()
    return total / math.log(2) / (len(starts) * half) * len(ids) / len(text)


def write_english(
    seed: int,
    DecoderOnly: Callable[..., Any],
    language_model_loss: Callable[..., Tensor],
    steps: int = LEARNED,
    characters: int | None = None,
) -> dict[str, Any]:
    """Train a decoder on three novels; bits for each character of the one for testing.

    characters  how much of that is read; None: all
    """
    torch.manual_seed(seed)
    model = DecoderOnly(256 + MERGES, **SIZES)
    losses = learn_novels(model, language_model_loss, steps, seed)
    curve = [sum(losses[i : i + 50]) / len(losses[i : i + 50]) for i in range(0, steps, 50)]
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "losses": [round(value, 3) for value in curve],
        "test": round(bits_a_character(model, novels.split()[2][:characters]), 4),
    }


def count_english(unit: str, order: int, kept: int | None) -> dict[str, Any]:
    """The control: counts of runs of tokens or of characters, and no training."""
    ids_of = tokens_of if unit == "tokens" else lambda text: torch.tensor(list(text.encode()))
    learn, choose, test = novels.split()
    model = NGrams(ids_of(learn), order, 256 + MERGES, kept)
    return {
        "stored": model.stored,
        "to choose by": round(model.bits(ids_of(choose)) / len(choose), 4),
        "test": round(model.bits(ids_of(test)) / len(test), 4),
    }


def judged_on_persuasion() -> list[float]:
    """Print the recorded bits per character, of the model and of counts; returns the model's.

    Of the counts of a size, those are taken that do best on the novel to choose by.
    """
    rows = recorded.read(LESSON, "counts")
    print(f"{'bits per character of “Persuasion”':<58}stored")
    print(f"{'every character as likely':<50}{math.log2(len(set(novels.split()[0]))):6.2f}")
    for title, kept in (("as many counts as weights", PARAMETERS), ("all counts", None)):
        some = [row for row in rows if row["kept"] == kept]
        best = min(some, key=lambda row: row["to choose by"])
        name = f"{title}, of up to {best['order']} {best['unit']}"
        print(f"{name:<50}{best['test']:6.2f}  {best['stored']:8,}")
    for steps in (BRIEFLY, LEARNED):
        trained = seeds.where(recorded.read(LESSON, "English"), steps=steps)
        found = [row["test"] for row in trained]
        name = f"decoder, {steps:5,} steps, seeds 0, 1, 2"
        shown = "  ".join(f"{value:.2f}" for value in found)
        print(f"{name:<38}{shown:>18}  {PARAMETERS:8,}")
    return found


# What the lesson draws and prints


def what_examples_do() -> None:
    """Print a text that sets a task, and how many next tokens of a published decoder are right."""
    stored: dict[str, Any] = json.loads((ROOT / "data" / "prompts.json").read_text("utf-8"))
    print(stored["prompt"], f"\n\nright of {stored['asked']}, by seed")
    for kind, found in stored["right"].items():
        shares = (f"{task} {'  '.join(map(str, right)):<13}" for task, right in found.items())
        print(f"{kind:<32}", *shares)


def what_it_costs(M: int = 2048, N: int = 64) -> dict[str, list[float]]:
    """Print visible scores and milliseconds of each attention, for 2 heads of 32 numbers.

    Milliseconds are the processor's, on one thread, the shortest of several runs: dense forward,
    fused forward, and the two with the backward pass. Where there is a mask, both are given it.
    Two controls: an encoder with a mask that hides nothing, and a decoder only without its mask.
    """
    text, summary, both = (torch.randn(1, 2, T, 32, requires_grad=True) for T in (M, N, M + N))
    everything = torch.ones(M, M, dtype=torch.bool)
    runs: dict[str, tuple[Tensor, Tensor, bool | Tensor]] = {
        "encoder": (text, text, False),
        "  given a mask": (text, text, everything),
        "cross-attention": (summary, text, False),
        "decoder": (summary, summary, True),
        "decoder only": (both, both, True),
        "  without its mask": (both, both, False),
    }
    print(f"{'':<28}   ms, forward     with backward")
    print(f"{'':<18}{'visible':>10}   dense  fused    dense  fused")
    spent: dict[str, list[float]] = {}
    for name, (q, k, causal) in runs.items():
        T, given = q.shape[2], causal if isinstance(causal, Tensor) else None
        mask = causal_mask(T) if causal is True else given
        fused = functools.partial(F.scaled_dot_product_attention, is_causal=causal is True)
        ways: list[Callable[[], Tensor]] = [
            functools.partial(masked_attention, q, k, k, mask),
            functools.partial(fused, q, k, k, given),
        ]
        with torch.no_grad():
            spent[name] = [timing.shortest(way) for way in ways]
        inputs = [q] if q is k else [q, k]
        spent[name] += [timing.shortest(timing.both_ways(way, inputs)) for way in ways]
        visible = T * (T + 1) // 2 if causal is True else T * k.shape[2]
        print(f"{name:<18}{visible:10,}{''.join(f'  {ms:6.1f}' for ms in spent[name])}")
    return spent


def who_may_look(T: int = 24, block: int = 6, stride: int = 3) -> Any:
    """Draw which of T positions may look at which, and count the pairs; returns the Axes."""
    t, causal = torch.arange(T), causal_mask(T)
    masks = {
        "dense": causal,
        f"local, block = {block}": causal & (t[:, None] // block == t // block),
        f"compressed, stride = {stride}": t[stride - 1 :: stride] <= t[:, None],
    }
    axes = plots.panels(columns=3, width=3.0, height=2.9, share=False)
    for ax, (name, mask) in zip(axes, masks.items(), strict=True):
        plots.heatmap(mask.double(), ax, f"{name}: {int(mask.sum())}", colorbar=False)
    return axes


def changed_by_token_7(
    attentions: dict[str, Callable[..., Tensor]], compress: Callable[..., Tensor]
) -> None:
    """Change one of 12 tokens, and print at which positions the output changes.

    attentions  label → a function like `memory_compressed_attention`: (q, k, v, stride) -> context
    """
    torch.manual_seed(0)
    x, weight = torch.randn(12, 8), torch.randn(3, 8, 8)
    other = x.index_add(0, torch.tensor([7]), torch.ones(1, 8))
    for name, attend in attentions.items():
        keys = (compress(one, weight) for one in (x, other))
        before, after = (attend(torch.ones(12, 8), k, k, 3) for k in keys)
        changed = ((before - after).abs().amax(dim=1) > 1e-6).nonzero().flatten()
        print(f"{name:<16} token 7 changes the output at", changed.tolist())


def time_and_memory(
    local_block_attention: Callable[..., Tensor],
    compress: Callable[..., Tensor],
    memory_compressed_attention: Callable[..., Tensor],
) -> Any:
    """Draw time and memory against the length, of four causal attentions; returns the Axes.

    Two heads of 32 numbers; one run on one thread. Memory is that of every tensor that is made.
    """
    lengths, found = (256, 512, 1024, 2048), [dict[str, list[float]]() for _ in range(3)]
    for T in lengths:
        q, k, v = (torch.randn(1, 2, T, 32, requires_grad=True) for _ in range(3))
        weight, mask = torch.randn(3, 32, 32), causal_mask(T)
        ways: dict[str, Callable[..., Tensor]] = {
            "dense": lambda q, k, v, mask=mask: masked_attention(q, k, v, mask),
            "compressed by 3": lambda q, k, v, weight=weight: memory_compressed_attention(
                q, compress(k, weight), compress(v, weight), 3
            ),
            "local, 256": lambda q, k, v: local_block_attention(q, k, v, 256),
            "fused": functools.partial(F.scaled_dot_product_attention, is_causal=True),
        }
        for name, way in ways.items():
            run = functools.partial(way, q, k, v)
            both = timing.both_ways(run, (q, k, v))
            with torch.no_grad():
                found[0].setdefault(name, []).append(timing.shortest(run))
            found[1].setdefault(name, []).append(timing.shortest(both))
            found[2].setdefault(name, []).append(megabytes(both))
    return _against_length(lengths, found)


def _against_length(lengths: Sequence[int], found: Sequence[dict[str, list[float]]]) -> Any:
    axes = plots.panels(columns=3, width=3.3, height=3.0, share=False)
    titles = ("time, forward", "time, forward and backward", "memory, forward and backward")
    units = ("milliseconds", "", "megabytes")
    for ax, named, title, unit in zip(axes, found, titles, units, strict=True):
        plots.lines(lengths, named, ax, title, "T", unit, log=True)
        ax.set_yscale("log")
        ax.set_xticks(lengths, lengths)
        ax.minorticks_off()
    span = axes[0].get_ylim()[0], axes[1].get_ylim()[1]  # one scale for both times
    for ax in axes[:2]:
        ax.set_ylim(*span)
        ax.get_legend().remove()
    return axes


def readers() -> dict[str, Any]:
    """Print and draw what nine readers of long texts found; returns the record."""
    found: dict[str, Any] = json.loads((ROOT / "data" / "language_models.json").read_text("utf-8"))
    print(f"{'':<34}{'weights':>7}  reads  scores  CPU s  {'found':<18}  without error")
    for name, row in found["models"].items():
        numbers = f"{row['parameters']:7,}  {row['reads']:5}  {row['scores']:6,}"
        seconds = sum(row["seconds"]) / len(row["seconds"])
        shares = ["  ".join(f"{x:.2f}" for x in row[key]) for key in ("found", "exact")]
        print(f"{name:<34}{numbers}  {seconds:5.0f}  {shares[0]:<18}  {shares[1]}")
    for name, (share, exact) in found["baselines"].items():
        print(f"{name:<65}{share:<18.2f}  {exact:.2f}")
    ax = plots.panels(width=7.5, height=3.6)
    for place, row in enumerate(found["models"].values()):
        ax.plot(row["found"], [place] * len(row["found"]), "o", color=plots.BLUE, alpha=0.7)
    for (name, (share, _)), style in zip(found["baselines"].items(), (":", "--"), strict=True):
        ax.axvline(share, color=plots.GREY, linestyle=style, linewidth=1.2, label=name)
    ax.set_yticks(range(len(found["models"])), found["models"])
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.02), xlabel="share of the topic words found")
    plots.legend(ax, fontsize=8, loc="upper center", bbox_to_anchor=(0.35, 1.18), ncols=2)
    return found


def mixture_beside_one(mixture: Any, d_model: int = 64, d_ff: int = 128) -> None:
    """Print weights and milliseconds, forward and backward: a mixture, one network as wide as k."""
    one = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
    count, other = (sum(p.numel() for p in layer.parameters()) for layer in (mixture, one))
    print(f"parameters: mixture {count:,}, one network {other:,}")
    for tokens in (2128, 8512):
        x, told = torch.randn(1, tokens, d_model), []
        for layer in (mixture, one):
            action = timing.both_ways(functools.partial(layer, x), [*layer.parameters()])
            told.append(timing.shortest(action))
        print("{:,} tokens: mixture {:.1f} ms, one network {:.1f} ms".format(tokens, *told))


def shares_of_experts(found: dict[str, Any]) -> None:
    """Draw the largest share of all choices that fell on one of four experts, by layer."""
    axes = plots.panels(columns=2, width=3.6, height=2.4)
    for ax, layer in zip(axes, (0, 1), strict=True):
        for place, name in enumerate(("the same with experts", "experts, not balanced")):
            shares = [seed[layer] for seed in found["models"][name]["largest share"]]
            ax.plot([place] * len(shares), shares, "o", color=plots.BLUE, alpha=0.7)
        ax.axhline(0.25, color=plots.GREY, linestyle="--", linewidth=1.2)
        ax.set(title=f"layer {layer}", ylim=(0, 0.55), xlim=(-0.6, 1.6))
        ax.set_xticks([0, 1], ["with the loss", "without it"])
    axes[0].set_ylabel("largest share")


def near_twins(rows: Sequence[docstrings.Docstring]) -> float:
    """Print the share of test rows with a near twin in training, by split; returns "at random".

    Near twins share at least half of their runs of five words; one row in ten is for tests.
    """
    near = defaultdict(set)
    for i, j in docstrings.twins(rows):
        near[i].add(j)
        near[j].add(i)
    print(f"{'split':<14}  test rows  with a near twin in training")
    shares = {}
    for how, key in docstrings.SPLITS.items():
        test = {i for i, row in enumerate(rows) if docstrings.is_test(key(row))}
        shares[how] = sum(bool(near[i] - test) for i in test) / len(test)
        print(f"{how:<14}  {len(test):9}  {shares[how]:.1%}")
    return shares["at random"]


def rules(rows: Sequence[docstrings.Docstring]) -> dict[str, float]:
    """Print the ROUGE-L of rules that learn nothing, with bootstrap intervals; rule → its mean."""
    learn, test = docstrings.split(rows)
    print(f"{len(learn)} rows to learn from, {len(test)} to test\n")
    draw, reached = torch.Generator().manual_seed(0), {}
    for name, rule in docstrings.RULES.items():
        scores = torch.tensor(docstrings.rouge_l([rule(row) for row in test], test))
        again = scores[torch.randint(len(test), (1000, len(test)), generator=draw)].mean(dim=1)
        low, high = again.quantile(torch.tensor([0.025, 0.975])).tolist()
        reached[name] = scores.mean().item()
        print(f"{name:<28} {reached[name]:.3f}   95 %: {low:.3f} to {high:.3f}")
    return reached


def first_lines() -> dict[str, Any]:
    """Draw ROUGE-L of a model that writes first lines, and of rules; returns the record."""
    record: dict[str, Any] = json.loads((ROOT / "data" / "docstrings.json").read_text("utf-8"))
    ax, place = plots.panels(width=8.4, height=3.6), -1.0
    for point in record["points"]:
        ax.plot(point["seconds"] / 60, point["rouge_l"], "o", color=plots.BLUE, alpha=0.7)
    for name, score in sorted(record["rules"].items(), key=lambda rule: rule[1]):
        ax.axhline(score, color=plots.GREY, linewidth=1.0)
        place = max(score, place + 0.017)
        where = {"xy": (1, score), "xytext": (1.04, place), "va": "center", "fontsize": 8}
        where |= dict.fromkeys(("xycoords", "textcoords"), ax.get_yaxis_transform())
        arrow = {"arrowstyle": "-", "color": plots.GREY, "lw": 0.6, "relpos": (0, 0.5)}
        ax.annotate(f"{score:.3f}  {name}", arrowprops=arrow, **where)
    ax.set(xscale="log", xlabel="minutes of training on one core", ylabel="ROUGE-L", ylim=(0, None))
    ax.set_xticks([0.1, 1, 3, 10], ["0.1", "1", "3", "10"])
    return record


def examples_of(record: dict[str, Any]) -> None:
    """Print first lines that were wanted, and written by the model of seed 0 after more steps."""
    for place, row in enumerate(record["shown"]):
        print(
            f"{row['name']}: {textwrap.shorten(row['body'], 80)}\n       wanted  {row['summary']}"
        )
        for point in record["points"]:
            if point["seed"] == 0:
                print(f"{point['steps']:7} steps  {point['wrote'][place]}")
        print()


SHORT = {"seed": 0, "steps": 30, "written": 10}
SHORT_ENGLISH = {"seed": 0, "steps": 20, "characters": 20_000}
PARAMETERS = 658_944  # of the writer: so many counts the control may keep
COUNTS = [
    *({"unit": "tokens", "order": order} for order in (3, 4, 5)),
    *({"unit": "characters", "order": order} for order in (7, 8)),
]

EXPERIMENTS = {
    "seven hundred": Experiment(
        points=[*({"seed": seed} for seed in SEEDS), SHORT],
        run=keep_back,
        again=SHORT,
    ),
    "one in ten": Experiment(
        points=[{"seed": seed} for seed in SEEDS],
        run=spell,
        again=None,
    ),
    "English": Experiment(
        points=[
            *({"seed": seed, "steps": steps} for steps in (BRIEFLY, LEARNED) for seed in SEEDS),
            SHORT_ENGLISH,
        ],
        run=write_english,
        again=SHORT_ENGLISH,
    ),
    "counts": Experiment(
        points=[{**row, "kept": kept} for kept in (PARAMETERS, None) for row in COUNTS],
        run=count_english,
        again={"unit": "tokens", "order": 3, "kept": PARAMETERS},
    ),
}
