"""class/course.toml: lessons of a class, their exercises, points and dates, sections and groups."""

import tomllib
import zoneinfo
from collections.abc import Collection, Mapping
from dataclasses import field, fields, replace
from datetime import UTC, date, datetime, tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from autograder import ROOT, CourseError, lessons
from autograder.settings import care

NAME = "class/course.toml"
CONFIG = ConfigDict(extra="forbid")


def read_time(said: object, zone: tzinfo | None = None) -> datetime:
    """A time in UTC without a zone, as nbgrader keeps it.

    zone  that of a time which names none; None: this machine's

    Raises CourseError for what is no time, and for a day alone.
    """
    moment = _moment(said, zone)
    if moment.tzinfo is None and zone:
        moment = moment.replace(tzinfo=zone)
    try:
        return moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise CourseError(f"{said} is no time of ours") from None


def _moment(said: object, zone: object) -> datetime:
    """A time as it was said. A day alone would be its first minute: who hands in on it, late."""
    moment = said
    if isinstance(said, str):
        try:
            moment = datetime.fromisoformat(said.strip().replace(" UTC", "+00:00"))
            moment = moment.date() if len(said.strip()) < len("2026-12-01T23") else moment
        except ValueError:
            moment = None
    if type(moment) is date:
        raise CourseError(f"{str(said)!r} is a day without a time: write it as {moment}T23:59")
    if not isinstance(moment, datetime):
        raise CourseError(
            f"{str(said)!r} is no time: write it as 2026-12-01T23:59+01:00, or without the zone, "
            f"for that of {zone or 'this machine'}"
        )
    return moment


def _time(said: object) -> object:
    """What is a time, as it was said: its zone is that of the class, which is read elsewhere."""
    try:
        moment = _moment(said, "the class")
        read_time(moment, UTC)  # refuses a time that cannot be told in UTC
        return moment
    except CourseError as error:
        raise ValueError(str(error)) from None


def _zone(said: object) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(str(said))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        near = get_close_matches(str(said), zoneinfo.available_timezones(), 1, 0.8)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no timezone {said!r}{hint}") from None


Number = Annotated[float, Field(strict=True)]  # "10" and true are none
Percent = Annotated[Number, Field(ge=0, le=100)]
Names = tuple[Annotated[str, Field(min_length=1)], ...]
People = Mapping[str, Names]  # students' ids, by section or group
Time = Annotated[datetime, BeforeValidator(_time)] | None


