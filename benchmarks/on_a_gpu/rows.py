"""What was measured, as Markdown with the columns of docs/training.md, and its place there."""

import re
import shlex
import textwrap

from autograder.terminal_output import readable
from benchmarks.on_a_gpu import machine, readings
from benchmarks.on_a_gpu.running import as_typed
from benchmarks.on_a_gpu.steps import STEPS

TRAINING = (
    "model|parameters|steps|tokens, both sides|time|tokens/s|val|`test_2016_flickr`|device|date"
)
LADDER = "rung|tokens/s|ratio|MiB|MFU"
PEERS = "size|library|parameters|largest difference of a logit|time|MiB|memory"
WRITING = "size|texts side by side|library|tokens/s|time"
DECODING = "search|time|processor time|tokens/s"
WIDTH = 100
SECTION = "## On a GPU"
BEGIN, END = (f"<!-- {word} of what benchmarks/on_a_gpu.sh wrote -->" for word in ("begin", "end"))
BLEU = (
    "BLEU, its text and the length penalty are as above; tokens are those of both sides, without "
    "padding."
)


def prose(*sentences):
    """A paragraph in lines of the page's width, and an empty line."""
    text = " ".join(sentences)
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [*lines, ""] if text else []


def folded(line):
    """A command in lines of the page's width, each but the last with a backslash."""
    words = [shlex.quote(word).replace(" ", "\0") for word in shlex.split(line)]
    lines = textwrap.wrap(
        " ".join(words),
        WIDTH - 2,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return " \\\n".join(lines).replace("\0", " ")


def table(columns, rows):
    """A Markdown table; nothing without rows."""
    if not rows:
        return []
    names = columns.split("|")
    lines = [names, ["---"] * len(names), *rows]
    made = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    made[1] = made[1].replace(" ", "")
    return [re.sub("  +", " ", line) for line in made] + [""]


def of_training(plan):
    """The lines on the training."""
    result, outcome = readings.training(plan.run), plan.results.of("training")
    if outcome is None or outcome.status != "done" or result is None:
        return []
    row = [
        "this course",
        readable(result["parameters"]),
        readable(result["steps"]),
        f"{result['tokens'] / 1e6:.3g} million",
        f"{readable(round(result['training_seconds']))} s",
        readable(result["tokens_per_second"]),
        f"{result['val']:.2f}",
        f"**{result['test']:.2f}**",
        result["device"],
        result["date"],
    ]
    judged = result["val_seconds"] + result["test_seconds"]
    said = f"`{result['signature']}`. {BLEU} The translations took {judged:.0f} s."
    return [*table(TRAINING, [row]), *prose(*chosen(outcome), said)]


def chosen(outcome):
    """How many steps were taken, and why."""
    notes = outcome.notes
    if "steps" not in notes:
        return []
    foreseen = (
        f"The dry run foresaw {notes['step']} s a step and {notes['save']} s a save, so "
        f"{readable(notes['steps'])} steps "
    )
    if notes["steps"] == notes["aim"]:
        foreseen += f"fit into the {notes['seconds']:.0f} s that the training had."
    else:
        foreseen += (
            f"fit into the {notes['seconds']:.0f} s that the training had: fewer than the "
            f"{readable(notes['aim'])} that were the aim."
        )
    if "first" in notes:
        foreseen += " It was cut when its time was over, and resumed."
    return [foreseen]


def of_ladder(plan):
    """The lines on the speed ladder."""
    text = plan.results.text("ladder")
    rungs, peaks = readings.ladder(text)
    rows = [
        [name, spaced(speed), ratio, spaced(mib), f"{share} %"]
        for name, speed, ratio, mib, share in rungs
    ]
    if not rows:
        return []
    measured = ", ".join(f"{number} TFLOP/s in {dtype}" for dtype, number in peaks.items())
    about = f"The model is {readings.head(text)}. The peak behind the MFU: {measured}."
    return [*table(LADDER, rows), *prose(about)]


def of_peers(plan, step="peers", race="training", sides="both sides"):
    """The lines on the other libraries' training steps."""
    rows, size = [], None
    found = readings.peers(plan.results.text(step), race)
    for one in found:
        rows.append(
            [
                one["size"] if one["size"] != size else "",
                named(one["library"]),
                spaced(one["parameters"]),
                (one["gap"] or "").replace("e-0", "e-").replace("0e+00", "0"),
                one["time"] if one["gap"] else "1.00",
                spaced(one["mib"]),
                one["memory"],
            ]
        )
        size = one["size"]
    if not rows:
        return []
    tokens = {one["size"]: spaced(one["units"]) for one in found}
    steps = ", ".join(f"{name} {number}" for name, number in tokens.items())
    if plan.device == "cuda":
        how = "Time is that of the clock, memory the peak of PyTorch's allocator"
    else:
        how = "Time is processor time, memory the peak of the process"
    return [*table(PEERS, rows), *prose(f"{how}.", f"Tokens of a step, {sides}: {steps}.")]


def of_modern(plan):
    """The lines on lesson 20's decoder: training steps, then writing."""
    found = readings.peers(plan.results.text("modern"), "writing")
    rows = [
        [one["size"], one["units"], named(one["library"]), spaced(one["rate"]), one["time"]]
        for one in found
    ]
    return [*of_peers(plan, "modern", "modern", "all predicted"), *table(WRITING, rows)]


def of_decoding(plan):
    """The lines on greedy and beam search."""
    text = plan.results.text("decoding")
    searches, ratio = readings.decoding(text)
    rows = [
        [name, f"{wall} s", f"{used} s", readable(int(speed))]
        for name, wall, used, speed, _ in searches
    ]
    if not rows:
        return []
    first = re.sub(r"(?<=\d),(?=\d)", " ", text.splitlines()[0])
    scaled = next((note for *_, note in searches if note), "")
    said = [f"Without a cache: {scaled}."] if scaled else []
    if ratio:
        said.append(f"A beam search without a cache takes {ratio} times as long as with one.")
    return [*table(DECODING, rows), *prose(f"{first}.", *said)]


def spaced(number):
    """A number that was printed as 1,234, in groups of three as elsewhere."""
    return number.replace(",", " ")


def named(library):
    """A library as docs/training.md calls it, with its version."""
    if library == "course":
        return "this course"
    if library.startswith("transformers, "):
        return library.replace(",", f" {machine.version('transformers')},", 1)
    package = {"MarianMT": "transformers"}.get(library, library)
    known = machine.version(package) if package in machine.PEERS else None
    if library == "MarianMT":
        return f"MarianMT, transformers {known}"
    return f"{library} {known}" if known else library


PARTS = {
    "Multi30k, English to German": (("corpus", "training"), of_training),
    "The speed ladder": (("ladder",), of_ladder),
    "Beside other libraries": (("peers",), of_peers),
    "Lesson 20's decoder": (("modern",), of_modern),
    "Decoding": (("decoding",), of_decoding),
}


def rows(plan, facts, why):
    """All of the Markdown.

    why  {step: one sentence} for each step that could not be done at all
    """
    known = {step.name: plan.results.of(step.name) for step in STEPS}
    days = sorted({outcome.date for outcome in known.values() if outcome})
    lines = prose(f"Measured on {', '.join(days)}: {machine.sentence(facts)}.")
    if plan.small:
        lines[:0] = ["A rehearsal, with a small corpus and small sizes: nothing here counts.", ""]
    for title, (steps, made) in PARTS.items():
        lines += [f"### {title}", "", *made(plan)]
        commands = [line for step in steps for line in typed(plan, known[step])]
        if commands:
            lines += ["```sh", *commands, "```", ""]
        found = [why.get(step) or (known[step] and known[step].why) for step in steps]
        lines += [line for one in found if one for line in prose(f"Not whole: {one}.")]
        if not commands and not any(found):
            lines += ["Not measured yet.", ""]
    return "\n".join(lines).rstrip() + "\n"


def typed(plan, outcome):
    """The commands of a step as one would type them, one after the other."""
    if outcome is None:
        return []
    commands = [*outcome.notes.get("first", []), *outcome.commands]
    lines = [as_typed(command) for command in commands]
    if plan.corpus:  # where the texts were is nobody's business
        lines = [line.replace(plan.corpus.resolve().as_uri(), "file:///FOLDER") for line in lines]
    return [folded(line) for line in lines]


def put(text, made):
    """The text of docs/training.md with the rows in it; those of an earlier time are replaced.

    Raises ValueError, in one sentence, if it has no place for them.
    """
    block = f"{BEGIN}\n{made.rstrip()}\n{END}"
    if text.count(BEGIN) == text.count(END) == 1 and text.index(BEGIN) < text.index(END):
        before, rest = text.split(BEGIN)
        return before + block + rest.split(END)[1]
    if BEGIN in text or END in text:
        raise ValueError(f"needs each of {BEGIN} and {END} once, in this order, or none of them")
    if f"\n{SECTION}\n" not in text:
        raise ValueError(f"has no section {SECTION!r} for the rows")
    before, rest = text.split(f"\n{SECTION}\n")
    inside, mark, after = rest.partition("\n## ")
    inside = f"{inside.rstrip()}\n\n{block}\n"
    return f"{before}\n{SECTION}\n{inside}{mark}{after}"
