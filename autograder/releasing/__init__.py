"""What students get: their lessons, the library of the lessons before, and no solution."""
