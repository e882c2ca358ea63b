"""The pages that students read after grading, and how they are given back. Begin: page."""
