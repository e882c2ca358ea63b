"""What is counted of the memory of students' processes."""

import os

from autograder.inside import cpu_time, isolation


def usage(process, monkeypatch, enough):
    monkeypatch.setattr(cpu_time, "running", lambda: [process])
    return isolation.usage(os.getpid(), enough)


def test_memory_on_the_swap_counts(tmp_path, monkeypatch):
    process = tmp_path / "4711"
    process.mkdir()
    status = b"Name:\t\xff\nVmRSS:\t    2048 kB\nRssAnon:\t 1024 kB\nVmSwap:\t    1024 kB\n"
    (process / "status").write_bytes(status)
    (process / "smaps_rollup").write_text("Rss: 2048 kB\nPss:  512 kB\nSwapPss:  256 kB\n")
    assert usage(process, monkeypatch, 4 << 20) == (3 << 20, 1)
    assert usage(process, monkeypatch, 1 << 20) == (768 << 10, 1)
    (process / "smaps_rollup").unlink()  # it does not let itself be looked at
    assert usage(process, monkeypatch, 1 << 20) == (3 << 20, 1)
