"""The pages that students read, and how they are given back. Read exporter.py first."""
