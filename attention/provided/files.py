"""Where the course is stored."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the folder that holds attention/ and data/
