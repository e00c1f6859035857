"""Server that answers POST /firm from a template, so that it never limits the measured client.

The answer names the requested amount, so that the client can check that the answer belongs to its request.
The server verifies one signature in `VERIFY_ONE_IN` and refuses a wrong one, which ends the measurement.
Prints its port, then serves until the standard input ends. Runs in .venv-peers.
"""

# pyright: reportMissingImports=false
import asyncio
import gc
import sys
from typing import cast

import uvloop

from bench.maker_work import ACCESS_KEY, DOMAIN, SECRET, TARGET, wall_ms
from cambist.codecs.messages.maker_messages import encode_firm_quote
from cambist.config.errors import AuthError
from cambist.crypto.hmac_auth import RequestVerifier

VERIFY_ONE_IN = 50
_AMOUNT = "10000000000000000000"  # stands where the amount goes
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"\r\ncontent-length: "
_SIGNED_BY = (b"domain", b"access-key", b"timestamp", b"signature")
_ASKED = b'"takerAmount":"'
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nserver: maker\r\ncontent-length: %d\r\n\r\n"
_BEFORE, _AFTER = encode_firm_quote(
    (0xABCDEF << 200) + 0xF39FD6E51AAD88F6F4CE6AB8827279CFFFB92266,
    1_900_000_000,
    f"0x{0xC0DE:040x}",
    f"0x{0xBA5E:040x}",
    "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
    f"0x{0xAA:040x}",
    2_500_000_000,
    _AMOUNT,
    bytes(range(65)),
).split(_AMOUNT.encode())

_verifier = RequestVerifier({DOMAIN: [(ACCESS_KEY, SECRET.encode())]})


class FirmAnswers(asyncio.Protocol):
    """A connection of a client to the server that answers from a template."""

    def __init__(self) -> None:
        self._data = b""
        self._taken = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        data = self._data + data
        while (end := data.find(_HEAD_END)) >= 0:
            head = data[:end].lower()
            at = head.index(_LENGTH) + len(_LENGTH)
            whole = end + len(_HEAD_END) + int(head[at:].partition(b"\r\n")[0])
            if len(data) < whole:
                break
            self._answer(data[:end], data[end + len(_HEAD_END) : whole])
            data = data[whole:]
        self._data = data

    def _answer(self, head: bytes, body: bytes) -> None:
        self._taken += 1
        if self._taken % VERIFY_ONE_IN == 1 and (fault := _fault(head, body)):
            self._transport.write(b"HTTP/1.1 401 \r\ncontent-length: %d\r\n\r\n%b" % (len(fault), fault))
            return
        start = body.index(_ASKED) + len(_ASKED)
        amount = body[start : body.index(b'"', start)]
        length = len(_BEFORE) + len(amount) + len(_AFTER)
        self._transport.write(b"%b%b%b%b" % (_HEAD % length, _BEFORE, amount, _AFTER))


def _fault(head: bytes, body: bytes) -> bytes:
    """Return what is wrong with a request's signature; empty if the signature is right."""
    first, *lines = head.split(b"\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines)}
    domain, access_key, timestamp, signature = (fields.get(b"x-auth-" + name) for name in _SIGNED_BY)
    method, target, _ = first.split(b" ")
    if target != TARGET.encode():
        return b"the target is " + target
    try:
        _verifier.verify(domain, access_key, timestamp, signature, method, target, body, wall_ms())
    except AuthError as error:
        return str(error).encode()
    return b""


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(FirmAnswers, "127.0.0.1", 0, backlog=256)
    gc.collect()
    gc.freeze()
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(serve())
