"""Calldata of the Router's swaps and of the FeeVault's claims.

Source: contracts/Router.sol, contracts/FeeVault.sol.
"""

from collections.abc import Sequence

import msgspec

from .abi import Dynamic, address_word, bytes_tail, encode, selector, tuples_tail, uint_word, words_tail
from .calldata import OrderInfo, order_infos_tail

_ORDER_INFO = "((uint256,uint128,address,address,address,address,uint256,uint256),bytes,uint256,bytes,bytes)"
_HOP = f"(uint256,uint256,{_ORDER_INFO}[])"
_SWAP = f"(address,address,uint256,uint256,uint256,address,uint256,uint256,bytes,{_HOP}[])"

SWAP_EXACT_IN = selector(f"swapExactIn({_SWAP})")
SWAP_EXACT_OUT = selector(f"swapExactOut({_SWAP})")
PAYS_DIRECTLY = 1 << 10
"""Flag of a swap's `partnerAndFee`: the fee is sent to the partner at once, not kept in the vault."""

CLAIM = selector("claim(address[],address)")
OWED = selector("owed(address,address)")


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    """A hop of a Router swap: RFQ orders of one pair, which the Router tries one after another.

    At most one of the two amounts is above 0. With both 0, the hop sells the whole amount of its source token
    that is at hand: what the swap or the hops before have brought.

    Attributes:
        taker_amount: raw units of the hop's source token to sell.
        maker_amount: raw units of the hop's destination token to buy.
    """

    taker_amount: int = 0
    maker_amount: int = 0
    orders: tuple[OrderInfo, ...]


class RouterSwap(msgspec.Struct, frozen=True):
    """Arguments of a Router swap: a sale (exact input) or a purchase (exact output).

    The account that pays the source tokens calls the Router itself.

    Attributes:
        src_amount: raw units to sell (sale), or the most to spend (purchase).
        dest_amount: least raw units to receive (sale), or the amount to buy (purchase).
        expected_amount: quoted raw units after fees, of the destination token for a sale and of the source
            token for a purchase; surplus is the improvement over the quoted amount. 0 for none.
        receiver: account that gets the destination tokens, 20 bytes; zero for the caller.
        deadline: Unix seconds.
        partner_and_fee: partner, fee and surplus rules in one uint256, as a Delta order packs them
            (codecs/eip712_orders/partner_and_fee.py).
        permit: permit bytes for the source token; empty for no permit.
        hops: hops of all paths, in the sequence in which the Router makes them.
    """

    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    expected_amount: int
    receiver: bytes
    deadline: int
    partner_and_fee: int
    permit: bytes
    hops: tuple[Hop, ...]


def swap_exact_in(swap: RouterSwap) -> bytes:
    """Encode a swap that sells `src_amount` for at least `dest_amount`."""
    return SWAP_EXACT_IN + encode(_swap(swap))


def swap_exact_out(swap: RouterSwap) -> bytes:
    """Encode a swap that buys `dest_amount` for at most `src_amount`."""
    return SWAP_EXACT_OUT + encode(_swap(swap))


def claim(tokens: Sequence[bytes], receiver: bytes) -> bytes:
    """Encode a claim: the fee vault sends all fees of the caller in the listed tokens to `receiver`."""
    return CLAIM + encode(words_tail([address_word(token) for token in tokens]), address_word(receiver))


def owed(account: bytes, token: bytes) -> bytes:
    """Encode a read of the fees, in raw units of a token, that the fee vault keeps for an account."""
    return OWED + address_word(account) + address_word(token)


def _swap(swap: RouterSwap) -> Dynamic:
    hops = [
        encode(uint_word(hop.taker_amount), uint_word(hop.maker_amount), order_infos_tail(hop.orders))
        for hop in swap.hops
    ]
    return Dynamic(
        encode(
            address_word(swap.src_token),
            address_word(swap.dest_token),
            uint_word(swap.src_amount),
            uint_word(swap.dest_amount),
            uint_word(swap.expected_amount),
            address_word(swap.receiver),
            uint_word(swap.deadline),
            uint_word(swap.partner_and_fee),
            bytes_tail(swap.permit),
            tuples_tail(hops),
        )
    )
