"""Plans to begin with, and class/course.toml as it is written from one of them."""

import tomllib
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from string import Template

from autograder import CourseError

PLANS = Path(__file__).parent / "plans"
MORNING, NIGHT = time(8, 0), time(23, 59)


@dataclass(frozen=True)
class Plan:
    """A ready plan: what it is for, the lessons of each week, and lessons that it assumes."""

    title: str
    weeks: list[list[str]]
    assumed: list[str]


def names() -> list[str]:
    """What the ready plans are called."""
    return sorted(path.stem for path in PLANS.glob("*.toml"))


def find(name: str) -> Plan:
    """The ready plan of a name; raises CourseError where there is none."""
    if name not in names():
        raise CourseError(f"no plan is called {name!r}; there are: {', '.join(names())}")
    return Plan(**tomllib.loads((PLANS / f"{name}.toml").read_text(encoding="utf-8")))


def text(name: str | None = None, start: date | None = None, timezone: str | None = None) -> str:
    """class/course.toml with its comments.

    name   of a ready plan; None for all lessons as they are, without dates
    start  the day on which the first lesson is handed out; a week's lessons share its days, for a
           lesson's solutions are handed out with the next one
    """
    plan = find(name) if name else None
    words = {
        "title": plan.title if plan else "all lessons, in their order",
        "timezone": f'timezone = "{timezone}"' if timezone else '# timezone = "Europe/Berlin"',
        "assumed": f"assumed = {_listed(plan.assumed)}" if plan and plan.assumed else ASSUMED,
        "lessons": _lessons(plan, start) if plan else "",
    }
    template = (Path(__file__).parent / "course.toml.txt").read_text(encoding="utf-8")
    return Template(template).substitute(words).rstrip() + "\n"


ASSUMED = '# assumed = ["00"]'


def _lessons(plan: Plan, start: date | None) -> str:
    lines = []
    for number, week in enumerate(plan.weeks):
        lines.append(f"\n# Week {number + 1}")
        for place, lesson in enumerate(week):
            lines.append(f"[lessons.{lesson}]")
            if start is not None:
                days = [7 * number + 7 * one // len(week) for one in (place, place + 1)]
                first = datetime.combine(start + timedelta(days[0]), MORNING)
                last = datetime.combine(start + timedelta(days[1] - 1), NIGHT)
                lines += [f'release = "{first:%Y-%m-%d %H:%M}"', f'due = "{last:%Y-%m-%d %H:%M}"']
    return "\n".join(lines)


def _listed(names: list[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
