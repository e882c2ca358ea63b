"""What the book has of this course besides its lessons: a moving picture, two pages with models."""

from pathlib import Path

from attention.pages import glass_translator, writer_page
from attention.pages.moving_picture import moving_picture

__all__ = ["moving_picture", "write"]  # the first page asks for one, the builder calls the other


def write(html: Path, lesson_links: str | None, home: str) -> None:
    """Write the pages into the book's folder; see `glass_translator.write`."""
    glass, writer = glass_translator.PAGE.name, writer_page.PAGE.name
    glass_translator.write(html / glass, lesson_links, home, writer)
    writer_page.write(html / writer, lesson_links, home, glass)
