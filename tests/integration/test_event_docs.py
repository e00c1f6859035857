"""docs/guides/events.md says what is true: its commands lead to streams, its messages are those that come."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from cambist.codecs.messages.event_messages import (
    OrderEventsQuery,
    OtcEventsQuery,
    decode_order_event,
    decode_stream_message,
)
from cambist.codecs.messages.wire import encode
from support.events.event_streams import OTC_PATH, PATH, EventStream, an_event_venue
from support.store.stores import Engine, a_delta_order, an_otc_order, hash_of, kept
from support.venue.admitting import ALICE_KEY

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "events.md").read_text(encoding="utf-8")


async def test_the_command_of_a_websocket_leads_to_a_stream(tmp_path: Path) -> None:
    """test_doc_commands.py runs the commands of server-sent events."""
    ((command, url),) = re.findall(r'^(wscat -c "(ws://[^"]+)" .*)$', PAGE, re.MULTILINE)
    address = urlsplit(url)
    assert address.path == PATH
    assert '-H "X-API-KEY: $ACME_KEY"' in command
    engine = Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)
    async with (
        an_event_venue(engine, is_strict=True) as venue,
        venue.socket(address.query, path=PATH, key=ALICE_KEY) as socket,
    ):
        await socket.begun()


def test_messages_are_as_shown() -> None:
    shown = re.findall(r"^data: (.*)$", PAGE, re.MULTILINE) + re.findall(r'^\{"event".*$', PAGE, re.MULTILINE)
    kinds = [type(decode_stream_message(text.encode())).__name__ for text in shown]
    assert kinds == ["OpenMessage", "OrderEventMessage", "OrderEventMessage", "OpenMessage", "BeatMessage"]
    for text in shown[1:3]:
        assert encode(decode_order_event(text.encode())) == text.encode()


def test_parameters_are_those_of_the_endpoint() -> None:
    delta, otc = PAGE.split("## OTC orders")
    for part, query in ((delta, OrderEventsQuery), (otc, OtcEventsQuery)):
        named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", part, re.MULTILINE))))
        assert named == set(query.__struct_encode_fields__)


def data_of(block: bytes) -> dict[str, Any]:
    (data,) = re.findall(rb"^data: (.*)$", block, re.MULTILINE)
    told: dict[str, Any] = msgspec.json.decode(data)
    return told


async def test_blocks_are_as_shown(tmp_path: Path) -> None:
    """An event has these lines, in this order; and its data these members."""
    async with (
        an_event_venue(Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)) as venue,
        await venue.served.connect() as stream,
        await venue.served.connect() as otc_stream,
    ):
        events, otc_events = EventStream(stream), EventStream(otc_stream)
        await events.open(PATH.encode())
        await otc_events.open(OTC_PATH.encode())
        begun = await events.block()
        await otc_events.block()
        await kept(venue.store, a_delta_order(1))
        await kept(venue.store, an_otc_order(2, transaction_hash=hash_of(9)))
        came, otc_came = await events.block(), await otc_events.block()
    shown = re.findall(r"^event: \w+\nid: .*\ndata: .*\n(?=\n|```)", PAGE, re.MULTILINE)
    for one, other in zip(shown, (begun, came, otc_came), strict=True):
        assert list(data_of(one.encode())) == list(data_of(other))
        lines = [line.split(b": ")[0] for line in other.strip().split(b"\n")]
        assert [line.split(": ")[0].encode() for line in one.strip().split("\n")] == lines
        assert one.split("\n")[0].encode() == other.split(b"\n")[0]
