"""Make the README's pictures, and the PNG beside each of the lessons' drawings; needs Chromium.

    python docs/make_pictures.py                # all
    python docs/make_pictures.py drawings       # source/figures/*.png, from the SVG beside them
    python docs/make_pictures.py lesson         # a wrong answer and what its check says
    python docs/make_pictures.py translation    # where a trained translator looks, a mean of heads

Run it again when a drawing, the lesson or the model changes.
"""

import argparse
import io
import os
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from attention.experiments import getting_started  # noqa: E402
from attention.provided.figures import plots  # noqa: E402
from autograder.building import svg_as_png  # noqa: E402
from tests import needs  # noqa: E402
from tests.browser import lab  # noqa: E402

SLUG = "01_kernel_regression"
EXERCISE = "attention_weights"
WRONG = "return similarity / similarity.sum(dim=0, keepdim=True)"

# Pixels of a drawing's PNG for each of the SVG's. Of more it would be sharper, but also larger on a
# wide page: no PNG tells a browser at which size to show it.
SCALE = 1.5
COLOURS = 64  # of a drawing's PNG: flat colours and the edges between them
BARE = "<style>body { margin: 0 } svg { display: block }</style>"


def draw_drawings():
    """Write source/figures/*.png for the SVGs whose PNG is missing or out of date."""
    with lab.browser_page(scale=SCALE) as page:
        for drawing in sorted((ROOT / "source" / "figures").glob("*.svg")):
            png = drawing.with_suffix(".png")
            if png.is_file() and svg_as_png.is_current(drawing):
                continue
            page.set_content(BARE + drawing.read_text(encoding="utf-8"))
            shot = page.locator("svg").screenshot(omit_background=True)
            save(Image.open(io.BytesIO(shot)), png, svg_as_png.digest(drawing))


def save(image, path, digest):
    """Save a drawing as a small PNG that names its source."""
    said = PngInfo()
    said.add_text(svg_as_png.KEYWORD, digest)
    few = image.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    near = few.getpalette("RGBA")
    for start in range(0, len(near), 4):  # the reduction leaves white a little grey
        if min(near[start : start + 3]) > 249:
            near[start : start + 3] = [255, 255, 255]
    few.putpalette(near, "RGBA")
    few.save(path, optimize=True, pnginfo=said)


def draw_lesson():
    """Write docs/lesson_with_feedback.png, a screenshot of JupyterLab."""
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


def draw_translation():
    """Write docs/translation.png: lesson 00's map of 931, the mean over all heads."""
    ax = getting_started.translation(931)
    ein = "".join(label.get_text() for label in ax.get_yticklabels()).index("ein")
    ax.axhspan(ein - 0.5, ein + 2.5, fill=False, edgecolor=plots.VERMILION, linewidth=1.5)
    ax.figure.savefig(ROOT / "docs" / "translation.png", dpi=180)


PICTURES = {"drawings": draw_drawings, "lesson": draw_lesson, "translation": draw_translation}


def main():
    """Make the pictures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in PICTURES]:
        parser.error(f"no picture is called {unknown[0]!r}; there are: {', '.join(PICTURES)}")
    if why := needs.missing("chromium"):
        sys.exit(why)
    for name in names or PICTURES:
        PICTURES[name]()


if __name__ == "__main__":
    main()
