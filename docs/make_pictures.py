"""Make the README's picture: a lesson in JupyterLab with a wrong answer and what its check says.

    python docs/make_pictures.py

It is a screenshot of the real thing, so it needs Chromium. Run it again when the lesson changes.
"""

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import needs  # noqa: E402
from tests.browser import lab  # noqa: E402

SLUG = "01_kernel_regression"
EXERCISE = "attention_weights"
WRONG = "return similarity / similarity.sum(dim=0, keepdim=True)"


def main():
    """Write docs/lesson_with_feedback.png."""
    if why := needs.missing("chromium"):
        sys.exit(why)
    os.environ["AUTOGRADER_SEED"] = "1"  # the same numbers in every picture
    with tempfile.TemporaryDirectory() as folder:
        course, home = Path(folder) / "course", Path(folder) / "home"
        course.mkdir()
        home.mkdir()
        lab.copy_course(course)
        with (
            lab.jupyter_lab(course, home) as address,
            lab.browser_page(width=1000, height=860, scale=2) as page,
        ):
            lab.open_lesson(page, address, SLUG, alone=True)
            lab.run_cell(page, lab.cell_with(page, "import torch"))
            lab.write_answer(page, EXERCISE, WRONG)
            lab.run_cell(page, lab.cell_with(page, f"def {EXERCISE}("))
            lab.run_cell(page, lab.cell_with(page, f"check.{EXERCISE}("))
            page.get_by_role("heading", name=EXERCISE).evaluate(
                "heading => heading.scrollIntoView()"
            )
            page.screenshot(path=ROOT / "docs" / "lesson_with_feedback.png")


if __name__ == "__main__":
    main()
