"""A training's settings, the folder that it writes, and its curves. Read run_folder.py first."""
