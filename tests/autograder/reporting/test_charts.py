"""What a drawing shows: the axis of ranges begins where the shares are."""

import re

import pytest

from autograder.reporting import charts


@pytest.mark.parametrize(
    ("shares", "unit", "ticks"),
    [
        ([0.0, 0.97], "%", ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        ([0.56, 0.97], "%", ["50 %", "60 %", "70 %", "80 %", "90 %", "100 %"]),
        ([0.9, 1.0], "%", ["90 %", "92 %", "94 %", "96 %", "98 %", "100 %"]),
        ([0.2, 0.4], "", ["0", "20", "40", "60", "80", "100"]),
    ],
)
def test_the_axis_of_ranges_begins_where_the_shares_are(shares, unit, ticks):
    drawn = charts.ranges([("one", shares)], "Dots.", unit)
    assert re.findall(r">([\d]+(?: %)?)</text>", drawn) == ticks
    lines = [float(x) for x in re.findall(r"<path d='M(\d+) 4V", drawn)]
    dots = [float(x) for x in re.findall(r"<circle cx='([\d.]+)'", drawn)]
    values = [float(tick.split()[0]) / 100 for tick in ticks]
    for share, dot in zip(shares, dots, strict=True):
        place = (share - values[0]) / (values[-1] - values[0])
        assert dot == pytest.approx(lines[0] + place * (lines[-1] - lines[0]), abs=0.1)
    assert f"one: {100 * shares[0]:.1f}{unit} to {100 * shares[1]:.1f}{unit}." in drawn
