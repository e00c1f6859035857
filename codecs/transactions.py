"""Sign transactions, the relayer's as EIP-1559, and decode signed transactions of the four kinds in use.

Kinds: 0 (legacy, with the chain id of EIP-155 in its signature), 1 (EIP-2930, an access list), 2 (EIP-1559,
a cap on the fee and a tip), 4 (EIP-7702, authorizations by which accounts delegate to a contract). Each
signature has one form: r and s in range, s in the lower half; that of an authorization may have any.

Choice: A transaction without a chain id is refused, since it is valid on every chain. Chain id 0 is refused
    too.

Source: EIP-155, EIP-1559, EIP-2718, EIP-2930, EIP-7702, EIP-2 (low-s), EIP-1014 (CREATE2).
"""

import msgspec

from ..config.errors import InvalidInput, InvalidSignature
from ..crypto.addresses import ADDRESS_BYTES
from ..crypto.custody.transaction_policy import PolicedRelayKey
from ..crypto.keccak import keccak256
from ..crypto.secp256k1 import CURVE_ORDER, HALF_ORDER, SigningKey, recover_address
from . import rlp

LEGACY, ACCESS_LIST, DYNAMIC_FEE, SET_CODE = 0, 1, 2, 4

_EIP155_V = 35  # v is this + 2 * chain id + parity
_SIGNATURE_ITEMS = 3
_AUTHORIZATION_BYTE = bytes([5])
_MEMBERS = {LEGACY: 6, ACCESS_LIST: 8, DYNAMIC_FEE: 9, SET_CODE: 10}
_TO_LENGTHS = (0, ADDRESS_BYTES)
_CHAIN_ID_BITS = 63
_BITS = {
    "chain_id": _CHAIN_ID_BITS,
    "nonce": 64,
    "tip_wei": 256,
    "fee_max_wei": 256,
    "gas": 64,
    "value_wei": 256,
}

AccessList = tuple[tuple[bytes, tuple[bytes, ...]], ...]
"""(contract address, storage slots of 32 bytes each) for each contract whose storage is declared."""


class Authorization(msgspec.Struct, frozen=True):
    """A signed permission that an account has a contract's code from now on (EIP-7702).

    Attributes:
        chain_id: chain on which it counts; 0 for every chain.
        address: the contract, 20 bytes; zero ends a delegation.
        nonce: the account's nonce at that moment.
        y_parity, r, s: the account's signature.
    """

    chain_id: int
    address: bytes
    nonce: int
    y_parity: int
    r: int
    s: int

    @property
    def authority(self) -> bytes | None:
        """Account that signed, 20 bytes; None for a signature that no key can have made."""
        if self.y_parity > 1 or not 0 < self.r < CURVE_ORDER or not 0 < self.s <= HALF_ORDER:
            return None
        rs64 = self.r.to_bytes(32, "big") + self.s.to_bytes(32, "big")
        try:
            digest32 = _authorization_digest(self.chain_id, self.address, self.nonce)
            return recover_address(digest32, rs64, self.y_parity)
        except InvalidSignature:
            return None


class Transaction(msgspec.Struct, frozen=True):
    """An unsigned transaction.

    Attributes:
        nonce: number of the sender's earlier transactions.
        tip_wei: most wei per unit of gas for the block producer, on top of the base fee.
        fee_max_wei: most wei per unit of gas, tip included. For a decoded transaction of kind 0 or 1, which
            has one gas price, tip_wei and fee_max_wei are both that price.
        gas: most units of gas that the transaction may use.
        to: address of 20 bytes, or empty to create a contract whose init code is `data`.
        authorizations: delegations of accounts; a transaction that has some is of kind 4.
    """

    chain_id: int
    nonce: int
    tip_wei: int
    fee_max_wei: int
    gas: int
    to: bytes
    value_wei: int
    data: bytes
    access_list: AccessList = ()
    authorizations: tuple[Authorization, ...] = ()


class SignedTransaction(msgspec.Struct, frozen=True):
    """A signed transaction: its raw bytes to send, and its 32-byte transaction hash."""

    raw: bytes
    tx_hash: bytes


