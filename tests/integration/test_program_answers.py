"""A program's quote at a venue that answers with the price of another trade."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import pytest

from cambist.codecs.messages.vocabulary import Mode, Side
from cambist.config.errors import VenueError
from cambist.engine.trade.api.examples import recorded_examples
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.public.venue import Venue
from support.server.scripted_server import Caller, scripted_server

HONEST: dict[str, Any] = recorded_examples().operations["getV2Quote"].answer
CHAIN = HONEST["delta"]["inputToken"]["chainId"]
TOKENS = {
    "tokens": [
        {"symbol": symbol, "address": HONEST["delta"][end]["address"], "decimals": decimals, "network": CHAIN}
        for symbol, end, decimals in (("WETH", "inputToken", 18), ("USDC", "outputToken", 6))
    ]
}


def with_amounts(sold: str, bought: str) -> dict[str, Any]:
    """The honest answer with other amounts."""
    answer = deepcopy(HONEST)
    route = answer["delta"]["route"]
    route["origin"]["input"]["amount"], route["destination"]["output"]["amount"] = sold, bought
    return answer


@asynccontextmanager
async def answering(answer: dict[str, Any]) -> AsyncGenerator[Venue]:
    """A program at a venue with this answer."""

    async def serve(caller: Caller) -> None:
        while True:
            try:
                request = await caller.request()
            except EOFError:
                return
            body = json.dumps(TOKENS if request.target.startswith(b"/tokens") else answer).encode()
            head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n"
            await caller.stream.send_all(head.encode() + body)

    async with (
        scripted_server(serve) as port,
        VenueClient.open(f"http://127.0.0.1:{port}") as client,
    ):
        yield Venue(client, CHAIN, {})


async def test_an_honest_answer_is_a_quote() -> None:
    async with answering(HONEST) as venue:
        quote = await venue.quote("WETH", "USDC", 1)
    assert (quote.mode, str(quote.sell), str(quote.buy)) == (Mode.DELTA, "1 WETH", "2499.209946 USDC")
    assert str(quote.price) == "2499.209946"


@pytest.mark.parametrize(
    ("answer", "amount", "side"),
    [
        (HONEST, "2", Side.SELL),
        (HONEST, "2500", Side.BUY),
        (with_amounts("1000000000000000000", "0"), "1", Side.SELL),
        (with_amounts("0", "2500000000"), "2500", Side.BUY),
        (with_amounts("1", "2499209946"), "1", Side.SELL),
    ],
)
async def test_the_price_of_another_trade_is_no_quote(
    answer: dict[str, Any], amount: str, side: Side
) -> None:
    async with answering(answer) as venue:
        with pytest.raises(VenueError, match="expected a price of "):
            await venue.quote("WETH", "USDC", amount, side=side)
