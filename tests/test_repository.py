"""The repository's front: what the README says is true, and the versions agree."""

import ast
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from nbgrader.apps.nbgraderapp import NbGraderApp
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from attention.search import __main__ as search
from attention.train import __main__ as train
from attention.translate import __main__ as translate
from attention.write import __main__ as write
from autograder.commands import cli
from tests.needs import needs, skip_without
from tests.waiting import LONG

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
OURS = "[0-4][0-9]_*"  # an instructor's own lessons are told nowhere here


def blocks(language):
    """The README's code blocks in one language."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", README, re.DOTALL | re.MULTILINE)
    return [text for _, text in found]


def commands():
    """The README's commands, without their comments: lists of words."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    inline = re.findall(r"`((?:make|autograder|nbgrader|source|conda) [^`…]+)`", README)
    return [words for line in lines + inline if (words := shlex.split(line, comments=True))]


def constraints():
    """Version by canonical name from constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def requirements():
    """All requirements in pyproject.toml, extras included, without the package itself."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    found = [Requirement(text) for group in groups for text in group]
    return [item for item in found if item.name != PROJECT["name"]]


# The README's commands


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_readme_command_exists(words):
    programs = {"make": dry_run, "autograder": has_help, "nbgrader": is_nbgrader}
    programs |= {"conda": is_conda, "python": trains, "jupyter": is_jupyter}
    if words[0] == "source":
        assert words == ["source", ".venv/bin/activate"]
    else:
        programs[words[0]](words)
    paths = [word for word in words[1:] if word.startswith("lessons/") or word.endswith(".yml")]
    assert all((ROOT / path).exists() for path in paths)


def is_jupyter(words):
    assert Path(sys.executable).with_name("-".join(words)).exists()


def dry_run(words):
    skip_without("make")
    done = make("-n", *words[1:])
    assert done.returncode == 0, done.stderr


def make(*arguments, folder=ROOT):
    """Run make, as if not called by another make."""
    environment = {name: text for name, text in os.environ.items() if "MAKE" not in name}
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONG,
    )


def has_help(words):
    """The subcommand and its options are in the parser: parsing alone refuses unknown ones."""
    options = cli.parser(words[1]).parse_args(words[1:])
    assert options.command == words[1]


def is_nbgrader(words):
    command, *arguments = words[1:]
    assert command in NbGraderApp.subcommands
    application = NbGraderApp.subcommands[command][0]
    known = {*application.flags, *application.aliases}
    assert {word.lstrip("-") for word in arguments if word.startswith("--")} <= known


def trains(words):
    """The command that trains, translates, writes or searches takes these words."""
    programs = {"attention.search": search, "attention.train": train}
    programs |= {"attention.translate": translate, "attention.write": write}
    assert words[1] == "-m"
    files = [place for place, word in enumerate(words) if word in ("<", ">")]
    programs[words[2]].parser().parse_args(words[3 : min(files, default=None)])


def is_conda(words):
    environment = ["env", "create", "-f", "environment.yml"]
    assert words[1:] in (environment, ["activate", CONDA["name"]])


def subcommands(chosen=""):
    """The parsers of autograder's subcommands, by name."""
    actions = cli.parser(chosen)._actions
    return next(action.choices for action in actions if action.dest == "command")


@pytest.mark.parametrize("name", subcommands())
def test_every_command_is_in_the_readme_and_explains_itself(name, capsys):
    assert f"autograder {name}" in README
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert said.startswith(f"usage: autograder {name}")
    assert subcommands(name)[name].description


def test_every_make_target_is_in_the_readme_or_measures():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [
        name
        for name in re.search(r"\.PHONY: (.*)", makefile)[1].split()
        if not name.startswith("bench-")
    ]
    assert [name for name in targets if name not in README] == []


@needs("make")
def test_an_old_python_is_refused_in_one_sentence(tmp_path):
    old = tmp_path / "python3.9"
    pretend = "import sys; sys.version_info = (3, 9); exec(sys.argv[1])"
    old.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{pretend}' \"$2\"\n")
    old.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    done = make("install", f"PYTHON={old}", folder=tmp_path)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert len(said) == 1
    assert "needs Python 3.11 or newer" in said[0]
    assert "is Python 3.9" in said[0]
    assert not (tmp_path / ".venv").exists()


# What the README tells


def table_of_lessons():
    """The rows of the README's table: number, question, what you build, exercises."""
    rows = re.findall(r"^\| (\d\d) \| (.*?) \| (.*?) \| (.*?) \|$", README, re.MULTILINE)
    return {row[0]: row[1:] for row in rows}


def test_all_lessons_are_listed():
    sources = sorted(path.stem[:2] for path in (ROOT / "source").glob(OURS))
    assert list(table_of_lessons()) == sources


