"""The parameters of each JSON-RPC method, and their decoding.

Each method has a struct whose members are its positional parameters, in order. Texts for bytes or numbers are
decoded here. Errors name the parameter, the expected form and the value received.

Quantities may have leading zeros, and be JSON numbers where development nodes take them.

Source: the Ethereum execution API; EIP-1474 (quantities and data); EIP-1898 (a block by its hash).
"""

import re
from typing import Any, Self, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from ....codecs.transactions import AccessList, Authorization
from ....config import limits
from ....config.errors import InvalidInput
from ....crypto.addresses import parse_address
from ....crypto.hexadecimal import parse_hex
from ...chain.port import LogFilter
from .faults import INVALID_PARAMS, RpcFault

T = TypeVar("T")

_QUANTITY = re.compile(r"0[xX][0-9a-fA-F]{1,64}\Z")
_PATH = re.compile(r"(?P<words>.*?) - at `\$(?:\[(?P<at>\d+)\])?(?P<rest>.*)`\Z", re.DOTALL)
_TOO_FEW = re.compile(r"Expected `array` of (?:at least )?length \d+, got (\d+)")
_GOT_CHARS_MAX = 80


def _refuse(expected: str, got: object) -> ValueError:
    shown = ascii(got)
    return ValueError(f"expected {expected}, got {shown[:_GOT_CHARS_MAX]}")


class Quantity(int):
    """Number from 0 to 2**256 - 1, written in JSON as 0x-prefixed hexadecimal text."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a number from 0x-prefixed hexadecimal text.

        Raises:
            ValueError: the value is not 0x and 1 to 64 hexadecimal digits.
        """
        if isinstance(value, str) and _QUANTITY.match(value):
            return cls(int(value, 16))
        raise _refuse("a quantity: 0x and 1 to 64 hexadecimal digits", value)


class RpcNumber(int):
    """Number from 0 to CHAIN_COUNT_MAX, written in JSON as 0x-prefixed hexadecimal text or as a number."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a number from 0x-prefixed hexadecimal text or from a JSON number.

        Raises:
            ValueError: the value has another form, or is above CHAIN_COUNT_MAX.
        """
        number = value if type(value) is int else Quantity.read(value)
        if not 0 <= number <= limits.CHAIN_COUNT_MAX:
            raise _refuse(f"a number from 0 to {limits.CHAIN_COUNT_MAX}", value)
        return cls(number)


class StorageSlot(int):
    """Index of a contract's storage slot, written in JSON as 0x-prefixed hexadecimal of at most 32 bytes."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode the index of a storage slot from 0x-prefixed hexadecimal text.

        Raises:
            ValueError: the value is not 0x and 1 to 64 hexadecimal digits.
        """
        return cls(Quantity.read(value))


class Data(bytes):
    """Bytes of any length, written in JSON as 0x-prefixed hexadecimal text."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode bytes from 0x-prefixed hexadecimal text.

        Raises:
            ValueError: the value is not 0x and whole bytes in hexadecimal.
        """
        try:
            return cls(parse_hex(value, "data"))
        except InvalidInput as error:
            raise _refuse(str(error.expected), value) from None


class Address(bytes):
    """Address of an account, 20 bytes, written in JSON as 0x-prefixed hexadecimal text in any letter case."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode an address from 0x-prefixed hexadecimal text.

        Raises:
            ValueError: the value is not 0x and 40 hexadecimal digits.
        """
        try:
            return cls(parse_address(value))
        except InvalidInput as error:
            raise _refuse(str(error.expected), value) from None


class Hash32(bytes):
    """Hash of 32 bytes, written in JSON as 0x-prefixed hexadecimal text."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a hash from 0x-prefixed hexadecimal text.

        Raises:
            ValueError: the value is not 0x and 64 hexadecimal digits.
        """
        data = Data.read(value)
        if len(data) != 32:
            raise _refuse("32 bytes", value)
        return cls(data)


