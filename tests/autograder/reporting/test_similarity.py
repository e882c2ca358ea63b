"""Who is shown as alike: copies are, also renamed ones; independent students are not."""

import random

import pytest

from autograder.reporting import fragments, similarity

EXERCISES = [f"exercise_{number}" for number in range(6)]
STEPS = [
    "{0} = {1}.sum(-1)",
    "{0} = {1} - {1}.mean()",
    "{0} = torch.exp({1})",
    "{0} = {1} / len({1})",
    "{0} = {1}.unsqueeze(0) * 2",
    "{0} = {1} @ {1}.T",
    "{0} = torch.stack([row for row in {1}])",
    "{0} = max({1}, key=abs)",
]
NAMES = ["diff", "out", "total", "w", "score", "tmp", "res", "acc"]


def answer(name, draw, shorten=False):
    """A function of a few steps, each drawn from several: what one student writes."""
    lines, before = [f"def {name}(x):"], "x"
    for _ in range(2 if shorten else draw.randint(4, 7)):
        new = draw.choice(NAMES)
        lines.append("    " + draw.choice(STEPS).format(new, before))
        before = new
    return "\n".join([*lines, f"    return {before}"])


def make(seed, size=40, **more):
    """A class of independent students: (rows, texts)."""
    draw = random.Random(seed)
    texts = {
        f"s{student:02d}": {name: answer(name, draw, **more) for name in EXERCISES}
        for student in range(size)
    }
    return [row(student) for student in texts], texts


def row(student, reasons=()):
    parts = [
        {"name": name, "score": 0 if name in dict(reasons) else 1, "max": 1}
        | {"reason": dict(reasons).get(name, "")}
        for name in EXERCISES
    ]
    return {"student": student, "exercises": parts}


def renamed(text):
    for number, name in enumerate(NAMES):
        text = text.replace(f" {name}", f" v{number}").replace(f"({name}", f"(v{number}")
    return "# all my own\n" + text.replace("\n", "  # so\n")


@pytest.mark.parametrize("seed", range(4))
def test_independent_students_are_not_shown_and_a_renamed_copy_is(seed):
    rows, texts = make(seed)
    assert similarity.alike(rows, texts, {}) == []
    texts["s07"] = {name: renamed(text) for name, text in texts["s31"].items()}
    (found,) = similarity.alike(rows, texts, {})
    assert found.students == ("s07", "s31")
    assert len(found.exercises) >= 4
    assert found.names == ()


def test_what_the_lesson_gives_or_many_write_is_no_evidence():
    rows, texts = make(1)
    texts["s07"] = dict(texts["s31"])
    given = {name: similarity.Given(text, []) for name, text in texts["s31"].items()}
    assert similarity.alike(rows, texts, given) == []
    for student in sorted(texts)[:10]:
        texts[student] = dict(texts["s31"])
    assert similarity.alike(rows, texts, {}) == []


def test_one_exercise_alone_says_nothing():
    rows, texts = make(2)
    texts["s07"][EXERCISES[0]] = texts["s31"][EXERCISES[0]]
    assert similarity.alike(rows, texts, {}) == []


def test_comments_and_rare_faults_count_where_the_code_is_everybodys():
    rows, texts = make(3)
    usual = {name: f"def {name}(x):\n    return x" for name in EXERCISES}
    texts = {student: dict(usual) for student in texts}
    for student in ("s07", "s31"):
        texts[student] = {
            name: f"# the {name} goes from left to right\n{text}" for name, text in usual.items()
        }
    (found,) = similarity.alike(rows, texts, {})
    assert (found.students, found.comments) == (("s07", "s31"), 6)
    texts = {student: dict(usual) for student in texts}
    blank = [(name, f"{name}: nothing here yet: write about 2 lines.") for name in EXERCISES]
    wrong = [(name, f"{name}: the sum is wrong.\n  got       7") for name in EXERCISES]
    others = {one["student"]: one for one in rows} | {"s02": row("s02", blank)}
    others |= {"s03": row("s03", blank), "s05": row("s05", wrong), "s06": row("s06", wrong)}
    (found,) = similarity.alike(list(others.values()), texts, {})
    assert found.students == ("s05", "s06"), "who wrote nothing shares nothing"
    assert set(found.wrong) == set(EXERCISES)
    assert "the same rare fault" in found.why()


def test_fragments_outlast_names_comments_layout_and_docstrings():
    one = fragments.of(
        'def f(x):\n    "Doc."\n    total = x.sum(-1)  # the sum of all\n    return total'
    )
    other = fragments.of("def f(x):\n\n    v1 = (x . sum( -1 ))\n    return v1")
    assert one.code == other.code
    assert one.names == {"f", "x", "total"}
    assert one.comments == {"the sum of all"}
    assert fragments.of("def f(:") == fragments.Fragments()


def test_empty_and_tiny_classes():
    assert similarity.alike([], {}, {}) == []
    rows, texts = make(1, size=2)
    texts["s00"] = dict(texts["s01"])
    assert similarity.alike(rows, texts, {}) == [], "two students are no class to compare with"
