"""Two objects of a class that are used in turn: each answers as if it were alone."""

from collections.abc import Sequence

from autograder.checking.asking.questions import Pair, Question, moved

TURNS = 2  # calls of each object
ONE, OTHER, THIRD = 3000, 4000, 5000  # what is added to the numbers of the objects


def in_turn(pairs: Sequence[Pair]) -> list[Question]:
    """The questions to two objects that are built alike, and to one that is built otherwise.

    The first object of the check that answers twice without drawing is built twice more; else the
    first that answers once.
    """
    lives = [(build, _life(pairs, build.built)) for build, _ in pairs if build.built]
    lives = [(build, life) for build, life in lives if _calls(life)]
    if not lives:
        return []
    build, life = max(lives, key=lambda pair: _calls(pair[1]))  # the first of several
    ready = [one.request for one in life].index("call")
    made = [moved(one, offset) for offset in (ONE, OTHER) for one in (build, *life[:ready])]
    made += [moved(one, THIRD) for one in _built_otherwise(pairs, build)]
    return made + [moved(one, offset) for one in life[ready:] for offset in (ONE, OTHER)]


def _life(pairs: Sequence[Pair], number: int) -> list[Question]:
    """What object ``number`` is asked, up to its last turn, as far as chance has no part in it."""
    life: list[Question] = []
    for question, reply in pairs:
        if question.handle == number:
            if reply.drew or reply.kind != "value" or _calls(life) == TURNS:
                break
            life += [question] if question.request != "parameters" else []
    while life and life[-1].request != "call":
        life.pop()
    return life


def _calls(life: Sequence[Question]) -> int:
    return sum(question.request == "call" for question in life)


def _built_otherwise(pairs: Sequence[Pair], build: Question) -> list[Question]:
    """The first construction with other arguments, which may disturb those built before."""
    known = str(build.details)
    others = [one for one, reply in pairs if one.built and reply.kind == "value"]
    return [one for one in others if str(one.details) != known][:1]
