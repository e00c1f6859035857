"""Terms of a swap on the chain where a bridge delivers, and the calls of the contract that swaps. Pure.

An order on the origin chain asks for such a swap by naming an Arrival as its beneficiary: an account whose
address follows from the terms. The order's `metadata` has the terms, so that everybody can compute the
address. The Arrival pays the `beneficiary` of the terms:

    at any time     a relayer of the destination's Delta can have makers fill the swap, for `least` at least
    up to `until`   only `beneficiary` can have the bridge's token paid out unswapped
    after `until`   anybody can have the bridge's token paid out to `beneficiary`

Source: contracts/Arrivals.sol.
Choice: A swap after a bridge is made when the tokens are there, by firm quotes of that time. Without a swap
    by the signed time, the beneficiary gets the bridge's token.
"""

from collections.abc import Sequence
from functools import partial

import msgspec

from ...config.errors import InvalidInput
from ...crypto.keccak import keccak256
from ..contracts.abi import (
    WORD_BYTES,
    Dynamic,
    KnownLogs,
    LogLayout,
    address_word,
    bytes_tail,
    decode_known,
    encode,
    selector,
    tuples_tail,
    uint_word,
    words_tail,
)
from ..transactions import create2_address

_TERMS = "(address,address,address,uint256,uint256,bytes32)"
_MEMBERS = 6
SWAP = selector(f"swap({_TERMS},bytes[],address[])")
PAY_OUT = selector(f"payOut({_TERMS},address)")
ARRIVAL_OF = selector(f"arrivalOf({_TERMS})")
_SWAPPED = LogLayout("ArrivalSwapped(address indexed,address indexed,address,uint256,uint256)")
_PAID_OUT = LogLayout("ArrivalPaidOut(address indexed,address indexed,address,uint256)")
ARRIVAL_SWAPPED, ARRIVAL_PAID_OUT = _SWAPPED.topic, _PAID_OUT.topic


class ArrivalTerms(msgspec.Struct, frozen=True):
    """Terms of a swap after a bridge, or of a wrap of the native tokens that a bridge pays.

    Attributes:
        beneficiary: account that gets the proceeds of the swap, 20 bytes.
        token: token that the bridge delivers, 20 bytes.
        dest_token: token that the beneficiary wants, 20 bytes; the native placeholder for native tokens.
        least: least raw units of `dest_token` for all that arrives.
        until: Unix seconds; afterwards anybody, not the beneficiary alone, can have the bridge's token paid
            out.
        salt: makes otherwise equal terms distinct, 32 bytes.
    """

    beneficiary: bytes
    token: bytes
    dest_token: bytes
    least: int
    until: int
    salt: bytes

    @property
    def is_wrap(self) -> bool:
        """Whether the beneficiary wants the bridge's token itself, which comes unwrapped."""
        return self.token == self.dest_token


class ArrivalGiven(msgspec.Struct, frozen=True):
    """Event of Arrivals: the whole balance of an arrival account was swapped, or paid out unswapped.

    Attributes:
        arrival: account that held the tokens, 20 bytes.
        token: token that the account held, 20 bytes.
        amount: raw units of `token` that the account held.
        received: raw units of the wanted token that the beneficiary got by a swap; None for a pay-out.
    """

    arrival: bytes
    beneficiary: bytes
    token: bytes
    amount: int
    received: int | None = None


_EVENTS: KnownLogs[ArrivalGiven] = {
    ARRIVAL_SWAPPED: (_SWAPPED, ArrivalGiven),
    ARRIVAL_PAID_OUT: (_PAID_OUT, ArrivalGiven),
}


decode_arrival_log = partial(decode_known, _EVENTS)
"""Decode the topics and data of a log of Arrivals, as `decode_known` does."""


def pack_arrival(terms: ArrivalTerms) -> bytes:
    """Encode terms as six words: the `metadata` of an order with these terms."""
    return b"".join(
        (
            address_word(terms.beneficiary),
            address_word(terms.token),
            address_word(terms.dest_token),
            uint_word(terms.least),
            uint_word(terms.until),
            terms.salt,
        )
    )


def parse_arrival(metadata: bytes) -> ArrivalTerms:
    """Decode the terms in an order's `metadata`.

    Raises:
        InvalidInput: the metadata is not six words, or an address has more than 20 bytes.
    """
    if len(metadata) != _MEMBERS * WORD_BYTES:
        raise InvalidInput(
            field="metadata", expected=f"{_MEMBERS * WORD_BYTES} bytes", got=f"{len(metadata)} bytes"
        )
    words = [metadata[at : at + WORD_BYTES] for at in range(0, len(metadata), WORD_BYTES)]
    for word in words[:3]:
        if any(word[:12]):
            raise InvalidInput(field="metadata", expected="three addresses", got=word.hex())
    beneficiary, token, dest_token = (word[12:] for word in words[:3])
    least, until = (int.from_bytes(word, "big") for word in words[3:5])
    return ArrivalTerms(beneficiary, token, dest_token, least, until, words[5])


def arrival_address(arrivals: bytes, terms: ArrivalTerms, init_code: bytes) -> bytes:
    """Compute the address that an order names as its beneficiary for these terms, 20 bytes.

    Args:
        arrivals: the chain's Arrivals contract, 20 bytes.
        init_code: creation code of the Arrival contract.
    """
    return create2_address(arrivals, keccak256(pack_arrival(terms)), init_code)


def swap_arrival(terms: ArrivalTerms, fills: Sequence[bytes], leftovers: Sequence[bytes]) -> bytes:
    """Encode the call by which a relayer swaps all that has arrived.

    Args:
        fills: encoded arguments of each fill of the executor, in order: member `data` of a
            `delta_calldata.rfq_step`.
        leftovers: tokens whose balance at the executor goes to the beneficiary, once before and once after
            the fills.
    """
    return SWAP + encode(
        pack_arrival(terms),
        _bytes_array(fills),
        words_tail([address_word(token) for token in leftovers]),
    )


def pay_out_arrival(terms: ArrivalTerms, token: bytes) -> bytes:
    """Encode the call that sends all that has arrived of a token to the beneficiary."""
    return PAY_OUT + pack_arrival(terms) + address_word(token)


def _bytes_array(elements: Sequence[bytes]) -> Dynamic:
    """Encode a dynamic array of `bytes`."""
    return tuples_tail([bytes_tail(element).tail for element in elements])
