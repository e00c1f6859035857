"""Decode return data of Delta: an order's state, and a settlement's amounts from a simulating eth_call.

Amounts are raw units, as in OrderSettled. Gas is the gas used between a settlement's first line and its last.
The transaction's own gas is larger by its base cost and its calldata, smaller by its storage refunds.

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
    """State of an order and its nonce on the Delta contract.

    Attributes:
        is_others: whether the nonce belongs to another order, of which a part or all has been settled.
        is_used: whether the nonce is used up or invalidated, so that no further part can be settled.
        is_closed: whether all of this order is settled.
        done: settled so far, 0 once the order is closed: raw units of the source token for a sale, of the
            destination token for a purchase, and the number of slices for a TWAP.
    """

    is_others: bool
    is_used: bool
    is_closed: bool
    done: int


class Settled(msgspec.Struct, frozen=True):
    """Amounts that the Delta call `settle`, `settle_twap` or `settle_twap_buy` returns.

    Attributes:
        spent: raw units of the source token, fees of a purchase included.
        received: raw units of the destination token that the beneficiary got, fees of a sale deducted.
        gas_used: units of gas.
    """

    spent: int
    received: int
    gas_used: int


class Crossed(msgspec.Struct, frozen=True):
    """Amounts that one settlement of several crossed orders returns.

    Attributes:
        spent, received: raw units for each order, as in `Settled`, in the sequence of the call.
        gas_used: units of gas of the whole settlement.
    """

    spent: tuple[int, ...]
    received: tuple[int, ...]
    gas_used: int


def decode_order_state(returned: bytes, order_hash: bytes, *, is_scheduled: bool) -> OrderState:
    """Decode the return data of `orderState`.

    Args:
        order_hash: hash of the order whose state was read, 32 bytes.
        is_scheduled: whether the order is a TWAP: the third returned word then holds the number of settled
            slices and the time of the last slice; for other orders it holds the settled amount.

    Raises:
        InvalidInput: the data is not exactly three words.
    """
    _check_size(returned, _STATE_WORDS)
    order, used, done = (decode_uint(returned, at) for at in range(_STATE_WORDS))
    # The contract keeps the flag of a used nonce in the hash's last bit, and clears this bit in its answer.
    is_its = order == int.from_bytes(order_hash, "big") & ~1
    done &= _SLICES if is_scheduled else UINT256_MAX
    return OrderState(bool(order) and not is_its, bool(used), is_its and bool(used) and not done, done)


def decode_settled(returned: bytes) -> Settled:
    """Decode the return data of a settlement of one order.

    Raises:
        InvalidInput: the data is not exactly three words: it comes from another contract.
    """
    _check_size(returned, _SETTLED_WORDS)
    spent, received, gas_used = (decode_uint(returned, at) for at in range(_SETTLED_WORDS))
    return Settled(spent, received, gas_used)


def decode_crossed(returned: bytes) -> Crossed:
    """Decode the return data of `settle_crossed`, one settlement of orders that trade with each other.

    Raises:
        InvalidInput: the data is not two lists of equal length, CROSSINGS_MIN to CROSSINGS_MAX, and the gas,
            in the compiler's encoding: one list after the other, without gaps and without trailing bytes.
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
