"""A node's answer gives either the requested value or a ChainError that names the node."""

import json

import httpx
import hypothesis
import hypothesis.strategies as st
import outcome
import pytest
import trio
from bench.peers.ports import held_port, port_of

from cambist.codecs.http1 import Request, encode_response
from cambist.config import limits
from cambist.config.errors import ChainError, ConfigError, NodeUnavailable
from cambist.engine.chain.nodes.json_rpc import AnswerTooLarge, RpcCall
from cambist.engine.chain.nodes.rpc_wording import RpcError
from support.makers.scripted_node import node_at, node_that_says
from support.server.scripted_server import Caller, scripted_server

NAME = "chains.1.node.urls[0]"
TWO: list[RpcCall] = [("eth_chainId", []), ("eth_gasPrice", [])]

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["1", "2", "0x1", "batch too large"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "result", "error", "code", "message", "data"]), inner)
    ),
    max_leaves=20,
)


async def outcomes(body: bytes, calls: list[RpcCall], status: int = 200) -> list[bytes | RpcError]:
    async with node_that_says(encode_response(status, body), NAME) as node:
        found = await outcome.acapture(node.outcomes, calls)
    return found.unwrap()  # out here, where no nursery makes a group of an error


@hypothesis.given(
    _VALUES.map(json.dumps).map(str.encode) | st.binary(), st.sampled_from([200, 400, 404, 500])
)
@pytest.mark.parametrize("count", [1, 2])
def test_nothing_else_ever_comes_of_an_answer(count: int, body: bytes, status: int) -> None:
    said = f"{NAME}: "
    found: list[bytes | RpcError] = []
    try:
        found = trio.run(outcomes, body, TWO[:count], status)
    except ChainError as error:
        said = error.detail
    assert said.startswith(f"{NAME}: ")
    assert "secret" not in said
    assert len(found) in (0, count)


async def test_a_whole_batch() -> None:
    body = b'[{"id":2,"error":{"code":-1,"message":"no","data":{"a":1}}},{"id":1,"result":"0x1","extra":1}]'
    first, second = await outcomes(body, TWO)
    assert first == b'"0x1"'
    assert isinstance(second, RpcError)
    assert (second.code, second.message, bytes(second.data)) == (-1, "no", b'{"a":1}')


async def test_a_result_of_null_is_a_result() -> None:
    assert await outcomes(b'{"id":1,"result":null}', TWO[:1]) == [b"null"]
    both = b'{"id":1,"result":null,"error":null}'
    assert await outcomes(both, TWO[:1]) == [b"null"]


async def test_an_error_under_another_status_than_200_is_read() -> None:
    body = b'{"id":1,"error":{"code":-32602,"message":"bad"}}'
    (found,) = await outcomes(body, TWO[:1], 400)
    assert isinstance(found, RpcError)


@pytest.mark.parametrize("status", [301, 401, 403, 404, 429, 500, 502])
async def test_a_status_is_told(status: int) -> None:
    with pytest.raises(NodeUnavailable, match=f"HTTP status {status}"):
        await outcomes(b"<html>", TWO[:1], status)


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (limits.CHAIN_ANSWER_BYTES_MAX + 1),
            AnswerTooLarge,
            f"an answer of more than {limits.CHAIN_ANSWER_BYTES_MAX >> 20} MiB",
        ),
        (
            encode_response(200, b"{}", extra_headers=[(b"content-encoding", b"gzip")]),
            NodeUnavailable,
            "not reached: RemoteProtocolError",
        ),
        (b"SSH-2.0-OpenSSH\r\n\r\n", NodeUnavailable, "not reached: RemoteProtocolError"),
    ],
)
async def test_what_is_no_answer_is_told_by_kind(answer: bytes, kind: type[ChainError], said: str) -> None:
    async with node_that_says(answer, NAME) as node:
        with pytest.raises(ChainError) as caught:
            await node.outcomes(TWO[:1])
    assert (type(caught.value), caught.value.detail) == (kind, f"{NAME}: {said}")


async def test_a_node_that_is_away_is_told_by_the_kind_of_failure() -> None:
    with held_port() as unused:
        async with node_at(f"http://127.0.0.1:{port_of(unused)}/secret", NAME) as node:
            with pytest.raises(NodeUnavailable, match="not reached: ConnectError") as caught:
                await node.outcomes(TWO[:1])
    assert "secret" not in str(caught.value)


async def test_user_and_password_of_the_url_are_basic_authentication() -> None:
    async def script(caller: Caller) -> None:
        asked.append(await caller.answer(encode_response(200, b'{"id":1,"result":"0x1"}')))

    asked: list[Request] = []
    async with (
        scripted_server(script) as port,
        node_at(f"http://us%20er:p%3Aw@127.0.0.1:{port}/key?a=b", NAME) as node,
    ):
        await node.outcomes(TWO[:1])
    (request,) = asked
    assert (request.method, request.target) == (b"POST", b"/key?a=b")
    assert dict(request.headers) == {
        b"host": b"127.0.0.1:%d" % port,
        b"content-type": b"application/json",
        b"authorization": httpx.BasicAuth("us er", "p:w")._auth_header.encode(),
        b"accept-encoding": b"identity",
        b"content-length": b"%d" % len(request.body),
    }


async def test_a_url_that_nothing_can_be_sent_to_is_a_setting_to_mend() -> None:
    with pytest.raises(ConfigError) as caught:
        async with node_at("http://sécret..example/key", NAME):
            pass
    assert NAME in str(caught.value)
    assert "cret" not in str(caught.value).replace(NAME, "")
