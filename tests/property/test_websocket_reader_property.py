"""The message reader takes plain text frames past the core; the messages are the same as through the core."""

import logging

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, CLOSED, OPEN, SERVER, Protocol, Side

from cambist.feeds.transport.websocket_reader import MessageReader
from support.server.raw_websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, close_data, frame

BYTES_MAX = 300
SILENT = logging.getLogger("cambist.tests.websocket")
texts = st.text(max_size=140).map(str.encode)
payloads = st.one_of(st.binary(max_size=140), texts, st.just(bytes(BYTES_MAX + 1)))
pieces = st.one_of(
    st.tuples(st.just(TEXT), texts, st.just(True), st.just(0)),
    st.tuples(
        st.sampled_from([TEXT, BINARY, CONTINUATION, PING, PONG, 3]),
        payloads,
        st.booleans(),
        st.sampled_from([0, 0, 0, 0, 4]),
    ),
    st.just((CLOSE, close_data(1001, "bye"), True, 0)),
)


def core_of(side: Side) -> Protocol:
    return Protocol(side, state=OPEN, max_size=BYTES_MAX, logger=SILENT)


def judged_by_the_core(core: Protocol, wire: bytes) -> list[str | bytes]:
    """The same messages, all frames through the core."""
    messages: list[str | bytes] = []
    parts: list[Frame] = []
    for at in range(len(wire)):
        if core.state is not OPEN:
            break
        core.receive_data(wire[at : at + 1])
        for event in core.events_received():
            assert isinstance(event, Frame)
            if event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                parts.append(event)
                if event.fin:
                    whole = b"".join(bytes(part.data) for part in parts)
                    is_text = parts[0].opcode is Opcode.TEXT
                    parts = []
                    try:
                        messages.append(whole.decode() if is_text else whole)
                    except UnicodeDecodeError as error:
                        core.fail(1007, f"{error.reason} at position {error.start}")
    return messages


@given(
    st.lists(pieces, max_size=12),
    st.sampled_from([CLIENT, SERVER]),
    st.booleans(),
    st.lists(st.integers(1, 200), min_size=1, max_size=20),
)
def test_the_reader_agrees_with_the_core(
    frames: list[tuple[int, bytes, bool, int]], side: Side, misjudged: bool, sizes: list[int]
) -> None:
    masked = (side is SERVER) is not misjudged
    wire = b"".join(frame(op, data, masked=masked, fin=fin, rsv=rsv) for op, data, fin, rsv in frames)
    expected_core, core = core_of(side), core_of(side)
    expected = judged_by_the_core(expected_core, wire)

    reader = MessageReader(core, wire[: sizes[0]])
    at = sizes[0]
    while True:
        while reader.is_due:
            reader.parse()
        if at >= len(wire):
            break
        size = sizes[at % len(sizes)]
        reader.feed(wire[at : at + size])
        at += size

    assert list(reader.messages) == expected
    assert (core.state, core.close_sent, core.close_rcvd) == (
        expected_core.state,
        expected_core.close_sent,
        expected_core.close_rcvd,
    )
    if side is SERVER:  # a client masks at random
        assert core.data_to_send() == expected_core.data_to_send()
    assert core.state is not CLOSED


def test_much_in_one_read_is_parsed_in_small_steps() -> None:
    reader = MessageReader(core_of(CLIENT), frame(TEXT, b"a", masked=False) * 1_000)
    steps = 0
    while reader.is_due:
        assert reader.parse() <= 64
        steps += 1
    assert steps == 16
    assert reader.received == len(reader.messages) == 1_000
