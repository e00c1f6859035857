"""Shares of makers' stock: how much of a maker's book the callers of unfilled swaps may reserve. Pure.

A firm quote reserves the maker's stock until it expires, filled or not. Each request for one is therefore
charged before it is sent: to the caller's network, to the user if the user has signed, and to all callers
that have shown no more, each with a bound of its own (`budgets.STOCK`).

    claim     before the request, in parts per million of the maker's stock; refused without room
    keep      the maker has signed, or may have: the claim lasts until the quote expires
    drop      the maker has not signed, or the quote is filled: the claim is undone

A caller without room in the share of what it has shown takes the room of those who have shown less. Half of
the share of callers who have shown nothing, or an allowance alone, is kept for networks with little: one
network may reserve much while nobody else does, and a few networks that do leave the others theirs.

Choice: A swap that nobody fills weighs on its caller's network for VENUE_STOCK_REFILL_S, so that a few
    networks cannot reserve makers' stock again and again.
Choice: Callers with an API key, and the venue itself, have no share: the key's places bound them.
"""

import heapq
from collections.abc import Hashable
from itertools import count

from msgspec import Struct

from ....host.admission.budgets import PPM, STOCK, STOCK_RESERVED, Stake
from ....host.admission.ledger import EVERYBODY, Charge, Hold, Lack, Ledger

_Stock = tuple[int, str, bytes]
"""Chain id, maker's name, and the token that the maker gives: 20 bytes."""


class Claimant(Struct, frozen=True):
    """Who causes a swap's firm quotes, and what it has shown.

    Attributes:
        network: network of the caller's address.
        user: the user that the swap names, 20 bytes.
        stakes: what the caller has shown, the strongest first.
    """

    network: str
    user: bytes
    stakes: tuple[Stake, ...]


class QuoteCauser(Struct, frozen=True):
    """Account to which the outcome of a request for a firm quote belongs.

    Attributes:
        account: the caller's API key or network; the owner, if the venue itself fills an order.
        is_shown: whether the caller has a key, or the user's signature or earlier fill.
    """

    account: Hashable
    is_shown: bool


def causer_of(claimant: Claimant | None, account: Hashable, user: bytes) -> QuoteCauser:
    """Find the account to which the outcomes of a swap's requests belong: never a user that is only named.

    A key's holder answers for the users that its requests name.

    Args:
        claimant: the caller without a key; None for one with a key, and for the venue itself.
        account: name of the API key, or the owner for whom the venue itself fills; empty for neither.
        user: the user for whom the quotes are requested, 20 bytes.
    """
    if claimant is None:
        return QuoteCauser(account or user, is_shown=True)
    return QuoteCauser(claimant.network, Stake.CONSENT in claimant.stakes)


class StockClaim(Struct, eq=False):
    """A part of a maker's stock that a request for a firm quote reserves, or may reserve.

    Attributes:
        maker, token: the maker, and the token that it gives, 20 bytes.
        hold: charges of the claim.
    """

    maker: str
    token: bytes
    hold: Hold


