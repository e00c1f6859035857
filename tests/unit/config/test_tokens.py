"""Listed tokens: the bounds of their fields."""

from typing import Any

import pytest

from cambist.config.tokens import TokenSettings


def token(**changes: Any) -> TokenSettings:
    plain: dict[str, Any] = {"chain_id": 1, "address": "0x" + "11" * 20, "symbol": "USDC", "decimals": 6}
    return TokenSettings(**plain | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"decimals": 0},
        {"decimals": 36},
        {"symbol": "0"},
        {"symbol": "USD₮0"},
        {"symbol": "x0x"},
        {"permit_only": True},
    ],
    ids=str,
)
def test_taken(changes: dict[str, Any]) -> None:
    made = token(**changes)
    assert {name: getattr(made, name) for name in changes} == changes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decimals": -1}, "decimals is 0 to 36, got -1"),
        ({"decimals": 37}, "decimals is 0 to 36, got 37"),
        ({"symbol": ""}, "symbol is a name that does not start with 0x"),
        ({"symbol": "0x" + "11" * 20}, "symbol is a name that does not start with 0x"),
    ],
    ids=str,
)
def test_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        token(**changes)


def test_a_token_is_plain_unless_told() -> None:
    plain = token()
    assert (plain.stable_usd, plain.permit_only, plain.name) == (False, False, "")
