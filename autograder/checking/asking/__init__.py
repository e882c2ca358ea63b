"""Questions to an answer, its replies, and whether two replies agree. Read questions.py first."""
