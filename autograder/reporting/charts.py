"""Drawings of a class as inline SVG: no student's name is in them, and all have a text for readers
who do not see them."""

import html
from collections.abc import Iterable, Sequence

INK, BLUE, ORANGE = "#1b1f24", "#0072b2", "#b35900"
# Light to dark, so that the order survives grey print: no points, some, all.
LEAST, MOST = (243, 224, 194), (0, 68, 120)
ROW = 26  # height of a bar with its label


def histogram(counts: Sequence[int], most: float) -> str:
    """How many students earned which part of the points, from 0 to ``most``."""
    width, height, left, step = 640, 240, 36, 640 / (len(counts) + 1)
    top, high = 24, max([*counts, 1])
    parts = []
    for place, count in enumerate(counts):
        tall = (height - top - 50) * count / high
        x, y = left + place * step, height - 50 - tall
        low, up = most * place / len(counts), most * (place + 1) / len(counts)
        title = f"{count} with {low:g} to {up:g} points"
        parts.append(_rect(x + 1, y, step - 2, tall, BLUE, title))
        if count:
            parts.append(_text(x + step / 2, y - 6, str(count), "middle"))
    end = left + step * len(counts)
    base = height - 50
    parts.append(f"<path d='M{left} {base}H{end:.0f}' stroke='{INK}'/>")
    for place in range(0, len(counts) + 1, max(1, len(counts) // 5)):
        value = most * place / len(counts)
        parts.append(_text(left + place * step, base + 18, f"{value:g}", "middle"))
    parts.append(_text((left + end) / 2, height - 10, "points", "middle"))
    said = ", ".join(map(str, counts))
    alt = f"Histogram of points from 0 to {most:g}: in each tenth of them, {said} students."
    return _drawing(width, height, alt, parts)


def heat_map(names: Sequence[str], shares: Sequence[Sequence[float]]) -> str:
    """Exercises down, students across, both sorted; the share of its points is the darkness.

    shares   for each of ``names`` its row: one number from 0 to 1 for each student
    """
    count = len(shares[0])
    left, top, tall = 20 + 8.2 * max(map(len, names)), 8, 24
    cell = min(18.0, (940 - left - 60) / count)
    parts = []
    for line, (name, row) in enumerate(zip(names, shares, strict=True)):
        y = top + line * tall
        parts.append(_text(left - 8, y + 16, name, "end"))
        for place, share in enumerate(row):
            parts.append(_rect(left + place * cell, y, cell, tall - 1, _shade(share)))
        parts.append(_text(left + count * cell + 6, y + 16, f"{sum(row) / count:.0%}", "start"))
    base = top + tall * len(names)
    legend = "each column a student, the one with the most points first"
    parts.append(_text(left, base + 18, legend, "start"))
    for place, (share, words) in enumerate(((0.0, "none"), (0.5, "half"), (1.0, "all points"))):
        x, y = left + 80 * place, base + 30
        parts.append(_rect(x, y, 16, 16, _shade(share)))
        parts.append(_text(x + 22, y + 13, words, "start"))
    means = ", ".join(
        f"{name} {sum(row) / count:.0%}" for name, row in zip(names, shares, strict=True)
    )
    alt = f"Heat map of {len(names)} exercises and {count} students; mean share of points: {means}."
    width = max(left + count * cell + 60, left + 8 * len(legend))
    return _drawing(width, base + 56, alt, parts)


def bars(rows: Iterable[tuple[str, float, str]], alt: str, unit: str = "") -> str:
    """A bar for each triple (label, value, what stands under it in small print)."""
    rows = list(rows)
    high = max([value for _, value, _ in rows] + [1e-9])
    left, width, line = 250, 940, ROW + 20
    parts = []
    for place, (label, value, small) in enumerate(rows):
        y = 6 + place * line
        long = (width - left - 90) * value / high
        parts.append(_text(left - 10, y + 17, _cut(label, 32), "end"))
        parts.append(_rect(left, y, long, ROW - 4, ORANGE))
        parts.append(_text(left + long + 6, y + 17, f"{value:g}{unit}", "start"))
        if small:
            parts.append(_text(left, y + ROW + 10, _cut(small, 105), "start", 12))
    said = "; ".join(f"{label}: {value:g}{unit}" for label, value, _ in rows)
    return _drawing(width, 12 + line * len(rows), f"{alt} {said}.", parts)


def _drawing(width: float, height: float, alt: str, parts: Iterable[str]) -> str:
    said = html.escape(alt, quote=True)
    return (
        f"<svg role='img' aria-label='{said}' viewBox='0 0 {width:.0f} {height:.0f}' "
        f"width='{width:.0f}' xmlns='http://www.w3.org/2000/svg'>{''.join(parts)}</svg>"
    )


def _rect(x: float, y: float, width: float, height: float, fill: str, title: str = "") -> str:
    return (
        f"<rect x='{x:.2f}' y='{y:.2f}' width='{width:.2f}' height='{height:.2f}' fill='{fill}'>"
        f"{title and f'<title>{title}</title>'}</rect>"
    )


def _text(x: float, y: float, words: str, anchor: str, size: int = 14) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size}' fill='{INK}'>"
        f"{html.escape(words)}</text>"
    )


def _shade(share: float) -> str:
    mixed = (a + (b - a) * share for a, b in zip(LEAST, MOST, strict=True))
    return "#" + "".join(f"{round(one):02x}" for one in mixed)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
