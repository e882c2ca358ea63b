"""Texts of cells that try to take a grading down, for generated classes of any lesson.

Each stands in the cell of a lesson's first exercise, so that it costs that exercise and no other.
They are for a grading in the sandbox only. The attacks that try to earn points are in
``tests/autograder/attacks``.
"""

import io
import zipfile

HARMS = {
    "ends its process": "import os\n\nos._exit(0)",
    "kills its parent": "import os\nimport signal\n\nos.kill(os.getppid(), signal.SIGKILL)",
    "never ends": """
import time

until = time.time() + 120
while time.time() < until:
    try:
        while time.time() < until:
            pass
    except BaseException:
        pass
""",
    "takes all the memory": """
def take():  # what stays in the notebook's own names is missing to the exercises after this one
    kept = []
    for _ in range(4096):
        kept.append(bytearray(2**20 * 4))


take()
""",
    "starts processes without end": """
import os
import time

for _ in range(5000):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
""",
    "prints a gigabyte": "for _ in range(1024):\n    print('x' * 2**20)",
    "fills the disk": """
with open('large', 'wb') as file:
    for _ in range(4096):
        file.write(bytes(2**20))
""",
    "replies with millions of numbers": """
import torch


def @NAME@(*inputs, **named):
    return torch.zeros(2**20, 4, dtype=torch.float64)
""",
    "replies with a list in lists": """
def @NAME@(*inputs, **named):
    reply = []
    for _ in range(100_000):
        reply = [reply]
    return reply
""",
    "raises an error of a million letters": """
def @NAME@(*inputs, **named):
    raise RuntimeError('x' * 10**6)
""",
}
# What no limit on a process's time and memory sees, and what the grader itself does with a text.
TRICKS = {
    "imports a module with a name too long for a file": f"import attention.{'x' * 300}",
    "is slow to show in colours": f"x = '%{'0' * 40_000}'",
    "is slow to read as IPython does": "%time 1\n" * 700,
    "sleeps as if the machine were busy": """
import ctypes
import os
import time

if ctypes.CDLL(None).syscall(56, 0x4000 | 17, 0, 0, 0, 0) == 0:  # clone, CLONE_VFORK
    time.sleep(600)
    os._exit(0)
""",
    "computes in children that nobody waits for": """
import os
import signal
import time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
until = time.time() + 90
while time.time() < until:
    if os.fork() == 0:
        end = time.time() + 0.045
        while time.time() < end:
            pass
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        pass
""",
    "keeps memory in pipes": """
import ctypes
import os
import time

c, huge, pipes = ctypes.CDLL(None), 2**21, []
c.mmap.restype = ctypes.c_void_p
children = [os.fork() for _ in range(3)]  # eight processes: a pipe takes two of 64 open files
for _ in range(20):
    start = c.mmap(None, 17 * huge, 3, 0x22, -1, 0)
    c.madvise(ctypes.c_void_p(start), ctypes.c_size_t(17 * huge), 14)  # MADV_HUGEPAGE
    pipes.append(os.pipe())
    for place in range(start + -start % huge, start + 16 * huge, huge):
        ctypes.memset(place, 1, 1)
        c.vmsplice(pipes[-1][1], (ctypes.c_size_t * 2)(place, 4096), 1, 0)
    c.munmap(ctypes.c_void_p(start), ctypes.c_size_t(17 * huge))
if 0 in children:
    time.sleep(60)
    os._exit(0)
for place in (end for pipe in pipes for end in pipe):
    os.close(place)
""",
    "is a zip of zips": "",
}


def cell(name: str, exercise: str) -> str:
    """The text of a cell that does the harm ``name`` in the place of an exercise's answer."""
    return (HARMS | TRICKS)[name].strip().replace("@NAME@", exercise)


def flood() -> bytes:
    """A zip of 1 MB that unpacks to 120 000 files."""
    inner = _zip({f"{number}.txt": b"" for number in range(400)})
    return _zip({f"{number}.zip": inner for number in range(300)})


def _zip(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()
