"""One node: whatever comes back is either what was asked for or a ChainError that names the node."""

import json

import httpx
import hypothesis
import hypothesis.strategies as st
import pytest
import trio

from cambist.config.errors import ChainError, ConfigError, NodeUnavailable
from cambist.engine.chain.json_rpc import Call
from cambist.engine.chain.rpc_wording import Fault
from support.node_answers import NAME, NodeAnswers

TWO: list[Call] = [("eth_chainId", []), ("eth_gasPrice", [])]

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["1", "2", "0x1", "batch too large"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "result", "error", "code", "message", "data"]), inner)
    ),
    max_leaves=20,
)


async def outcomes(status: int, body: bytes, calls: list[Call]) -> list[bytes | Fault]:
    return await NodeAnswers(status, body).node().outcomes(calls)


@hypothesis.given(
    _VALUES.map(json.dumps).map(str.encode) | st.binary(), st.sampled_from([200, 400, 404, 500])
)
@pytest.mark.parametrize("count", [1, 2])
def test_nothing_else_ever_comes_of_an_answer(count: int, body: bytes, status: int) -> None:
    said = f"{NAME}: "
    found: list[bytes | Fault] = []
    try:
        found = trio.run(outcomes, status, body, TWO[:count])
    except ChainError as error:
        said = error.detail
    assert said.startswith(f"{NAME}: ")
    assert "secret" not in said
    assert len(found) in (0, count)


async def test_a_whole_batch() -> None:
    body = b'[{"id":2,"error":{"code":-1,"message":"no","data":{"a":1}}},{"id":1,"result":"0x1","extra":1}]'
    first, second = await outcomes(200, body, TWO)
    assert first == b'"0x1"'
    assert isinstance(second, Fault)
    assert (second.code, second.message, bytes(second.data)) == (-1, "no", b'{"a":1}')


async def test_a_result_of_null_is_a_result() -> None:
    assert await outcomes(200, b'{"id":1,"result":null}', TWO[:1]) == [b"null"]
    both = b'{"id":1,"result":null,"error":null}'
    assert await outcomes(200, both, TWO[:1]) == [b"null"]


async def test_an_error_under_another_status_than_200_is_read() -> None:
    body = b'{"id":1,"error":{"code":-32602,"message":"bad"}}'
    (found,) = await outcomes(400, body, TWO[:1])
    assert isinstance(found, Fault)


@pytest.mark.parametrize("status", [301, 401, 403, 404, 429, 500, 502])
async def test_a_status_is_told(status: int) -> None:
    with pytest.raises(NodeUnavailable, match=f"HTTP status {status}"):
        await outcomes(status, b"<html>", TWO[:1])


async def test_user_and_password_of_the_url_are_basic_authentication() -> None:
    answers = NodeAnswers(200, b'{"id":1,"result":"0x1"}')
    await answers.node("http://us%20er:p%3Aw@node.example:8545/key?a=b").outcomes(TWO[:1])
    (request,) = answers.asked
    assert request.origin == ("http", "node.example", 8545)
    assert (request.method, request.target) == (b"POST", b"/key?a=b")
    fields = dict(request.fields)
    assert fields.pop(b"authorization").decode() == httpx.BasicAuth("us er", "p:w")._auth_header
    assert fields == {b"content-type": b"application/json"}


@pytest.mark.parametrize("url", ["http://sécret..example/key", "ftp://secret.example/key", "secret/key"])
def test_a_url_that_nothing_can_be_sent_to_is_a_setting_to_mend(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        NodeAnswers(200, b"").node(url)
    assert NAME in str(caught.value)
    assert "cret" not in str(caught.value).replace(NAME, "")
