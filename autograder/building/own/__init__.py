"""An instructor's own lessons, which lie in a folder outside the course. Read links.py first."""
