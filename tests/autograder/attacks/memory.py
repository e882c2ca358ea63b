"""Taking all the memory, wherever the kernel keeps it. Each is bounded in itself."""

from .paper import attacks

CAREFUL = """
GIB = 2**30

def room():
    \"\"\"Whether this machine could bear one more GiB, were there no sandbox.\"\"\"
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024 > 4 * GIB
    return False
"""

ANSWERS = {
    # 8 GiB allocated and touched in steps of a quarter.
    "eight_gibibytes": """
        kept = []
        while len(kept) < 32 and room():
            kept.append(torch.ones(GIB // 4, dtype=torch.uint8))
        return torch.zeros(4, dtype=torch.float64)
    """,
}
attacks(__name__, "answer", ANSWERS, prelude=CAREFUL)

CELLS = {
    # A GiB in each of eight children, so that no single process is large.
    "eight_gibibytes_in_eight_processes": """
        for _ in range(8):
            if room() and os.fork() == 0:
                name_it()
                kept = bytearray(GIB)
                for place in range(0, GIB, 4096):
                    kept[place] = 1
                time.sleep(20)
                os._exit(0)
            time.sleep(0.2)
        time.sleep(5)
    """,
    # Memory in memfd, shared memory, pipes and socket buffers, which a process limit misses.
    "memory_of_no_process": """
        import fcntl

        block, kept = b"x" * 2**20, []

        def fill(name):
            kept.append(os.memfd_create(name))
            for _ in range(2048):
                if room():
                    os.write(kept[-1], block)

        def pipe(_):
            kept.append(os.pipe())
            fcntl.fcntl(kept[-1][1], 1031, 2**20)
            os.set_blocking(kept[-1][1], False)
            os.write(kept[-1][1], block)

        each(fill, ["one", "two"])
        each(pipe, range(200))
    """,
}
attacks(__name__, "first", CELLS, prelude=CAREFUL)
