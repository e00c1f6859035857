"""Price sources through a running market maker, over real sockets: the maker signs its shown prices."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from cambist.codecs.messages.maker_messages import FirmOrder, decode_firm_response
from cambist.config.settings import Settings
from cambist.engine.roles.maker.prices.replay import encode_record
from support.makers.maker_role import (
    CHAIN_ID,
    GRID,
    TAKER,
    USDC,
    WETH,
    Venue,
    firm_request,
    running_maker,
    settings_of,
    write_prices,
)
from support.patience import PATIENCE, PATIENCE_S, until

ONE = 10**18
PAIR = "WETH/USDC"
OTHER_CHAIN = 31_338
BUYS_ONE: dict[str, Any] = {
    "makerAsset": WETH,
    "takerAsset": USDC,
    "takerAmount": None,
    "makerAmount": str(ONE),
}
MOODY = """
import trio
class Prices:
    made = 0
    def __init__(self, options, context):
        Prices.made += 1
        self.is_first = Prices.made == 2  # the first is made to try the options
    async def updates(self):
        bid = "2400" if self.is_first else "2300"
        yield {"WETH/USDC": {"bids": [(bid, "1")]}}
        await trio.sleep(0.05)
        if self.is_first:
            raise RuntimeError("the model is gone")
        await trio.sleep_forever()
