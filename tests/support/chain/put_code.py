"""Code at an address of a development chain, whichever key the address has."""

import msgspec

from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.keccak import KECCAK_EMPTY
from cambist.engine.chain.port import DevChain
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.dev.embedded.embedded import EmbeddedChain


async def put_code(chain: DevChain, address: bytes, code: bytes) -> None:
    """Give an account this code; none if `code` is empty. Its nonce and balance stay."""
    if isinstance(chain, EmbeddedChain):
        ledger = chain._ledger
        code_hash = ledger.evm.learn_code(code) if code else KECCAK_EMPTY
        ledger.change(address, msgspec.structs.replace(ledger.evm.account(address), code_hash=code_hash))
    else:
        assert isinstance(chain, AnvilChain)
        await chain._do("anvil_setCode", to_hex(address), to_hex(code))
    assert await chain.code(address) == code
