"""Reads of a chain while an HTTP request waits: within a time-out, and all at one block.

Source: ARCHITECTURE.md, "Limits": a chain read that a request needs and cannot have is a 503.
"""

from collections.abc import Awaitable
from typing import TypeVar

import trio

from ...codecs.contracts.abi import WORD_BYTES, decode_address
from ...config.errors import BlockGone, ChainError, InvalidInput, ServiceUnavailable
from ...config.timeouts import ORDER_CHECK_S
from ...crypto.addresses import ZERO_ADDRESS
from ..chain.port import Chain, EthCall, Header
from .permit_proof import PERMIT2_OF
from .signed_by import OwnerSignature, check_signer

T = TypeVar("T")


async def in_time(asked: Awaitable[T]) -> T:
    """The chain's answer within ORDER_CHECK_S.

    Raises:
        ServiceUnavailable: the chain fails or does not answer in time.
    """
    with trio.move_on_after(ORDER_CHECK_S):
        try:
            return await asked
        except ChainError as error:
            raise ServiceUnavailable(f"the chain does not answer: {error}") from error
    raise ServiceUnavailable(f"the chain does not answer within {ORDER_CHECK_S:g} s")


async def latest_block(chain: Chain) -> Header:
    """The latest block, at which all reads are made; its hash pins it.

    Raises:
        ChainError: no node answers.
    """
    header = await chain.block()
    if header is None:
        raise BlockGone("the latest block is not in the chain")
    return header


async def signer_has_code(chain: Chain, signature: OwnerSignature, header: Header) -> bool:
    """Whether the owner is a contract, which may be asked; False, without a read, if its key signed.

    Raises:
        InvalidSignature: the owner cannot have signed: no further check is needed.
        ChainError: no node answers.
    """
    if signature.is_by_key:
        return False
    has_code = bool(await chain.code(signature.owner, header.hash))
    check_signer(signature, has_code=has_code)
    return has_code


class Permit2s:
    """The Permit2 contracts to which our contracts show permits; they never change."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, bytes], bytes] = {}

    async def of(self, chain: Chain, contract: bytes, field: str) -> bytes:
        """Permit2 of one contract, 20 bytes.

        Args:
            field: request member of the permit, for errors.

        Raises:
            InvalidInput: the chain has no Permit2.
            ServiceUnavailable: the contract does not answer.
            ChainError: no node answers.
        """
        found = self._found.get((chain.chain_id, contract))
        if found is None:
            answer = await chain.call(EthCall(contract, PERMIT2_OF))
            if len(answer) < WORD_BYTES:
                raise ServiceUnavailable("the contract that takes the permit does not answer")
            found = decode_address(answer)
            if found == ZERO_ADDRESS:
                raise InvalidInput("there is no Permit2 on this chain", field=field)
            self._found[chain.chain_id, contract] = found
        return found