class ReceivedTransaction(msgspec.Struct, frozen=True):
    """A signed transaction, decoded, with its recovered sender.

    Attributes:
        sender: 20 bytes, the address of the signing key.
        kind: LEGACY, ACCESS_LIST, DYNAMIC_FEE or SET_CODE.
        rs64, y_parity: r and s of the signature, and its parity, which kind 0 encodes in `v`.
    """

    transaction: Transaction
    sender: bytes
    tx_hash: bytes
    kind: int
    rs64: bytes
    y_parity: int

    @property
    def v(self) -> int:
        """Value `v` of the signature, as JSON-RPC shows it.

        For kind 0 the value encodes chain id and parity (EIP-155); for other kinds it is the parity.
        """
        if self.kind == LEGACY:
            return _EIP155_V + 2 * self.transaction.chain_id + self.y_parity
        return self.y_parity


def sign_transaction(tx: Transaction, key: SigningKey | PolicedRelayKey) -> SignedTransaction:
    """Sign a transaction as EIP-1559 (kind 2), or one with authorizations as EIP-7702 (kind 4).

    Raises:
        PolicyError: the key's policy forbids the transaction; no signature is made.
        ValueError: a number out of its range, `to` of another length: a programmer's error.

    Guarantees: the same bytes for the same transaction and key; `decode_transaction` reads the bytes back.
    """
    _check(tx)
    encode = rlp.encode
    # The members are encoded once, for two lists: the list that is signed, and the list with the signature.
    body = b"".join(
        (
            encode(tx.chain_id),
            encode(tx.nonce),
            encode(tx.tip_wei),
            encode(tx.fee_max_wei),
            encode(tx.gas),
            encode(tx.to),
            encode(tx.value_wei),
            encode(tx.data),
            encode(tx.access_list),
        )
    )
    kind = DYNAMIC_FEE
    if tx.authorizations:
        kind, body = SET_CODE, body + encode([_as_list(one) for one in tx.authorizations])
    head = bytes([kind])
    digest32 = keccak256(head + rlp.wrap(body))
    if isinstance(key, SigningKey):
        rs64, y_parity = key.sign(digest32)
    else:
        rs64, y_parity = key.sign(
            digest32,
            chain_id=tx.chain_id,
            to=tx.to,
            value_wei=tx.value_wei,
            gas=tx.gas,
            fee_max_wei=tx.fee_max_wei,
        )
    r, s = int.from_bytes(rs64[:32], "big"), int.from_bytes(rs64[32:], "big")
    raw = head + rlp.wrap(body + encode(y_parity) + encode(r) + encode(s))
    return SignedTransaction(raw, keccak256(raw))


def sign_authorization(chain_id: int, address: bytes, nonce: int, key: SigningKey) -> Authorization:
    """Sign an authorization by which the key's account has a contract's code (EIP-7702).

    Args:
        chain_id: chain on which it counts; 0 for every chain.
        address: the contract, 20 bytes; zero ends a delegation.
        nonce: nonce of the account when it is used: one more if the account itself sends the transaction.
    """
    rs64, y_parity = key.sign(_authorization_digest(chain_id, address, nonce))
    r, s = int.from_bytes(rs64[:32], "big"), int.from_bytes(rs64[32:], "big")
    return Authorization(chain_id, address, nonce, y_parity, r, s)


def sign_priced_transaction(tx: Transaction, key: SigningKey, kind: int) -> SignedTransaction:
    """Sign a transaction with one gas price, `fee_max_wei`, as kind 0 or 1.

    Args:
        kind: LEGACY, with the chain id in the signature (EIP-155) and no access list, or ACCESS_LIST.

    Raises:
        ValueError: a number out of its range, `to` of another length, an access list in kind 0, or another
            kind: a programmer's error.
    """
    _check(tx)
    if kind not in (LEGACY, ACCESS_LIST) or (kind == LEGACY and tx.access_list):
        raise ValueError(f"kind {kind} has no gas price, or no access list")
    members: list[rlp.Encodable] = [tx.nonce, tx.fee_max_wei, tx.gas, tx.to, tx.value_wei, tx.data]
    if kind == LEGACY:
        rs64, y_parity = key.sign(keccak256(rlp.encode([*members, tx.chain_id, 0, 0])))
        head, v = b"", _EIP155_V + 2 * tx.chain_id + y_parity
    else:
        head, members = bytes([ACCESS_LIST]), [tx.chain_id, *members, tx.access_list]
        rs64, v = key.sign(keccak256(head + rlp.encode(members)))
    r, s = int.from_bytes(rs64[:32], "big"), int.from_bytes(rs64[32:], "big")
    raw = head + rlp.encode([*members, v, r, s])
    return SignedTransaction(raw, keccak256(raw))


