"""Accomplices: one student's process leaves the answers for a later one's."""

from .paper import TOOLS, attacks

CHANNELS = """
FOLDERS = ["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", "/scratch", "/course"]
FOLDERS += [os.getcwd(), os.path.dirname(os.getcwd()), os.path.expanduser("~"), *sys.path]
libc.shmat.restype = ctypes.c_void_p

def leave(text):
    def write(folder):
        with open(os.path.join(folder, "relay-@LESSON@.txt"), "w") as stream:
            stream.write(text)

    each(write, FOLDERS)
    data = text.encode()
    identity = libc.shmget(4242, 2**16, 0o1666)            # System V shared memory
    if identity >= 0:
        ctypes.memmove(libc.shmat(identity, None, 0), data + b"\\0", len(data) + 1)
    libc.syscall(248, b"user", b"relay", data[:30000], len(data[:30000]), -4)   # add_key

def find():
    for folder in FOLDERS:
        for pattern in ("relay-*.txt", "*/relay-*.txt"):
            for path in glob.glob(os.path.join(folder, pattern)):
                return open(path).read()
    identity = libc.shmget(4242, 2**16, 0o666)
    if identity >= 0:
        return ctypes.string_at(libc.shmat(identity, None, 0)).decode()
    key = libc.syscall(249, b"user", b"relay", None, -4)                        # request_key
    if key > 0:
        buffer = ctypes.create_string_buffer(2**15)
        libc.syscall(250, 11, key, buffer, 2**15)                               # KEYCTL_READ
        return buffer.value.decode()
    return ""
"""


def accomplice(paper):
    """The honest student who leaves the answers behind: earns everything for its own work."""
    for cell in paper.answers:
        cell.source = paper.right[cell.metadata.nbgrader.grade_id]
    text = "\n\n".join(paper.right.values())
    paper.before_tests(TOOLS + CHANNELS + f"leave({text!r})\n")


THIEVES = {
    # Answers left in files, shared memory, keyrings and queues by the student graded before.
    "answers_left_by_an_accomplice": """
        def loot(name):
            return bring_to_life(find(), name)
    """,
}
attacks(__name__, "thief", THIEVES, prelude=CHANNELS)
