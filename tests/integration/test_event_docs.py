"""docs/events.md says what is true: its commands lead to streams, its messages are those that come."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cambist.codecs.event_messages import OrderEventsQuery, decode_order_event, decode_stream_message
from cambist.codecs.wire import encode
from support.event_streams import PATH, an_event_venue
from support.sse import EventStream
from support.stores import Engine, a_delta_order, kept

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(?:curl -N|wscat -c) .*$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
async def test_commands_lead_to_streams(command: str, tmp_path: Path) -> None:
    (url,) = re.findall(r'"((?:http|ws)://[^"]+)"', command)
    address = urlsplit(url)
    assert address.path == PATH
    async with an_event_venue(Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)) as venue:
        for number in range(10):
            await kept(venue.store, a_delta_order(number))
        if address.scheme == "ws":
            async with venue.socket(address.query) as socket:
                await socket.begun()
            return
        headers = re.findall(r'-H "([^"]+)"', command)
        async with venue.following(address.query, *headers) as events:
            token = await events.begun()
            if "0" * 31 + "8" in command:
                assert token == "0" * 31 + "8"
                assert len(await events.take(2)) == 2


def test_all_of_them_are_there() -> None:
    assert len(COMMANDS) == 4


def test_messages_are_as_shown() -> None:
    shown = re.findall(r"^data: (.*)$", PAGE, re.MULTILINE) + re.findall(r'^\{"event".*$', PAGE, re.MULTILINE)
    kinds = [type(decode_stream_message(text.encode())).__name__ for text in shown]
    assert kinds == ["OpenMessage", "OrderEventMessage", "OpenMessage", "BeatMessage"]
    assert encode(decode_order_event(shown[1].encode())) == shown[1].encode()


def test_parameters_are_those_of_the_endpoint() -> None:
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))))
    assert named == set(OrderEventsQuery.__struct_encode_fields__)


async def test_blocks_are_as_shown(tmp_path: Path) -> None:
    """An event has these lines, in this order."""
    async with (
        an_event_venue(Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)) as venue,
        await venue.served.connect() as stream,
    ):
        events = EventStream(stream)
        await events.open(PATH.encode())
        begun = await events.block()
        await kept(venue.store, a_delta_order(1))
        came = await events.block()
    shown = re.findall(r"^event: \w+\nid: .*\ndata: .*\n\n", PAGE, re.MULTILINE)
    for one, other in zip(shown, (begun, came), strict=True):
        lines = [line.split(b": ")[0] for line in other.strip().split(b"\n")]
        assert [line.split(": ")[0].encode() for line in one.strip().split("\n")] == lines
        assert one.split("\n")[0].encode() == other.split(b"\n")[0]
