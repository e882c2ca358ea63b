"""Download one file whose SHA-256 is known."""


class DataError(RuntimeError):
    """Data that cannot be had or is not right; str() is one sentence that says what to do."""
