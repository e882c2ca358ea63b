"""The messages between grader and sandbox: what goes in comes out, anything else is refused."""

import json
import socket
import struct
import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.inside.messages.codec import (
    HEADER,
    Channel,
    ChannelClosed,
    ProtocolError,
    pack,
    unpack,
)
from autograder.inside.messages.values import Foreign, plain, same

SHAPES = st.lists(st.integers(0, 4), max_size=4)
NUMBERS = st.integers(-(10**9), 10**9) | st.floats(allow_nan=True) | st.booleans()
PLAIN = st.recursive(
    st.none() | NUMBERS | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def parts(message):
    """The two parts of the frame of ``message``."""
    frame = pack(message)
    text, blob = HEADER.unpack(frame[: HEADER.size])
    body = frame[HEADER.size :]
    return body[:text], body[text : text + blob]


def sent(value):
    """``value`` after a journey through the wire."""
    return unpack(*parts({"value": value}), layouts=True)["value"]


@given(PLAIN)
def test_plain_values_come_through_unchanged(value):
    assert same(sent(value), value)


@given(SHAPES, st.sampled_from([torch.float64, torch.float32, torch.int64, torch.bool]))
def test_tensors_keep_values_shape_and_dtype(shape, dtype):
    tensor = (torch.rand(shape) * 9).to(dtype)
    assert same(sent(tensor), tensor)


@given(st.permutations(range(3)), st.integers(1, 3))
def test_an_argument_keeps_its_layout_in_memory(order, step):
    tensor = torch.arange(4.0 * 5 * 12).view(4, 5, 12).permute(*order)[..., ::step]
    arrived = sent(tensor)
    assert torch.equal(arrived, tensor)
    assert arrived.is_contiguous() == tensor.is_contiguous()


def test_an_expanded_tensor_stays_expanded():
    arrived = sent(torch.arange(3.0).expand(4, 3))
    assert arrived.stride() == (0, 1)
    assert torch.equal(arrived, torch.arange(3.0).expand(4, 3))


def test_a_result_takes_no_more_room_than_its_bytes():
    text = b'{"dict": {"value": {"tensor": "0", "strides": [1000000, 1]}}}'
    frame = pack({"value": torch.ones(2, 3)})
    blob = frame[HEADER.size + HEADER.unpack(frame[: HEADER.size])[0] :]
    assert unpack(text, blob)["value"].stride() == (3, 1)


def test_what_is_foreign_arrives_as_its_description():
    assert sent(Foreign("a numpy.ndarray")) == Foreign("a numpy.ndarray")
    assert isinstance(sent(plain(torch.zeros(2, dtype=torch.complex128))), Foreign)


def test_half_a_surrogate_pair_reaches_the_student_and_is_replaced_on_its_way_back():
    assert unpack(b'{"dict": {"value": "\\ud800"}}', b"")["value"] == "?"
    assert unpack(*parts({"value": "a\ud800"}), layouts=True)["value"] == "a\ud800"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nonsense",
        b"[1]",
        b"1",
        b'{"list": [1]}',
        b'{"dict": [1]}',
        b'{"dict": {"value": [1]}}',
        b'{"dict": {"value": {"pickle": "x"}}}',
        b'{"dict": {"value": {"tensor": "7"}}}',
        b'{"dict": {"value": {"tensor": []}}}',
        b'{"dict": {"a": {"tensor": "0"}, "b": {"tensor": "0"}}}',
        b'{"dict": {"value": {"list": [], "tuple": []}}}',
        b'{"dict": {"value": ' + b'{"list": [' * 500 + b"]}" * 500 + b"}}",
        b"[" * 100_000,
        b"1" * 5000,
    ],
)
def test_malformed_text_is_refused(text):
    frame = pack({"value": torch.ones(2, 3)})
    blob = frame[HEADER.size + HEADER.unpack(frame[: HEADER.size])[0] :]
    with pytest.raises(ProtocolError):
        unpack(text, blob)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ({"0": {"dtype": "F64", "shape": [10**9], "data_offsets": [0, 1]}}, "unreadable"),
        ({"0": {"dtype": "U8", "shape": [1] * 60, "data_offsets": [0, 1]}}, "60 axes"),
        (
            {str(n): {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for n in range(20_000)},
            "far too many tensors",
        ),
    ],
)
def test_tensors_that_would_cost_more_than_their_bytes_are_refused(head, words):
    head = json.dumps(head).encode()
    blob = struct.pack("<Q", len(head)) + head + bytes(1)
    with pytest.raises(ProtocolError, match=words):
        unpack(b'{"dict": {"value": {"tensor": "0"}}}', blob)


@pytest.mark.parametrize("shape", [(2**26, 0), (0, 2**26), (2**14, 2**14, 0), (2**23,)])
def test_a_tensor_larger_than_any_right_result_is_refused(shape):
    values = torch.zeros(shape, dtype=torch.bool)
    with pytest.raises(ProtocolError, match="far too large"):
        unpack(*parts({"value": [values]}))
    assert unpack(*parts({"value": values}), layouts=True)["value"].shape == shape  # the grader's


@pytest.mark.parametrize("value", [[0] * 300_000, [[0] * 1000 for _ in range(300)]])
def test_more_items_than_plain_lets_pass_are_refused(value):
    with pytest.raises(ProtocolError, match="far too many items"):
        unpack(*parts({"value": value}))


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_bytes_do_anything_but_fail_to_be_a_message(text, blob):
    with pytest.raises(ProtocolError):
        unpack(text, blob)


class Enough(Exception):
    """The test has seen what it wanted."""


class Steps:
    """Takes note of so many steps of waiting, and ends the last."""

    def __init__(self, most):
        self.most, self.silent = most, []

    def __call__(self, seconds, silent):
        self.silent.append(silent)
        if len(self.silent) == self.most:
            raise Enough


class TestChannel:
    def test_large_messages_pass_whole(self):
        ours, theirs = socket.socketpair()
        message = {"value": torch.arange(10**6)}
        thread = threading.Thread(target=Channel(theirs, 2**30).send, args=(message,))
        thread.start()
        assert torch.equal(Channel(ours, 2**30).receive()["value"], message["value"])
        thread.join()

    def test_a_message_over_the_limit_is_refused_by_its_header(self):
        ours, theirs = socket.socketpair()
        theirs.sendall(HEADER.pack(10, 2**30))
        with pytest.raises(ProtocolError, match="more than 1 MiB"):
            Channel(ours, 2**20, passed=Steps(5)).receive()  # and does not wait for it

    def test_whoever_waits_for_half_a_message_is_told_of_silent_steps(self):
        ours, theirs = socket.socketpair()
        theirs.sendall(HEADER.pack(10, 0) + b"half")
        steps = Steps(5)
        with pytest.raises(Enough):
            Channel(ours, 2**20, passed=steps).receive()
        assert steps.silent == [
            False,
            False,
            True,
            True,
            True,
        ]  # the header, what is there, no more

    def test_whoever_waits_for_a_reader_is_told_of_silent_steps(self):
        ours, _theirs = socket.socketpair()
        steps = Steps(4)
        with pytest.raises(Enough):
            Channel(ours, 2**20, passed=steps).send({"value": torch.zeros(10**6)})
        assert steps.silent[-1]

    def test_the_end_of_the_other_side_is_noticed(self):
        ours, theirs = socket.socketpair()
        theirs.close()
        with pytest.raises(ChannelClosed):
            Channel(ours, 2**20).receive()
