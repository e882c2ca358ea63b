"""The command for a machine with a GPU, rehearsed without one: steps, rows, and what goes wrong."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.on_a_gpu import __main__ as command
from benchmarks.on_a_gpu import machine, readings, rows, running, steps
from benchmarks.on_a_gpu.running import Results, StepFailed
from benchmarks.on_a_gpu.steps import Plan, Step
from benchmarks.peers import __main__ as peers
from benchmarks.peers.racing import Result
from tests.waiting import LONG, until

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "on_a_gpu.sh"
DOCS = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
CHEAP = ["corpus", "probe", "training", "ladder", "decoding"]  # the peers need many processes


def call(out, *words):
    """Call the module in this process."""
    return command.main(["--device", "cpu", "--small", "--out", str(out), *words])


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    """The folder of a rehearsal with made-up sentences."""
    out = tmp_path_factory.mktemp("rehearsed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        status = call(out, "--minutes", "300", "--only", *CHEAP)
    logs = {path.name: path.read_text() for path in out.glob("*.log")}
    assert status == 0, logs
    return out


def tables(text):
    """The tables of a Markdown text: lists of rows, lists of cells; the first is the header."""
    found, last = [], None
    for number, line in enumerate(text.splitlines()):
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if last != number - 1:
                found.append([])
            found[-1].append(cells)
            last = number
    return found


@pytest.mark.long
def test_the_rows_have_the_columns_of_the_page(rehearsed):
    text = (rehearsed / "rows.md").read_text(encoding="utf-8")
    theirs = [table[0] for table in tables(DOCS)]
    training, ladder, decoding = tables(text)
    assert training[0] in theirs and ladder[0] in theirs
    assert [*map(len, training)] == [10] * 3 and {*map(len, ladder)} == {5}
    assert training[2][0] == "this course" and training[2][2] == "20"
    assert re.fullmatch(r"\*\*\d+\.\d\d\*\*", training[2][7])
    names = [row[0] for row in ladder[2:]]
    assert names[0] == "nn.Transformer, float32" and len(names) == 8
    assert "+ packed, bytes, rows" in names
    assert [row[0] for row in decoding[2:]] == [
        f"{kind}, {how} a cache" for how in ("with", "without") for kind in ("greedy", "beam of 2")
    ]
    assert text.startswith("A rehearsal")
    assert "of benchmarks/on_a_gpu.sh" not in text
    assert "The dry run foresaw" in text and "nrefs:1|case:mixed" in text
    assert "### Beside other libraries\n\nNot measured yet." in text


@pytest.mark.long
def test_each_command_is_one_that_can_be_typed(rehearsed):
    text = (rehearsed / "rows.md").read_text(encoding="utf-8")
    text = text.replace(" \\\n    ", " ")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    typed = [line for block in blocks for line in block.splitlines()]
    assert len(typed) == 4
    assert all(shlex.split(line)[:2] == ["python", "-m"] for line in typed)


@pytest.mark.long
def test_a_second_call_does_nothing_again(rehearsed, capsys):
    out = rehearsed
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.log")}
    text = (out / "rows.md").read_text(encoding="utf-8")
    assert call(out, "--only", *CHEAP) == 0
    said = capsys.readouterr().out
    assert said.count("done before") == len(CHEAP)
    assert f"the rows are in {out / 'rows.md'}" in said
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("*.log")}
    assert (out / "rows.md").read_text(encoding="utf-8") == text


@pytest.mark.long
def test_the_rows_go_between_two_marks_once(rehearsed, tmp_path, capsys):
    out = rehearsed
    page = tmp_path / "training.md"
    page.write_text(DOCS, encoding="utf-8")
    assert call(out, "--only", *CHEAP, "--write", str(page)) == 0
    once = page.read_text(encoding="utf-8")
    assert call(out, "--only", *CHEAP, "--write", str(page)) == 0
    assert page.read_text(encoding="utf-8") == once
    made = (out / "rows.md").read_text(encoding="utf-8")
    assert f"{rows.BEGIN}\n{made.rstrip()}\n{rows.END}" in once
    outside = [text.split(rows.BEGIN)[0].strip() for text in (once, DOCS)]
    assert outside[0] == outside[1]
    assert call(out, "--write") == 1
    assert "--small is a rehearsal" in capsys.readouterr().err


def test_a_long_command_is_folded_between_its_words():
    line = "python -m train --folder 'a b " + "c" * 80 + "' --steps 20 --dropout 0.3"
    folded = rows.folded(line)
    assert folded.count(" \\\n") == 2
    assert shlex.split(folded.replace("\\\n", "")) == shlex.split(line)


def test_marks_are_made_in_their_section_and_filled_anew():
    page = "# A\n\n## On a GPU\n\nText.\n\n## Then\n\nMore.\n"
    once = rows.put(page, "one\n")
    block = f"{rows.BEGIN}\none\n{rows.END}"
    assert once == f"# A\n\n## On a GPU\n\nText.\n\n{block}\n\n## Then\n\nMore.\n"
    assert rows.put(once, "one\n") == once
    assert rows.put(once, "two\n") == once.replace("one", "two")
    assert rows.put("\n## On a GPU\n\nText.\n", "one\n").endswith(f"Text.\n\n{block}\n")
    with pytest.raises(ValueError, match="has no section"):
        rows.put("# A\n", "one")
    with pytest.raises(ValueError, match="once"):
        rows.put(f"{rows.END}\n{rows.BEGIN}\n", "one")


# Steps that are nothing but a shell's words


def shell(name, words, share=1.0):
    return Step(name, share, lambda plan, seconds: ([["sh", "-c", words]], {}))


def refuse(plan, seconds):
    raise StepFailed("ladder was not begun: no ladder")


def with_steps(monkeypatch, *chosen):
    """Let these be the steps that are taken; returns their names."""
    monkeypatch.setattr(command, "STEPS", chosen)
    others = [step for step in steps.STEPS if step.name not in [one.name for one in chosen]]
    monkeypatch.setattr(rows, "STEPS", [*chosen, *others])
    return [step.name for step in chosen]


def test_a_step_that_fails_is_said_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    names = with_steps(
        monkeypatch,
        shell("corpus", "echo no network >&2; exit 3"),
        Step("ladder", 1.0, refuse),
        shell("decoding", "echo fine"),
    )
    assert call(tmp_path, "--only", *names) == 1
    said = capsys.readouterr().out
    assert "corpus ended with exit status 3: no network" in said
    assert "ladder was not begun: no ladder" in said
    assert "decoding: done in" in said
    text = (tmp_path / "rows.md").read_text(encoding="utf-8")
    assert "Not whole: corpus ended with exit status 3" in text and "no ladder" in text
    # What failed is tried again, what is done is not.
    with_steps(
        monkeypatch, shell("corpus", "true"), shell("ladder", "true"), shell("decoding", "x")
    )
    assert call(tmp_path, "--only", *names) == 0
    said = capsys.readouterr().out
    assert said.count("done before") == 1
    with_steps(
        monkeypatch, shell("corpus", "true"), shell("ladder", "true"), shell("decoding", "x")
    )
    assert call(tmp_path, "--only", *names, "--again") == 1


def test_a_step_whose_time_is_over_ends_with_all_that_it_started(tmp_path, monkeypatch):
    results = Results(tmp_path)

    class Begun(subprocess.Popen):
        """Its time begins when it has done all but wait."""

        def wait(self, timeout=None):
            until(lambda: results.text("ladder") == "a row\n", "the step's first row")
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Begun)
    words = f"sleep 1000000 & echo $! >{tmp_path}/child; echo a row; wait"
    outcome = running.run("ladder", [["sh", "-c", words]], {}, results, 1.5)
    assert outcome.status == "cut" and "was stopped after" in outcome.why
    child = int((tmp_path / "child").read_text())
    try:
        until(lambda: has_ended(child), "the end of what the step had started")
    except TimeoutError:
        os.kill(child, signal.SIGKILL)
        raise


def has_ended(pid):
    """Whether nothing of a process is left but, perhaps, its number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except OSError:
        return True


