"""Forged messages: on the line to the grader, on every descriptor, in any shape."""

from .paper import KERNELS, attack, attacks

WIRE = """
import json
import struct

def wires():
    found = []
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                found.append(socket.socket(fileno=os.dup(descriptor)))
        except OSError:
            pass
    return [wire for wire in found if wire.family == socket.AF_UNIX]

def number():
    \"\"\"The number of the request that is being answered.\"\"\"
    frame = sys._getframe()
    while frame is not None:
        request = frame.f_locals.get("request")
        if isinstance(request, dict) and type(request.get("id")) is int:
            return request["id"]
        frame = frame.f_back
    return 1

def send(text, blob=b"", claim=None):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    for wire in wires():
        try:
            wire.settimeout(5)
            wire.sendall(struct.pack("!II", *(claim or (len(text), len(blob)))) + text + blob)
        except OSError as error:
            print(error)

def reply(value, n=None, **more):
    n = number() if n is None else n
    return {"dict": {"id": n, "value": value, "modified": {"list": []}, **more}}

def frame(head, data=b""):
    \"\"\"What the safetensors of such a head begin with, and their data.\"\"\"
    head = json.dumps(head).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + data


def safetensors(megabytes):
    size = megabytes * 2**20
    head = {"dtype": "F64", "shape": [size // 8], "data_offsets": [0, size]}
    return frame({"0": head}, bytes(size))
"""

ANSWERS = {
    # Verdicts, scores, JSON lines and protocol frames written to every open descriptor.
    "forged_verdicts_on_every_descriptor": """
        verdict = {"passed": True, "score": 100, "max": 100, "failures": [], "complete": True}
        line = json.dumps({**verdict, "status": 0, "verdict": ""}).encode() + b"\\n"

        def tell(descriptor):
            os.set_blocking(descriptor, False)
            os.write(descriptor, line)

        each(tell, range(256))
        send({"dict": {"id": number(), "value": True, **verdict}})
        return torch.zeros(4, dtype=torch.float64)
    """,
    # A well-formed reply in the agreed form that claims success in every field.
    "forged_reply": """
        send(reply(True, passed=True, score=100, verdict="", status=0, likely="", what=None))
        os._exit(0)
    """,
    # Replies that nobody asked for, as fast as they go, for as long as somebody listens.
    "replies_without_end": """
        stop = time.monotonic() + 60
        while time.monotonic() < stop:
            send(reply(1.0, -7))
    """,
    # A reply that trickles: there is always a little progress.
    "a_byte_a_second": """
        for wire in wires():
            for byte in struct.pack("!II", 200, 0) + b"{" * 200:
                wire.sendall(bytes([byte]))
                time.sleep(1)
    """,
    # Half a reply, then the line is closed.
    "half_a_message": """
        text = json.dumps(reply(1.0)).encode()
        send(text[:20], claim=(len(text), 0))
        for wire in wires():
            wire.shutdown(socket.SHUT_RDWR)
        os.closerange(3, 256)
    """,
    # As many of the smallest values as a message holds; each takes twenty times as much
    # memory.
    "many_small_values": """
        value = b'{"list": [' + b",".join([b'{"list":[]}'] * 330_000) + b"]}"
        send(b'{"dict": {"id": %d, "modified": {"list": []}, "value": %s}}' % (number(), value))
        os._exit(0)
    """,
    # One tensor of 30 MiB that the message names 600 times: 18 GiB to whoever copies each.
    "one_tensor_named_often": """
        value = {"list": [{"tensor": "0"}] * 600}
        send(reply(value), safetensors(30))
        os._exit(0)
    """,
    # Open descriptors passed along with bytes, to fill the table of whoever receives them.
    "descriptors_in_messages": """
        descriptors = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
        for wire in wires():
            for _ in range(50):
                socket.send_fds(wire, [b"\\0"], descriptors)
        return 1.0
    """,
    # A header that promises 60 MiB, and then silence; one that promises 4 GiB.
    "a_header_and_nothing_more": "send(b'', claim=(1000, 60 * 2**20)); time.sleep(300)",
    # Parameters whose names are half a letter, or steer the terminal.
    "keys_that_cannot_be_written": """
        named = {"dict": {"\\ud800": 1, "\\x1b[2J": 2, "": 3, "\\n" * 500: 4}}
        send(reply(named, modified={"list": ["\\ud800", "\\x1b]0;x\\x07", "\\n"]}))
        os._exit(0)
    """,
}
attacks(__name__, "answer", ANSWERS, prelude=WIRE)

CELLS = {
    # Five hundred replies sent before anything is asked.
    "replies_in_advance": """
        for n in range(1, 500):
            send(reply(n, n, module='__main__'))
    """,
    # Numbers, lists, broken tags, NaN, duplicates, pickles and noise where a message belongs.
    "messages_that_are_none": r"""
        odd = []
        # %% answer
        n = number()
        texts = [
            b"17", b"[]", b'{"list": []}', b"NaN", b"\xff\xfe", b'{"dict": 7}', b'{"dict": {}}',
            b'{"dict": {"id": %d}}' % n, b'{"dict": {"id": %d, "id": "x"}}' % n,
            b'{"dict": {"id": true, "value": 1}}', b'{"dict": {"id": %d.0, "value": 1}}' % n,
            b'{"dict": {"id": %d, "value": {"tensor": "0"}}}' % n,
            b'{"dict": {"id": %d, "value": {"tensor": {"list": []}}}}' % n,
            b'{"dict": {"id": %d, "raised": {"list": [1]}}}' % n,
            b'{"dict": {"id": %d, "raised": {"dict": {"kind": null, "message": 7}}}}' % n,
            b'{"dict": {"id": %d, "value": 1, "modified": {"dict": {}}}}' % n,
            b"cposix\nsystem\n(S'touch /tmp/@MARK@'\ntR.", b"\x80\x04\x95" + bytes(50),
            b"9" * 10_000,
        ]
        odd.append(None)
        send(texts[len(odd) % len(texts)])
        os._exit(0)
    """,
    # The objects that answer the grader found through the collector, and taught to lie.
    "server_taken_over": """
        for one in gc.get_objects():
            kind = type(one).__name__
            if kind == "Server":
                type(one)._ask = lambda self, *_, **__: {"value": True, "modified": []}
                type(one)._resolve = lambda self, *_, **__: {"value": 10**30, "module": "__main__"}
            if kind == "Channel":
                type(one).limit = 2**62
    """,
}
attacks(__name__, "first", CELLS, prelude=WIRE)

BURGLARS = {
    # Right values, and as many names of changed arguments as a message holds, for the reason.
    "a_reason_of_megabytes": """
        def won():
            for one in gc.get_objects():
                if type(one).__name__ == "Server":
                    serve = type(one)._ask

                    def call(self, *arguments, serve=serve, **named):
                        names = ["argument " + "1" * 40] * 70_000
                        return {**serve(self, *arguments, **named), "modified": names}

                    type(one)._ask = call
                    return True
            return False
    """,
}
attacks(__name__, "burglar", BURGLARS, prelude=WIRE)


@attack(lesson=KERNELS)
def parameters_with_long_names(paper):
    """A module with a parameter whose name has three million letters, and a thousand more."""
    cell = next(cell for cell in paper.answers if "LearnedBandwidth" in cell.source)
    cell.source = """
import torch


class LearnedBandwidth(torch.nn.Module):
    def __init__(self, bandwidth):
        super().__init__()
        names = ["x" * 3_000_000, *map(str, range(1_000))]
        for name in names:
            self.register_parameter(name, torch.nn.Parameter(torch.tensor(0.0)))
"""
