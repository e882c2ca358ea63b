"""Draw the ways through the code that docs/architecture.md shows: python -m tests.architecture

A way is a list of arrows between modules and files. The boxes, their rooms and their words are read
from the code, and an arrow between two modules is drawn only where one of them imports the other.
"""

import ast
import itertools
import re
import sys

from autograder.files import write_aside
from tests.test_rooms import IMPORTED, MODULES, ROOT

PAGE = ROOT / "docs" / "architecture.md"
DRAWING = re.compile(r"(<!-- drawing: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

# Each line is a chain of arrows. What holds a slash or a space is a file or a person.
WAYS = {
    "lesson": """
        source/NN_name.py > building.source > building.lesson > building.notebook
        attention/name.py > building.excerpt > building.notebook
        building.notebook > building.build > solutions/
        building.build > building.generate_assignment > lessons/
        solutions/ > building.book.page > building.book.write > the book
        solutions/ > building.gates.verify
        lessons/ > building.gates.verify
        lessons/ > releasing.release_files > releasing.write > releasing.solution_leaks > a release
        releasing.record > releasing.release_files
        building.lesson > releasing.release_files
    """,
    "hand_in": """
        a zip of the LMS > collecting.search > collecting.receiving > class/submitted/
        class/submitted/ > grading.notebook.submission > grading.running.batch
        grading.running.batch > grading.execution.assemble
        grading.running.batch > grading.execution.task > grading.running.pool
        grading.running.pool > grading.execution.execute
        grading.execution.execute > sandbox.sandbox > sandbox.process > inside.messages.codec
        inside.messages.codec > inside.server
        grading.execution.execute > checking.run_check
        grading.running.batch > grading.notebook.records > class/autograded/
        grading.running.batch > grading.classroom.gradebook > gradebook.db
        gradebook.db > grading.feedback.exporter > class/feedback/
        grading.feedback.score_table > grading.feedback.exporter > class/feedback/
        class/feedback/ > grading.feedback.return_format > a student
    """,
    "answer": """
        a cell of a notebook > check > checking.run_check
        checks.masked_attention > checking.toolbox.registry > checking.run_check
        checking.run_check > checking.toolbox.student_answer > inside.answer
        inside.answer > the learner's function
        checks.masked_attention > checking.toolbox.expect > checking.toolbox.failure
        checking.run_check > checking.asking.right_answer > checking.asking.probes
        checking.asking.questions > checking.asking.right_answer
        checking.run_check > checking.diagnosis.diagnose
        mistakes.masked_attention > checking.toolbox.registry
        checking.diagnosis.diagnose > checking.diagnosis.stored_replies
        checking.diagnosis.diagnose > checking.diagnosis.common_cause > checking.diagnosis.relations
        checking.run_check > checking.diagnosis.place > inside.places > inside.expressions
        inside.answer > inside.places
        checking.run_check > checking.toolbox.failure > the sentence
    """,
}


def arrows(way):
    """Pairs of names, in order and each once."""
    chains = [line.strip().split(" > ") for line in WAYS[way].strip().splitlines()]
    return list(dict.fromkeys(pair for chain in chains for pair in itertools.pairwise(chain)))


def is_module(name):
    return "/" not in name and " " not in name and name != "gradebook.db"


def words(name):
    """The first sentence of a module's docstring, without its subject in backquotes."""
    text = ast.get_docstring(ast.parse(MODULES[f"autograder.{name}"].read_text(encoding="utf-8")))
    return re.split(r"[:.,;](?:\s|$)", text.replace("`", ""))[0]


def mermaid(way):
    """A way as a drawing that GitHub and JupyterLab show: a frame for each room."""
    drawn = arrows(way)
    names = list(dict.fromkeys(name for pair in drawn for name in pair))
    number = {name: f"n{i}" for i, name in enumerate(names)}
    rooms = {}
    for name in filter(is_module, names):
        rooms.setdefault(name.rpartition(".")[0], []).append(name)
    lines = ["```mermaid", "flowchart TB"]
    for room, modules in rooms.items():
        boxes = [
            f'{number[one]}["<b>{one.rpartition(".")[2]}</b><br>{words(one)}"]' for one in modules
        ]
        inner = [f"    {box}" for box in boxes]
        lines += [f"  subgraph {room or 'autograder'}", *inner, "  end"] if room else boxes
    lines += [f'  {number[name]}(["{name}"])' for name in names if not is_module(name)]
    lines += [f"  {number[a]} --> {number[b]}" for a, b in drawn]
    return "\n".join([*lines, "```", ""])


def wrong(way):
    """What of a way is not so in the code, in sentences."""
    for pair in arrows(way):
        modules = [f"autograder.{name}" for name in pair if is_module(name)]
        missing = [name for name in modules if name not in MODULES]
        if missing:
            yield f"{way}: there is no module {', '.join(missing)}"
        elif len(modules) == 2:
            one, other = modules
            if other not in IMPORTED[one] and one not in IMPORTED[other]:
                yield f"{way}: neither of {one} and {other} imports the other"


def drawn(text):
    """The page with its drawings made anew."""
    return DRAWING.sub(lambda found: found[1] + mermaid(found[2]) + found[3], text)


def main():
    """Write the drawings into docs/architecture.md; exit status 1 where a way does not exist."""
    sentences = [sentence for way in WAYS for sentence in wrong(way)]
    print("\n".join(sentences), end="\n" * bool(sentences))
    if not sentences:
        write_aside(PAGE, drawn(PAGE.read_text(encoding="utf-8")).encode())
    return int(bool(sentences))


if __name__ == "__main__":
    sys.exit(main())
