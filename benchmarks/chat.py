"""How SmolLM2 answers in the course's layers, beside transformers.

    python -m benchmarks.chat [--rounds 5] [--length 100] [--threads 1 2]
    python -m benchmarks.chat --questions

The first prints how far the scores are from those of transformers' LlamaForCausalLM with the same
weights, in float32; how long each takes for a token, one text, the best token each time, in rounds
one after the other, by the clock and in processor time, which what else runs disturbs less; and the
most memory that a process of each takes. The second asks ten questions. It needs what `autograder
data fetch smollm2` fetches, and transformers, `pip install -e '.[peers]'`.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from attention.modern_decoder import ModernDecoder
from attention.provided.models.decoders import smollm2
from attention.provided.models.decoders.llama import renamed
from attention.train.core.sampling import Sampling
from attention.train.write_run import published, write
from benchmarks.llama_outputs import decoder

CPU, GREEDY = torch.device("cpu"), Sampling(temperature=0)
LONG = "Write a long story about a fisherman who finds a map in a bottle."
PROMPTS = (
    LONG,
    "What is the capital of France?",
    "Write a function in Python that reverses a list.",
    "Übersetze: Der Löwe schläft in der Sonne.",
)
QUESTIONS = (
    "What is the capital of France?",
    "Who wrote Romeo and Juliet?",
    "What is 7 times 8?",
    "How many days are in a leap year?",
    "What is the opposite of hot?",
    "Translate into German: Good morning, my friend.",
    "Which planet is closest to the sun?",
    "What colour do you get when you mix blue and yellow?",
    "Which is heavier, a kilogram of feathers or a kilogram of iron?",
    "How many letters r are in the word strawberry?",
)


def ours():
    """A function of a prompt's ids and a length that writes as `attention.chat` does."""
    run = published(CPU)
    return lambda ids, length: write(run, ids, GREEDY, length, lambda token: None)


def of_transformers():
    """The same by transformers' `generate`."""
    model = twin(smollm2.load(ModernDecoder, smollm2.read()))
    ends = {"eos_token_id": 2, "pad_token_id": 0, "do_sample": False, "use_cache": True}

    def goes_on(ids, length):
        read = torch.tensor([ids])
        mask = torch.ones_like(read)
        found = model.generate(read, attention_mask=mask, max_new_tokens=length, **ends)
        return found[0, len(ids) :].tolist()

    return goes_on


WAYS = {"the course": ours, "transformers": of_transformers}


def twin(model):
    """Transformers' model with the weights of a ModernDecoder."""
    sizes = smollm2.sizes(smollm2.read())
    made = decoder("llama", sizes, {name: sizes[name] for name in ("base", "eps")})
    weights = model.state_dict()
    for name, weight in made.state_dict().items():
        if name != "lm_head.weight":  # of a tied model, the table of the embedding
            heads = {"q_proj": sizes["n_heads"], "k_proj": sizes["n_kv_heads"]}
            own, kind = weights[renamed(name)], name.split(".")[-2]
            weight.copy_(in_halves(own, heads[kind]) if kind in heads else own)
    return made


def in_halves(weight, n_heads):
    """The rows of each head in transformers' order: what lesson 20's `pair_up` undoes."""
    return weight.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def asked(tokens, question):
    """The ids of a question, as `attention.chat` asks it."""
    return tokens.encode(smollm2.prompt([("user", question)]))


@torch.inference_mode()
def faithful(file, tokens):
    """Print how far scores are from those of transformers: of all tokens, and of the next one."""
    model = smollm2.load(ModernDecoder, file)
    other, quick = twin(model), published(CPU).quick
    far, quickly, largest, same, count = 0.0, 0.0, 0.0, 0, 0
    for prompt in PROMPTS:
        ids = torch.tensor([asked(tokens, prompt)])
        theirs, own = other(ids).logits, model(ids)[0]
        far = max(far, (theirs - own).abs().max().item())
        quickly = max(quickly, (theirs[:, -1:] - quick(ids)[0]).abs().max().item())
        largest = max(largest, theirs.abs().max().item())
        same += (theirs.argmax(2) == own.argmax(2)).sum().item()
        count += ids.numel()
    print(
        f"{len(PROMPTS)} prompts, {count} tokens: logits are up to {far:.1e} from transformers', "
        f"those that `attention.chat` writes with up to {quickly:.1e}; the largest is "
        f"{largest:.1f}; the best next token is the same for {same} of {count}",
        flush=True,
    )


def speed(ids, length, rounds, threads):
    """Print how many tokens a second each way writes, and the ratios to transformers."""
    torch.set_num_threads(threads)
    ways = {name: make() for name, make in WAYS.items()}
    for write_on in ways.values():
        write_on(ids, 8)  # so that nobody pays for the start
    taken, wrote = {name: [] for name in ways}, {}
    for _ in range(rounds):
        for name, write_on in ways.items():
            begin, used = time.perf_counter(), time.process_time()
            wrote[name] = write_on(ids, length)
            taken[name].append((time.perf_counter() - begin, time.process_time() - used))
    print(f"threads {threads}, prompt of {len(ids)} tokens, {rounds} rounds")
    for name in taken:
        same = sum(a == b for a, b in zip(wrote[name], wrote["transformers"], strict=False))
        print(f"{name:>14}: {same} of {len(wrote[name])} tokens alike", end="")
        for clock, kind in enumerate(("time", "processor time")):
            own, other = ([one[clock] for one in taken[n]] for n in (name, "transformers"))
            ratios = [b / a for a, b in zip(own, other, strict=True)]
            print(
                f"; {kind} {1000 * statistics.median(own) / len(wrote[name]):.0f} ms a token, "
                f"{statistics.median(ratios):.2f} times as fast as transformers "
                f"({min(ratios):.2f} to {max(ratios):.2f})",
                end="",
            )
        print(flush=True)


def memory(name, length):
    """Print what this process takes with one way to write in it, and at most while it was loaded.

    Transformers' model is made of one of the course's, which is there meanwhile.
    """
    before = in_use("VmRSS")
    write_on = WAYS[name]()
    write_on(list(range(40, 80)), length)
    now, most = in_use("VmRSS"), in_use("VmHWM")
    print(f"{name:>14}: {now:.0f} MiB, {before:.0f} of them before; at most {most:.0f}")


def in_use(what):
    """The memory that this process has now (VmRSS) or had at most (VmHWM), in MiB; on Linux."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{what}:")[2].split()[0]) / 1024


def questions(tokens):
    """Print ten questions, each with its answer."""
    write_on = ours()
    for number, question in enumerate(QUESTIONS, 1):
        answer = tokens.decode(write_on(asked(tokens, question), 80))
        print(f"{number}. {question}\n   {answer}", flush=True)


def main(arguments=None):
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--questions", action="store_true")
    parser.add_argument("--memory", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.memory:
        memory(options.memory, options.length)
        return 0
    run, file = published(CPU), smollm2.read()
    if options.questions:
        questions(run.pieces)
        return 0
    faithful(file, run.pieces)
    for threads in options.threads:
        speed(asked(run.pieces, LONG), options.length, options.rounds, threads)
    for name in WAYS:
        command = [sys.executable, "-m", "benchmarks.chat", "--memory", name]
        subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