def late_by(seconds: float) -> str:
    """By how much something came too late, in words, or '' for nothing.

    >>> late_by(91 * 60), late_by(90_000), late_by(1), late_by(0)
    ('1 h 31 min late', '1 d 1 h late', '1 s late', '')
    """
    left, parts = int(-(-seconds // 1)), list[str]()
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        parts += [f"{count} {unit}"] * bool(count)
    return f"{' '.join(parts[:2])} late" if parts else ""


@dataclass(frozen=True, config=CONFIG)
class Late:
    """What late work costs, in percent of what it earned: so much for each day that has begun."""

    percent_a_day: Percent
    grace_hours: Annotated[Number, Field(ge=0, le=10_000)] = 0.0
    most_percent: Percent = 100.0

    def penalty(self, score: float, seconds: float) -> float:
        """The points that are lost, of ``score``, by work that is ``seconds`` late."""
        if seconds <= 3600 * self.grace_hours:
            return 0.0
        days = seconds // 86400 + (seconds % 86400 > 0)
        return round(score * min(self.percent_a_day * days, self.most_percent) / 100, 4)


@dataclass(frozen=True, config=CONFIG)
class LessonChoice:
    """What a class has of one lesson. Dates are in UTC and carry no zone, as nbgrader keeps them.

    points    of exercises that are worth something else than in the course
    optional  exercises that stay and earn nothing
    without   exercises that are taken out
    alone     whether everybody hands in by themselves although there are groups
    """

    slug: str
    release: Time = None
    due: Time = None
    points: Mapping[str, Annotated[Number, Field(gt=0, le=1000)]] = field(default_factory=dict)
    optional: Names = ()
    without: Names = ()
    alone: Annotated[bool, Field(strict=True)] = False

    @property
    def changes(self) -> bool:
        """Whether the lesson's notebook is another than the course's."""
        return bool(self.points or self.optional or self.without)


@dataclass(frozen=True, config=CONFIG)
class Choices:
    """What a class has chosen; without a file, all of the course as it is.

    assumed   lessons that students know already, or whose library they are just given
    lessons   {slug: LessonChoice} of those that the class has, in their order
    sections  {name: students' ids}; so are groups, whose members hand in together
    """

    path: Path
    lessons: Mapping[str, LessonChoice]
    timezone: Annotated[zoneinfo.ZoneInfo, BeforeValidator(_zone)] | None = None
    assumed: Names = ()
    late: Late | None = None
    sections: People = field(default_factory=dict)
    groups: People = field(default_factory=dict)
    chosen: bool = False  # whether the file says which lessons there are
    care_share: Any = None  # this and the next two are read by ``settings``
    care_everywhere: Any = None
    own: Any = None

    @property
    def adapts(self) -> bool:
        """Whether the class has other notebooks than the course."""
        return self.chosen or any(one.changes for one in self.lessons.values())

    def together(self, slug: str) -> People:
        """The groups that hand in a lesson together: none where everybody does by themselves."""
        return self.groups if slug in self.lessons and not self.lessons[slug].alone else {}

    def here(self, moment: datetime) -> datetime:
        """A time of nbgrader's in the class's zone; without one, in this machine's."""
        return moment.replace(tzinfo=UTC).astimezone(self.timezone)

    def shown(self, moment: datetime | None) -> str:
        """A time of nbgrader's in the class's zone, or ''."""
        if moment is None:
            return ""
        here = self.here(moment)
        told = f"{here:%a} {here.day} {here:%b %Y, %H:%M}"
        return told if self.timezone else f"{told} {here:%Z}"


def read(root: Path | str = ROOT) -> Choices:
    """What class/course.toml below ``root`` says, or that there is none.

    Raises CourseError, in one sentence, for what cannot be read or is not understood.
    """
    care(root)  # refuses what is no TOML, a share that is none, a switch that is none
    path = Path(root) / NAME
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return parse(path, text, there(root))


def parse(path: Path, text: str, slugs: list[str]) -> Choices:
    """The choices in a TOML text of the file ``path``, for a course of the lessons ``slugs``."""
    said = tomllib.loads(text)
    named = said.get("lessons", {slug: {} for slug in slugs})
    if not isinstance(named, dict):
        raise CourseError(f"{path}: lessons is no table")
    found = {_slug(path, name, slugs): what for name, what in named.items()}
    if len(found) < len(named):
        raise CourseError(f"{path}: a lesson stands there twice, by its number and by its name")
    tables = {
        slug: _with(what, slug=slug) if isinstance(what, dict) else what
        for slug, what in sorted(found.items())
    }
    told = {key: what for key, what in said.items() if key != "lessons"}
    try:
        made = TypeAdapter(Choices).validate_python(
            _with(told, path=path, lessons=tables, chosen="lessons" in said)
        )
    except ValidationError as error:
        raise CourseError(f"{path}: {_sentence(error)}") from None
    for what, people in (("sections", made.sections), ("groups", made.groups)):
        _refuse_twice(path, what, people)
    dated = {slug: _dated(path, one, made.timezone) for slug, one in made.lessons.items()}
    assumed = tuple(_slug(path, name, slugs) for name in made.assumed)
    return replace(made, lessons=dated, assumed=assumed)


def _with(table: Mapping[str, Any], **ours: object) -> dict[str, Any]:
    """A table and what we know of it. A key of the file's that is called so is no setting."""
    return {f"{key} " if key in ours else key: what for key, what in table.items()} | ours


def there(root: Path | str) -> list[str]:
    """The lessons that the course has a solved notebook of."""
    found = (Path(root) / "solutions").glob("[0-9][0-9]_*/*.ipynb")
    return sorted(path.stem for path in found if path.stem == path.parent.name)


def _sentence(error: ValidationError) -> str:
    """The first thing that is not understood, in one sentence."""
    first = error.errors()[0]
    name, where = str(first["loc"][-1]), ".".join(map(str, first["loc"])).strip()
    if first["type"] != "unexpected_keyword_argument":
        own = first["msg"].removeprefix("Value error, ")
        said = "" if own != first["msg"] else f", not {first['input']!r}"
        return f"{where}: {own}{said}"
    nested = {"late": Late, "lessons": LessonChoice}
    kind = nested[str(first["loc"][0])] if len(first["loc"]) > 1 else Choices
    known = [one.name for one in fields(kind) if one.name not in ("path", "slug", "chosen")]
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    return f"there is no setting {where}; {hint}"


def _dated(path: Path, one: LessonChoice, zone: tzinfo | None) -> LessonChoice:
    """The same with dates in UTC. Without a zone, they would be others on another machine."""
    if zone is None and any(at and at.tzinfo is None for at in (one.release, one.due)):
        raise CourseError(
            f"{path}: the dates of {one.slug} name no zone: write that of the class at the top of "
            'the file, as timezone = "Europe/Berlin"'
        )
    release, due = (at and read_time(at, zone) for at in (one.release, one.due))
    if release and due and due <= release:
        raise CourseError(f"{path}: lesson {one.slug} is due ({one.due}) before it is released")
    return replace(one, release=release, due=due)


def _refuse_twice(path: Path, what: str, people: People) -> None:
    """Nobody may be in two sections or groups."""
    seen = dict[str, str]()
    for name, members in people.items():
        for student in members:
            if student in seen:
                raise CourseError(
                    f"{path}: {what}.{name} names {student}, who is in {seen[student]} already"
                )
            seen[student] = name


def _slug(path: Path, name: str, slugs: Collection[str]) -> str:
    try:
        (found,) = lessons.choose([name], slugs)
    except lessons.UnknownLesson as error:
        raise CourseError(f"{path}: {error}") from None
    return found
