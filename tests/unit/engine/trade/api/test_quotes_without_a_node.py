"""A quote never waits for a node: none of them asks one, and all are answered while the node is silent."""

from typing import Any

import pytest
import trio

from cambist.crypto.addresses import to_checksum
from support.patience import PATIENCE_S
from support.venue.quiet_venue import A_SALE, CHAIN_ID, NATIVE, USDC, WETH, QuietChain, QuietVenue

STRANGER = to_checksum(b"\xc7" * 20)
A_RATE: dict[str, Any] = {
    "srcToken": WETH, "destToken": USDC, "srcDecimals": 18, "destDecimals": 6, "amount": str(10**18),
    "side": "SELL", "network": CHAIN_ID, "version": "6.2",
}  # fmt: skip


def calls_of_a_silent_node(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the calls to the node from now on, none of which it answers."""
    names: list[str] = []

    def silent(name: str) -> Any:
        async def ask(*_: Any, **__: Any) -> None:
            names.append(name)
            await trio.sleep_forever()

        return ask

    for name in ("block", "recent_block", "fees", "balance", "code", "call_many"):
        monkeypatch.setattr(QuietChain, name, silent(name))
    return names


@pytest.mark.parametrize("user", [{}, {"userAddress": STRANGER}], ids=["for anybody", "for a user"])
@pytest.mark.parametrize(
    ("path", "query"),
    [
        *(("/v2/quote", A_SALE | {"mode": mode}) for mode in ("DELTA", "MARKET", "ALL")),
        ("/v2/quote", A_SALE | {"srcToken": NATIVE, "mode": "ALL"}),
        ("/v2/delta/prices", A_SALE),
        ("/prices", A_RATE),
    ],
    ids=["Delta", "Market", "both", "native tokens", "Delta's prices", "Market's prices"],
)
async def test_a_quote_asks_no_node(
    venue: QuietVenue,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    query: dict[str, Any],
    user: dict[str, str],
) -> None:
    calls = calls_of_a_silent_node(monkeypatch)
    with trio.fail_after(PATIENCE_S):
        await venue.get(path, **query, **user)
    assert calls == []