class BlockRef:
    """Reference to a block by tag, height or hash.

    Attributes:
        named: `latest`, `pending`, `safe`, `finalized`, `earliest`, a height, or a hash of 32 bytes.
    """

    __slots__ = ("named",)

    WORDS = ("latest", "pending", "safe", "finalized", "earliest")

    def __init__(self, named: str | int | bytes) -> None:
        self.named = named

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a block reference from a tag, a hexadecimal height, or an object of EIP-1898.

        Raises:
            ValueError: the value has another form.
        """
        if isinstance(value, dict):
            if "blockHash" in value:
                return cls(bytes(Hash32.read(value["blockHash"])))
            value = value.get("blockNumber")
        if isinstance(value, str) and value in cls.WORDS:
            return cls(value)
        if isinstance(value, str) and _QUANTITY.match(value):
            return cls(int(RpcNumber.read(value)))
        raise _refuse(f"{', '.join(cls.WORDS)}, a height, or an object with blockHash", value)


class FilterValues(tuple[bytes, ...]):
    """Values that a log filter accepts for one of a log's topics; an empty tuple accepts any value.

    The JSON form is a single value, a list of alternatives, or null for any.
    """

    __slots__ = ()
    READ: Any = Hash32

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode the accepted values from a single value, a list or null.

        Raises:
            ValueError: a value has a wrong form, or the list has more than DEVNET_FILTER_ITEMS_MAX values.
        """
        if value is None:
            return cls()
        items = value if isinstance(value, list) else [value]
        if len(items) > limits.DEVNET_FILTER_ITEMS_MAX:
            raise ValueError(f"expected at most {limits.DEVNET_FILTER_ITEMS_MAX}, got {len(items)}")
        return cls(bytes(cls.READ.read(item)) for item in items)


class FilterAddresses(FilterValues):
    """Addresses of contracts whose logs a filter accepts; an empty tuple accepts any address."""

    __slots__ = ()
    READ = Address


def _hook(kind: Any, value: object) -> object:
    """Decode a value to a type that msgspec does not know, by the type's method `read`."""
    return kind.read(value)


class ListedAccess(Struct, rename="camel", forbid_unknown_fields=True):
    """Entry of a transaction's access list: a contract, and storage slots of it (EIP-2930)."""

    address: Address
    storage_keys: list[Hash32] = []


class SignedAuthorization(Struct, rename="camel"):
    """Entry of a transaction's authorization list: the signed delegation of an account (EIP-7702)."""

    chain_id: Quantity
    address: Address
    nonce: Quantity
    y_parity: Quantity
    r: Quantity
    s: Quantity


class UnsignedTransaction(Struct, rename="camel"):
    """Unsigned transaction or call in a JSON-RPC request; unknown members are ignored."""

    sender: Address | None = field(default=None, name="from")
    to: Address | None = None
    gas: Quantity | None = None
    gas_price: Quantity | None = None
    max_fee_per_gas: Quantity | None = None
    max_priority_fee_per_gas: Quantity | None = None
    value: Quantity | None = None
    data: Data | None = None
    input: Data | None = None
    nonce: Quantity | None = None
    chain_id: Quantity | None = None
    access_list: list[ListedAccess] | None = None
    authorization_list: list[SignedAuthorization] = []

    def __post_init__(self) -> None:
        if self.data is not None and self.input is not None and self.data != self.input:
            raise ValueError("expected data and input to be the same where both are given")

    def calldata(self) -> bytes:
        """Return the calldata from the member `input` or `data`; empty if the request has neither."""
        return bytes(self.input if self.input is not None else self.data or b"")

    def accesses(self) -> AccessList:
        """Return the access list, empty if the request has none."""
        return tuple(
            (bytes(entry.address), tuple(bytes(slot) for slot in entry.storage_keys))
            for entry in self.access_list or ()
        )

    def authorizations(self) -> tuple[Authorization, ...]:
        """Return the authorizations, none if the request has none."""
        return tuple(
            Authorization(
                int(one.chain_id),
                bytes(one.address),
                int(one.nonce),
                int(one.y_parity),
                int(one.r),
                int(one.s),
            )
            for one in self.authorization_list
        )


class Filter(Struct, rename="camel"):
    """Log filter of a JSON-RPC request: a range of blocks or one block, contract addresses, and topics."""

    address: FilterAddresses | None = None
    topics: list[FilterValues | None] = []
    block_hash: Hash32 | None = None
    from_block: BlockRef | None = None
    to_block: BlockRef | None = None

    def __post_init__(self) -> None:
        if len(self.topics) > 4:
            raise ValueError(f"expected at most 4 topics, got {len(self.topics)}")
        if self.block_hash is not None and (self.from_block or self.to_block):
            raise ValueError("expected blockHash, or fromBlock and toBlock")

    def wanted(self) -> LogFilter:
        """Return the addresses and topics as a `LogFilter`, which has no range of blocks."""
        return LogFilter(tuple(self.address or ()), tuple(tuple(topic or ()) for topic in self.topics))


class _Positional(Struct, array_like=True, forbid_unknown_fields=True):
    """Base class of the parameter structs, whose JSON form is an array of the members in order."""


