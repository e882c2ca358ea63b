"""The pages that students read after grading, and how they are given back. Read page.py first."""
