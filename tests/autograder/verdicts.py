"""What `autograder verify` says of the small lesson when all is well, and what differs."""

DECORATOR = '@check(rests_on=("Double every value", "the same shape"))\n'
GOOD = {
    "lesson": "00_mini",
    "seeds": 3,
    "points": 5,
    "solved": 5,
    "blank": 0,
    "mistakes": 6,
    "rejected": 6,
    "named": 6,
    "alternatives": 4,
    "accepted": 4,
    "careless": 4,
    "leaks": 0,
    "mutants": 15,
    "alive": 0,
    "failures": [],
}

# Stored answers to be added to the lesson: a right one called a mistake, and a known one again.
CORRECT = """

@mistake("doubled", hint="This is right.")
def correct(values):
    return 2 * values
"""
AGAIN = """

@mistake("doubled", hint="Another hint.")
def triples_again(values):
    return values + values + values
"""


def add(path, text):
    """Append ``text`` to a file."""
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def changes(verdict):
    """What differs from a good lesson's verdict."""
    return {key: value for key, value in verdict.items() if value != GOOD[key]}
