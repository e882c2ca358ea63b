"""class/course.toml: lessons of a class, their exercises, points and dates, sections and groups."""

import contextlib
import tomllib
import zoneinfo
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from babel import Locale, UnknownLocaleError

from autograder import ROOT, CourseError, lessons
from autograder.settings import care_share

NAME = "class/course.toml"
TOP = (
    *("care_share", "timezone", "language", "own", "assumed"),
    *("late", "lessons", "sections", "groups"),
)
LATE = ("percent_a_day", "grace_hours", "most_percent")
LESSON = ("release", "due", "points", "optional", "without", "alone")


@dataclass(frozen=True)
class Late:
    """What late work costs, in percent of what it earned: so much for each day that has begun."""

    percent_a_day: float
    grace_hours: float = 0.0
    most_percent: float = 100.0

    def penalty(self, score: float, seconds: float) -> float:
        """The points that are lost, of ``score``, by work that is ``seconds`` late."""
        if seconds <= 3600 * self.grace_hours:
            return 0.0
        days = seconds // 86400 + (seconds % 86400 > 0)
        return round(score * min(self.percent_a_day * days, self.most_percent) / 100, 4)


@dataclass(frozen=True)
class LessonChoice:
    """What a class has of one lesson. Dates are in UTC and carry no zone, as nbgrader keeps them.

    points    of exercises that are worth something else than in the course
    optional  exercises that stay and earn nothing
    without   exercises that are taken out
    alone     whether everybody hands in by themselves although there are groups
    """

    slug: str
    release: datetime | None = None
    due: datetime | None = None
    points: Mapping[str, float] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    alone: bool = False

    @property
    def changes(self) -> bool:
        """Whether the lesson's notebook is another than the course's."""
        return bool(self.points or self.optional or self.without)


@dataclass(frozen=True)
class Choices:
    """What a class has chosen; without a file, all of the course as it is.

    assumed   lessons that students know already, or whose library they are just given
    lessons   {slug: LessonChoice} of those that the class has, in their order
    sections  {name: students' ids}; so are groups, whose members hand in together
    """

    path: Path
    lessons: Mapping[str, LessonChoice]
    timezone: zoneinfo.ZoneInfo | None = None
    language: Locale = Locale("en")
    assumed: tuple[str, ...] = ()
    late: Late | None = None
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    chosen: bool = False  # whether the file says which lessons there are

    @property
    def adapts(self) -> bool:
        """Whether the class has other notebooks than the course."""
        return self.chosen or any(one.changes for one in self.lessons.values())

    def together(self, slug: str) -> Mapping[str, tuple[str, ...]]:
        """The groups that hand in a lesson together: none where everybody does by themselves."""
        return self.groups if slug in self.lessons and not self.lessons[slug].alone else {}

    def shown(self, moment: datetime | None) -> str:
        """A time of nbgrader's in the class's zone and language, or ''."""
        if moment is None:
            return ""
        from babel.dates import format_datetime

        here = moment.replace(tzinfo=UTC).astimezone(self.timezone)
        return format_datetime(here, "EEE d MMM y, HH:mm", locale=self.language)


def read(root: Path | str = ROOT) -> Choices:
    """What class/course.toml below ``root`` says, or that there is none.

    Raises CourseError, in one sentence, for what cannot be read or is not understood.
    """
    care_share(root)  # refuses what is no TOML, and a share that is none
    path = Path(root) / NAME
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return parse(path, text, there(root))


def parse(path: Path, text: str, slugs: list[str]) -> Choices:
    """The choices in a TOML text of the file ``path``, for a course of the lessons ``slugs``."""
    said = tomllib.loads(text)
    _known(path, said, TOP, "")
    zone = _zone(path, said.get("timezone"))
    named = _table(path, said, "lessons")
    one = {
        _slug(path, name, slugs): _lesson(path, name, what, zone) for name, what in named.items()
    }
    found = {slug: LessonChoice(slug, **what) for slug, what in sorted(one.items())}
    if len(found) < len(named):
        raise CourseError(f"{path}: a lesson stands there twice, by its number and by its name")
    return Choices(
        path,
        found if "lessons" in said else {slug: LessonChoice(slug) for slug in slugs},
        zone,
        _language(path, said.get("language", "en")),
        tuple(_slug(path, name, slugs) for name in _names(path, said, "assumed")),
        _late(path, said),
        _people(path, said, "sections"),
        _people(path, said, "groups"),
        "lessons" in said,
    )


def there(root: Path | str) -> list[str]:
    """The lessons that the course has a solved notebook of."""
    found = (Path(root) / "solutions").glob("[0-9][0-9]_*/*.ipynb")
    return sorted(path.stem for path in found if path.stem == path.parent.name)


