"""The parameters of each JSON-RPC method, and their decoding.

Each method has a struct whose members are its positional parameters, in order. Text for bytes or numbers is
decoded here. Errors name the parameter, the expected form and the value received.

Quantities may have leading zeros, and be JSON numbers where development nodes take them.

Source: the Ethereum execution API; EIP-1474 (quantities and data); EIP-1898 (a block by its hash).
"""

import re
from typing import Any, Self, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

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
    """A number of at most 256 bits, as 0x text."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a JSON value; ValueError if it is not of this type."""
        if isinstance(value, str) and _QUANTITY.match(value):
            return cls(int(value, 16))
        raise _refuse("a quantity: 0x and 1 to 64 hexadecimal digits", value)


class RpcNumber(int):
    """A number, as 0x text or as a JSON number."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a JSON value; ValueError if it is not of this type."""
        number = value if type(value) is int else Quantity.read(value)
        if not 0 <= number <= limits.CHAIN_COUNT_MAX:
            raise _refuse(f"a number from 0 to {limits.CHAIN_COUNT_MAX}", value)
        return cls(number)


class StorageSlot(int):
    """The index of a contract's storage slot: a quantity, or 32 bytes."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a JSON value; ValueError if it is not of this type."""
        return cls(Quantity.read(value))


class Data(bytes):
    """Bytes as 0x text."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a JSON value; ValueError if it is not of this type."""
        try:
            return cls(parse_hex(value, "data"))
        except InvalidInput as error:
            raise _refuse(str(error.expected), value) from None


class Address(bytes):
    """20 bytes as 0x text, in any case."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a JSON value; ValueError if it is not of this type."""
        try:
            return cls(parse_address(value))
        except InvalidInput as error:
            raise _refuse(str(error.expected), value) from None


class Hash32(bytes):
    """32 bytes as 0x text."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a JSON value; ValueError if it is not of this type."""
        data = Data.read(value)
        if len(data) != 32:
            raise _refuse("32 bytes", value)
        return cls(data)


class BlockRef:
    """A reference to a block, by tag, height or hash.

    Attributes:
        named: `latest`, `pending`, `safe`, `finalized`, `earliest`, a height, or a hash of 32 bytes.
    """

    __slots__ = ("named",)

    WORDS = ("latest", "pending", "safe", "finalized", "earliest")

    def __init__(self, named: str | int | bytes) -> None:
        self.named = named

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a JSON value; ValueError if it is not of this type."""
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
    """A topic or address to match, several alternatives, or null for any."""

    __slots__ = ()
    READ: Any = Hash32

    @classmethod
    def read(cls, value: object) -> Self:
        """Decode a JSON value; ValueError if it is not of this type."""
        if value is None:
            return cls()
        items = value if isinstance(value, list) else [value]
        if len(items) > limits.DEVNET_FILTER_ITEMS_MAX:
            raise ValueError(f"expected at most {limits.DEVNET_FILTER_ITEMS_MAX}, got {len(items)}")
        return cls(bytes(cls.READ.read(item)) for item in items)


class FilterAddresses(FilterValues):
    """The addresses of a log filter."""

    __slots__ = ()
    READ = Address


def _hook(kind: Any, value: object) -> object:
    """Decode a type that JSON lacks, by its `read`."""
    return kind.read(value)


class UnsignedTransaction(Struct, rename="camel"):
    """An unsigned transaction; unknown members are ignored."""

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

    def __post_init__(self) -> None:
        if self.data is not None and self.input is not None and self.data != self.input:
            raise ValueError("expected data and input to be the same where both are given")

    def calldata(self) -> bytes:
        """Return the calldata, from `data` or `input`."""
        return bytes(self.input if self.input is not None else self.data or b"")


class Filter(Struct, rename="camel"):
    """A log filter: blocks, addresses and topics."""

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
        """Return the chain port's filter, without the blocks."""
        return LogFilter(tuple(self.address or ()), tuple(tuple(topic or ()) for topic in self.topics))


class _Positional(Struct, array_like=True, forbid_unknown_fields=True):
    """Positional parameters."""


class Nothing(_Positional):
    """No parameter."""


class OfAccount(_Positional):
    """An account at a block."""

    address: Address
    block: BlockRef = BlockRef("latest")


class OfSlot(_Positional):
    """A word of storage at a block."""

    address: Address
    slot: StorageSlot
    block: BlockRef = BlockRef("latest")


class BlockOverrides(Struct, forbid_unknown_fields=True):
    """Block values that a call overrides: the time alone; geth's other overrides are refused."""

    time: RpcNumber | None = None


