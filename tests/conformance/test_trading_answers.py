"""Members of real answers and their types: spec 1.4 to 1.9.

And GET /swap: parameters that reach the Router.
"""

import re
from pathlib import Path
from typing import Any

import msgspec

from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.messages.market_messages import PriceRoute
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.chain.transact import transact
from support.contracts import permit2
from support.venue.trading_requests import NATIVE, OPTIONS, PARTNER, TRADER, a_sale, plain, posted
from support.venue.venue_role import CHAIN_ID, USER, running_venue


def amount(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("0|[1-9][0-9]*", value) is not None


def dollars(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", value) is not None


def address(value: Any) -> bool:
    if value == NATIVE:
        return True
    return isinstance(value, str) and value == to_checksum(parse_hex(value, "address"))


def integer(value: Any) -> bool:
    return type(value) is int and value >= 0


def number(value: Any) -> bool:
    return type(value) in (int, float)


def boolean(value: Any) -> bool:
    return type(value) is bool


def text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def data(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("0x([0-9a-f]{2})+", value) is not None


def side(value: Any) -> bool:
    return value in ("SELL", "BUY")


TOKEN = {"chainId": integer, "address": address}
ENTRY = {"token": TOKEN, "amount": amount, "amountUSD": dollars}
LEG = {"input": ENTRY, "output": ENTRY}
ROUTE = {"origin": LEG, "destination": LEG, "bridge": lambda value: value is None,
         "fees": {"gas": ENTRY, "bridge": lambda value: value == []}}  # fmt: skip
DELTA = {
    "id": text, "side": side, "inputToken": TOKEN, "outputToken": TOKEN, "route": ROUTE,
    "partner": {"name": text, "feePercent": number}, "spender": address,
    "alternatives": lambda value: value == [],
}  # fmt: skip
EXCHANGE = {"exchange": text, "srcAmount": amount, "destAmount": amount, "percent": number,
            "data": lambda value: isinstance(value, dict)}  # fmt: skip
HOP = {"srcToken": address, "srcDecimals": integer, "destToken": address, "destDecimals": integer,
       "swapExchanges": [EXCHANGE]}  # fmt: skip
MARKET = {
    "blockNumber": integer, "network": integer, "srcToken": address, "destToken": address,
    "srcDecimals": integer, "destDecimals": integer, "srcAmount": amount, "destAmount": amount,
    "bestRoute": [{"percent": number, "swaps": [HOP]}], "gasCostUSD": dollars, "gasCost": amount,
    "version": text, "contractAddress": address, "tokenTransferProxy": address, "contractMethod": text,
    "partnerFee": number, "srcUSD": dollars, "destUSD": dollars, "partner": text,
    "maxImpactReached": boolean, "hmac": text,
    "side": side,  # interop.md 3
}  # fmt: skip
OTHER = {"srcAmount": amount, "destAmount": amount, "swaps": [HOP]}
ENVELOPE = {"from": address, "to": address, "value": amount, "data": data, "gasPrice": amount,
            "gas": amount, "chainId": integer}  # fmt: skip
FEES_1559 = {"maxFeePerGas": amount, "maxPriorityFeePerGas": amount}


def odd(table: Any, told: Any, where: str = "") -> list[str]:
    """Differences between an answer and its table."""
    if isinstance(table, dict):
        if not isinstance(told, dict) or told.keys() != table.keys():
            return [f"{where} has {sorted(told)}, expected {sorted(table)}"]
        return [text for name, part in table.items() for text in odd(part, told[name], f"{where}.{name}")]
    if isinstance(table, list):
        if not isinstance(told, list) or not told:
            return [f"{where} is {told!r}, expected a list with something in it"]
        return [text for at, part in enumerate(told) for text in odd(table[0], part, f"{where}[{at}]")]
    return [] if table(told) else [f"{where} is {told!r}"]


def without(table: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: part for name, part in table.items() if name not in names}


async def test_answers_have_the_members_of_the_spec_and_their_types(tmp_path: Path) -> None:
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        trades = [
            venue.selling("WETH", 1, "USDC"),
            venue.selling("WETH", 12, "USDC"),
            venue.selling("ETH", 1, "DAI"),
            venue.buying("USDC", 1_000, "WETH"),
            venue.selling("WBTC", 0.1, "WETH"),
            venue.selling("WETH", 1, "USDC", partner="acme", partnerFeeBps=7, userAddress=TRADER),
        ]
        for trade in trades:
            delta = await venue.get("/v2/quote", **trade, mode="DELTA")
            assert odd({"delta": DELTA, "deltaAddress": address}, delta) == []
            market = await venue.get("/v2/quote", **trade, mode="MARKET")
            assert odd({"market": MARKET}, market) == []
            assert odd(DELTA, await venue.get("/v2/delta/prices", **trade)) == []
            prices = await venue.get("/prices", **trade | {"otherExchangePrices": "true"})
            others = dict.fromkeys(prices["priceRoute"]["others"], OTHER)
            assert others
            assert odd({"priceRoute": MARKET | {"others": others}}, prices) == []
        fallen = await venue.get("/v2/quote", **trades[0] | {"amount": 10**12})
        assert odd({"market": MARKET, "fallbackReason": {"errorType": text, "details": text}}, fallen) == []
        swap = await venue.get("/swap", **plain(venue, "/swap"))
        assert odd({"priceRoute": MARKET, "txParams": without(ENVELOPE, "gas")}, swap) == []
        sale = await a_sale(venue)
        for query, table in (
            ("", ENVELOPE),
            ("ignoreChecks=true", without(ENVELOPE, "gas")),
            ("ignoreGasEstimate=TRUE", without(ENVELOPE, "gas")),
            ("eip1559=true", without(ENVELOPE, "gasPrice") | FEES_1559),
            ("onlyParams=true", {"method": text, "params": [lambda value: True], "contract": address}),
        ):
            response = await posted(venue, sale, query)
            assert odd(table, msgspec.json.decode(response.body)) == [], query
        built = msgspec.json.decode((await posted(venue, sale)).body)
        assert (built["from"], built["to"]) == (TRADER, sale["priceRoute"]["contractAddress"])
        assert (built["value"], built["chainId"]) == ("0", CHAIN_ID)


async def test_the_document_of_the_table_is_that_of_the_answers() -> None:
    """The table above and the struct that is served cannot drift apart."""
    assert MARKET.keys() | {"others"} == {one.encode_name for one in msgspec.structs.fields(PriceRoute)}


# --- Parameters of GET /swap ----------------------------------------------------------------------------


async def test_parameters_of_a_swap_reach_the_router(tmp_path: Path) -> None:
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")

        async def swapped(**more: Any) -> Any:
            with venue.with_key():
                told = await venue.get("/swap", **plain(venue, "/swap") | more)
            return decode_swap(parse_hex(told["txParams"]["data"], "data"))[1]

        was = await swapped()
        fees: dict[str, tuple[dict[str, Any], int]] = {
            "partner": ({"partner": "acme"}, 10),
            "partnerFeeBps": ({"partner": "acme", "partnerFeeBps": 7}, 17),
            "partnerAddress": ({"partnerAddress": PARTNER, "partnerFeeBps": 30}, 30),
        }
        for name, (more, bps) in fees.items():
            packed = (await swapped(**more)).partner_and_fee
            assert (packed & 0xFF, packed >> 96) == (bps, int(PARTNER, 16)), name
        assert (await swapped(slippage=1)).dest_amount > was.dest_amount
        assert (await swapped(receiver=PARTNER)).receiver == parse_hex(PARTNER, "receiver")
        assert (await swapped(deadline=4_000_000_000)).deadline == 4_000_000_000
        devnet = venue.devnet
        await devnet.allow(USER, "WETH", "permit2")
        allow = permit2.allow(devnet.at("WETH"), devnet.at("router"), 10**18, 4_000_000_000)
        await transact(devnet.chain, USER, devnet.at("permit2"), allow)
        assert (await swapped(permit="0x01")).permit == b"\x01"
        assert (await swapped(txOrigin=PARTNER)).dest_amount == was.dest_amount
        for flags in ({"isCapSurplus": "false"}, {"takeSurplus": "true"}, {"isDirectFeeTransfer": "true"}):
            assert (await swapped(**flags)).partner_and_fee != was.partner_and_fee, flags
        kept = await swapped(takeSurplus="true", isSurplusToUser="true")
        assert kept.partner_and_fee == was.partner_and_fee
        bought = await swapped(side="BUY", amount=10**9)
        assert (bought.dest_amount, bought.src_amount < 10**18) == (10**9, True)
