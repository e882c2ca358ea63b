"""A text to download in tests, and what was said and waited for meanwhile."""

import gzip
import hashlib
import random

from attention.train.download import download

TEXT = "".join(f"{random.Random(i).getrandbits(64)} ein Satz\n" for i in range(4000)).encode()
PACKED = gzip.compress(TEXT, mtime=0)
SHA256 = hashlib.sha256(TEXT).hexdigest()


class Download:
    """Calling it downloads the text from a Site into ``path``; nothing waits."""

    def __init__(self, site, folder):
        self.site, self.path, self.part = site, folder / "text", folder / "text.part"
        self.said, self.waited = [], []

    def __call__(self, name="/text", path=None, address=None):
        self.said, self.waited = [], []
        url = (self.site.address if address is None else address) + name
        where = self.path if path is None else path
        try:
            download(url, where, len(TEXT), SHA256, self.said.append, self.waited.append)
        finally:
            assert all("\n" not in sentence for sentence in self.said)
        return self.said, self.waited

    def left(self):
        """The names of the files in the folder."""
        return sorted(path.name for path in self.path.parent.iterdir())
