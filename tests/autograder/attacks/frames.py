"""Messages that are small on the line and large in the grader, or take long to read."""

from .paper import attack
from .wire import WIRE

FRAME = """
def frame(head, data=b""):
    head = json.dumps(head).encode()
    return struct.pack("<Q", len(head)) + head + data


"""


@attack
def tensors_of_many_axes(paper):
    """A tensor with sixty axes: to list the places of its values takes sixty numbers for each."""
    paper.first(WIRE + FRAME)
    paper.answer("""
        shape = [1] * 58 + [2**10, 2**10]
        head = {"0": {"dtype": "F32", "shape": shape, "data_offsets": [0, 2**22]}}
        send(reply({"tensor": "0"}), frame(head, b"\\xff" * 2**22))
        os._exit(0)
    """)


@attack
def many_empty_tensors(paper):
    """A message of six hundred thousand tensors without a value."""
    paper.first(WIRE + FRAME)
    paper.answer("""
        one = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
        send(reply({"tensor": "0"}), frame(dict.fromkeys(map(str, range(600_000)), one)))
        os._exit(0)
    """)


@attack
def keys_that_cannot_be_written(paper):
    """Parameters whose names are half a letter, or steer the terminal."""
    paper.first(WIRE)
    paper.answer("""
        named = {"dict": {"\\ud800": 1, "\\x1b[2J": 2, "": 3, "\\n" * 500: 4}}
        send(reply(named, modified={"list": ["\\ud800", "\\x1b]0;x\\x07", "\\n"]}))
        os._exit(0)
    """)
