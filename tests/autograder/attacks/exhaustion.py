"""Taking all processes, descriptors, disk, output and unseen time. Each is bounded in itself."""

from .paper import attacks

CELLS = {
    # Processes that make processes, up to 2000 of them or five seconds.
    "fork_bomb": """
        stop = time.monotonic() + 5
        with tempfile.TemporaryFile() as file:
            file.truncate(8)
            counter = mmap.mmap(file.fileno(), 8)       # shared by all

        def count():
            number = int.from_bytes(counter[:8], "little") + 1
            counter[:8] = number.to_bytes(8, "little")
            return number

        def bomb():
            while time.monotonic() < stop and count() < 2000:
                try:
                    if os.fork() == 0:
                        name_it()
                except OSError:
                    time.sleep(0.01)
            time.sleep(max(0, stop - time.monotonic()))

        if os.fork() == 0:
            bomb()
            os._exit(0)
        time.sleep(6)
    """,
    # 1 GiB printed, in a cell and in an answer.
    "prints_a_gibibyte": """
        for _ in range(1024):
            print("x" * 2**20)
        # %% answer
        for _ in range(512):
            print("@MARK@ " * 2**18)
        return torch.zeros(4, dtype=torch.float64)
    """,
    # A last value whose representation is a GiB, and a hundred thousand displays.
    "a_gibibyte_to_show": """
        from IPython.display import HTML, display

        for index in range(3_000):
            display(HTML("<script>document.title = '@MARK@'</script>"))
        class Large:
            def __repr__(self):
                return "x" * 2**30
        Large()
    """,
    # 2 GiB written to a file, in the working folder and in every temporary folder.
    "a_two_gibibyte_file": """
        def fill(folder):
            with open(os.path.join(folder, "@MARK@"), "wb", 0) as stream:
                for _ in range(2048):
                    stream.write(b"x" * 2**20)

        any_of(fill, [".", "/tmp", "/dev/shm", "/var/tmp", "/run"])
    """,
    # setrlimit, nice and the scheduler asked for more, then a long computation in children.
    "limits_raised": """
        limits = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
        each(lambda limit: resource.setrlimit(limit, (resource.RLIM_INFINITY,) * 2), limits)
        each(os.nice, [-20])
        each(lambda realtime: os.sched_setscheduler(0, 1, realtime), [os.sched_param(9)])
        for _ in range(4):
            if os.fork() == 0:
                name_it()
                stop = time.monotonic() + 60
                while time.monotonic() < stop:
                    pass
                os._exit(0)
    """,
}
attacks(__name__, "first", CELLS)
