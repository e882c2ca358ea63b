"""What the commands printed, and what a training left in its folder, as numbers."""

import csv
import json
import re

LADDER = re.compile(r"^  (\S.*?) +([\d,]+) +([\d.]+) +([\d,]+) +([\d.]+)%$", re.MULTILINE)
PEAK = re.compile(r"^matrix product in (\w+): ([\d.]+) TFLOP/s$", re.MULTILINE)
SPEED = re.compile(r"^  (\S.*?) +([\d,]+) +[\d.,]+ +[\d.,]+ +([\d.]+ \(.*?\)) +([\d,]+) +([\d.]+)$")
RACE = re.compile(
    r"(\w+), (\w+): (?:.*; ([\d,]+) tokens a step|\d+ tokens of each text, (\d+) side)"
)
SEARCH = re.compile(
    r"^(\S.*?) +([\d.]+) s +([\d.]+) s of processor +(\d+) tokens/s(?: +\((.*)\))?$", re.MULTILINE
)


def dry_run(text):
    """What a dry run foresees: seconds of a step and of a save, and how many steps it took.

    Returns {"step", "measured", "save", "new"}, or None if the text does not say it; "new" are the
    seconds that all batches of an epoch take more when they are read for the first time.
    """
    step = re.search(r"^ +a step  (\S+) s, of (\d+) measured", text, re.MULTILINE)
    save = re.search(r"^ +a save  (\S+) s with its evaluation", text, re.MULTILINE)
    if step is None or save is None:
        return None
    found = {"step": float(step[1]), "measured": int(step[2]), "save": float(save[1]), "new": 0.0}
    batches = re.search(r"epochs of ([\d ]+) batches$", text, re.MULTILINE)
    more = re.search(r"^ +a new batch  (\S+) s more", text, re.MULTILINE)
    if batches and more:
        found["new"] = float(more[1]) * int(batches[1].replace(" ", ""))
    return found


def training(folder):
    """result.json of a training, and the tokens of all its steps; None if it did not end."""
    try:
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        with open(folder / "metrics.csv", encoding="utf-8", newline="") as file:
            result["tokens"] = sum(int(row["tokens"]) for row in csv.DictReader(file))
    except (OSError, ValueError, KeyError):
        return None
    return result


def ladder(text):
    """The rungs as (name, tokens/s, ratio, MiB, percent), and the TFLOP/s of a product by type."""
    return LADDER.findall(text), dict(PEAK.findall(text))


def head(text):
    """The two lines in which the ladder says what it trains, as one."""
    found = re.search(r"^.* threads, torch \S+, (\w+) model,\n(.*)$", text, re.MULTILINE)
    return f"{found[1]}, {found[2]}" if found else ""


def peers(text, race="training"):
    """The contestants of a race in steps, "training" or "modern", or of "writing", in its order.

    Returns dicts of str: size, units (tokens of a step, or texts side by side), library, gap, rate
    (tokens/s), time, mib, memory, parameters.
    """
    rows, size, units, gaps = [], None, None, {}
    for line in text.splitlines():
        if found := RACE.match(line):
            size, units, gaps = found[2], found[3] or found[4], {}
            size = size if found[1] == race else None
        elif found := re.match(r"  (\S.*): largest difference (\S+?),?( |$)", line):
            gaps[found[1]] = found[2]
        elif size and (found := SPEED.match(line)):
            name, rate, time, mib, memory = found.groups()
            rows.append({"size": size, "units": units, "library": name, "gap": gaps.get(name)})
            rows[-1] |= {"rate": rate, "time": time, "mib": mib, "memory": memory}
            rows[-1]["parameters"] = ""
        elif found := re.match(r"  (\S.*): ([\d,]+) parameters", line):
            for row in rows:
                if (row["size"], row["library"]) == (size, found[1]):
                    row["parameters"] = found[2]
    return rows


def decoding(text):
    """The searches as (name, seconds, seconds of the processor, tokens/s, note), and the ratio."""
    ratio = re.search(r"^ratio: ([\d.]+)$", text, re.MULTILINE)
    return SEARCH.findall(text), ratio and ratio[1]
