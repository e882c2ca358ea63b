"""From source/ and the library to the notebooks, and what proves them. Read build.py first."""
