"""Facts about a maker that `config check --online` reports, read over real sockets."""

from pathlib import Path

import pytest

from cambist.crypto.hmac_auth import RequestSigner
from cambist.engine.cli.offline import role_online
from cambist.engine.cli.offline.role_online import RoleFact, maker_answers
from cambist.feeds import slices
from support.makers.maker_feeds import a_feed
from support.makers.maker_role import (
    CHAIN_ID,
    GRID,
    PREFIX,
    SECRET,
    USDC,
    running_maker,
    settings_of,
    write_prices,
)

NAMES = [f"T{at}" for at in range(20)]
ADDRESSES = {name: f"0x{at:040x}" for at, name in enumerate(NAMES, 1)}
MORE = "".join(
    f"""
[maker.chains.{CHAIN_ID}.tokens.{name}]
address = "{address}"
decimals = 18
balance = "100"
[maker.chains.{CHAIN_ID}.pairs."{name}/USDC"]
base = "{name}"
quote = "USDC"
liquidity_usd = 1000
"""
    for name, address in ADDRESSES.items()
)
LISTED = {bytes.fromhex(USDC[2:]): 6} | {bytes.fromhex(address[2:]): 18 for address in ADDRESSES.values()}


async def test_pairs_are_counted_when_a_makers_answers_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)  # other tasks run after each entry,
    monkeypatch.setattr(role_online, "_LOOK_S", 0.0)  # and the check looks each time
    write_prices(tmp_path, **{f"{name}/USDC": GRID for name in NAMES})
    async with running_maker(tmp_path, settings_of(MORE)) as (_, venue):
        signer = RequestSigner("venue", "key-1", SECRET.encode())
        feed = a_feed(f"http://127.0.0.1:{venue.port}{PREFIX}", signer=signer, decimals=LISTED)
        facts = await maker_answers({"alpha": feed}, "venue.makers", CHAIN_ID)
    assert facts == [RoleFact(f"venue.makers.alpha.chains.{CHAIN_ID}", "quotes 20 pairs")]
