"""What the Delta contract says of an order's state, and what its settlements return, which an eth_call of one
shows before it is sent.

Amounts are raw units, as OrderSettled tells them. Gas is what is used between a settlement's first line and
its last; a transaction's own is more by its base cost and its calldata, less by what is refunded for storage.

Source: contracts/Delta.sol; Contract ABI specification of Solidity, "Formal Specification of the Encoding".
"""

import msgspec

from ...config.errors import InvalidInput
from ...config.limits import UINT256_MAX
from .abi import WORD_BYTES, decode_uint
from .delta_calldata import CROSSINGS_MAX, CROSSINGS_MIN

_SETTLED_WORDS = 3
_STATE_WORDS = 3
_SLICES = (1 << 64) - 1


class OrderState(msgspec.Struct, frozen=True):
    """The state of an order.

    Attributes:
        is_others: the nonce belongs to another order, which is settled in part or whole.
        is_used: the nonce is used up or invalidated: nothing more of the order can be settled.
        is_closed: all of this order is settled.
        done: what is settled of an order that is not closed: raw units of the fixed side; of a schedule,
            slices.
    """

    is_others: bool
    is_used: bool
    is_closed: bool
    done: int


class Settled(msgspec.Struct, frozen=True):
    """One order's: by `settle`, `settle_twap` or `settle_twap_buy`.

    Attributes:
        spent: of the source token, fees of a purchase included.
        received: of the destination token, where it arrived, less fees of a sale.
    """

    spent: int
    received: int
    gas_used: int


class Crossed(msgspec.Struct, frozen=True):
    """Those of orders that are settled against each other, in their order; the gas is of all together."""

    spent: tuple[int, ...]
    received: tuple[int, ...]
    gas_used: int


def decode_order_state(returned: bytes, order_hash: bytes, *, is_scheduled: bool) -> OrderState:
    """Read what `orderState` returned of an order.

    Args:
        is_scheduled: its state counts slices, and has the time of the last beside that.

    Raises:
        InvalidInput: it is not exactly three words.
    """
    _check_size(returned, _STATE_WORDS)
    order, used, done = (decode_uint(returned, at) for at in range(_STATE_WORDS))
    is_its = order == int.from_bytes(order_hash, "big") & ~1  # the last bit says whether a nonce is used
    done &= _SLICES if is_scheduled else UINT256_MAX
    return OrderState(bool(order) and not is_its, bool(used), is_its and bool(used) and not done, done)


def decode_settled(returned: bytes) -> Settled:
    """Read what a settlement of one order returned.

    Raises:
        InvalidInput: it is not exactly three words; a node that answers otherwise asked another contract.
    """
    _check_size(returned, _SETTLED_WORDS)
    spent, received, gas_used = (decode_uint(returned, at) for at in range(_SETTLED_WORDS))
    return Settled(spent, received, gas_used)


def decode_crossed(returned: bytes) -> Crossed:
    """Read what `settle_crossed` returned.

    Raises:
        InvalidInput: it is not two lists of one length, of as many orders as one crossing settles, encoded as
            the compiler does: one after the other, with nothing between and nothing behind.
    """
    count = decode_uint(returned, _SETTLED_WORDS)
    if not CROSSINGS_MIN <= count <= CROSSINGS_MAX:
        expected = f"{CROSSINGS_MIN} to {CROSSINGS_MAX} orders"
        raise InvalidInput(field="return data", expected=expected, got=count)
    second_list = _SETTLED_WORDS + 1 + count
    _check_size(returned, second_list + 1 + count)
    expected_at = {0: _SETTLED_WORDS * WORD_BYTES, 1: second_list * WORD_BYTES, second_list: count}
    for at_word, word in expected_at.items():
        if (got := decode_uint(returned, at_word)) != word:
            raise InvalidInput(field="return data", expected=f"{word} as word {at_word}", got=got)
    spent, received = (
        tuple(decode_uint(returned, first + number) for number in range(count))
        for first in (_SETTLED_WORDS + 1, second_list + 1)
    )
    return Crossed(spent, received, decode_uint(returned, 2))


def _check_size(returned: bytes, words: int) -> None:
    if len(returned) != words * WORD_BYTES:
        expected = f"{words * WORD_BYTES} bytes"
        raise InvalidInput(field="return data", expected=expected, got=f"{len(returned)} bytes")
