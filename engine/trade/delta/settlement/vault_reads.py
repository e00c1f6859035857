"""Reads the vaults of orders at one block: previews first, then trial settlements of the previewed amounts.

Source: engine/trade/delta/orders/vault.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from .....codecs.eip712_orders.delta import ProductiveOrder
from .....config.limits import VENUE_FUNDS_ORDERS_MAX
from ....chain.port import Chain, EthCall
from ..orders.live_orders import LiveOrder
from ..orders.terms import next_part
from ..orders.vault import VaultWorth, is_refused, preview_call, previewed, trial_call

_Preview = tuple[LiveOrder, ProductiveOrder, int]
"""A live order, its struct, and its unfilled amount."""


class VaultReads:
    """Reads of the vaults from which the orders of one chain sell.

    Args:
        delta: the Delta contract, 20 bytes.
        relayer: account that sends settlements, 20 bytes.
        gas_max: largest number of units of gas that a settlement may use.
    """

    def __init__(self, chain: Chain, *, delta: bytes, relayer: bytes, gas_max: int) -> None:
        self._chain = chain
        self._delta = delta
        self._relayer = relayer
        self._gas_max = gas_max

    async def worths(self, orders: Iterable[LiveOrder], block_hash: bytes) -> dict[bytes, VaultWorth]:
        """Read what the vaults give for the unfilled amounts of orders, by order hash.

        Orders without a vault, and fully settled orders, are missing in the result.

        Args:
            block_hash: block of all reads, 32 bytes.

        Raises:
            ChainError: no node answers.
        """
        previews = [preview for live in orders if (preview := _preview_of(live)) is not None]
        found: dict[bytes, VaultWorth] = {}
        for at in range(0, len(previews), VENUE_FUNDS_ORDERS_MAX):
            found |= await self._worths(previews[at : at + VENUE_FUNDS_ORDERS_MAX], block_hash)
        return found

    async def _worths(self, previews: Sequence[_Preview], block_hash: bytes) -> dict[bytes, VaultWorth]:
        answers = await self._answers(
            [preview_call(order, amount) for _, order, amount in previews], block_hash
        )
        found = {
            live.order_hash: previewed(order, amount, answer)
            for (live, order, amount), answer in zip(previews, answers, strict=True)
        }
        answered = [preview for preview in previews if found[preview[0].order_hash].is_told]
        trials = [self._trial(live, order, found[live.order_hash]) for live, order, _ in answered]
        for (live, _, _), answer in zip(answered, await self._answers(trials, block_hash), strict=True):
            if is_refused(answer):
                found[live.order_hash] = replace(found[live.order_hash], is_given=False)
        return found

    def _trial(self, live: LiveOrder, order: ProductiveOrder, worth: VaultWorth) -> EthCall:
        signature = live.document.signature
        return trial_call(order, signature, worth, self._delta, self._relayer, self._gas_max)

    async def _answers(self, calls: Sequence[EthCall], block_hash: bytes) -> list[bytes | Exception]:
        return await self._chain.call_many(calls, block_hash) if calls else []


def _preview_of(live: LiveOrder) -> _Preview | None:
    if not isinstance(live.order, ProductiveOrder):
        return None
    part = next_part(live.order, live.filled)
    return None if part is None else (live, live.order, part.amount)