class Nothing(_Positional):
    """Parameters of JSON-RPC methods that have no parameter, such as `eth_chainId`."""


class OfAccount(_Positional):
    """Parameters of `eth_getBalance`, `eth_getCode` and `eth_getTransactionCount`: an account and a block."""

    address: Address
    block: BlockRef = BlockRef("latest")


class OfSlot(_Positional):
    """Parameters of `eth_getStorageAt`: a contract, a storage slot, and a block."""

    address: Address
    slot: StorageSlot
    block: BlockRef = BlockRef("latest")


class BlockOverrides(Struct, forbid_unknown_fields=True):
    """Block overrides of `eth_call`: the time can be overridden; geth's other overrides are refused."""

    time: RpcNumber | None = None


class OfCall(_Positional):
    """Parameters of `eth_call` and `eth_estimateGas`: a call, a block, and overrides of state and block.

    State overrides are refused; `eth_estimateGas` uses the call alone.
    """

    transaction: UnsignedTransaction
    block: BlockRef | None = None
    overrides: dict[str, Any] | None = None
    block_overrides: BlockOverrides | None = None

    def __post_init__(self) -> None:
        if self.overrides:
            raise ValueError("expected no state overrides: this node has none")


class OfBlock(_Positional):
    """Parameters of `eth_getBlockByNumber`: a height or tag, and whether to return whole transactions."""

    block: BlockRef
    full: bool = False


class OfBlockHash(_Positional):
    """Parameters of `eth_getBlockByHash`: a block's hash, and whether to return whole transactions."""

    hash: Hash32
    full: bool = False


class OnlyBlock(_Positional):
    """Parameter of `eth_getBlockReceipts` and others that take only a block: a tag, a height or a hash."""

    block: BlockRef


class OnlyHash(_Positional):
    """Parameter of JSON-RPC methods that take only a hash of a block or transaction."""

    hash: Hash32


class OfPlace(_Positional):
    """Parameters of `eth_getTransactionByBlockNumberAndIndex`: a block, and a transaction's index in it."""

    block: BlockRef
    index: Quantity


class OfHashPlace(_Positional):
    """Parameters of `eth_getTransactionByBlockHashAndIndex`: a block's hash, and a transaction's index."""

    hash: Hash32
    index: Quantity


class OfRaw(_Positional):
    """Parameter of `eth_sendRawTransaction`, a signed transaction, or of `web3_sha3`, bytes to hash."""

    raw: Data


class OfRawSync(_Positional):
    """Parameters of `eth_sendRawTransactionSync`: a signed transaction, and a time-out in milliseconds.

    Source: EIP-7966; a time-out of 0, or above the node's own, is the node's own.
    """

    raw: Data
    timeout: RpcNumber = RpcNumber(0)


class OfListing(_Positional):
    """Parameters of `eth_createAccessList`: a call, and a block."""

    transaction: UnsignedTransaction
    block: BlockRef | None = None


class OfMessage(_Positional):
    """Parameter of `eth_sendTransaction` and `eth_signTransaction`: a transaction that this node signs."""

    transaction: UnsignedTransaction


class OfAccountData(_Positional):
    """Parameters of `eth_sign`: an account of this node, and the bytes to sign."""

    address: Address
    data: Data


class OfDataAccount(_Positional):
    """Parameters of `personal_sign`: the bytes to sign, an account of this node, and an ignored password."""

    data: Data
    address: Address
    password: str | None = None


class OfTypedData(_Positional):
    """Parameters of `eth_signTypedData_v4`: an account of this node, and typed data as object or text."""

    address: Address
    typed_data: dict[str, Any] | str


class OfAnyTypedData(_Positional):
    """Parameters of `eth_signTypedData`: those of EIP-712, or of version 1 of wallets, which is refused."""

    first: list[Any] | str
    second: dict[str, Any] | str

    def read(self) -> OfTypedData:
        """Return the parameters of EIP-712.

        Raises:
            RpcFault: error -32602: the parameters are those of version 1, or an account or typed data has
                another form.
        """
        if isinstance(self.first, list):
            words = "expected an account and typed data of EIP-712, got a list of values (version 1)"
            raise RpcFault(INVALID_PARAMS, f"invalid argument 0: address: {words}")
        return decoded([self.first, self.second], OfTypedData)


class ChainWanted(Struct, rename="camel"):
    """Object with the id of the chain to which `wallet_switchEthereumChain` should switch.

    Source: EIP-3326.
    """

    chain_id: Quantity


class OfChain(_Positional):
    """Parameters of `wallet_switchEthereumChain`: an object that names the chain to switch to."""

    chain: ChainWanted


