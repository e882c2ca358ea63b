"""Texts of cells that try to take a grading down, for generated classes of any lesson.

Each stands in the cell of a lesson's first exercise, so that it costs that exercise and no other.
They are for a grading in the sandbox only. Many more attacks are in ``tests/autograder/attacks``.
"""

HARMS = {
    "ends its process": "import os\n\nos._exit(0)",
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
    "raises an error of a million letters": """
def @NAME@(*inputs, **named):
    raise RuntimeError('x' * 10**6)
""",
}


def cell(name: str, exercise: str) -> str:
    """The text of a cell that does the harm ``name`` in the place of an exercise's answer."""
    return HARMS[name].strip().replace("@NAME@", exercise)
