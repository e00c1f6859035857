"""A JSON-RPC node whose balances, allowances and contracts a test sets."""

import json
from typing import Any

import trio

from cambist.codecs.http1 import Http1Limits, Request, ServerConnection, encode_response
from cambist.crypto.eip1271 import SELECTOR4
from cambist.crypto.keccak import keccak256
from support.conformance.faulty_maker import DAI, USDC, WBTC, WETH

BALANCE4, ALLOWANCE4, DECIMALS4 = (
    keccak256(text)[:4] for text in (b"balanceOf(address)", b"allowance(address,address)", b"decimals()")
)
MAGIC = "0x1626ba7e" + "00" * 28
Failure = tuple[int, dict[str, Any]]
"""Status of an answer and its JSON-RPC error."""

TIMED_OUT: Failure = (200, {"code": -32000, "message": "execution aborted (timeout = 5s)"})
"""Answer of geth to a call that takes too long (go-ethereum, internal/ethapi/api.go)."""
LIMITED: Failure = (
    429,
    {
        "code": -32005,
        "message": "daily request count exceeded, request rate limited",
        "data": {"rate": {"allowed_rps": 1, "backoff_seconds": 0, "current_rps": 2.2}},
    },
)
"""Answer of Infura beyond its rate limit (github.com/gochain/web3/issues/180)."""


class FaultyNode:
    """Serves until cancelled.

    Attributes:
        chain_id: of eth_chainId.
        funds: every balance, raw units; None answers with an error.
        allowed: every allowance, raw units.
        contracts: lower-case addresses with code, besides tokens.
        decimals: lower-case address of a token -> its decimals(); None reverts.
        accepts: answer of isValidSignature; None reverts.
        failing: selectors of calls that the node does not execute; failure: status and error of the answer.
    """

    def __init__(self, chain_id: int) -> None:
        self.chain_id = chain_id
        self.funds: int | None = 10**30
        self.allowed = 10**30
        self.contracts: set[str] = set()
        self.decimals: dict[str, int | None] = {WETH: 18, USDC: 6, WBTC: 8, DAI: 18}
        self.accepts: bool | None = True
        self.failing: set[bytes] = set()
        self.failure = TIMED_OUT

    async def run(self, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen; tells the port."""
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with trio.open_nursery() as nursery:
            task_status.started(listener.socket.getsockname()[1])
            await trio.serve_listeners(self._serve, [listener], handler_nursery=nursery)

    async def _serve(self, stream: trio.SocketStream) -> None:
        http = ServerConnection(Http1Limits())
        async with stream:
            while True:
                event = http.next_event()
                if isinstance(event, Request):
                    status, answer = self.answer(json.loads(event.body))
                    await stream.send_all(encode_response(status, json.dumps(answer).encode()))
                    continue
                data = await stream.receive_some(65_536)
                if not data:
                    return
                http.receive_data(data)

    def answer(self, call: dict[str, Any]) -> tuple[int, Any]:
        """Status, and the JSON, of one call's answer."""
        if call["method"] == "eth_call" and bytes.fromhex(call["params"][0]["data"][2:10]) in self.failing:
            status, error = self.failure
            return status, {"jsonrpc": "2.0", "id": call["id"], "error": error}
        result = self._result(call["method"], call["params"])
        outcome = (
            {"error": {"code": 3, "message": "execution reverted", "data": "0x"}}
            if result is None
            else {"result": result}
        )
        return 200, {"jsonrpc": "2.0", "id": call["id"], **outcome}

    def _result(self, method: str, params: list[Any]) -> str | None:
        if method == "eth_chainId":
            return hex(self.chain_id)
        if method == "eth_getCode":
            return "0x6000" if params[0].lower() in self.contracts | self.decimals.keys() else "0x"
        selector = bytes.fromhex(params[0]["data"][2:10])
        if selector == BALANCE4:
            return None if self.funds is None else f"0x{self.funds:064x}"
        if selector == ALLOWANCE4:
            return f"0x{self.allowed:064x}"
        if selector == DECIMALS4:
            decimals = self.decimals.get(params[0]["to"].lower(), -1)
            return "0x" if decimals == -1 else None if decimals is None else f"0x{decimals:064x}"
        assert selector == SELECTOR4
        if self.accepts is None:
            return None
        return MAGIC if self.accepts else "0x" + "00" * 32
