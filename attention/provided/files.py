"""What is stored: where, files that are never half written, and a fingerprint of weights."""

import hashlib
import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the folder that holds attention/ and data/


def write_aside(path, content, sync=False):
    """Write bytes to a file in one step: whoever reads it finds all of the old or all of the new.

    sync  wait until the disk has it, so that not even a power failure loses both

    Raises OSError if it fails; the old file stays then.
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
    except BaseException:
        os.unlink(aside)
        raise


def fingerprint(weights, text=""):
    """A SHA-256 of weights, {name: tensor}, and a text: a file shows with it that it is whole."""
    total = hashlib.sha256(text.encode())
    for name in sorted(weights):
        total.update(name.encode() + weights[name].cpu().contiguous().numpy().tobytes())
    return total.hexdigest()
