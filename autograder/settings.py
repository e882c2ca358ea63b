"""What a course decides for itself: class/course.toml, or course.toml in a student's copy."""

import tomllib
from pathlib import Path

from autograder import ROOT, CourseError

CARE_SHARE = 0.25  # of an exercise's points, where the answer is right and lacks care
NAMES = ("class/course.toml", "course.toml")


def care_share(root: Path | str = ROOT) -> float:
    """The share of an exercise's points that a right answer loses which lacks care.

    ``root`` is the folder of the course; 0 makes care a matter of advice. Raises CourseError for a
    file that is no TOML, or a share that is not from 0 to 1.
    """
    path = next((one for name in NAMES if (one := Path(root) / name).is_file()), None)
    if path is None:
        return CARE_SHARE
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("care_share", CARE_SHARE)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{path}: this is no TOML ({error})") from None
    if type(found) not in (int, float) or not 0 <= found <= 1:
        raise CourseError(f"{path}: care_share = {found!r} is no number from 0 to 1")
    return float(found)


def earned(points: float, cost: float) -> float:
    """What is left of an exercise's points, in decimals that a gradebook gives back as they are.

    >>> earned(5, 0.8), earned(3, 1 / 3)
    (1.0, 2.0)
    """
    return round((1 - cost) * points, 4)