def test_no_step_begins_when_the_time_is_over(tmp_path, monkeypatch, capsys):
    with_steps(monkeypatch, shell("decoding", "true"))
    assert call(tmp_path, "--only", "decoding", "--since", "0") == 1
    assert "decoding was not begun: the time was over before" in capsys.readouterr().out


def test_the_steps_share_the_time_that_is_left(tmp_path, monkeypatch):
    limits = []
    clock = SimpleNamespace(time=lambda: 1000.0)  # the steps take none of their time
    monkeypatch.setattr(command, "time", clock)

    def note(plan, seconds):
        limits.append(seconds)
        return [["true"]], {}

    names = with_steps(monkeypatch, Step("corpus", 1.0, note), Step("ladder", 3.0, note))
    call(tmp_path, "--only", *names, "--minutes", "10")
    assert limits == [595 / 4, 595]  # what the first left is the second's


def test_results_of_two_machines_are_not_mixed(tmp_path, monkeypatch, capsys):
    with_steps(monkeypatch, shell("decoding", "true"))
    assert call(tmp_path, "--only", "decoding") == 0
    facts = machine.facts("cpu", True) | {"card": "another", "torch": "1.0"}
    monkeypatch.setattr(machine, "facts", lambda device, small: facts)
    assert call(tmp_path, "--only", "decoding") == 1
    assert "of another machine or kind (card, torch)" in capsys.readouterr().err


