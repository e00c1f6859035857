"""Process that does the work of cambist's codecs by eth-account and eth-abi.

The work is to hash and sign RFQ orders, recover their signers, sign transactions, encode calls and decode
events. The process reads lines "operation count" and answers the last result in hexadecimal. Runs in
.venv-peers.
"""

# pyright: reportMissingImports=false
import sys
from typing import Any

from eth_abi import decode, encode
from eth_account import Account
from eth_account.messages import encode_typed_data

KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
DOMAIN = {
    "name": "AUGUSTUS RFQ",
    "version": "1",
    "chainId": 31337,
    "verifyingContract": "0x5FbDB2315678afecb367f032d93F642f64180aa3",
}
TYPES = {
    "Order": [
        {"name": "nonceAndMeta", "type": "uint256"},
        {"name": "expiry", "type": "uint128"},
        {"name": "makerAsset", "type": "address"},
        {"name": "takerAsset", "type": "address"},
        {"name": "maker", "type": "address"},
        {"name": "taker", "type": "address"},
        {"name": "makerAmount", "type": "uint256"},
        {"name": "takerAmount", "type": "uint256"},
    ]
}


def order(number: int) -> dict[str, Any]:
    """Return the same RFQ order as `rfq_order` of bench/fixtures.py, as EIP-712 members by name."""
    return {
        "nonceAndMeta": (number << 160) | 0xF39FD6E51AAD88F6F4CE6AB8827279CFFFB92266,
        "expiry": 1_900_000_000,
        "makerAsset": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
        "takerAsset": "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2",
        "maker": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "taker": "0x5FbDB2315678afecb367f032d93F642f64180aa3",
        "makerAmount": 2_270_000_000 + number,
        "takerAmount": 1_500_000_000_000_000_000,
    }


def sign(number: int) -> bytes:
    signable = encode_typed_data(DOMAIN, TYPES, order(number))
    return bytes(Account.sign_message(signable, KEY).signature)


SIGNABLE = encode_typed_data(DOMAIN, TYPES, order(0))
SIGNATURE = sign(0)


def recover(_: int) -> bytes:
    return bytes.fromhex(Account.recover_message(SIGNABLE, signature=SIGNATURE)[2:])


def transaction(number: int) -> bytes:
    """Sign the same transaction as bench/bench_chain_codecs.py does."""
    signed = Account.sign_transaction(
        {
            "chainId": 31337,
            "nonce": number,
            "maxPriorityFeePerGas": 1_000_000_000,
            "maxFeePerGas": 30_000_000_000,
            "gas": 250_000,
            "to": "0x5FbDB2315678afecb367f032d93F642f64180aa3",
            "value": 0,
            "data": CALL,
        },
        KEY,
    )
    return bytes(signed.raw_transaction)


FILL_ORDER = bytes.fromhex("98f9b46b")  # checked against ours by the bench
FILL_TYPES = ["(uint256,uint128,address,address,address,address,uint256,uint256)", "bytes"]
EVENT_TYPES = ["address", "address", "address", "uint256", "address", "uint256"]


def fill_order(number: int) -> bytes:
    return FILL_ORDER + bytes(encode(FILL_TYPES, [tuple(order(number).values()), SIGNATURE]))


def order_filled(number: int) -> bytes:
    """Decode an OrderFilled event, and return its members as text, separated by spaces."""
    members = decode(EVENT_TYPES, EVENTS[number % len(EVENTS)])
    return " ".join(map(str, members)).encode()


def event(number: int) -> bytes:
    """Encode the members of an OrderFilled event, all but the order hash, as ABI words."""
    filled = order(number)
    names = ["maker", "taker", "makerAsset", "makerAmount", "takerAsset", "takerAmount"]
    return bytes(encode(EVENT_TYPES, [filled[name] for name in names]))


CALL = fill_order(0)
EVENTS = [event(number) for number in range(100)]


if __name__ == "__main__":
    operations = {
        "sign": sign,
        "recover": recover,
        "transaction": transaction,
        "fill_order": fill_order,
        "order_filled": order_filled,
    }
    for line in sys.stdin:
        name, count = line.split()
        result = b""
        for number in range(int(count)):
            result = operations[name](number)
        sys.stdout.write(result.hex() + "\n")
        sys.stdout.flush()
