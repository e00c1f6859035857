"""Balances of accounts, read from the chain, and a table of their changes."""

from collections.abc import Collection, Mapping

from rich.table import Table

from ....codecs.amounts import format_units
from ....codecs.contracts.calldata import balance_of
from ....codecs.trading_token import NATIVE_TOKEN
from ...chain.port import Chain, EthCall

_NATIVE_DECIMALS = 18

Balances = dict[tuple[str, str], int]
"""(name, symbol) -> raw units."""


async def balances(
    chain: Chain, tokens: Mapping[str, bytes], people: Mapping[str, bytes], at: int | None = None
) -> Balances:
    """Read every account's balance of every token.

    Args:
        tokens: symbol -> address; the native placeholder stands for native tokens.
        people: name -> address.
        at: number of the block; None for the latest.
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
    """The changes of balances, in raw units; unchanged balances are left out."""
    return {key: after[key] - before[key] for key in after if after[key] != before[key]}


def moves_table(
    before: Balances,
    after: Balances,
    decimals: Mapping[str, int],
    also: Collection[tuple[str, str]] = (),
) -> Table:
    """A table of changed balances: before, after, change.

    Args:
        decimals: by symbol; 18 for symbols not in it.
        also: balances that are shown even if unchanged.
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
    """An amount in whole tokens, signed."""
    return ("-" if amount < 0 else "") + format_units(abs(amount), decimals)