def decode_transaction(raw: bytes) -> ReceivedTransaction:
    """Decode a signed transaction and recover its sender.

    Args:
        raw: the transaction as it is sent: an RLP list (kind 0), or the kind's byte and an RLP list.

    Raises:
        InvalidInput: `raw` is of another kind, is malformed, has no chain id, or has a signature that no key
            can have made.

    Not guaranteed: that a chain accepts the transaction; the caller checks chain id, nonce, funds and fees
    as needed.
    """
    first = raw[:1]
    if not first:
        raise InvalidInput(field="transaction", expected="a signed transaction", got="nothing")
    # A legacy transaction is an RLP list, whose first byte is 0xC0 or more; a first byte of 0 names no kind.
    kind = LEGACY if first[0] >= 0xC0 else first[0]
    if kind not in _MEMBERS or first[0] == LEGACY:
        raise InvalidInput(field="transaction", expected="kind 0, 1, 2 or 4", got=f"0x{first.hex()}")
    items = rlp.as_list(
        rlp.decode(raw[1:] if kind else raw), "transaction", _MEMBERS[kind] + _SIGNATURE_ITEMS
    )
    members, (v_item, r_item, s_item) = items[: _MEMBERS[kind]], items[_MEMBERS[kind] :]
    # v of the legacy kind is 35 + 2 * chain id + parity, and so up to two bits longer than the chain id.
    v = rlp.as_uint(v_item, "yParity", 1) if kind else rlp.as_uint(v_item, "v", _CHAIN_ID_BITS + 2)
    r, s = rlp.as_uint(r_item, "r"), rlp.as_uint(s_item, "s")
    # The members encoded anew are the signed bytes, since `rlp.decode` accepts no second form of an item.
    if kind == LEGACY:
        tx, y_parity = _legacy(members, v)
        digest32 = keccak256(rlp.encode([*members, tx.chain_id, 0, 0]))
    else:
        tx, y_parity = _typed(kind, members), v
        digest32 = keccak256(first + rlp.encode(members))
    rs64 = _checked_rs64(r, s)
    try:
        sender = recover_address(digest32, rs64, y_parity)
    except InvalidSignature as error:
        raise InvalidInput(error.detail, field="transaction") from None
    return ReceivedTransaction(tx, sender, keccak256(raw), kind, rs64, y_parity)


def contract_address(sender: bytes, nonce: int) -> bytes:
    """Compute the 20-byte address of the contract that `sender`'s transaction with that nonce creates."""
    return keccak256(rlp.encode([sender, nonce]))[12:]


def create2_address(factory: bytes, salt32: bytes, init_code: bytes) -> bytes:
    """Compute the 20-byte address of a contract that `factory` creates with CREATE2."""
    return keccak256(b"\xff" + factory + salt32 + keccak256(init_code))[12:]


def _check(tx: Transaction) -> None:
    for name, bits in _BITS.items():
        number = getattr(tx, name)
        if number < 0 or number >> bits:
            raise ValueError(f"a transaction's {name} is 0 to 2^{bits} - 1, not {number}")
    if not tx.chain_id:
        raise ValueError("a transaction is for one chain; 0 is none")
    if len(tx.to) not in _TO_LENGTHS:
        raise ValueError(f"a transaction goes to 20 bytes or creates, not {len(tx.to)} bytes")


def _legacy(members: list[rlp.Item], v: int) -> tuple[Transaction, int]:
    chain_id, y_parity = divmod(v - _EIP155_V, 2)
    if chain_id < 1 or chain_id >> _CHAIN_ID_BITS:
        expected = f"a chain id in it (EIP-155), below 2^{_CHAIN_ID_BITS}"
        raise InvalidInput(field="v", expected=expected, got=v)
    nonce, price, gas, to, value, data = members
    price_wei = rlp.as_uint(price, "gasPrice")
    return _transaction(chain_id, nonce, price_wei, price_wei, gas, to, value, data), y_parity


