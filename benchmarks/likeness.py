"""How often the class report calls students alike who are not, and misses those who are.

Classes are made of the stored answers, right and wrong, that `autograder verify` proves: each
student draws one for every exercise and rewrites it in a way of their own (intermediate variables,
operands exchanged, methods for functions). No two of them share anything but the stored answers.
Then one student copies another one's notebook and renames all that is renamed without a change of
the results, or changes part of it.

    python benchmarks/likeness.py --classes 20
"""

import argparse
import ast
import random
import time

from autograder import ROOT
from autograder.building.lesson import find, read
from autograder.checking.toolbox import registry
from autograder.grading.classroom.folders import Course
from autograder.grading.classroom.sample_class import cell_of
from autograder.reporting import similarity
from autograder.reporting.answer_analysis import given

SIZES = (10, 60, 300)


class OwnWay(ast.NodeTransformer):
    """Writes the same in another way, as a seed decides."""

    def __init__(self, seed):
        self._draw = random.Random(seed)
        self._count = 0

    def visit_BinOp(self, node):
        """Exchange operands, or say `square()` for `** 2`."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult) and self._draw.random() < 0.3:
            node.left, node.right = node.right, node.left
        if isinstance(node.op, ast.Pow) and self._draw.random() < 0.5:
            return ast.Call(ast.Attribute(node.left, "square", ast.Load()), [], [])
        return node

    def visit_Call(self, node):
        """Say `torch.sum(x)` for `x.sum()`."""
        self.generic_visit(node)
        method = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        method = method and node.func.value.id not in ("torch", "F", "nn", "math", "self")
        if method and self._draw.random() < 0.4:
            name = ast.Attribute(ast.Name("torch", ast.Load()), node.func.attr, ast.Load())
            return ast.Call(name, [node.func.value, *node.args], node.keywords)
        return node

    def visit_FunctionDef(self, node):
        """Give parts of expressions names of their own."""
        self.generic_visit(node)
        body = []
        for line in node.body:
            for part in ast.walk(line) if isinstance(line, ast.Assign | ast.Return) else ():
                for place, argument in enumerate(part.args if isinstance(part, ast.Call) else ()):
                    if isinstance(argument, ast.BinOp | ast.Call) and self._draw.random() < 0.3:
                        self._count += 1
                        name = f"step{self._count}"
                        body.append(ast.Assign([ast.Name(name, ast.Store())], argument))
                        part.args[place] = ast.Name(name, ast.Load())
            body.append(line)
        node.body = body
        return node


class Renamed(ast.NodeTransformer):
    """Gives every variable another name."""

    def __init__(self, names):
        self._names = names

    def visit_Name(self, node):
        """Rename a variable that the text itself binds."""
        node.id = self._names.get(node.id, node.id)
        return node


def in_own_way(source, seed):
    """The text as a student with this seed writes it."""
    return ast.unparse(ast.fix_missing_locations(OwnWay(seed).visit(ast.parse(source))))


def renamed(source):
    """The text with its variables renamed, its comments gone."""
    tree = ast.parse(source)
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in parts if isinstance(node.ctx, ast.Store)}
    return ast.unparse(Renamed({name: f"copy_of_{name}" for name in bound}).visit(tree))


def answers_of(lesson):
    """Texts and whether they are right, by exercise."""
    found = {}
    for item in registry.of_lesson(lesson.name).values():
        stored = registry.stored_answers(item)
        if stored:
            found[item.name] = [(cell_of(one), one.hint) for one in stored]
    return found


def make(answers, size, draw, right=0.6):
    """A class of ``size``: (rows, texts) in which nobody copies."""
    rows, texts = [], {}
    for student in (f"s{number}" for number in range(size)):
        row = {"student": student, "exercises": []}
        texts[student] = {}
        for name, stored in answers.items():
            good = [one for one in stored if one[1] is None]
            bad = [one for one in stored if one[1] is not None] or good
            text, hint = draw.choice(good if good and draw.random() < right else bad)
            texts[student][name] = in_own_way(text, draw.random())
            reason = f"{name}: wrong.\n  got       1\n  likely    {hint}" if hint else ""
            part = {"name": name, "score": 0 if hint else 1, "max": 1, "reason": reason}
            row["exercises"].append(part)
        rows.append(row)
    return rows, texts


def copy(rows, texts, draw, share):
    """Let one student hand in another one's answers, renamed, to this share of the exercises."""
    one, other = draw.sample(sorted(texts), 2)
    whose = {row["student"]: row for row in rows}
    names = sorted(texts[one])
    for place, name in enumerate(names):
        if place < share * len(names):
            texts[other][name] = renamed(texts[one][name])
            for mine, theirs in zip(
                whose[other]["exercises"], whose[one]["exercises"], strict=True
            ):
                if mine["name"] == name:
                    mine.update(theirs)
    return tuple(sorted((one, other)))


def measure(answers, known, size, classes, seed=0):
    """(classes with a false pair, whole copies found, half copies found, seconds of a class)."""
    false = whole = half = 0
    taken = 0.0
    for number in range(classes):
        draw = random.Random(f"{seed} {size} {number}")
        rows, texts = make(answers, size, draw)
        start = time.process_time()
        false += bool(similarity.alike(rows, texts, known))
        taken += time.process_time() - start
        for share in (1, 0.5):
            rows, texts = make(answers, size, draw)
            pair = copy(rows, texts, draw, share)
            found = pair in [one.students for one in similarity.alike(rows, texts, known)]
            whole, half = whole + (found and share == 1), half + (found and share < 1)
    return false, whole, half, taken / classes


def main():
    """Print a line for each lesson and size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--classes", type=int, default=20, help="of each lesson and size")
    parser.add_argument("--lesson", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--size", type=int, action="append", default=[], help="students")
    options = parser.parse_args()
    heads = "with a false pair, copies found, half copies found"
    print(f"of {options.classes} classes each: {heads}", flush=True)
    for path in find(options.lesson):
        lesson = read(path)
        answers, known = answers_of(lesson), given(lesson.slug, Course(ROOT))
        for size in options.size or SIZES:
            false, whole, half, taken = measure(answers, known, size, options.classes)
            line = f"{lesson.slug:<32} {size:>4} students {false:>3} {whole:>3} {half:>3}"
            print(f"{line} {taken:6.2f} s a class", flush=True)


if __name__ == "__main__":
    main()
