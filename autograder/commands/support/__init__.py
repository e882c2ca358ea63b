"""What several commands use: a lock, and what a disk or a pipe may do. Read io_errors.py first."""

STOPPED = 130  # the exit status after Ctrl-C
