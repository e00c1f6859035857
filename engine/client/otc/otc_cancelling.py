"""OTC orders that their maker cancels on chain: one transaction for all of them.

    those of another maker     nothing is sent
    those that are closed, or whose time is over   left out: nobody can fill them any more
    the others                 cancelOrder or cancelOrders, simulated, sent; OrderCancelled of each
    all that expire until a time, and those that never do   cancelOrdersUntil, whatever their hashes

Source: spec 2.11.7 to 2.11.9; interop.md 1; contracts/Rfq.sol.
Choice: An order known by its hash alone is cancelled unseen: the contract closes it for the key's account
    only.
"""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from ....codecs.contracts import calldata
from ....codecs.eip712_orders.rfq import RfqOrder
from ....config.errors import ChainError
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...chain.port import Chain, EthCall, Receipt
from ..trader import Trader
from ..trusted_contract import SigningContract
from .otc_reading import kept_of, latest
from .otc_safety import CLOSED, cancelled_in


class Ending(Enum):
    """What is known of an order after a cancellation."""

    CANCELLED = "cancelled"
    CLOSED = "closed before"
    EXPIRED = "expired before"


class Cancelled(Struct, frozen=True):
    """What became of it.

    Attributes:
        endings: of each order, by its hash, in the order in which they were named.
        receipt: None where nothing had to be sent.
    """

    endings: dict[bytes, Ending]
    receipt: Receipt | None


async def cancel_otc(
    trader: Trader, contract: SigningContract, orders: Mapping[bytes, RfqOrder | None]
) -> Cancelled:
    """Cancel all of them in one transaction.

    Args:
        orders: by hash; None where nothing else is known.

    Raises:
        ChainError: one is another maker's, nothing was sent; or the chain refuses or does not answer.
        StepFailedError: the transaction came to nothing, or it is not known what became of it.
    """
    for order_hash, order in orders.items():
        if order is not None and order.maker != trader.key.address:
            raise ChainError(
                f"order {to_hex(order_hash)} is {to_checksum(order.maker)}'s, "
                f"the key is of {trader.account}: nothing was cancelled"
            )
    endings = await _ended(trader.chain, contract, trader.key.address, orders)
    due = [order_hash for order_hash, ending in endings.items() if ending is Ending.CANCELLED]
    if not due:
        return Cancelled(endings, None)
    data = calldata.cancel_order(due[0]) if len(due) == 1 else calldata.cancel_orders(due)
    what = f"{len(due)} order{'s' if len(due) > 1 else ''}"
    receipt = await _cancelled(trader, contract, data, what)
    done = cancelled_in(receipt, contract, trader.key.address)
    closed = {order_hash: Ending.CLOSED for order_hash in due if order_hash not in done}
    return Cancelled(endings | closed, receipt)


async def cancel_until(trader: Trader, contract: SigningContract, life_s: int) -> tuple[int, Receipt]:
    """Cancel all orders of the trader's that expire within a time from now, and those that never do.

    Args:
        life_s: seconds from the chain's time.

    Returns:
        Unix seconds, and the receipt.

    Raises:
        ChainError: that was done before for that time or a later one; or the chain does not answer.
        StepFailedError: the transaction came to nothing, or it is not known what became of it.
    """
    expiry = (await latest(trader.chain)).time_s + life_s
    data = calldata.cancel_orders_until(expiry)
    return expiry, await _cancelled(trader, contract, data, f"all that expire until {expiry}")


async def _cancelled(trader: Trader, contract: SigningContract, data: bytes, what: str) -> Receipt:
    """The receipt of a cancellation, simulated before it is sent."""
    call = EthCall(contract.address, data, trader.key.address)
    trader.tell(f"simulating the cancellation of {what}")
    await trader.chain.call(call)
    return await trader.send("cancellation", call)


async def _ended(
    chain: Chain, contract: SigningContract, maker: bytes, orders: Mapping[bytes, RfqOrder | None]
) -> dict[bytes, Ending]:
    """Which have ended already; CANCELLED for those that are to be."""
    header = await latest(chain)
    kept = await kept_of(chain, contract, maker, list(orders), header.hash)
    endings: dict[bytes, Ending] = {}
    for (order_hash, order), amount in zip(orders.items(), kept, strict=True):
        if amount == CLOSED:
            endings[order_hash] = Ending.CLOSED
        elif order is not None and order.expiry and header.time_s > order.expiry:
            endings[order_hash] = Ending.EXPIRED
        else:
            endings[order_hash] = Ending.CANCELLED
    return endings