class OfLogs(_Positional):
    """Parameter of `eth_getLogs` and `eth_newFilter`: a log filter."""

    filter: Filter


class OfFeeHistory(_Positional):
    """Parameters of `eth_feeHistory`: number of blocks, newest block, and reward percentiles (0 to 100)."""

    blocks: RpcNumber
    newest: BlockRef
    percentiles: list[float] | None = None

    def __post_init__(self) -> None:
        wanted = self.percentiles or []
        if len(wanted) > limits.DEVNET_PERCENTILES_MAX:
            raise ValueError(
                f"expected at most {limits.DEVNET_PERCENTILES_MAX} percentiles, got {len(wanted)}"
            )
        if any(not 0 <= percentile <= 100 for percentile in wanted) or wanted != sorted(wanted):
            raise ValueError("expected percentiles from 0 to 100 that rise")


class OfFilterId(_Positional):
    """Parameter of JSON-RPC methods that take only the id of a filter, a subscription or a snapshot."""

    id: Quantity


class OfMine(_Positional):
    """Parameters of `anvil_mine`: the number of blocks to mine, and the seconds between their times."""

    blocks: RpcNumber = RpcNumber(1)
    interval: RpcNumber = RpcNumber(0)


class MineOptions(Struct):
    """Options of `evm_mine`: number of blocks, and time of the first, Unix seconds.

    Attributes:
        timestamp: time of the first block; None for the time of the chain's clock.
    """

    timestamp: RpcNumber | None = None
    blocks: RpcNumber = RpcNumber(1)


class OfEvmMine(_Positional):
    """Parameter of `evm_mine`: the block's time, an object of MineOptions, or nothing."""

    options: Any = None

    def read(self) -> MineOptions:
        """Convert the parameter of `evm_mine` to MineOptions; a plain number is the block's time.

        Raises:
            RpcFault: error -32602: the parameter has another form.
        """
        if self.options is None or isinstance(self.options, dict):
            return decoded(self.options or {}, MineOptions)
        return MineOptions(decoded([self.options], OfSeconds).seconds)


class OfSeconds(_Positional):
    """Parameter of `evm_increaseTime`, a number of seconds, or `evm_setNextBlockTimestamp`, a Unix time."""

    seconds: RpcNumber


class OfSwitch(_Positional):
    """Parameter of `evm_setAutomine`: whether each sent transaction is mined at once."""

    on: bool


class OfBalance(_Positional):
    """Parameters of `anvil_setBalance`: an account, and its new balance in wei."""

    address: Address
    wei: Quantity


class OfWei(_Positional):
    """Parameter of `anvil_setNextBlockBaseFeePerGas`: a base fee in wei per unit of gas."""

    wei: Quantity


class OfReorg(_Positional):
    """Parameters of `anvil_reorg`: the number of blocks to replace, and the new blocks' transactions.

    Each transaction is a pair of the signed transaction and the index of its new block, from 0.
    """

    depth: RpcNumber
    transactions: list[tuple[Data, RpcNumber]] = []


class OfSubscription(_Positional):
    """Parameters of `eth_subscribe`: the kind; for logs a filter, for pending transactions whether whole."""

    kind: str
    filter: Filter | bool | UnsetType | None = UNSET


def decoded(parameters: object, kind: type[T]) -> T:
    """Decode the parameters of a JSON-RPC method to a struct.

    Args:
        parameters: decoded JSON.
        kind: type of the struct.

    Raises:
        RpcFault: error -32602, whose message names the invalid parameter.
    """
    try:
        return msgspec.convert(parameters, kind, dec_hook=_hook)
    except msgspec.ValidationError as error:
        raise RpcFault(INVALID_PARAMS, _named(str(error), kind)) from None


def _named(text: str, kind: Any) -> str:
    """Format msgspec's error text with the parameter's name in place of its index.

    Args:
        kind: parameter struct of the JSON-RPC method.
    """
    names = kind.__struct_fields__
    if text.startswith("Expected `array` of at most length"):
        return f"too many arguments, want at most {len(names)}"
    if few := _TOO_FEW.match(text):
        given = int(few[1])
        return f"missing value for required argument {given}: {names[given]}"
    if found := _PATH.match(text):
        at, rest = found["at"], found["rest"]
        name = names[int(at)] if at is not None and kind.__struct_config__.array_like else ""
        path = f"{name}{rest}".lstrip(".")
        words = found["words"]
        return f"invalid argument {at or 0}: {path}: {words[:1].lower()}{words[1:]}"
    return f"invalid arguments: {text[:1].lower()}{text[1:]}"
