"""JSON-RPC methods of a wallet, by which a devnet node signs for its own accounts.

Client libraries use a development node like a wallet. The private keys of the default accounts are public
knowledge, so that the node signs without confirmation.

`eth_sign` signs with the prefix of EIP-191, as anvil and geth do. `wallet_switchEthereumChain` to another
chain gives error 4902 (unknown chain): the other chain of a devnet has its own URL. Accounts of a private
mnemonic sign only transactions of their devnet: signed texts are valid on every chain, and any browser page
can request a signature from a local node.

Choice: At a devnet `eth_signTypedData` is EIP-712's own method, equal to `eth_signTypedData_v4`, which alone
    an anvil has.
Choice: `eth_signTypedData_v3` signs what both versions sign alike: types without arrays. Version 1 of
    wallets, a list of values, is refused.
Choice: At a devnet `wallet_addEthereumChain`, `wallet_getCapabilities` and further methods of wallets are not
    found (-32601), as at nodes: a wallet in front of the node answers them.

Source: EIP-191, EIP-712 (`eth_signTypedData`), EIP-1102, EIP-3326; the methods of anvil.
"""

from collections.abc import Sequence
from typing import Any

from ....codecs.messages.wire import decoder
from ....config import limits
from ....config.errors import InvalidInput
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.keccak import keccak256
from ....crypto.secp256k1 import SigningKey
from ....crypto.signatures import to_65
from ....crypto.typed_data import hash_typed_data
from . import parameters as given
from .facade import Method, Methods
from .faults import INVALID_PARAMS, REFUSED, UNKNOWN_CHAIN, RpcFault

_PREFIX = b"\x19Ethereum Signed Message:\n"
_decode = decoder(dict[str, Any], bytes_max=limits.TYPED_DATA_BYTES_MAX)


class WalletMethods:
    """JSON-RPC methods of a wallet, by which a devnet node signs texts and typed data for its accounts.

    Args:
        keys: private keys of the accounts for which the node signs.
        is_public: whether the keys are publicly known; otherwise the node refuses to sign texts and typed
            data.
    """

    def __init__(self, chain_id: int, keys: Sequence[SigningKey], *, is_public: bool) -> None:
        self._chain_id = chain_id
        self._is_public = is_public
        self._keys = {key.address: key for key in keys}

    def methods(self) -> Methods:
        """Return the JSON-RPC methods of a wallet, by name, e.g. `personal_sign`."""
        return {
            "eth_requestAccounts": Method(given.Nothing, self.accounts),
            "eth_sign": Method(given.OfAccountData, self.sign_text),
            "personal_sign": Method(given.OfDataAccount, self.sign_text),
            "eth_signTypedData": Method(given.OfAnyTypedData, self.sign_any_typed_data),
            "eth_signTypedData_v3": Method(given.OfTypedData, self.sign_flat_typed_data),
            "eth_signTypedData_v4": Method(given.OfTypedData, self.sign_typed_data),
            "wallet_switchEthereumChain": Method(given.OfChain, self.switch),
        }

    async def accounts(self, _: given.Nothing) -> list[str]:
        """Answer `eth_requestAccounts`: the addresses of the accounts for which this node signs."""
        return [to_hex(address) for address in self._keys]

    async def sign_text(self, params: given.OfAccountData | given.OfDataAccount) -> str:
        """Answer `eth_sign` and `personal_sign`: the 65-byte signature over a text with EIP-191 prefix."""
        text = bytes(params.data)
        return self._signed(params.address, keccak256(b"%b%d%b" % (_PREFIX, len(text), text)))

    async def sign_typed_data(self, params: given.OfTypedData) -> str:
        """Answer `eth_signTypedData_v4`: the 65-byte signature over EIP-712 typed data."""
        try:
            digest32 = hash_typed_data(_document(params)).digest
        except InvalidInput as error:
            raise _unreadable(error) from None
        return self._signed(params.address, digest32)

    async def sign_flat_typed_data(self, params: given.OfTypedData) -> str:
        """Answer `eth_signTypedData_v3`: version 4 for types without arrays, which version 3 has not."""
        types = _document(params).get("types")
        lists = types.values() if isinstance(types, dict) else ()
        members = [member for members in lists if isinstance(members, list) for member in members]
        named = [member.get("type") for member in members if isinstance(member, dict)]
        if any("[" in str(name) for name in named):
            words = "expected types without arrays, which eth_signTypedData_v4 signs"
            raise RpcFault(INVALID_PARAMS, f"invalid argument 1: typed_data: types: {words}")
        return await self.sign_typed_data(params)

    async def sign_any_typed_data(self, params: given.OfAnyTypedData) -> str:
        """Answer `eth_signTypedData`: the method of EIP-712, as `eth_signTypedData_v4`."""
        return await self.sign_typed_data(params.read())

    async def switch(self, params: given.OfChain) -> None:
        """Answer `wallet_switchEthereumChain`: accept this node's chain id; refuse others with error 4902."""
        if params.chain.chain_id != self._chain_id:
            wanted = hex(params.chain.chain_id)
            raise RpcFault(UNKNOWN_CHAIN, f"unrecognized chain ID {wanted}: this is {hex(self._chain_id)}")

    def _signed(self, address: bytes, digest32: bytes) -> str:
        key = self._keys.get(bytes(address))
        if key is None:
            account = to_checksum(bytes(address))
            raise RpcFault(INVALID_PARAMS, f"no signer available: {account} is none of eth_accounts")
        if not self._is_public:
            raise RpcFault(REFUSED, "accounts of --mnemonic sign transactions alone")
        return to_hex(to_65(*key.sign(digest32)))


def _document(params: given.OfTypedData) -> dict[str, Any]:
    if isinstance(params.typed_data, dict):
        return params.typed_data
    try:
        return _decode(params.typed_data.encode())
    except InvalidInput as error:
        raise _unreadable(error) from None


def _unreadable(error: InvalidInput) -> RpcFault:
    return RpcFault(INVALID_PARAMS, f"invalid argument 1: typed_data: {error.detail}")