@pytest.mark.parametrize("slug", sorted(path.name for path in (ROOT / "lessons").glob(OURS)))
def test_the_table_agrees_with_the_lesson(slug):
    question, _, exercises = table_of_lessons()[slug[:2]]
    notebook = nbformat.read(ROOT / "lessons" / slug / f"{slug}.ipynb", as_version=4)
    heading = re.search(r"^# (\d\d) · (.*)$", notebook.cells[0].source, re.MULTILINE)
    assert heading[1] == slug[:2]
    assert question == f"[{heading[2]}](lessons/{slug}/{slug}.ipynb)"
    graded = [cell.metadata.get("nbgrader", {}).get("grade", False) for cell in notebook.cells]
    assert int(exercises) == sum(graded)


def layout():
    """The paths in the README's tree, a folder with its '/'."""
    paths, folder = [], ""
    for line in blocks("text")[0].splitlines():
        name = line.split()[0]
        paths.append(folder + name if line.startswith(" ") else name)
        if not line.startswith(" "):
            folder = name
    return paths


@pytest.mark.parametrize("path", sorted((ROOT / "source").glob(OURS)), ids=lambda path: path.stem)
def test_every_lesson_ends_in_the_same_order(path):
    headings = re.findall(r"^# ## (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    parts = ["Limits", "Summary", "Open questions", "References"]
    wanted = parts if path.stem[:2] != "00" else ["Summary", "References"]  # the tour of the tools
    assert [heading for heading in headings if heading in parts] == wanted
    starred = [place for place, heading in enumerate(headings) if "★" in heading]
    assert all(headings.index(wanted[-2]) < place for place in starred)
    assert headings[-1] == "References"


def test_the_tree_in_the_readme_is_true():
    assert [path for path in layout() if not (ROOT / path).exists()] == []
    assert [path for path in layout() if path.endswith("/") != (ROOT / path).is_dir()] == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is not a git checkout")
def test_the_tree_in_the_readme_is_complete():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    tops = {
        path.partition("/")[0] + ("/" if "/" in path else "")
        for path in listed.stdout.splitlines()
        if not path.startswith(".")
    }
    assert tops - set(layout()) == set()


def test_links_in_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


# The versions


def test_constraints_are_exact():
    path = ROOT / "constraints.txt"
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_every_requirement_allows_its_constraint(requirement):
    assert requirement.specifier.contains(constraints()[canonicalize_name(requirement.name)])


def required_by(name):
    """What an installed package requires; of the peers, which only one target installs, nothing."""
    try:
        return importlib.metadata.requires(name) or ()
    except importlib.metadata.PackageNotFoundError:
        peers = [Requirement(text).name for text in PROJECT["optional-dependencies"]["peers"]]
        assert name in map(canonicalize_name, peers), f"{name} is not installed"
        return ()


def test_constraints_pin_the_requirements_of_the_requirements():
    waiting, seen = requirements(), set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, frozenset(requirement.extras)) in seen:
            continue
        seen.add((name, frozenset(requirement.extras)))
        for text in required_by(name):
            inner = Requirement(text)
            extras = {"", *requirement.extras}
            if inner.marker is None or any(inner.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(inner)
    # What a GPU's PyTorch brings depends on the platform; torch itself pins it.
    platform = ("nvidia-", "cuda-", "triton")
    missing = {name for name, _ in seen if not name.startswith(platform)} - set(constraints())
    assert missing == set()


def test_conda_installs_the_same_versions():
    python, _, pip = CONDA["dependencies"]
    assert pip == {"pip": ["-c constraints.txt", "-e .[dev]"]}
    name, _, version = python.partition("=")
    assert name == "python"
    assert SpecifierSet(PROJECT["requires-python"]).contains(version)


def test_conda_names_no_version_of_its_own():
    """A version named in environment.yml must be that of constraints.txt."""
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    pins = re.findall(r"([\w.-]+)==([\w.]+)", text)
    known = constraints()
    assert [pin for pin in pins if known.get(canonicalize_name(pin[0])) != pin[1]] == []


@pytest.mark.long
def test_imported_packages_are_required():
    files = [path for name in ("attention", "autograder") for path in (ROOT / name).rglob("*.py")]
    imported = set().union(*(imports(path) for path in files))
    ours = {"attention", "autograder"} | set(sys.stdlib_module_names)
    names = importlib.metadata.packages_distributions()
    wanted = {
        canonicalize_name(distribution)
        for module in imported - ours
        for distribution in names.get(module, [module])
    }
    assert wanted - {canonicalize_name(item.name) for item in requirements()} == set()


def imports(path):
    """The top-level names of the modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.partition(".")[0])
    return found