class StockShares:
    """Claims on the stock of one chain's makers.

    Args:
        ledger: ledger of the budgets, of all chains.
    """

    def __init__(self, ledger: Ledger, chain_id: int) -> None:
        self._ledger = ledger
        self._chain_id = chain_id
        self._ends: list[tuple[int, int, StockClaim]] = []  # heap of (expiry, number, claim)
        self._numbers = count()  # claims that end together have no order of their own
        self._latest_s: dict[_Stock, int] = {}

    def claim(
        self, claimant: Claimant | None, maker: str, token: bytes, part_ppm: int, now_ms: int
    ) -> StockClaim | Lack:
        """Charge a request for a firm quote to whoever causes it, before the request is sent.

        Args:
            claimant: None for a caller without a share: one with an API key, or the venue.
            part_ppm: requested part of the maker's stock, parts per million.

        Returns:
            The claim; or the bound that leaves no room, of the weakest stake.
        """
        self._forget(now_ms // 1_000)
        stock, amount = (self._chain_id, maker, token), max(part_ppm, 1)
        reserved = Charge(STOCK_RESERVED, stock, amount)
        lack = Lack(reserved, 0)
        for charges in [()] if claimant is None else _charges(claimant, stock, amount):
            found = self._ledger.take((*charges, reserved), now_ms)
            if isinstance(found, Hold):
                return StockClaim(maker, token, found)
            lack = found
        return lack

    def keep(self, claim: StockClaim, expiry_s: int) -> None:
        """Let a claim last until the expiry of its quote, Unix seconds."""
        heapq.heappush(self._ends, (expiry_s, next(self._numbers), claim))
        stock = self._chain_id, claim.maker, claim.token
        self._latest_s[stock] = max(self._latest_s.get(stock, expiry_s), expiry_s)

    def drop(self, claim: StockClaim) -> None:
        """Undo a claim: the maker has not signed, or the quote was filled."""
        self._ledger.undo(claim.hold)

    def reserved(self, maker: str, token: bytes, now_ms: int) -> tuple[int, int]:
        """Part of a maker's stock that unfilled swaps reserve, and when the last of their quotes expires.

        Returns:
            Parts per million, and Unix seconds; (0, 0) if nothing is reserved.
        """
        self._forget(now_ms // 1_000)
        stock = self._chain_id, maker, token
        part = self._ledger.held(STOCK_RESERVED, stock)
        return (part, self._latest_s.get(stock, 0)) if part else (0, 0)

    def greatest(self, now_ms: int) -> dict[str, dict[str, int]]:
        """Reserved part of each maker's stock, parts per million: the greatest over the tokens that it gives.

        Returns:
            Name of the maker -> what callers have shown (`Stake`), or `all` for all callers together -> part.
        """
        self._forget(now_ms // 1_000)
        found: dict[str, dict[str, int]] = {}
        for stock in self._latest_s:
            parts = {"all": self._ledger.held(STOCK_RESERVED, stock)}
            for stake, ways in STOCK.items():
                parts[stake.value] = self._ledger.held(ways[0].together[0], (EVERYBODY, *stock))
            known = found.setdefault(stock[1], {})
            for name, part in parts.items():
                known[name] = max(known.get(name, 0), part)
        return found

    def next_end_s(self, now_ms: int) -> int:
        """Seconds until the next quote expires that reserves stock, at least 1."""
        return max(self._ends[0][0] - now_ms // 1_000 + 1, 1) if self._ends else 1

    def _forget(self, now_s: int) -> None:
        """End the claims whose quotes have expired."""
        while self._ends and self._ends[0][0] < now_s:
            _, _, claim = heapq.heappop(self._ends)
            self._ledger.free(claim.hold)
            stock = self._chain_id, claim.maker, claim.token
            if self._latest_s.get(stock, now_s) < now_s:
                del self._latest_s[stock]


def _charges(claimant: Claimant, stock: _Stock, amount: int) -> list[tuple[Charge, ...]]:
    """Charges of each way that a claimant has to reserve stock, to be tried in turn."""
    found = []
    for way in (way for stake in claimant.stakes for way in STOCK[stake]):
        charges = [Charge(way.network, (claimant.network, *stock), amount)]
        if way.user is not None:
            charges.append(Charge(way.user, (claimant.user, *stock), amount))
        charges += [Charge(budget, (EVERYBODY, *stock), amount) for budget in way.together]
        found.append(tuple(charges))
    return found


def shortage(lack: Lack) -> str:
    """Describe to a caller which share of makers' stock leaves no room for its swap, and what gives room."""
    percent = 100 * lack.charge.bound / PPM
    name = lack.charge.budget.name
    return (
        f"unfilled swaps may reserve at most {percent:g} % ({name}); fill them, have the user sign the swap "
        "(`consent`), or send an API key"
    )


def part_of(amount: int, whole: int) -> int:
    """Part that `amount` is of `whole`, parts per million, rounded up; PPM if the whole is unknown (0)."""
    return -(-amount * PPM // whole) if whole else PPM
