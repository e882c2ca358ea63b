"""What surrounds the course in the repository: workflows, hooks, container, changelog."""

import json
import re
import subprocess
import tomllib

import pytest
import yaml

from autograder import ROOT, imports
from tests.needs import skip_without

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]


def commands(job):
    """The lines that a job runs."""
    return [line for step in job["steps"] for line in step.get("run", "").splitlines()]


def jobs():
    """(file, job's name, job) of every workflow."""
    for path in WORKFLOWS:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))
        yield from ((path.name, name, job) for name, job in read["jobs"].items())


@pytest.mark.parametrize(("file", "name", "job"), list(jobs()))
def test_what_a_workflow_runs_is_there(file, name, job):
    lines = commands(job)
    assert lines or all("uses" in step for step in job["steps"])
    for target in re.findall(r"\bmake ([a-z-]+)", " ".join(lines)):
        skip_without("make")
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)
    for path in re.findall(r"(?<!\S)(\.ci/\S+)", " ".join(lines)):
        assert (ROOT / path).exists()
    assert all(re.search(r"@v\d+$", step["uses"]) for step in job["steps"] if "uses" in step)


@pytest.mark.parametrize("hook", HOOKS[0]["hooks"], ids=lambda hook: hook["id"])
def test_a_hook_calls_what_the_environment_has(hook):
    program = ROOT / hook["entry"].split()[0]
    if not program.exists():
        pytest.skip("the environment is not in .venv")
    called = [
        *hook["entry"].split(),
        *([] if hook.get("pass_filenames", True) is False else ["tests"]),
    ]
    if "build" in called:
        called.append("--help")  # make test runs the comparison itself
    done = subprocess.run(called, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_container_is_made_of_the_image_with_a_target_that_exists():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    said = json.loads(text)
    target = said["postCreateCommand"].removeprefix("make ")
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    image = ROOT / ".devcontainer" / said["build"]["dockerfile"]
    assert image.is_file() and (image.parent / said["build"]["context"]).resolve() == ROOT


def test_instructors_on_a_hub_have_what_a_release_imports():
    readme = (ROOT / "docs" / "jupyterhub" / "README.md").read_text(encoding="utf-8")
    installed = re.findall(r'extras\["(\w+)"\]', readme)
    extras = PROJECT["optional-dependencies"]
    others = [one for name in extras.keys() - set(installed) for one in extras[name]]
    lacking = {re.match(r"[\w-]+", one)[0] for one in others}
    found = imports.modules(["autograder.commands.release"], ROOT, ("autograder",))
    needed = {name for path in found for name in imports.imported(path.read_text("utf-8"))}
    assert "jupytext" in needed and not needed & lacking


def test_the_changelog_begins_with_the_version_that_is_installed():
    first = re.search(
        r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert PROJECT["version"] in first[1]


def test_the_changelog_counts_the_exercises_as_the_sources_do():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "source").glob("[0-4]*.py")]
    graded = sum(len(re.findall(r"^# %% check=", text, re.MULTILINE)) for text in sources)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"{graded} graded exercises" in changes
