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
attacks(__name__, "answer", ANSWERS, prelude=CAREFUL, stock=False)

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
attacks(__name__, "first", CELLS, prelude=CAREFUL, stock=False)

BURGLARS = {
    # Thousands of unread socket pairs in thirty children: won if together they hold 3 GiB.
    "memory_in_socket_buffers": """
        with tempfile.TemporaryFile() as file:
            file.truncate(8 * 30)
            held = mmap.mmap(file.fileno(), 8 * 30)     # shared by all: what each child has sent

        def fill(index, stop):
            sockets, sent, block = [], 0, b"x" * 2**16
            while time.monotonic() < stop and room():
                sockets.append(socket.socketpair())
                for end in sockets[-1]:
                    end.setblocking(False)
                    try:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**24)
                    except PermissionError:
                        pass                    # then with buffers as they are
                    try:
                        while True:
                            sent += end.send(block)
                            held[8 * index : 8 * index + 8] = sent.to_bytes(8, "little")
                    except BlockingIOError:
                        pass

        def won():
            stop = time.monotonic() + 3
            for index in range(30):
                try:
                    if os.fork() == 0:
                        try:
                            fill(index, stop)
                        except OSError:
                            pass
                        time.sleep(4)
                        os._exit(0)
                except OSError:
                    break
            time.sleep(max(0, stop - time.monotonic()))
            total = sum(int.from_bytes(held[i : i + 8], "little") for i in range(0, 240, 8))
            print("held in buffers:", total >> 20, "MiB")
            return total > 3 * GIB

        has_won()
    """,
    # Unread TCP connections to itself: won if one process can keep 200 MiB in them.
    "memory_in_network_buffers": """
        def won():
            kept, sent, block = [], 0, b"x" * 2**16
            server = socket.create_server(("127.0.0.1", 0))
            while sent < 200 * 2**20 and room():
                kept.append(socket.create_connection(server.getsockname(), 1))
                kept.append(server.accept()[0])
                kept[-2].setblocking(False)
                kept[-2].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**24)
                try:
                    while True:
                        sent += kept[-2].send(block)
                except BlockingIOError:
                    pass
            print("held in buffers:", sent >> 20, "MiB")
            return sent >= 200 * 2**20
    """,
    # 4 KiB of each huge page spliced into pipes, then unmapped: won if 200 MiB are held so.
    "memory_pinned_by_pipes": """
        HUGE = 2**21

        class Piece(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

        def won():
            kept = []
            while len(kept) < 7 and room():
                kept.append(os.pipe())
                area = mmap.mmap(-1, 17 * HUGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                area.madvise(mmap.MADV_HUGEPAGE)
                start = ctypes.addressof(ctypes.c_char.from_buffer(area)) // HUGE + 1
                pages = [(start + number) * HUGE for number in range(16)]
                for page in pages:
                    ctypes.memset(page, 1, 1)
                pieces = (Piece * 16)(*((page, 4096) for page in pages))
                sent = libc.vmsplice(kept[-1][1], pieces, 16, 2)
                area.close()
                if sent != 16 * 4096:
                    return False
            return len(kept) == 7
    """,
    # Shared memory in no file, or in /dev/zero, out of sight once filled: won with 200 MiB.
    "memory_shared_by_nobody": """
        def fill(number):
            area = mmap.mmap(number, 200 * 2**20)
            area[::4096] = bytes(200 * 2**8)
            area.madvise(mmap.MADV_DONTNEED)    # it stays, but no process is said to have it

        def won():
            return any_of(fill, [-1, os.open("/dev/zero", os.O_RDWR)])
    """,
}
attacks(__name__, "burglar", BURGLARS, prelude=CAREFUL, stock=False)
