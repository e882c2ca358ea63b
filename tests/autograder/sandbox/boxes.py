"""The sandboxes of these tests: for which lesson, under which limits, and what is printed there."""

from autograder.inside.limits import Limits

LESSON = "01_kernel_regression"
LIMITS = Limits(cell_seconds=10, check_seconds=5)


def printed(process, source):
    outputs = process.run(source)
    assert "error" not in outputs, outputs["error"]
    return outputs["stdout"].strip()
