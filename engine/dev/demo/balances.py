"""Balances of the demo's accounts: read from the chain, compared, and printed as a table."""

from collections.abc import Collection, Mapping

from rich.table import Table

from ....codecs.amounts import format_units
from ....codecs.contracts.calldata import balance_of
from ....codecs.trading_token import NATIVE_TOKEN
from ...chain.port import Chain, EthCall

_NATIVE_DECIMALS = 18

Balances = dict[tuple[str, str], int]
"""Balances in raw units: (account name, token symbol) -> amount."""


async def balances(
    chain: Chain, tokens: Mapping[str, bytes], people: Mapping[str, bytes], at: int | None = None
) -> Balances:
    """Read every account's balance of every token from the chain, in raw units.

    Args:
        tokens: symbol -> address of 20 bytes; NATIVE_TOKEN as address for the native token.
        people: account name -> address of 20 bytes.
        at: block number at which to read; None for the latest.
    """
    found: Balances = {}
    for who, address in people.items():
        for symbol, token in tokens.items():
            if token == NATIVE_TOKEN:
                found[who, symbol] = await chain.balance(address, at)
            else:
                answer = await chain.call(EthCall(token, balance_of(address)), at)
                found[who, symbol] = int.from_bytes(answer, "big")
    return found


def moved(before: Balances, after: Balances) -> Balances:
    """Compute the change of each balance, in raw units; the result omits unchanged balances."""
    return {key: after[key] - before[key] for key in after if after[key] != before[key]}


def moves_table(
    before: Balances,
    after: Balances,
    decimals: Mapping[str, int],
    also: Collection[tuple[str, str]] = (),
) -> Table:
    """Build a table of changed balances in whole tokens: before, after, change.

    Args:
        decimals: token symbol -> decimals; other symbols have 18.
        also: (account name, token symbol) of the balances to show even if unchanged.
    """
    table = Table("", "", box=None)
    for header in ("before", "after", "moved"):
        table.add_column(header, overflow="fold")
    for key in after:
        if after[key] == before[key] and key not in also:
            continue
        digits = decimals.get(key[1], _NATIVE_DECIMALS)
        amounts = (before[key], after[key], after[key] - before[key])
        table.add_row(*key, *(_shown(amount, digits) for amount in amounts))
    return table


def _shown(amount: int, decimals: int) -> str:
    """Format an amount of raw units as whole tokens, with a minus sign if negative."""
    return ("-" if amount < 0 else "") + format_units(abs(amount), decimals)
