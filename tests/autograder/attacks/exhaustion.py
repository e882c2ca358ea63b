"""Taking all processes, descriptors, disk and output. Each is bounded in itself."""

from .paper import attack


@attack(stock=False)
def fork_bomb(paper):
    """Processes that make processes, up to 2000 of them or five seconds."""
    paper.first("""
        import mmap
        import os
        import tempfile
        import time

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
                        with open("/proc/self/comm", "w") as stream:
                            stream.write("@MARK@"[:15])
                except OSError:
                    time.sleep(0.01)
            time.sleep(max(0, stop - time.monotonic()))

        if os.fork() == 0:
            bomb()
            os._exit(0)
        time.sleep(6)
    """)


@attack(stock=False)
def thread_bomb(paper):
    """Threads without end, up to 5000, each with a stack."""
    paper.first("""
        import threading
        import time

        stop = time.monotonic() + 10
        threads = []
        while len(threads) < 5000 and time.monotonic() < stop:
            try:
                threads.append(threading.Thread(target=time.sleep, args=(30,), daemon=True))
                threads[-1].start()
            except RuntimeError:
                break
    """)


@attack
def descriptors_exhausted(paper):
    """Files opened until none can be opened any more, and kept."""
    paper.first("""
        import os
        import resource

        resource.setrlimit(
            resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        kept = []
        try:
            while len(kept) < 100_000:
                kept.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
    """)


@attack(stock=False)
def prints_a_gibibyte(paper):
    """1 GiB printed, in a cell and in an answer."""
    paper.first("""
        for _ in range(1024):
            print("x" * 2**20)
    """)
    paper.answer("""
        for _ in range(512):
            print("@MARK@ " * 2**18)
        return torch.zeros(4, dtype=torch.float64)
    """)


@attack(stock=False)
def writes_a_gibibyte_to_the_descriptors(paper):
    """1 GiB written to descriptors 1 and 2 themselves, past sys.stdout."""
    paper.first("""
        import os

        block = b"@MARK@: correct.\\n" * 2**16
        for _ in range(1024):
            for descriptor in (1, 2):
                os.write(descriptor, block[:2**20])
    """)


@attack(stock=False)
def a_gibibyte_to_show(paper):
    """A last value whose representation is a GiB, and a hundred thousand displays."""
    paper.first("""
        from IPython.display import HTML, display

        for index in range(3_000):
            display(HTML("<script>document.title = '@MARK@'</script>"))
        class Large:
            def __repr__(self):
                return "x" * 2**30
        Large()
    """)


@attack(stock=False)
def a_two_gibibyte_file(paper):
    """2 GiB written to a file, in the working folder and in every temporary folder."""
    paper.first("""
        import os

        block = b"x" * 2**20
        for folder in (".", "/tmp", "/dev/shm", "/var/tmp", "/run"):
            path = os.path.join(folder, "@MARK@")
            try:
                with open(path, "wb", 0) as stream:
                    for _ in range(2048):
                        stream.write(block)
            except OSError as error:
                print(error)
            else:
                break
    """)


@attack(stock=False)
def a_sparse_file_and_many_small_ones(paper):
    """A file of a TiB with nothing in it, and a hundred thousand empty files."""
    paper.first("""
        import os

        try:
            with open("@MARK@-sparse", "wb") as stream:
                stream.truncate(2**40)
        except OSError as error:
            print(error)
        os.makedirs("@MARK@-many", exist_ok=True)
        try:
            for index in range(100_000):
                open(f"@MARK@-many/{index}", "w").close()
        except OSError as error:
            print(error)
    """)


@attack
def limits_raised(paper):
    """setrlimit, nice and the scheduler asked for more, then a long computation in children."""
    paper.first("""
        import os
        import resource
        import time

        for name in dir(resource):
            if name.startswith("RLIMIT_"):
                try:
                    resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY,) * 2)
                except (OSError, ValueError):
                    pass
        realtime = os.sched_param(9)
        for action in (lambda: os.nice(-20), lambda: os.sched_setscheduler(0, 1, realtime)):
            try:
                action()
            except OSError:
                pass
        for _ in range(4):
            if os.fork() == 0:
                with open("/proc/self/comm", "w") as stream:
                    stream.write("@MARK@"[:15])
                stop = time.monotonic() + 60
                while time.monotonic() < stop:
                    pass
                os._exit(0)
    """)
