"""GET /prices over HTTP (spec 1.13), asked by httpx: the change that each parameter makes in the answer.

A row is a change of a plain request and its effect on the answer; a test lists the names of failing rows and
expects none. `test_trading_over_http.py` has the refusals.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from support.patience import PATIENCE_S
from support.venue.trading_requests import NATIVE, OPTIONS, PARTNER, TRADER, plain
from support.venue.venue_role import CHAIN_ID, running_venue

ONE = 10**18
GROSS = 2_500 * 10**6
Route = dict[str, Any]
Row = tuple[dict[str, Any], Callable[[Route, Route], bool]]


def makers(route: Route) -> set[str]:
    return {
        one["exchange"]
        for path in route["bestRoute"]
        for swap in path["swaps"]
        for one in swap["swapExchanges"]
    }


def way(route: Route) -> list[str]:
    (path,) = route["bestRoute"]
    return [swap["destToken"] for swap in path["swaps"]]


def same(was: Route, now: Route) -> bool:
    """But for the seal, which has its time in it."""
    return was | {"hmac": ""} == now | {"hmac": ""}


def unchanged(was: Route, now: Route) -> bool:
    return bool(was["destAmount"] == now["destAmount"])


def taxed(was: Route, now: Route) -> bool:
    """A per cent, on the way in or out."""
    return abs(int(now["destAmount"]) - int(was["destAmount"]) * 99 // 100) <= 1


def rows(token: Callable[[str], str]) -> list[Row]:
    """Names of parameters stand as in spec 1.13; None leaves one out."""
    wrapped, bitcoin, dai = token("WETH"), token("WBTC"), token("DAI")
    in_bitcoin = {"destToken": bitcoin, "destDecimals": 8}
    return [
        ({"srcToken": "WETH", "destToken": "USDC"}, same),
        ({"srcToken": wrapped.lower()}, same),
        ({"srcToken": NATIVE}, lambda was, now: now["srcToken"] == NATIVE and unchanged(was, now)),
        ({"srcToken": "WBTC", "srcDecimals": 8, "amount": 10**7}, lambda _, now: now["srcToken"] == bitcoin),
        ({"destToken": dai, "destDecimals": 18}, lambda _, now: now["destToken"] == dai),
        ({"amount": 2 * ONE}, lambda _, now: now["srcAmount"] == str(2 * ONE)),
        ({"amount": 2 * ONE}, lambda was, now: int(now["destAmount"]) == 2 * int(was["destAmount"])),
        ({"srcDecimals": None, "destDecimals": None}, same),
        ({"srcDecimals": None}, same),
        ({"destDecimals": None}, same),
        ({"side": None}, same),
        ({"side": "BUY", "amount": 10**9}, lambda _, now: now["destAmount"] == str(10**9)),
        ({"network": None, "chainId": CHAIN_ID}, same),
        ({"otherExchangePrices": "false"}, same),
        ({"otherExchangePrices": "true"}, lambda _, now: now["others"].keys() == {"alpha", "beta"}),
        ({}, lambda was, now: makers(was) == makers(now) == {"alpha"}),
        ({"includeDEXS": "beta,nobody"}, lambda _, now: makers(now) == {"beta"}),
        ({"excludeDEXS": "alpha,nobody"}, lambda _, now: makers(now) == {"beta"}),
        ({"excludeRFQ": "false"}, same),
        ({"includeContractMethods": "swapExactIn,swapExactOut"}, same),
        ({"excludeContractMethods": "swapExactOut"}, same),
        ({"userAddress": TRADER}, same),
        ({"receiver": PARTNER}, same),
        (in_bitcoin | {"route": "WETH-USDC-WBTC"}, lambda _, now: way(now) == [token("USDC"), bitcoin]),
        (in_bitcoin | {"route": f"{wrapped}-{token('USDC')}-{bitcoin}"}, lambda _, now: len(way(now)) == 2),
        ({"route": "WETH-USDC"}, unchanged),
        ({"partner": "anon"}, same),
        ({"partner": "acme"}, lambda was, now: (was["partnerFee"], now["partnerFee"]) == (0.01, 0.1)),
        ({"partner": "acme"}, lambda _, now: int(now["destAmount"]) == GROSS - GROSS // 1_000),
        ({"maxImpact": "15"}, lambda _, now: not now["maxImpactReached"]),
        ({"maxImpact": "0.0001"}, lambda _, now: now["maxImpactReached"]),
        *(
            ({f"{end}Token{way}Fee": 100}, taxed)
            for end in ("src", "dest")
            for way in ("Transfer", "DexTransfer")
        ),
        ({"version": "5"}, same),
        ({"version": "6.2"}, lambda was, now: (was["version"], now["version"]) == ("5", "6.2")),
        ({"excludeContractMethodsWithoutFeeModel": "true"}, same),
        ({"ignoreBadUsdPrice": "true"}, same),
    ]  # fmt: skip


async def test_each_parameter_changes_what_it_says(tmp_path: Path) -> None:
    faults = []
    async with running_venue(tmp_path, **OPTIONS) as venue:
        wanted = plain(venue, "/prices")

        async def asked(client: httpx.AsyncClient, changed: dict[str, Any]) -> Any:
            query = {name: value for name, value in (wanted | changed).items() if value is not None}
            answer = await client.get("/prices", params=query)
            told = answer.json()
            assert told.keys() == {"priceRoute"}, (changed, told)
            return told["priceRoute"]

        async with httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S) as client:
            was = await asked(client, {})
            assert int(was["destAmount"]) == GROSS - GROSS // 10_000
            for changed, holds in rows(venue.devnet.text):
                now = await asked(client, changed)
                faults += [] if holds(was, now) else [f"{changed}: {now}"]
    assert faults == []
