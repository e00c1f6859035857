"""A trade across chains against a served venue: bridges' fee servers, quote, stream, order, record."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.bridges.bridge_terms import BridgeFee, fee_of
from cambist.config.sections.bridges import BridgedToken, BridgeSettings
from cambist.config.settings import Settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.signatures import to_compact64
from support.events.event_streams import EventStream
from support.patience import PATIENCE_S, until
from support.venue.bridge_apis import MESSENGER, OTHER_POOL, POOL, TRANSMITTER, USD, BridgeApis, bridge_apis
from support.venue.venue_role import (
    CHAIN_ID,
    GRIDS,
    USER,
    RunningVenue,
    running_makers,
    served_devnet,
    serving,
    write_grids,
)

THERE = 31_338
TOKEN = to_checksum(b"\x5e" * 20)
"""USDC on the other chain."""
FAR_S = 4_000_000_000
_CHAIN = f"""
[chains.{THERE}]
name = "the other chain"
delta = true
rfq_contract = "{POOL}"
executor = "{POOL}"
delta_contract = "{POOL}"
spoke_pool = "{POOL}"
message_transmitter = "{TRANSMITTER}"
cctp_domain = 41
[chains.{THERE}.node]
urls = ["http://127.0.0.1:9"]
[[tokens]]
chain_id = {THERE}
address = "{TOKEN}"
symbol = "USDC"
decimals = 6
stable_usd = true
[relayers.{THERE}]
key = "relayer"
"""
ENVIRON = {
    f"CAMBIST__CHAINS__{CHAIN_ID}__SPOKE_POOL": f'"{POOL}"',
    f"CAMBIST__CHAINS__{CHAIN_ID}__TOKEN_MESSENGER": f'"{MESSENGER}"',
    f"CAMBIST__CHAINS__{CHAIN_ID}__CCTP_DOMAIN": "40",
}


def with_bridges(settings: Settings, port: int) -> Settings:
    """Settings with both bridges, whose APIs are on a port, between USDC of the two chains."""
    usdc = next(token.address for token in settings.tokens if token.symbol == "USDC")
    carried = (BridgedToken(chains={CHAIN_ID: usdc, THERE: TOKEN}),)
    url = f"http://127.0.0.1:{port}"
    across = BridgeSettings(
        kind="across", url=f"{url}/api", tokens=carried, margin_bps=0, every_s=0.1, stale_s=PATIENCE_S
    )
    cctp = BridgeSettings(
        kind="cctp", tier="fast", url=f"{url}/iris", tokens=carried, every_s=0.1, stale_s=PATIENCE_S
    )
    return replace(settings, bridges={"across": across, "cctp": cctp})


@pytest.fixture
async def bridged(tmp_path: Path) -> AsyncIterator[tuple[RunningVenue, BridgeApis]]:
    """A venue, and the APIs of bridges that carry its USDC to a chain of which no node answers."""
    async with bridge_apis() as apis:

        def changed(settings: Settings) -> Settings:
            return with_bridges(settings, apis.port)

        async with (
            served_devnet(tmp_path) as devnet,
            running_makers(tmp_path, devnet, GRIDS) as makers,
            serving(
                tmp_path,
                devnet,
                {name: port for name, (_, port) in makers.items()},
                changed=changed,
                more=_CHAIN,
                environ=ENVIRON,
            ) as (app, client, port),
        ):
            venue = RunningVenue(app, devnet, {}, client, port)
            place, pairs = app.chains[CHAIN_ID], sum(len(books) for books in GRIDS.values())
            await until(lambda: len([*place.index.books()]) == pairs and place.gas.is_fresh)
            await until(lambda: all(lane.fees.statistics().answers for lane in app.bridges))
            yield venue, apis


def asked(venue: RunningVenue, **more: Any) -> dict[str, Any]:
    """Query of a sale of one WETH for USDC on the other chain."""
    there = {"destChainId": THERE, "destToken": TOKEN}
    return venue.selling("WETH", 1, "USDC", **there) | more


async def test_an_order_across_chains_from_its_quote_to_its_record(
    bridged: tuple[RunningVenue, BridgeApis],
) -> None:
    venue, apis = bridged
    await venue.devnet.allow(USER, "WETH", "delta")
    delta = (await venue.get("/v2/quote", **asked(venue)))["delta"]
    routes = {one["bridge"]["protocol"]: one for one in (delta["route"], *delta["alternatives"])}
    assert routes.keys() == {"across", "cctp"}
    for name, route in routes.items():
        entering = int(route["origin"]["output"]["amount"])
        fee = BridgeFee(apis.ppm, apis.fixed) if name == "across" else BridgeFee(143, 0)
        arrives = entering - fee_of(fee, entering)
        assert int(route["destination"]["output"]["amount"]) == arrives
        body = {"route": route, "owner": to_checksum(USER.address), "deadline": FAR_S, "slippage": 100}
        status, built = await venue.post("/v2/delta/orders/build", body)
        assert status == 200, built
        signature = to_compact64(*USER.sign(parse_hex(built["orderHash"], "hash")))
        sent = {"chainId": CHAIN_ID, "order": built["toSign"]["value"], "signature": to_hex(signature)}
        status, record = await venue.post("/v2/delta/orders", sent | {"partner": "anon"})
        assert status == 200, record
        assert record["output"] == {
            "chainId": THERE,
            "token": TOKEN,
            "expectedAmount": str(arrives),
            "executedAmount": None,
            "minAmount": str(arrives * 9_900 // 10_000),
        }
        assert record["orderHash"] == built["orderHash"]
        assert await venue.get(f"/v2/delta/orders/hash/{built['orderHash']}") == record


async def test_a_stream_follows_books_of_the_origin(
    bridged: tuple[RunningVenue, BridgeApis], tmp_path: Path
) -> None:
    venue, _ = bridged
    query = asked(venue, mode="DELTA", includeBridges="across")
    async with await trio.open_tcp_stream("127.0.0.1", venue.port) as stream:
        events = EventStream(stream)
        await events.open(f"/v2/quote/stream?{urlencode(query)}".encode())
        first = amount_of(await events.event())
        worse = {"WETH/USDC": {"bids": [["2400", "20"]], "asks": [["2600", "20"]]}}
        for maker in GRIDS:
            write_grids(tmp_path / f"maker-{maker}", maker, GRIDS[maker] | worse)
        with trio.fail_after(PATIENCE_S):
            while (now := amount_of(await events.event())) > first - 90 * USD:
                pass
        assert now < 2_400 * USD


async def test_a_stream_without_a_lane_is_refused(bridged: tuple[RunningVenue, BridgeApis]) -> None:
    venue, _ = bridged
    status, told = await venue.answer("/v2/quote/stream", **asked(venue, excludeBridges="across,cctp"))
    assert (status, told["errorType"]) == (400, "NoRoute")
    assert told["details"].startswith("No route (crosschain): excludeBridges: ")


async def test_an_api_that_names_another_pool_is_not_quoted(
    bridged: tuple[RunningVenue, BridgeApis],
) -> None:
    """The last fee holds until it is stale, and no new fee counts: nobody would fill a deposit there."""
    venue, apis = bridged
    apis.pool, apis.fixed = OTHER_POOL, 1
    (lane,) = [lane for lane in venue.app.bridges if lane.name == "across" and lane.origin_chain == CHAIN_ID]
    await until(lambda: "spokePoolAddress" in lane.fees.fault)
    (route,) = [(await venue.get("/v2/quote", **asked(venue, includeBridges="across")))["delta"]["route"]]
    entering, arrives = (int(route[leg]["output"]["amount"]) for leg in ("origin", "destination"))
    assert entering - arrives >= 2 * USD
    held_ms = lane.fees.statistics().answered_ms + round(PATIENCE_S * 1_000)
    assert lane.fees.at(held_ms) is None


async def test_the_operator_sees_the_fees(bridged: tuple[RunningVenue, BridgeApis]) -> None:
    venue, apis = bridged
    apis.down.add("across")
    lanes = [lane for lane in venue.app.bridges if lane.name == "across"]
    await until(lambda: all(lane.fees.fault for lane in lanes))
    told = {(one["bridge"], *one["chains"]): one["fee"] for one in venue.app.status()["bridges"]}
    back = "across", THERE, CHAIN_ID  # CCTP lacks the contracts of the way back
    assert told.keys() == {("across", CHAIN_ID, THERE), ("cctp", CHAIN_ID, THERE), back}
    assert told["across", CHAIN_ID, THERE]["said"].startswith("answered 503")
    assert told["cctp", CHAIN_ID, THERE]["in_a_row"] == 0
    metrics = (await venue.ask("GET", "/metrics")).body.decode()
    labels = f'bridge="across",chain="{CHAIN_ID}",destination="{THERE}",token="USDC"'
    assert f"cambist_bridge_fee_known{{{labels}}} 1.0" in metrics  # as it is not stale yet
    for name in ("answers", "failures"):
        counted = re.search(rf"cambist_bridge_fee_{name}_total{{{re.escape(labels)}}} (\d+)", metrics)
        assert counted is not None
        assert int(counted[1]) > 0


def amount_of(event: tuple[str, dict[str, Any]]) -> int:
    """Amount that a quote of a stream promises at the destination."""
    kind, data = event
    assert kind == "quote", event
    return int(data["delta"]["route"]["destination"]["output"]["amount"])
