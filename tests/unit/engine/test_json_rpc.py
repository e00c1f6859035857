"""One node: whatever comes back is either what was asked for or a ChainError that names the node."""

import json

import httpx
import hypothesis
import hypothesis.strategies as st
import pytest
import trio

from cambist.config.errors import ChainError, ConfigError, NodeUnavailable
from cambist.engine.chain.json_rpc import Call, Node
from cambist.engine.chain.rpc_wording import Fault

NAME = "chains.1.node.urls[0]"
TWO: list[Call] = [("eth_chainId", []), ("eth_gasPrice", [])]

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["1", "2", "0x1", "batch too large"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "result", "error", "code", "message", "data"]), inner)
    ),
    max_leaves=20,
)


async def outcomes(response: httpx.Response, calls: list[Call]) -> list[bytes | Fault]:
    node = Node(httpx.MockTransport(lambda _: response), "http://secret.example/key", NAME)
    return await node.outcomes(calls)


@hypothesis.given(
    _VALUES.map(json.dumps).map(str.encode) | st.binary(), st.sampled_from([200, 400, 404, 500])
)
@pytest.mark.parametrize("count", [1, 2])
def test_nothing_else_ever_comes_of_an_answer(count: int, body: bytes, status: int) -> None:
    said = f"{NAME}: "
    found: list[bytes | Fault] = []
    try:
        found = trio.run(outcomes, httpx.Response(status, content=body), TWO[:count])
    except ChainError as error:
        said = error.detail
    assert said.startswith(f"{NAME}: ")
    assert "secret" not in said
    assert len(found) in (0, count)


async def test_a_whole_batch() -> None:
    body = b'[{"id":2,"error":{"code":-1,"message":"no","data":{"a":1}}},{"id":1,"result":"0x1","extra":1}]'
    first, second = await outcomes(httpx.Response(200, content=body), TWO)
    assert first == b'"0x1"'
    assert isinstance(second, Fault)
    assert (second.code, second.message, bytes(second.data)) == (-1, "no", b'{"a":1}')


async def test_a_result_of_null_is_a_result() -> None:
    assert await outcomes(httpx.Response(200, content=b'{"id":1,"result":null}'), TWO[:1]) == [b"null"]
    both = b'{"id":1,"result":null,"error":null}'
    assert await outcomes(httpx.Response(200, content=both), TWO[:1]) == [b"null"]


async def test_an_error_under_another_status_than_200_is_read() -> None:
    body = b'{"id":1,"error":{"code":-32602,"message":"bad"}}'
    (found,) = await outcomes(httpx.Response(400, content=body), TWO[:1])
    assert isinstance(found, Fault)


@pytest.mark.parametrize("status", [301, 401, 403, 404, 429, 500, 502])
async def test_a_status_is_told(status: int) -> None:
    with pytest.raises(NodeUnavailable, match=f"HTTP status {status}"):
        await outcomes(httpx.Response(status, content=b"<html>"), TWO[:1])


async def test_user_and_password_of_the_url_are_basic_authentication() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, content=b'{"id":1,"result":"0x1"}')

    node = Node(httpx.MockTransport(answer), "http://us%20er:p%3Aw@node.example:8545/key?a=b", NAME)
    await node.outcomes(TWO[:1])
    (request,) = asked
    assert request.headers["authorization"] == httpx.BasicAuth("us er", "p:w")._auth_header
    assert request.url.raw_path == b"/key?a=b"
    assert (request.method, request.headers["content-type"]) == ("POST", "application/json")


def test_a_url_that_nothing_can_be_sent_to_is_a_setting_to_mend() -> None:
    with pytest.raises(ConfigError) as caught:
        Node(httpx.MockTransport(lambda _: httpx.Response(200)), "http://sécret..example/key", NAME)
    assert NAME in str(caught.value)
    assert "cret" not in str(caught.value).replace(NAME, "")
