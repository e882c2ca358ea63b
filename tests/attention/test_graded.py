"""What students write: the library's answers pass their own checks, with all oracles and probes.

What a check asks of an exercise is not asked again beside this file.
"""

import pytest

from autograder.building.lesson import find
from autograder.checking.asking.probes import probes_of
from autograder.checking.asking.right_answer import asked
from autograder.checking.run_check import run_check
from autograder.checking.toolbox import registry
from autograder.inside.answer import LEFT_BEHIND, LocalAnswer

SLUGS = [path.stem for path in find()]
SEED = 7  # the gates of `autograder verify` take others


@pytest.mark.parametrize("slug", SLUGS)
def test_the_library_s_answers_pass_their_checks(slug):
    checks = registry.of_lesson(slug.partition("_")[2]).values()
    assert checks
    for item in checks:
        failure = run_check(item, LocalAnswer(registry.reference(item)), SEED, told={})
        assert failure is None, f"{item.name}: {failure}"


@pytest.mark.parametrize("slug", SLUGS)
def test_the_library_s_answers_have_gradients_and_work_on_a_gpu(slug):
    """A check leaves out what the library itself cannot answer."""
    for item in registry.of_lesson(slug.partition("_")[2]).values():
        if item.name.startswith("break_"):  # inputs on which a mistake shows
            continue
        pairs = list(zip(*asked(item, SEED), strict=True))
        questions, replies = zip(*[pair for pair in pairs if not pair[0].probe], strict=True)
        for probe in ("device", "gradients"):
            wanted = [one for one in probes_of(item, questions, replies) if one.probe == probe]
            answered = [reply for one, reply in pairs if one.probe == probe]
            assert len(answered) == len(wanted), f"{item.name}: {probe}"
            assert not any(LEFT_BEHIND in reply.modified for reply in answered), item.name
