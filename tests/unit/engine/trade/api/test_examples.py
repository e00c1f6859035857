"""Examples in both documents of the API: each operation and message has some, and schemas fit them."""

from collections.abc import Iterator
from types import UnionType
from typing import Any, get_args

import msgspec
import pytest

from cambist.codecs.messages.wire import encode
from cambist.engine.trade.api.examples import recorded_examples
from cambist.engine.trade.api.openapi import operation_id
from support.oracles import Oracle
from support.venue.quiet_venue import QuietVenue

JSON = "application/json"
EVENTS = "text/event-stream"


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for methods in document["paths"].values():
        for operation in methods.values():
            yield operation["operationId"], operation


async def test_each_operation_has_a_request_and_an_answer(venue: QuietVenue) -> None:
    document = await venue.get("/openapi.json")
    names = set()
    for name, operation in operations(document):
        names.add(name)
        (content,) = operation["responses"]["200"]["content"].values()
        assert "example" in content, name
        for parameter in operation["parameters"]:
            assert "example" in parameter or not parameter["required"], (name, parameter["name"])
        if "requestBody" in operation:
            assert operation["requestBody"]["content"][JSON]["example"], name
    assert recorded_examples().operations.keys() == names


@pytest.mark.oracle
async def test_examples_are_valid_by_their_schemas(venue: QuietVenue, oracle: Oracle) -> None:
    document = await venue.get("/openapi.json")
    for name, operation in operations(document):
        held = [*operation["responses"]["200"]["content"].values()]
        held += [*operation.get("requestBody", {}).get("content", {}).values()]
        held += operation["parameters"]
        for one in held:
            if "example" in one:
                ask = {"document": document, "schema": one["schema"], "instance": one["example"]}
                assert oracle.ask(ask="instance", **ask) == {"errors": []}, name


@pytest.mark.oracle
async def test_examples_of_messages_are_valid_by_their_schemas(venue: QuietVenue, oracle: Oracle) -> None:
    document = await venue.get("/asyncapi.json")
    for channel in document["channels"].values():
        for message in channel["messages"].values():
            (example,) = message["examples"]
            ask = {"document": document, "schema": message["payload"], "instance": example["payload"]}
            assert oracle.ask(ask="instance", **ask) == {"errors": []}, message["name"]


async def test_examples_of_answers_have_the_members_of_their_structs_and_no_other(venue: QuietVenue) -> None:
    rows = venue.app.reference.described
    for row in rows:
        example = recorded_examples().operations[operation_id(row)].answer
        if row.answer is not None:
            kinds = get_args(row.answer) if isinstance(row.answer, UnionType) else (row.answer,)
            assert any(is_whole(example, kind) for kind in kinds), row.name
        elif row.content_type.decode() == EVENTS:
            assert example.startswith("event: "), row.name
        else:
            assert isinstance(example, str), row.name


def is_whole(example: Any, kind: Any) -> bool:
    try:
        read = msgspec.json.decode(msgspec.json.encode(example), type=kind)
    except msgspec.ValidationError:
        return False
    return bool(msgspec.json.decode(encode(read)) == example)
