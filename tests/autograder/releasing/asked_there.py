"""Put a lesson's stored answers to the checks of a released folder: run there, with its modules.

    python asked_there.py REPOSITORY LESSON

Prints {"exercise/answer": [whether it failed, what was said to be likely]} as JSON.
"""

import json
import sys
import warnings
from pathlib import Path


def stored(path):
    """The answers in a module of mistakes, as [exercise, function], without registering them."""
    from autograder.checking.toolbox import registry

    found = []

    def keep(exercise, **_):
        return lambda target: found.append((exercise, target)) or target

    own = registry.mistake, registry.alternative, registry.careless
    registry.mistake = registry.alternative = registry.careless = keep
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})
    finally:
        registry.mistake, registry.alternative, registry.careless = own
    return found


def main(repository, lesson):
    """Ask each of the lesson's stored answers on the first seed that is recorded."""
    from autograder.checking.asking import recordings
    from autograder.checking.run_check import run_check
    from autograder.checking.toolbox import registry
    from autograder.inside.answer import LocalAnswer

    said = {}
    for exercise, target in stored(Path(repository) / "autograder" / "mistakes" / f"{lesson}.py"):
        item = registry.find(exercise)
        if item.has_one_right_answer:
            failure = run_check(item, LocalAnswer(target), recordings.seeds(item)[0])
            likely = failure.likely if failure else ""
            said[f"{exercise}/{target.__name__}"] = [failure is not None, likely]
    print(json.dumps(said))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
