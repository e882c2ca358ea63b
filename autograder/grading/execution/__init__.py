"""A notebook is put together, run in the sandbox, checked outside. Read execute.py first."""
