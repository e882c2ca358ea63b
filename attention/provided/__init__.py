"""What lessons stand on: data, downloads, figures, measuring, models. Read demand.py first."""