def test_what_cannot_be_done_is_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert command.main(["--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "has no CUDA device" in error and error.count("\n") == 1
    assert call(tmp_path, "--minutes", "0") == 1
    assert "--minutes must be above 0" in capsys.readouterr().err


def test_the_script_passes_on_its_options(tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "$(pwd -P) $*"\n')
    python.chmod(0o755)
    words = [str(SCRIPT), "--python", str(python), "--device", "cpu", "--corpus", "a b"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    given = (
        rf"{re.escape(str(ROOT))} -m benchmarks.on_a_gpu --since \d+ --device cpu --corpus a b\n"
    )
    assert re.fullmatch(given, done.stdout)


def test_the_script_installs_what_is_missing_and_keeps_a_pytorch(tmp_path):
    python, log = tmp_path / "python", tmp_path / "log"
    python.write_text(
        f"""#!/bin/sh
case "$1 $2" in
"-c import torch") exit 0 ;;
"-c "*) exit 1 ;;
"-m pip") while [ "$1" != -c ]; do shift; done; cp "$2" '{tmp_path}/pins'; echo "$3 $4" >>'{log}' ;;
esac
"""
    )
    python.chmod(0o755)
    words = [str(SCRIPT), "--python", str(python)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr
    assert log.read_text() == "-e .\n-e .[peers]\n"
    pins = (tmp_path / "pins").read_text().splitlines()
    every = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in every if line not in pins] == [
        line for line in every if line.startswith("torch==")
    ]


def test_the_script_says_so_if_nothing_can_be_installed(tmp_path):
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    words = [str(SCRIPT), "--python", str(bare), "--device", "cpu"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 1
    assert f"on_a_gpu: {bare} lacks what the course needs" in done.stderr


# How many steps a training takes


@pytest.mark.parametrize(
    ("step", "save", "seconds", "steps_wanted"),
    [
        (0.02, 1.0, 300, 8000),  # all
        (0.05, 1.0, 300, 3750),  # (270 - 10 - 45) / 0.054 = 3 981, and whole saves
        (1.0, 50.0, 300, 179),  # (270 - 10 - 45) / 1.2: less than one save
        (300.0, 1.0, 300, 0),
        (0.02, 1.0, 10, 0),
    ],
)
def test_as_many_steps_as_fit(step, save, seconds, steps_wanted):
    found = {"step": step, "save": save, "measured": 50, "new": 0.0}
    assert steps.affordable(found, 10.0, seconds, 8000) == steps_wanted


def test_what_new_batches_cost_is_not_there_for_steps():
    found = {"step": 0.05, "save": 1.0, "measured": 50, "new": 25.0}
    assert steps.affordable(found, 10.0, 300, 8000) == 3500  # (270 - 10 - 25 - 45) / 0.054 = 3 518


def test_what_new_batches_cost_is_read_from_the_dry_run():
    said = "  steps  8 000: 6.9 epochs of 1 158 batches\n  a step  0.03 s, of 50 measured: 0.03 to"
    said += " 0.05 s\n  a new batch  0.5 s more, once for each\n  a save  0.7 s with its evaluation"
    assert readings.dry_run(said) == {"step": 0.03, "measured": 50, "save": 0.7, "new": 579.0}
    without = said.replace("a new batch", "")
    assert readings.dry_run(without)["new"] == 0


def test_with_all_steps_the_command_is_that_of_the_page(tmp_path):
    plan = Plan("cuda", False, None, tmp_path)
    words = shlex.join(map(str, steps.settings(plan, steps.AIM)))
    page = re.sub(r" *\\\n *", " ", DOCS)
    assert f"python -m attention.train multi30k {words}\n" in page
    few = steps.settings(plan, 100)
    assert few[few.index("--every") + 1] == 100 and few[few.index("--average") + 1] == 1


def test_a_training_that_was_cut_goes_on_and_a_strangers_is_left_alone(tmp_path):
    plan = Plan("cpu", True, None, tmp_path)
    with pytest.raises(StepFailed, match="the dry run did not say"):
        steps.training(plan, 100.0)
    plan.run.mkdir()
    (plan.run / "config.json").write_text("{}")
    with pytest.raises(StepFailed, match="that this command did not begin"):
        steps.training(plan, 100.0)
    cut = running.Outcome([["first"]], "cut", "over", 1.0, 1.0, "2026-01-01", {"aim": 20})
    plan.results.keep("training", cut)
    ((words,), notes) = steps.training(plan, 100.0)
    assert "--resume" in words and "--steps" not in words
    assert notes == {"aim": 20, "first": [["first"]]}
    again = Plan("cpu", True, None, tmp_path, again=True)
    plan.results.log("probe").write_text(
        "      a step  0.01 s, of 50 measured: 1 to 2 s\n      a save  0.5 s with its evaluation"
    )
    plan.results.keep("probe", cut)
    ((words,), notes) = steps.training(again, 100.0)
    assert "--resume" not in words and notes["steps"] == 20 and not plan.run.exists()


# What the commands print


def test_the_table_of_the_peers_is_read(tmp_path, capsys, monkeypatch):
    results = [Result("course", [1.0], [2.0], 100.0, (2567168, [])),
               Result("nn.Transformer", [1.5], [3.0], 150.0, (2567168, [])),
               Result("MarianMT", [2.0], [4.0], 0.5, (2566656, []))]  # fmt: skip
    monkeypatch.setattr(peers, "present", lambda all: [all[0], all[1], all[3]])
    monkeypatch.setattr(peers, "race", lambda *arguments, **options: results)
    gaps = {"nn.Transformer": 3e-6, "MarianMT": 0.0}
    monkeypatch.setattr(peers, "differences", lambda *arguments: gaps)
    assert peers.main(["training", "--sizes", "tiny", "small", "--rounds", "1"]) == 0
    plan = Plan("cpu", True, None, tmp_path)
    plan.results.log("peers").write_text(capsys.readouterr().out, encoding="utf-8")
    (table,) = tables("\n".join(rows.of_peers(plan)))
    assert table[0] in [one[0] for one in tables(DOCS)]
    assert table[2] == ["tiny", "this course", "2 567 168", "", "1.00", "100", "1.00"]
    theirs = ["", "nn.Transformer", "2 567 168", "3e-6", "1.50 (1.50–1.50)", "150", "1.50"]
    assert table[3] == theirs
    assert table[4][1].startswith("MarianMT, transformers ") and table[4][3] == "0"
    assert table[5][:2] == ["small", "this course"] and len(table) == 8


def test_the_tables_of_the_modern_decoder_are_read(tmp_path, capsys, monkeypatch):
    steps_of = [Result("course", [1.0], [2.0], 100.0, (1980032, [])),
                Result("transformers, Llama", [1.5], [3.0], 150.0, (1980032, []))]  # fmt: skip
    texts = [[[5, 6]], [[5, 6]]]
    writers = [Result("course", [1.0], [2.0], 9.0, texts[0]),
               Result("transformers, generate", [1.5], [3.0], 9.0, texts[1])]  # fmt: skip
    monkeypatch.setattr(peers, "present", lambda all: [all[0], all[2]])
    raced = lambda _, settings, *rest, **options: writers if "texts" in settings else steps_of  # noqa: E731
    monkeypatch.setattr(peers, "race", raced)
    gaps = {"transformers, Llama": 3e-6}
    monkeypatch.setattr(peers, "differences", lambda *arguments: gaps)
    assert peers.main(["modern", "--sizes", "tiny", "--rounds", "1"]) == 0
    plan = Plan("cpu", True, None, tmp_path)
    plan.results.log("modern").write_text(capsys.readouterr().out, encoding="utf-8")
    steps_table, writing = tables("\n".join(rows.of_modern(plan)))
    assert steps_table[2] == ["tiny", "this course", "1 980 032", "", "1.00", "100", "1.00"]
    assert steps_table[3][1].endswith(", Llama") and steps_table[3][3:5] == [
        "3e-6", "1.50 (1.50–1.50)"
    ]  # fmt: skip
    assert [row[1] for row in writing[2:]] == ["1", "1", "8", "8"]
    assert writing[3][2].endswith(", generate") and writing[3][4] == "1.50 (1.50–1.50)"


def test_the_command_of_each_step_is_understood():
    plan = Plan("cpu", False, None, Path("out"))
    for name in ("ladder", "peers", "modern", "decoding"):
        (step,) = [one for one in steps.STEPS if one.name == name]
        ((words,), _) = step.commands(plan, 100.0)
        assert words[:2] == [sys.executable, "-m"]
        done = {"ladder": "benchmarks.training"}
        done |= dict.fromkeys(("peers", "modern"), "benchmarks.peers")
        assert words[2] == done.get(name, "benchmarks.decoding")
    (fetched,), _ = steps.fetch(Plan("cuda", False, Path("/a b"), Path("out")), 1.0)
    assert fetched[2:] == ["autograder", "data", "fetch", "multi30k", "--mirror", "file:///a%20b"]
    assert running.as_typed(fetched).startswith("autograder data fetch multi30k --mirror")


def test_a_log_that_ends_early_gives_the_rows_it_has():
    assert readings.dry_run("a dry run: nothing is written") is None
    text = (
        "matrix product in float32: 0.14 TFLOP/s\n  + bf16      8,364     1.22       343  18.2%\n"
    )
    found = [("+ bf16", "8,364", "1.22", "343", "18.2")]
    assert readings.ladder(text + "  + fused") == (found, {"float32": "0.14"})
    assert readings.decoding("") == ([], None) and readings.peers("") == []
