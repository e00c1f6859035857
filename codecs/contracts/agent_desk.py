"""Signed terms on which an agent's desk contract trades while an order is settled: digest and calldata.

Source: contracts/examples/AgentDesk.sol; EIP-712.
"""

import msgspec

from ...crypto.addresses import to_checksum
from ...crypto.eip712 import domain_separator
from ..eip712_orders.typed_struct import TypedStruct
from .abi import address_word, bytes_tail, encode, selector, uint_word

_MEMBERS = (
    "bytes32 orderHash,address takes,uint256 taken,address gives,uint256 given,address receiver,"
    "uint256 deadline,uint256 nonce"
)
TRADE = selector("trade((bytes32,address,uint256,address,uint256,address,uint256,uint256),bytes)")


class DeskTerms(msgspec.Struct, frozen=True):
    """Signed terms of one trade of a desk: a contract that holds an agent's own stock of tokens.

    The desk trades only with its agent's caller contract, which makes the agent's calls in settlements.

    Attributes:
        order_hash: hash of the order that the same transaction settles, 32 bytes.
        takes: token that the desk receives from the caller contract, 20 bytes.
        taken: raw units of `takes` that the desk receives.
        gives: token that the desk sends to `receiver`, 20 bytes.
        given: raw units of `gives` that the desk sends.
        receiver: account that the desk sends `gives` to, 20 bytes: the Delta contract.
        deadline: Unix seconds.
        nonce: makes otherwise equal terms distinct; the desk executes the same terms only once.
    """

    order_hash: bytes
    takes: bytes
    taken: int
    gives: bytes
    given: int
    receiver: bytes
    deadline: int
    nonce: int


DESK_TERMS = TypedStruct("Terms", _MEMBERS, DeskTerms)


def terms_digest(terms: DeskTerms, chain_id: int, desk: bytes) -> bytes:
    """Compute the 32-byte digest of trade terms, which the signer of an agent's desk contract signs.

    Args:
        desk: address of the desk contract, 20 bytes.
    """
    domain = {
        "name": "Agent desk",
        "version": "1",
        "chainId": chain_id,
        "verifyingContract": to_checksum(desk),
    }
    digest: bytes = DESK_TERMS.compiled.digest_for(domain_separator(domain))(terms)
    return digest


def trade(terms: DeskTerms, signature: bytes) -> bytes:
    """Encode the call `trade` of a desk contract, which executes signed terms.

    The agent's caller contract makes the call. Before the call, the caller contract has to approve
    `terms.taken` raw units of the token `terms.takes` to the desk.
    """
    words = (
        terms.order_hash,
        address_word(terms.takes),
        uint_word(terms.taken),
        address_word(terms.gives),
        uint_word(terms.given),
        address_word(terms.receiver),
        uint_word(terms.deadline),
        uint_word(terms.nonce),
    )
    return TRADE + encode(b"".join(words), bytes_tail(signature))