def _lesson(path: Path, name: str, said: object, zone: zoneinfo.ZoneInfo | None) -> dict[str, Any]:
    """The fields of a LessonChoice from a table [lessons.NAME]."""
    where = f"lessons.{name}."
    if not isinstance(said, dict):
        raise CourseError(f"{path}: [lessons.{name}] is no table; without settings, write it so")
    _known(path, said, LESSON, where)
    found: dict[str, Any] = {}
    for what in ("release", "due"):
        if what in said:
            found[what] = _moment(path, where + what, said[what], zone)
    for what in ("optional", "without"):
        found[what] = tuple(_names(path, said, what, where))
    found["points"] = _table(path, said, "points", where)
    for exercise, worth in found["points"].items():
        if type(worth) not in (int, float) or not 0 < worth <= 1000:
            raise CourseError(
                f"{path}: {where}points.{exercise} = {worth!r} is no number above 0; an exercise "
                "that is to earn nothing is named in optional"
            )
    found["alone"] = said.get("alone", False)
    if type(found["alone"]) is not bool:
        raise CourseError(f"{path}: {where}alone is true or false, not {found['alone']!r}")
    if found.get("due") and found.get("release") and found["due"] <= found["release"]:
        raise CourseError(
            f"{path}: lesson {name} is due ({said['due']}) before it is released "
            f"({said['release']})"
        )
    return found


def _moment(path: Path, where: str, said: object, zone: zoneinfo.ZoneInfo | None) -> datetime:
    """A time in UTC without a zone. A day alone would end as it begins, so it is refused."""
    moment = said
    if isinstance(said, str):
        with contextlib.suppress(ValueError):
            moment = datetime.fromisoformat(said.strip())
            if len(said.strip()) == len("2026-12-01"):
                moment = moment.date()
    if type(moment) is date:
        raise CourseError(f'{path}: {where} names a day without a time: "{moment} 23:59"')
    if not isinstance(moment, datetime):
        raise CourseError(
            f'{path}: {where} = "{said}" is not in the form of a time: write it as '
            '"2026-12-01 23:59"'
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone) if zone else moment.astimezone()
    return moment.astimezone(UTC).replace(tzinfo=None)


def _zone(path: Path, said: object) -> zoneinfo.ZoneInfo | None:
    """The zone in which dates without one are meant; None is this machine's."""
    if said is None:
        return None
    try:
        return zoneinfo.ZoneInfo(str(said))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        near = get_close_matches(str(said), zoneinfo.available_timezones(), 1, 0.8)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise CourseError(f"{path}: there is no timezone {said!r}{hint}") from None


def _language(path: Path, said: object) -> Locale:
    try:
        return Locale.parse(str(said).replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise CourseError(
            f"{path}: language = {said!r} is none that dates can be written in; write it as en, de "
            "or pt_BR"
        ) from None


def _late(path: Path, said: Mapping[str, Any]) -> Late | None:
    table = _table(path, said, "late")
    if "late" not in said:
        return None
    _known(path, table, LATE, "late.")
    for name, worth in table.items():
        most = 100 if "percent" in name else 10_000
        if type(worth) not in (int, float) or not 0 <= worth <= most:
            raise CourseError(f"{path}: late.{name} = {worth!r} is no number from 0 to {most}")
    if "percent_a_day" not in table:
        raise CourseError(f"{path}: [late] needs percent_a_day; 100 takes all on the first day")
    return Late(**table)


def _people(path: Path, said: Mapping[str, Any], what: str) -> dict[str, tuple[str, ...]]:
    """Sections or groups; nobody may be in two."""
    tables = _table(path, said, what)
    found = {name: tuple(_names(path, tables, name, f"{what}.")) for name in tables}
    seen: dict[str, str] = {}
    for name, members in found.items():
        for student in members:
            if student in seen:
                twice = f"twice in {name}" if seen[student] == name else f"in {seen[student]}, too"
                raise CourseError(f"{path}: {what}.{name} names {student}, who is {twice}")
            seen[student] = name
    return found


def _table(path: Path, said: Mapping[str, Any], name: str, where: str = "") -> dict[str, Any]:
    found = said.get(name, {})
    if not isinstance(found, dict):
        raise CourseError(f"{path}: {where}{name} is no table")
    return found


def _names(path: Path, said: Mapping[str, Any], name: str, where: str = "") -> list[str]:
    found = said.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
        raise CourseError(f'{path}: {where}{name} is no list of names, such as ["a", "b"]')
    return found


def _known(path: Path, said: Mapping[str, Any], names: Collection[str], where: str) -> None:
    """Refuse a setting that no command reads: a slip of the pen would otherwise do nothing."""
    for name in said:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"
            raise CourseError(f"{path}: there is no setting {where}{name}; {hint}")


def _slug(path: Path, name: str, slugs: Collection[str]) -> str:
    try:
        (found,) = lessons.choose([name], slugs)
    except lessons.UnknownLesson as error:
        raise CourseError(f"{path}: {error}") from None
    return found
