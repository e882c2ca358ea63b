"""Put a lesson's stored answers to the checks of a released folder: run there, with its modules.

    python asked_there.py REPOSITORY LESSON

Prints {"exercise/answer": [whether it failed, what was said to be likely]} as JSON.
"""

import importlib.util
import inspect
import json
import sys
import warnings
from pathlib import Path


def stored(path):
    """The answers in a module of mistakes: (exercise, name, function), without registering them."""
    from autograder.checking.toolbox import registry

    found = []

    def keep(exercise, **_):
        return lambda target: found.append((exercise, target.__name__, target)) or target

    own = registry.mistake, registry.alternative, registry.careless
    registry.mistake = registry.alternative = registry.careless = keep
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})
    finally:
        registry.mistake, registry.alternative, registry.careless = own
    return found


def on_cards(repository, lesson):
    """The mistakes on a lesson's cards, alike: its right answers are the repository's."""
    from autograder.checking.toolbox import cards

    path = Path(repository) / "attention" / f"{lesson}.py"
    spec = importlib.util.spec_from_file_location("right", path)
    sys.modules["right"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for card in cards.read(Path(repository) / "autograder" / "mistakes" / f"{lesson}.md"):
        right = getattr(module, card.exercise)
        for name, text in cards.ways(card, inspect.getsource(right)):
            yield card.exercise, name, cards.made(card, text, right, "wrong")


def main(repository, lesson):
    """Ask each of the lesson's stored answers on the first seed that is recorded."""
    from autograder.checking.asking import recordings
    from autograder.checking.run_check import run_check
    from autograder.checking.toolbox import registry
    from autograder.inside.answer import LocalAnswer

    said, path = {}, Path(repository) / "autograder" / "mistakes" / f"{lesson}.py"
    for exercise, name, target in [*stored(path), *on_cards(repository, lesson)]:
        item = registry.find(exercise)
        if item.has_one_right_answer:
            failure = run_check(item, LocalAnswer(target), recordings.seeds(item)[0], told={})
            likely = failure.likely if failure else ""
            said[f"{exercise}/{name}"] = [failure is not None, likely]
    print(json.dumps(said))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
