"""The repository's front: what the README says is true, versions agree, what is named is there."""

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

from attention.chat import __main__ as chat
from attention.search import __main__ as search
from attention.teach import __main__ as teach
from attention.train import __main__ as train
from attention.translate import __main__ as translate
from attention.write import __main__ as write
from autograder import imports
from autograder.commands import cli
from tests.needs import needs, skip_without
from tests.waiting import LONG

ROOT = Path(__file__).resolve().parent.parent
GUIDES = ("autograder/README.md", "CONTRIBUTING.md", "docs/term.md")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
OURS = "[0-4][0-9]_*"  # an instructor's own lessons are told nowhere here
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
PINS = [line.partition("==") for line in PINS if not line.startswith("#")]
CONSTRAINTS = {canonicalize_name(name): version for name, _, version in PINS}


def blocks(language):
    """The README's code blocks in one language."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", README, re.DOTALL | re.MULTILINE)
    return [text for _, text in found]


def commands():
    """The README's commands, without their comments: lists of words."""
    lines = [line.split(" | ")[-1] for block in blocks("sh") for line in block.splitlines()]
    inline = re.findall(r"`((?:make|autograder|nbgrader|source|conda) [^`…]+)`", README)
    return [words for line in lines + inline if (words := shlex.split(line, comments=True))]


def requirements():
    """All requirements in pyproject.toml, extras included, without the package itself."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    found = [Requirement(text) for group in groups for text in group]
    return [item for item in found if item.name != PROJECT["name"]]


def make(*arguments, folder=ROOT):
    """Run make, as if not called by another make."""
    skip_without("make")
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env={name: text for name, text in os.environ.items() if "MAKE" not in name},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONG,
    )


# The README's commands


def is_target(words):
    done = make("-n", *words[1:])
    assert done.returncode == 0, done.stderr


def is_ours(words):
    """The subcommand and its options are in the parser: parsing alone refuses unknown ones."""
    assert cli.parser(words[1]).parse_args(words[1:]).command == words[1]


def is_nbgraders(words):
    command, *arguments = words[1:]
    application = NbGraderApp.subcommands[command][0]
    known = {*application.flags, *application.aliases}
    assert {word.lstrip("-") for word in arguments if word.startswith("--")} <= known


def is_attentions(words):
    """The command that trains, translates, writes or searches takes these words."""
    programs = {"attention.search": search, "attention.train": train}
    programs |= {"attention.translate": translate, "attention.write": write, "attention.chat": chat}
    programs |= {"attention.teach": teach}
    assert words[1] == "-m"
    files = [place for place, word in enumerate(words) if word in ("<", ">")]
    programs[words[2]].parser().parse_args(words[3 : min(files, default=None)])


def is_conda(words):
    environment = ["env", "create", "-f", "environment.yml"]
    assert words[1:] in (environment, ["activate", CONDA["name"]])


def is_jupyter(words):
    assert Path(sys.executable).with_name("-".join(words)).exists()


def activates(words):
    assert words == ["source", ".venv/bin/activate"]


PROGRAMS = {
    "make": is_target,
    "autograder": is_ours,
    "nbgrader": is_nbgraders,
    "conda": is_conda,
    "python": is_attentions,
    "jupyter": is_jupyter,
    "source": activates,
}


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_readme_command_exists(words):
    PROGRAMS[words[0]](words)
    paths = [word for word in words[1:] if word.startswith("lessons/") or word.endswith(".yml")]
    assert all((ROOT / path).exists() for path in paths)


def test_every_make_target_is_in_the_readme_or_measures():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"\.PHONY: (.*)", makefile)[1].split()
    assert [one for one in targets if not one.startswith("bench-") and one not in README] == []


def test_every_command_is_in_a_guide():
    said = README + "".join(ROOT.joinpath(one).read_text("utf-8") for one in GUIDES)
    assert [one for one in cli.MODULES if f"autograder {one}" not in said] == []


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
    (said,) = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert "needs Python 3.11 or newer" in said and "is Python 3.9" in said
    assert not (tmp_path / ".venv").exists()


# What the README tells


def test_the_table_of_lessons_agrees_with_the_notebooks():
    rows = re.findall(r"^\| (\d\d) \| (.*?) \| .*? \| (.*?) \|$", README, re.MULTILINE)
    wanted = []
    for folder in sorted((ROOT / "lessons").glob(OURS)):
        path = folder / f"{folder.name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        number, title = re.search(r"^# (\d\d) · (.*)$", notebook.cells[0].source, re.M).groups()
        graded = [cell.metadata.get("nbgrader", {}).get("grade", False) for cell in notebook.cells]
        solved = f"solutions/{folder.name}/{folder.name}.ipynb"
        link = f"[{title}]({solved})"
        wanted.append((number, link, str(sum(graded))))
    assert rows == wanted
    assert [row[0] for row in rows] == sorted(one.stem[:2] for one in (ROOT / "source").glob(OURS))


def layout():
    """The paths in the README's tree, a folder with its '/'."""
    paths, folder = [], ""
    for line in blocks("text")[0].splitlines():
        name = line.split()[0]
        paths.append(folder + name if line.startswith(" ") else name)
        if not line.startswith(" "):
            folder = name
    return paths


def test_what_the_readme_names_is_there():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert [path for path in layout() + links if not (ROOT / path).exists()] == []


# The versions


def test_constraints_are_exact_and_every_requirement_allows_its_own():
    assert [pin for pin in PINS if not re.fullmatch(r"[\w.-]+==[\w.]+", "".join(pin))] == []
    pinned = [(item, CONSTRAINTS[canonicalize_name(item.name)]) for item in requirements()]
    assert [str(item) for item, version in pinned if not item.specifier.contains(version)] == []


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
    missing = {name for name, _ in seen if not name.startswith(platform)} - set(CONSTRAINTS)
    assert missing == set()


def test_conda_installs_the_same_versions():
    python, _, pip = CONDA["dependencies"]
    assert pip == {"pip": ["-c constraints.txt", "-e .[dev]"]}
    name, _, version = python.partition("=")
    assert name == "python" and SpecifierSet(PROJECT["requires-python"]).contains(version)


def imported(paths):
    """The top-level names of the modules that files import."""
    named = (name for path in paths for name in imports.imported(path.read_text("utf-8")))
    return {name.partition(".")[0] for name in named}


@pytest.mark.long
def test_imported_packages_are_required():
    files = [path for name in ("attention", "autograder") for path in (ROOT / name).rglob("*.py")]
    there = {"attention", "autograder", "pip", *sys.stdlib_module_names}
    names = importlib.metadata.packages_distributions()
    wanted = {
        canonicalize_name(one)
        for module in imported(files) - there
        for one in names.get(module, [module])
    }
    assert wanted - {canonicalize_name(item.name) for item in requirements()} == set()


def test_instructors_on_a_hub_have_what_a_release_imports():
    readme = (ROOT / "docs" / "jupyterhub" / "README.md").read_text(encoding="utf-8")
    extras = PROJECT["optional-dependencies"]
    absent = extras.keys() - set(re.findall(r'extras\["(\w+)"\]', readme))
    lacking = {re.match(r"[\w-]+", one)[0] for name in absent for one in extras[name]}
    needed = imported(imports.modules(["autograder.commands.release"], ROOT, ("autograder",)))
    assert "jupytext" in needed and not needed & lacking


# What runs elsewhere: workflows, hooks, the container
