"""On-chain state of OTC orders at one block: the unfilled rest, and the maker's balance and allowance.

Like the contract, a taker verifies the maker's signature only while no part of the order is filled.
"""

from collections.abc import Sequence

from .....codecs.contracts.abi import WORD_BYTES, uint_word
from .....codecs.contracts.calldata import allowance, balance_of, remaining, remaining_balances
from .....config import limits
from .....config.errors import ChainError, InvalidSignature
from .....crypto.addresses import to_checksum
from .....crypto.eip1271 import is_magic_answer, is_valid_signature_calldata
from .....crypto.signatures import signer
from ....chain.port import Chain, EthCall, Header
from ..safety import told_number
from ..trusted_contract import SigningContract
from .otc_safety import OtcOnChain
from .otc_terms import SignedOtc


async def latest(chain: Chain) -> Header:
    """The chain's latest block, at which the state of orders is read.

    Raises:
        ChainError: the chain has no block.
    """
    header = await chain.block()
    if header is None:
        raise ChainError("the chain has no block")
    return header


async def standing_of(chain: Chain, contract: SigningContract, signed: SignedOtc) -> OtcOnChain:
    """State of an OTC order at the latest block: the unfilled amount, and the maker's balance and allowance
    of the sold token.

    Raises:
        ChainError: the contract or the token does not return these numbers.
    """
    header = await latest(chain)
    order = signed.order
    kept, has, allows = await chain.call_many(
        [
            EthCall(contract.address, remaining(order.maker, signed.order_hash)),
            EthCall(order.maker_asset, balance_of(order.maker)),
            EthCall(order.maker_asset, allowance(order.maker, contract.address)),
        ],
        header.hash,
    )
    token = f"{to_checksum(order.maker_asset)} has no balanceOf: it is no token"
    return OtcOnChain(
        header.time_s,
        told_number(kept, f"{to_checksum(contract.address)} has no unfilled amounts of orders"),
        told_number(has, token),
        told_number(allows, token),
    )


async def kept_of(
    chain: Chain, contract: SigningContract, maker: bytes, order_hashes: Sequence[bytes], block_hash: bytes
) -> list[int]:
    """The RFQ contract's record of each of a maker's orders: 0 if never filled or cancelled, 1 if closed,
    else the unfilled raw units plus 1.

    Raises:
        ChainError: the contract does not return these records.
    """
    answer = await chain.call(EthCall(contract.address, remaining_balances(maker, order_hashes)), block_hash)
    words = [answer[at : at + WORD_BYTES] for at in range(0, len(answer), WORD_BYTES)]
    if words[:2] != [uint_word(WORD_BYTES), uint_word(len(order_hashes))] or len(words) != 2 + len(
        order_hashes
    ):
        raise ChainError(f"{to_checksum(contract.address)} has no unfilled amounts of orders")
    return [int.from_bytes(word, "big") for word in words[2:]]


async def check_signed(chain: Chain, contract: SigningContract, signed: SignedOtc) -> None:
    """Check that the maker signed the order: with its key, or as a contract that accepts the signature
    (EIP-1271).

    Raises:
        ChainError: the signature is not the maker's.
    """
    maker = signed.order.maker
    try:
        if signer(signed.order_hash, signed.signature) == maker:
            return
    except InvalidSignature:
        pass  # a contract's signature may have any form
    call = EthCall(
        maker,
        is_valid_signature_calldata(signed.order_hash, signed.signature),
        contract.address,
        gas_max=limits.VENUE_SIGNATURE_GAS_MAX,
    )
    (answer,) = await chain.call_many([call])
    if isinstance(answer, Exception) or not is_magic_answer(answer):
        raise ChainError(f"the signature is not that of the maker {to_checksum(maker)}")
