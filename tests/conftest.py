"""Settings of all tests: what was skipped fails where REQUIRE_ALL is set."""

import gc
import os
import re

import pytest
from hypothesis import HealthCheck, settings

from tests import needs

# A forked process has none of PyTorch's threads, and would wait for them for ever.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes, and how long it takes to draw it, is the machine's affair.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# Reasons that no installation mends: who runs the tests, and on which machine.
MAY_BE_SKIPPED = ("root", "GPU")
# What is asked for with -m, as `make test` and CI do, and what a file names that has such tests.
NAMED = {
    "(browser or serial)": re.compile(r"\bmark\.(browser|serial)\b|add_marker"),
    "busy": re.compile(r"\bmark\.busy\b|add_marker"),
    "long": re.compile(r"\bmark\.long\b|add_marker"),
}


def pytest_configure():
    """Do without what HIDE_PACKAGES names; seldom look for garbage among thousands of tests."""
    needs.hide()
    gc.set_threshold(50_000, 20, 50)  # an eighth of what the tests of checks took


def pytest_ignore_collect(collection_path, config):
    """Where only tests with marks are asked for, do not import files that name none of the marks.

    Each process of a run imports all that it collects, which takes it longer than some tests.
    """
    asked = config.option.markexpr.strip().split(" and ")
    patterns = [NAMED[mark] for mark in asked if mark in NAMED]
    other = any(" or " in mark for mark in asked if mark not in NAMED)
    if not patterns or other or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return None if all(pattern.search(text) for pattern in patterns) else True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Turn a skipped test into a failed one, so that a missing program cannot go unnoticed."""
    report = yield
    if report.skipped and os.environ.get("REQUIRE_ALL") and not hasattr(report, "wasxfail"):
        found = report.longrepr
        reason = found[2] if isinstance(found, tuple) else str(found)
        if not any(word in reason for word in MAY_BE_SKIPPED):
            report.outcome = "failed"
            report.longrepr = f"REQUIRE_ALL is set, but this test was skipped because {reason}"
    return report
