"""Delegation of a world's accounts to contracts (EIP-7702)."""

from cambist.codecs.transactions import Transaction, sign_authorization, sign_transaction
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.delegation import is_delegation
from support.chain.world import World

GWEI = 10**9


async def delegate(world: World, key: SigningKey, to: bytes) -> None:
    """An account has a contract's code from now on; the world's owner pays."""
    payer, chain = world.owner, world.chain
    nonce = await chain.nonce(key.address)
    authorization = sign_authorization(chain.chain_id, to, nonce, key)
    tx = Transaction(
        chain.chain_id, await chain.nonce(payer.address), GWEI, 100 * GWEI, 200_000, key.address, 0, b"", (),
        (authorization,),
    )  # fmt: skip
    tx_hash = await chain.send_raw(sign_transaction(tx, payer).raw)
    while (receipt := await chain.receipt(tx_hash)) is None:
        await chain.mine()
    assert receipt.succeeded
    assert is_delegation(await chain.code(key.address)) == any(to)
