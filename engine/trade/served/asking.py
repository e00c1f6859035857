"""Reads of a chain while an HTTP request waits for them, with a time-out and all at the same block.

Source: ARCHITECTURE.md, "Limits": a chain read that a request needs and cannot have is a 503.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from ....codecs.contracts.abi import WORD_BYTES, decode_address
from ....config.errors import BlockGone, ChainError, InvalidInput, RequestError, ServiceUnavailable
from ....config.timeouts import ORDER_CHECK_S, RECENT_BLOCK_S
from ....crypto.addresses import ZERO_ADDRESS
from ...chain.port import Chain, EthCall, Header
from .permit_proof import PERMIT2_OF
from .signed_by import OwnerSignature, check_signer, is_probed, probe_call

T = TypeVar("T")


async def in_time(read: Awaitable[T]) -> T:
    """Await a chain read for at most ORDER_CHECK_S seconds.

    Raises:
        ServiceUnavailable: the chain's node fails or does not answer in time.
    """
    with trio.move_on_after(ORDER_CHECK_S):
        try:
            return await read
        except ChainError as error:
            raise ServiceUnavailable(f"the chain does not answer: {error}") from error
    raise ServiceUnavailable(f"the chain does not answer within {ORDER_CHECK_S:g} s")


async def latest_block(chain: Chain) -> Header:
    """Read the header of the chain's latest block, whose hash a request uses for all its reads.

    Raises:
        ChainError: no node answers.
    """
    header = await chain.block()
    if header is None:
        raise BlockGone("the latest block is not in the chain")
    return header


async def at_recent_block(chain: Chain, judge: Callable[[Header], Awaitable[T]]) -> T:
    """Judge a request by a block that was the latest a moment ago; a refusal is judged by the latest block.

    A node may be far, and the venue reads each chain's latest block anyway, more often than every second. A
    caller whose approval was mined since then, and who is refused for the lack of it, pays for a second look.

    Args:
        judge: makes the checks at a block, and refuses the request by a RequestError.

    Raises:
        RequestError: `judge` refuses the request at the latest block.
        ChainError: no node answers.
    """
    header = await chain.recent_block(RECENT_BLOCK_S)
    try:
        return await judge(header)
    except (RequestError, BlockGone):
        latest = await latest_block(chain)
        if latest.hash == header.hash:
            raise
    return await judge(latest)


async def signer_has_code(
    chain: Chain, signature: OwnerSignature, header: Header, *, may_be_deployed: bool = False
) -> bool:
    """Whether an owner is a contract; False, without a read of the chain, if the owner's key has signed.

    Args:
        may_be_deployed: whether an owner counts as a contract if its wallet accepts the signature once it is
            deployed, as a simulation shows: for orders that may wait for that.

    Raises:
        InvalidSignature: the owner's key has not signed, and the owner can sign neither as a contract nor by
            a transaction.
        ChainError: no node answers.
    """
    if signature.is_by_key:
        return False
    has_code = bool(await chain.code(signature.owner, header.hash))
    if may_be_deployed and not has_code and (probe := probe_call(signature)) is not None:
        (answer,) = await chain.call_many([probe], header.hash)
        has_code = is_probed(answer)
    check_signer(signature, has_code=has_code)
    return has_code


class Permit2s:
    """Cache of the Permit2 contract addresses that the venue's contracts use; an address never changes."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, bytes], bytes] = {}

    async def of(self, chain: Chain, contract: bytes, field: str) -> bytes:
        """Return the address of the Permit2 contract that a venue contract uses, 20 bytes.

        Args:
            contract: address of the venue's contract, 20 bytes.
            field: member of the request that holds the permit, for errors.

        Raises:
            InvalidInput: the venue's contract has no Permit2 on this chain.
            ServiceUnavailable: the venue's contract does not answer.
            ChainError: no node answers.
        """
        found = self._found.get((chain.chain_id, contract))
        if found is None:
            answer = await chain.call(EthCall(contract, PERMIT2_OF))
            if len(answer) < WORD_BYTES:
                raise ServiceUnavailable("the contract that takes the permit does not answer")
            found = decode_address(answer)
            if found == ZERO_ADDRESS:
                raise InvalidInput("the chain has no Permit2", field=field)
            self._found[chain.chain_id, contract] = found
        return found
