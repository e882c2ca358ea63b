"""What lessons stand on, in rooms: data, figures, measuring, models. Read demand.py first."""
