"""Sandboxes, each started once for the tests of a module."""

import pytest

from autograder.sandbox.sandbox import Sandbox
from tests.autograder.sandbox.boxes import LESSON, LIMITS
from tests.needs import needs, skip_without


@pytest.fixture(scope="module", params=["off", pytest.param("required", marks=needs("bubblewrap"))])
def box(request):
    with Sandbox(LESSON, request.param, LIMITS) as made:
        yield made


@pytest.fixture(scope="module")
def walled():
    skip_without("bubblewrap")
    with Sandbox(LESSON, "required", LIMITS) as made:
        yield made