def _typed(kind: int, members: list[rlp.Item]) -> Transaction:
    authorizations: tuple[Authorization, ...] = ()
    if kind == SET_CODE:
        members, listed = members[:-1], members[-1]
        authorizations = tuple(map(_authorization, rlp.as_list(listed, "authorizationList")))
        if not authorizations:
            raise InvalidInput(field="authorizationList", expected="an authorization at least", got="none")
    chain, nonce, *prices, gas, to, value, data, access_list = members
    if kind == SET_CODE:
        rlp.as_bytes(to, "to", (ADDRESS_BYTES,))
    chain_id = rlp.as_uint(chain, "chainId", _CHAIN_ID_BITS)
    if not chain_id:
        raise InvalidInput(field="chainId", expected="a chain", got=0)
    if kind == ACCESS_LIST:
        tip_wei = fee_max_wei = rlp.as_uint(prices[0], "gasPrice")
    else:
        tip_wei = rlp.as_uint(prices[0], "maxPriorityFeePerGas")
        fee_max_wei = rlp.as_uint(prices[1], "maxFeePerGas")
    slots = _access_list(access_list)
    made = _transaction(chain_id, nonce, tip_wei, fee_max_wei, gas, to, value, data, slots)
    return msgspec.structs.replace(made, authorizations=authorizations)


def _authorization(item: rlp.Item) -> Authorization:
    chain, address, nonce, y_parity, r, s = rlp.as_list(item, "authorizationList", 6)
    return Authorization(
        rlp.as_uint(chain, "authorizationList.chainId"),
        rlp.as_bytes(address, "authorizationList.address", (ADDRESS_BYTES,)),
        rlp.as_uint(nonce, "authorizationList.nonce", _BITS["nonce"]),
        rlp.as_uint(y_parity, "authorizationList.yParity", 8),
        rlp.as_uint(r, "authorizationList.r"),
        rlp.as_uint(s, "authorizationList.s"),
    )


def _as_list(one: Authorization) -> list[rlp.Encodable]:
    return [one.chain_id, one.address, one.nonce, one.y_parity, one.r, one.s]


def _authorization_digest(chain_id: int, address: bytes, nonce: int) -> bytes:
    return keccak256(_AUTHORIZATION_BYTE + rlp.encode([chain_id, address, nonce]))


def _transaction(
    chain_id: int,
    nonce: rlp.Item,
    tip_wei: int,
    fee_max_wei: int,
    gas: rlp.Item,
    to: rlp.Item,
    value: rlp.Item,
    data: rlp.Item,
    access_list: AccessList = (),
) -> Transaction:
    return Transaction(
        chain_id=chain_id,
        nonce=rlp.as_uint(nonce, "nonce", _BITS["nonce"]),
        tip_wei=tip_wei,
        fee_max_wei=fee_max_wei,
        gas=rlp.as_uint(gas, "gas", _BITS["gas"]),
        to=rlp.as_bytes(to, "to", _TO_LENGTHS),
        value_wei=rlp.as_uint(value, "value"),
        data=rlp.as_bytes(data, "data"),
        access_list=access_list,
    )


def _access_list(item: rlp.Item) -> AccessList:
    entries = [rlp.as_list(entry, "accessList", 2) for entry in rlp.as_list(item, "accessList")]
    return tuple(
        (
            rlp.as_bytes(address, "accessList", (ADDRESS_BYTES,)),
            tuple(rlp.as_bytes(slot, "accessList", (32,)) for slot in rlp.as_list(slots, "accessList")),
        )
        for address, slots in entries
    )


def _checked_rs64(r: int, s: int) -> bytes:
    if not 0 < r < CURVE_ORDER:
        raise InvalidInput(field="r", expected="above zero and below the curve order", got=r)
    if not 0 < s <= HALF_ORDER:
        raise InvalidInput(field="s", expected="above zero, in the lower half of the curve order", got=s)
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")
