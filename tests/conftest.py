"""Settings of all tests: with REQUIRE_ALL set, as in .ci/run, no test is skipped unnoticed."""

import os

import pytest

# Reasons that no installation mends: who runs the tests, and on which machine.
MAY_BE_SKIPPED = ("root", "GPU")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Turn a skipped test into a failed one, so that a missing program cannot go unnoticed."""
    report = yield
    if report.skipped and os.environ.get("REQUIRE_ALL") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(word in reason for word in MAY_BE_SKIPPED):
            report.outcome = "failed"
            report.longrepr = f"REQUIRE_ALL is set, but this test was skipped. {reason}"
    return report
