"""Files that are never half written."""

import os
import tempfile
from pathlib import Path


def write_aside(path: Path, content: bytes, sync: bool = False) -> None:
    """Write bytes to a file in one step: whoever reads it finds all of the old or all of the new.

    sync  wait until the disk has it, so that not even a power failure loses both

    Raises OSError, with the path, if it fails; the old file stays then.
    """
    handle, aside = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with open(handle, "wb") as stream:
            stream.write(content)
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        os.chmod(aside, 0o644)  # mkstemp makes files that only their owner may read
        os.replace(aside, path)
    except BaseException as error:
        os.unlink(aside)
        if isinstance(error, OSError):  # where a disk is full, it says no name
            error.filename = error.filename or str(path)
        raise
