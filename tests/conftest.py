"""Settings of all tests: with REQUIRE_ALL set, as in .ci/run, nothing may be skipped."""

import os

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Turn a skipped test into a failed one, so that a missing program cannot go unnoticed.

    A test marked ``gpu`` may be skipped: few machines have one.
    """
    report = yield
    expected = hasattr(report, "wasxfail") or item.get_closest_marker("gpu")
    if report.skipped and os.environ.get("REQUIRE_ALL") and not expected:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"REQUIRE_ALL is set, but this test was skipped. {reason}"
    return report