"""


def priced_by(source: str, **options: Any) -> Settings:
    return settings_of(price_source=source, price_options=options)


async def shown(venue: Venue) -> Any:
    return (await venue.get("/prices"))["prices"][PAIR]


async def quoted(venue: Venue, **request: Any) -> FirmOrder:
    response = await venue.ask("POST", "/firm", firm_request(**request))
    assert response.status == 200, response.body
    order = decode_firm_response(response.body).order
    assert isinstance(order, FirmOrder)
    return order


async def test_a_walk_is_quoted_as_it_is_shown_and_leans_up_when_base_is_sold(tmp_path: Path) -> None:
    pair = {"start": "2500", "decimals": 2, "volatility_bps": 0, "skew_bps": 100, "skew_scale": "1"}
    settings = priced_by("random_walk", interval_ms=20, pairs={PAIR: pair})
    async with running_maker(tmp_path, settings) as (maker, venue):
        board, feed = maker.chains[CHAIN_ID].board, maker.feeds[CHAIN_ID]
        before, grid = await shown(venue), board.pairs[PAIR].grid
        order = await quoted(venue, **BUYS_ONE)
        assert int(order.taker_amount) == Decimal(before["asks"][0][0]) * 10**6
        await until(lambda: board.pairs[PAIR].grid != grid)
        after = await shown(venue)
        for side in ("bids", "asks"):
            assert Decimal(after[side][0][0]) > Decimal(before[side][0][0])
        await quoted(venue, takerAmount=str(ONE))
        updates = feed.updates
        await until(lambda: feed.updates > updates + 1)
        assert await shown(venue) == before


async def test_a_recording_plays(tmp_path: Path) -> None:
    bids = ("2400", "2300", "2200")
    lines = [
        encode_record(1_000 + 50 * at, {PAIR: {"bids": [(bid, "1")]}, "A/B": {"bids": [("1", "1")]}})
        for at, bid in enumerate(bids)
    ]
    (tmp_path / "walk.ndjson").write_bytes(b"not a record\n".join(lines))
    async with running_maker(tmp_path, priced_by("replay", path="walk.ndjson")) as (maker, venue):
        feed = maker.feeds[CHAIN_ID]
        await until(lambda: feed.refused == len(bids))  # A/B is no pair of this chain
        assert await shown(venue) == {"bids": [["2200", "1"]], "asks": []}
        assert (await quoted(venue)).maker_amount == "2200000000"
        assert (feed.updates, feed.restarts) == (len(bids), 0)


async def test_the_last_prices_of_a_recording_leave_when_they_are_old(tmp_path: Path) -> None:
    (tmp_path / "one.ndjson").write_bytes(encode_record(1_000, {PAIR: {"bids": [("2400", "1")]}}))
    settings = settings_of(price_source="replay", price_options={"path": "one.ndjson"}, price_life_ms=1_000)
    async with running_maker(tmp_path, settings) as (maker, venue):
        board, feed = maker.chains[CHAIN_ID].board, maker.feeds[CHAIN_ID]
        await until(lambda: board.pairs[PAIR].fragment == b"{}")
        assert await shown(venue) == {}
        response = await venue.ask("POST", "/firm", firm_request())
        assert response.status == 400
        assert msgspec.json.decode(response.body)["error"].startswith("Price is stale")
        assert (feed.updates, feed.restarts) == (1, 0)


async def test_a_source_of_ones_own_that_fails_is_started_again_while_the_maker_answers(
    tmp_path: Path,
) -> None:
    (tmp_path / "moody_prices.py").write_text(MOODY)
    async with running_maker(tmp_path, priced_by("moody_prices:Prices")) as (maker, venue):
        feed = maker.feeds[CHAIN_ID]
        first = (await quoted(venue)).maker_amount
        assert first == "2400000000" or (first == "2300000000" and feed.updates == 2)
        await until(lambda: feed.restarts == 1)
        still = (await quoted(venue)).maker_amount
        assert still == "2400000000" or feed.updates == 2
        await until(lambda: feed.updates == 2)
        assert (await quoted(venue)).maker_amount == "2300000000"


async def test_a_file_that_is_removed_takes_its_prices_down(tmp_path: Path) -> None:
    async with running_maker(tmp_path, settings_of(price_life_ms=round(2_000 * PATIENCE))) as (maker, venue):
        board = maker.chains[CHAIN_ID].board
        (tmp_path / "prices.json").unlink()
        await until(lambda: board.pairs[PAIR].fragment == b"{}")
        response = await venue.ask("POST", "/firm", firm_request())
        assert msgspec.json.decode(response.body)["error"].startswith("Price is stale")
        write_prices(tmp_path)
        await until(lambda: board.pairs[PAIR].fragment != b"{}")
        assert (await quoted(venue)).maker_amount == "2500000000"


async def test_two_chains_of_one_process_have_their_own_prices_takers_and_switch(tmp_path: Path) -> None:
    settings = settings_of()
    assert settings.maker
    chain, taker = settings.maker.chains[CHAIN_ID], "0x" + "cd" * 20
    other = msgspec.structs.replace(chain, price_options={"path": "other.json"}, takers=(taker,))
    key = settings.keys["maker"]
    policy = msgspec.structs.replace(
        key.policy, contracts=tuple(f"{id_}:{_contract(settings)}" for id_ in (CHAIN_ID, OTHER_CHAIN))
    )
    settings = msgspec.structs.replace(
        settings,
        chains={CHAIN_ID: settings.chains[CHAIN_ID], OTHER_CHAIN: settings.chains[CHAIN_ID]},
        keys={"maker": msgspec.structs.replace(key, policy=policy)},
        maker=msgspec.structs.replace(settings.maker, chains={CHAIN_ID: chain, OTHER_CHAIN: other}),
    )
    write_prices(tmp_path, **{PAIR: {"bids": [["2400", "1"]]}})
    (tmp_path / "prices.json").rename(tmp_path / "other.json")
    write_prices(tmp_path, **{PAIR: GRID})
    async with running_maker(tmp_path, settings) as (maker, venue):
        await until(lambda: maker.feeds[OTHER_CHAIN].updates > 0)

        async def ask(chain_id: int, asking: str) -> tuple[int, Any]:
            target, body = f"/{chain_id}/firm", firm_request(takerAddress=asking)
            response = await venue.client.request(
                b"POST", target.encode(), venue.headers("POST", target, body), body, deadline_s=PATIENCE_S
            )
            return response.status, msgspec.json.decode(response.body).get("order", {}).get("makerAmount")

        assert await ask(CHAIN_ID, TAKER) == (200, "2500000000")
        assert await ask(OTHER_CHAIN, taker) == (200, "2400000000")
        assert await ask(CHAIN_ID, taker) == await ask(OTHER_CHAIN, TAKER) == (400, None)
        maker.switch.stop(f"chain {OTHER_CHAIN}")
        assert await ask(OTHER_CHAIN, taker) == (503, None)
        assert await ask(CHAIN_ID, TAKER) == (200, "2500000000")


def _contract(settings: Settings) -> str:
    return settings.chains[CHAIN_ID].rfq_contract
