"""Readings for charts over real sockets: prices, rounds, the operator's hour, a maker's last quotes."""

from pathlib import Path

import msgspec
import pytest

from cambist.config.errors import VenueError
from cambist.config.secret import Secret
from cambist.engine.roles.venue import app as venue_app
from cambist.engine.trader.client.client import VenueClient
from support.makers.maker_role import CHAIN_ID as MAKER_CHAIN_ID
from support.makers.maker_role import TAKER, USDC, USER, WETH, firm_request, running_maker, settings_of
from support.patience import until
from support.venue.venue_role import API_KEY, CHAIN_ID, running_venue

ADMIN = '\n[maker.admin]\nport = 0\ndomains = ["operator"]\n'


async def test_a_client_charts_a_pair(tmp_path: Path) -> None:
    async with running_venue(tmp_path) as venue, VenueClient.open(venue.url) as client:
        weth, usdc = venue.devnet.text("WETH"), venue.devnet.text("USDC")
        assert (await client.price_history(CHAIN_ID, weth, usdc, 3_600)).points == ()
        await venue.app._history.sample()
        told = await client.price_history(CHAIN_ID, weth, usdc, 3_600)
        assert (told.chain_id, told.base, told.quote, told.step) == (CHAIN_ID, weth, usdc, 15)
        ((at_s, *prices),) = told.points
        assert at_s % 15 == 0
        assert 0 <= venue.app._wall_ms() / 1_000 - at_s < 60
        assert {float(price) for price in prices} == {float(prices[0])}
        assert 2_499 < float(prices[0]) < 2_502
        crossed = await client.price_history(CHAIN_ID, "WBTC", "ETH", 900, step_s=900)
        assert 23 < float(crossed.points[0][4]) < 25
        assert crossed.points[0][0] % 900 == 0
        with pytest.raises(VenueError, match="step: expected one of 15, 60, 300, 900, 3600, got 30"):
            await client.price_history(CHAIN_ID, weth, usdc, 3_600, step_s=30)
        (chain,) = await client.chains()
        assert (chain.chain_id, chain.explorer_url) == (CHAIN_ID, None)
        assert await client.auctions(CHAIN_ID, limit=5) == ()


async def test_the_operators_hour_counts_what_the_venue_has_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(venue_app, "SERIES_STEP_S", 0.05)
    async with (
        running_venue(tmp_path) as venue,
        VenueClient.open(venue.url, Secret(API_KEY, "env:KEY")) as client,
    ):
        await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC"))
        status, _ = await venue.answer("/v2/quote", **venue.selling("WETH", 10**6, "USDC"))
        assert status == 400
        assert (await venue.ask("GET", "/nothing/here")).status == 404

        async def counted(name: str) -> int:
            series = (await client.operator_status())["series"]
            return sum(value for value in series[name] if value is not None)

        series = venue.app._series
        await until(lambda: sum(filter(None, series.shown()["refused"])) == 2)
        assert (await counted("quotes"), await counted("refused"), await counted("errors")) == (2, 2, 0)
        assert await counted("requests") >= 3
        await until(lambda: any(lag is not None for lag in series.shown()["loopLagMs"]))
        told = (await client.operator_status())["series"]
        assert told["stepS"] == 10
        assert len({len(column) for name, column in told.items() if name != "stepS"}) == 1
        (at,) = {at for at, number in enumerate(told["quotes"]) if number} or {0}
        assert 0 < told["quoteP50Ms"][at] <= told["quoteP99Ms"][at]
        assert set(told["orderP50Ms"]) == {None}
        assert any(lag is not None for lag in told["loopLagMs"])


async def test_posted_orders_are_in_the_operators_hour(tmp_path: Path) -> None:
    from support.api.bodies import SUBMIT, a_submission, an_otc_order

    async with running_venue(tmp_path) as venue:
        before = venue.app._reading()
        with venue.with_key():
            status, told = await venue.post(SUBMIT, await a_submission(venue))
            assert status == 200, told
            status, told = await venue.post(f"/ft/p2p/{CHAIN_ID}", an_otc_order(venue))
            assert status == 200, told
        after = venue.app._reading()
        assert after.orders - before.orders == 2
        assert sum(after.order_counts) - sum(before.order_counts) == 2


async def test_a_makers_operator_sees_its_last_quotes_refusals_and_free_funds(tmp_path: Path) -> None:
    async with running_maker(tmp_path, settings_of(ADMIN)) as (_, venue):
        assert (await venue.ask("POST", "/firm", firm_request())).status == 200
        refused = await venue.ask("POST", "/firm", firm_request(takerAmount=str(10**30)))
        assert refused.status == 400
        response = await venue.administer("GET", "/status", signing=venue.operator)
        told = msgspec.json.decode(response.body)
    (latest, first) = told["quotes"]
    assert (latest["signed"], latest["reason"]) == (False, "depth")
    assert first["at"] <= latest["at"]
    assert {name: first[name] for name in ("chainId", "pair", "user", "srcToken", "destToken", "signed")} == {
        "chainId": MAKER_CHAIN_ID,
        "pair": "WETH/USDC",
        "user": USER,
        "srcToken": WETH,
        "destToken": USDC,
        "signed": True,
    }
    assert (first["srcAmount"], first["destAmount"]) == (str(10**18), "2500000000")
    assert 0 < first["tookUs"] < 10**6
    chain = told["chains"][str(MAKER_CHAIN_ID)]
    assert chain["refusals"] == {"depth": 1}
    funds = chain["funds"][USDC]
    assert (funds["funds"], funds["reserved"]) == (str(250_000 * 10**6), "2500000000")
    assert int(funds["free"]) == int(funds["funds"]) - int(funds["reserved"])
    assert TAKER not in str(told["quotes"])