class OfCall(_Positional):
    """A message, executed on a block."""

    transaction: UnsignedTransaction
    block: BlockRef | None = None
    overrides: dict[str, Any] | None = None
    block_overrides: BlockOverrides | None = None

    def __post_init__(self) -> None:
        if self.overrides:
            raise ValueError("expected no state overrides: this node has none")


class OfBlock(_Positional):
    """A block by height or tag, with whole transactions or their hashes."""

    block: BlockRef
    full: bool = False


class OfBlockHash(_Positional):
    """A block by its hash."""

    hash: Hash32
    full: bool = False


class OnlyBlock(_Positional):
    """A block by height, tag or hash."""

    block: BlockRef


class OnlyHash(_Positional):
    """The hash of a block or of a transaction."""

    hash: Hash32


class OfPlace(_Positional):
    """A transaction by its index in a block."""

    block: BlockRef
    index: Quantity


class OfHashPlace(_Positional):
    """A transaction by its index in a block, by the block's hash."""

    hash: Hash32
    index: Quantity


class OfRaw(_Positional):
    """A signed transaction, or other bytes."""

    raw: Data


class OfMessage(_Positional):
    """A transaction that this node signs."""

    transaction: UnsignedTransaction


class OfAccountData(_Positional):
    """An account of this node and the bytes to sign, in the order of `eth_sign`."""

    address: Address
    data: Data


class OfDataAccount(_Positional):
    """Parameters of `personal_sign`: the bytes to sign, an account of this node, and an ignored password."""

    data: Data
    address: Address
    password: str | None = None


class OfTypedData(_Positional):
    """An account of this node and the typed data to sign: an object, or its JSON as text."""

    address: Address
    typed_data: dict[str, Any] | str


class ChainWanted(Struct, rename="camel"):
    """The parameter of wallet_switchEthereumChain.

    Source: EIP-3326.
    """

    chain_id: Quantity


class OfChain(_Positional):
    """The chain that a wallet should switch to."""

    chain: ChainWanted


class OfLogs(_Positional):
    """A log filter."""

    filter: Filter


class OfFeeHistory(_Positional):
    """Number of blocks, the newest block, and the reward percentiles."""

    blocks: RpcNumber
    newest: BlockRef
    percentiles: list[float] | None = None

    def __post_init__(self) -> None:
        wanted = self.percentiles or []
        if len(wanted) > limits.DEVNET_PERCENTILES_MAX:
            raise ValueError(
                f"expected at most {limits.DEVNET_PERCENTILES_MAX} percentiles, got {len(wanted)}"
            )
        if any(not 0 <= one <= 100 for one in wanted) or wanted != sorted(wanted):
            raise ValueError("expected percentiles from 0 to 100 that rise")


class OfFilterId(_Positional):
    """The id of a filter, a subscription or a snapshot."""

    id: Quantity


class OfMine(_Positional):
    """The number of blocks to mine, and the seconds between them."""

    blocks: RpcNumber = RpcNumber(1)
    interval: RpcNumber = RpcNumber(0)


class MineOptions(Struct):
    """The options object of `evm_mine`."""

    timestamp: RpcNumber | None = None
    blocks: RpcNumber = RpcNumber(1)


class OfEvmMine(_Positional):
    """The parameter of `evm_mine`: the block's time, an object of MineOptions, or nothing."""

    options: Any = None

    def read(self) -> MineOptions:
        """The parameters as options."""
        if self.options is None or isinstance(self.options, dict):
            return decoded(self.options or {}, MineOptions)
        return MineOptions(decoded([self.options], OfSeconds).seconds)


class OfSeconds(_Positional):
    """Seconds, or a Unix time in seconds."""

    seconds: RpcNumber


class OfSwitch(_Positional):
    """A switch, on or off."""

    on: bool


class OfBalance(_Positional):
    """An account and its new balance in wei."""

    address: Address
    wei: Quantity


class OfWei(_Positional):
    """An amount in wei."""

    wei: Quantity


class OfReorg(_Positional):
    """The depth of a re-organisation, and transactions with the index of their new block."""

    depth: RpcNumber
    transactions: list[tuple[Data, RpcNumber]] = []


class OfSubscription(_Positional):
    """The kind of a subscription, and its log filter."""

    kind: str
    filter: Filter | UnsetType | None = UNSET


def decoded(parameters: object, kind: type[T]) -> T:
    """Decode the parameters of a method.

    Args:
        parameters: decoded JSON.

    Raises:
        RpcFault: -32602; names the parameter.
    """
    try:
        return msgspec.convert(parameters, kind, dec_hook=_hook)
    except msgspec.ValidationError as error:
        raise RpcFault(INVALID_PARAMS, _named(str(error), kind)) from None


def _named(text: str, kind: Any) -> str:
    """Format msgspec's error text with the parameter's name in place of its index."""
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
