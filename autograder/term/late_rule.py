"""What late work costs by class/course.toml, as a plugin of nbgrader's."""

from nbgrader.plugins import BasePlugin

from autograder.term.course_file import read


class LateRule(BasePlugin):
    """Takes the percentage that [late] names for each day that has begun."""

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float:
        """The points that a student loses, of ``score``."""
        late = read(self.config.CourseDirectory.root).late
        return late.penalty(score, total_seconds_late) if late else 0.0
