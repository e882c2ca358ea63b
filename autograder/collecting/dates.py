"""Times as a person gives them."""

import contextlib
from collections.abc import Callable
from datetime import UTC, date, datetime, tzinfo

from autograder import CourseError
from autograder.term.course_file import Choices


def read_time(text: str, zone: tzinfo | None = None) -> datetime:
    """A time in UTC without a zone, as nbgrader keeps it.

    zone  that of a text which names none; None: this machine's

    Raises CourseError for what is no time, and for a day alone.
    """
    with contextlib.suppress(ValueError):
        day = date.fromisoformat(text.strip())
        # It would be its first minute, and who hands in on the day would be late.
        raise CourseError(f"{text!r} is a day without a time: write it as {day}T23:59")
    try:
        moment = datetime.fromisoformat(text.strip().replace(" UTC", "+00:00"))
        if moment.tzinfo is None and zone is not None:
            moment = moment.replace(tzinfo=zone)
        return moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise CourseError(
            f"{text!r} is no time: write it as 2026-12-01T23:59+01:00, or without the zone for the "
            f"zone of {zone or 'this machine'}"
        ) from None


def shown(moment: datetime) -> str:
    """A time of nbgrader's, in words: here and in UTC."""
    here = moment.replace(tzinfo=UTC).astimezone()
    utc = f"{moment:%Y-%m-%d %H:%M} UTC"
    return f"{here:%Y-%m-%d %H:%M %Z} ({utc})" if here.utcoffset() else utc


def shown_as(choices: Choices) -> Callable[[datetime], str]:
    """What writes a time of nbgrader's: in the class's zone, or, where it names none, as here."""
    return choices.shown if choices.timezone else shown
