"""Cancellation of OTC orders by their maker on chain, in one transaction.

    another maker's order      refused; no transaction is sent
    closed or expired orders   left out: they cannot be filled any more
    other orders               cancelOrder or cancelOrders: simulated, then sent; an order without an
                               OrderCancelled event in the receipt was closed before
    all orders up to an expiry cancelOrdersUntil, without hashes; orders without an expiry included

Source: spec 2.11.7 to 2.11.9; interop.md 1; contracts/Rfq.sol.
Choice: An order known by its hash alone is cancelled unseen: the contract closes it for the key's account
    only.
"""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from .....codecs.contracts import calldata
from .....codecs.eip712_orders.rfq import RfqOrder
from .....config.errors import ChainError
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import to_hex
from ....chain.port import Chain, EthCall, Receipt
from ..trader import Trader
from ..trusted_contract import SigningContract
from .otc_reading import kept_of, latest
from .otc_safety import CLOSED, cancelled_in


class Ending(Enum):
    """State of an order after a cancellation.

    CANCELLED: by this cancellation. CLOSED: completely filled, or cancelled before. EXPIRED: expired before.
    """

    CANCELLED = "cancelled"
    CLOSED = "closed before"
    EXPIRED = "expired before"


class Cancelled(Struct, frozen=True):
    """The result of a transaction that cancels OTC orders.

    Attributes:
        endings: order hash -> state of the order after the transaction, in the sequence of the request.
        receipt: receipt of the transaction; None if no transaction was needed.
    """

    endings: dict[bytes, Ending]
    receipt: Receipt | None


async def cancel_otc(
    trader: Trader, contract: SigningContract, orders: Mapping[bytes, RfqOrder | None]
) -> Cancelled:
    """Cancel OTC orders of the trader in one transaction; orders closed or expired already are left out.

    Args:
        orders: order hash -> order; None for an order known by its hash alone.

    Raises:
        ChainError: an order is another maker's, and no transaction was sent; or the contract refuses, or the
            chain does not answer.
        StepFailedError: the transaction reverted, or may still be mined.
    """
    # All orders first: the contract would close another maker's hash for the key's account alone, so that the
    # order would only seem to be cancelled.
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
    # The contract skips an order that was closed after `_ended` read it, and emits no event for the order.
    done = cancelled_in(receipt, contract, trader.key.address)
    closed = {order_hash: Ending.CLOSED for order_hash in due if order_hash not in done}
    return Cancelled(endings | closed, receipt)


async def cancel_until(trader: Trader, contract: SigningContract, life_s: int) -> tuple[int, Receipt]:
    """Cancel in one transaction all OTC orders of the trader that expire up to a given time, and those
    without an expiry.

    Args:
        life_s: seconds from the latest block's time to the given time.

    Returns:
        (the given time in Unix seconds, the receipt).

    Raises:
        ChainError: an earlier call has cancelled up to this time or a later one; or the chain does not
            answer.
        StepFailedError: the transaction reverted, or may still be mined.
    """
    expiry = (await latest(trader.chain)).time_s + life_s
    data = calldata.cancel_orders_until(expiry)
    return expiry, await _cancelled(trader, contract, data, f"all that expire until {expiry}")


async def _cancelled(trader: Trader, contract: SigningContract, data: bytes, what: str) -> Receipt:
    """Simulate and send a transaction that cancels OTC orders, and return its receipt."""
    call = EthCall(contract.address, data, trader.key.address)
    trader.tell(f"simulating the cancellation of {what}")
    await trader.chain.call(call)
    return await trader.send("cancellation", call, contract.address)


async def _ended(
    chain: Chain, contract: SigningContract, maker: bytes, orders: Mapping[bytes, RfqOrder | None]
) -> dict[bytes, Ending]:
    """The state of each order, by order hash, that the cancellation leads to.

    CLOSED or EXPIRED for an order that has ended already; CANCELLED for an order that the transaction must
    cancel.
    """
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
