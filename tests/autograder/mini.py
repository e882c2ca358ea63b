"""A course of one small lesson, to be built, verified and broken by tests."""

import os
import shutil
import sys

import nbformat

import attention
from autograder import checks, mistakes
from autograder.building.lesson import read
from autograder.checking.toolbox import registry
from tests.autograder.mini_files import FILES, SLUG, START


class Client:
    """Stands for nbclient's: gives every code cell an output, without a kernel."""

    started = []
    fault = None

    def __init__(self, notebook, on_cell_execute, **settings):
        assert settings["coalesce_streams"]
        self.notebook, self.hook = notebook, on_cell_execute

    def execute(self, **_):
        Client.started.append(self.notebook.metadata.autograder.lesson)
        for index, cell in enumerate(self.notebook.cells):
            if cell.cell_type == "code":
                self.hook(cell=cell, cell_index=index)
                output = nbformat.v4.new_output("stream", name="stdout", text="an output")
                cell.outputs, cell.execution_count = [output], index
                if Client.fault:
                    Client.fault(cell)
        self.notebook.metadata.language_info = {"name": "python", "version": "9.9"}


class Course:
    """The files of a course in a folder of its own."""

    def __init__(self, root):
        self.root = root
        self.source = root / "source" / f"{SLUG}.py"
        self.library = root / "attention" / "mini.py"
        self.checks = root / "autograder" / "checks" / "mini.py"
        self.mistakes = root / "autograder" / "mistakes" / "mini.py"
        self.solution = root / "solutions" / SLUG / f"{SLUG}.ipynb"
        self.lesson = root / "lessons" / SLUG / f"{SLUG}.ipynb"

    def write(self):
        """Write all hand-written files."""
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return self

    def copy(self, root):
        """A copy in the folder ``root``, with whatever was built."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return Course(root)

    def edit(self, path, old, new):
        """Replace ``old``, which must be there once."""
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{text.count(old)} × {old!r} in {path.name}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def read(self):
        """The lesson, read."""
        return read(self.source)

    def generated(self):
        """Content by path of everything under solutions/ and lessons/."""
        folders = [self.root / "solutions", self.root / "lessons"]
        return {
            path: path.read_bytes()
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


def install(course, patch):
    """Let this process and the kernels that it starts import the course's modules."""
    folders = {
        attention: course.root / "attention",
        checks: course.root / "autograder" / "checks",
        mistakes: course.root / "autograder" / "mistakes",
    }
    for package, folder in folders.items():
        patch.setattr(package, "__path__", [*package.__path__, str(folder)])
        patch.delitem(sys.modules, f"{package.__name__}.mini", raising=False)
        patch.delattr(package, "mini", raising=False)
    patch.setattr(registry, "_checks", {})
    patch.setattr(registry, "_answers", {})
    start = course.root / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(START.format(root=str(course.root)))
    patch.setenv("PYTHONPATH", str(start), prepend=os.pathsep)


def uninstall():
    """Forget the course's modules, so that the next course's are imported afresh."""
    for package in (attention, checks, mistakes):
        sys.modules.pop(f"{package.__name__}.mini", None)
        vars(package).pop("mini", None)
