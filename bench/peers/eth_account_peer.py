"""eth-account doing what our signer does: hash and sign RFQ orders, recover their signers.

Reads "operation count" lines, answers each with the last result in hexadecimal. Runs in .venv-peers.
"""

# pyright: reportMissingImports=false
import sys
from typing import Any

from eth_account import Account
from eth_account.messages import encode_typed_data

KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
DOMAIN = {
    "name": "Cambist RFQ",
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
    """The same orders as bench/fixtures.py makes."""
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


if __name__ == "__main__":
    operations = {"sign": sign, "recover": recover}
    for line in sys.stdin:
        name, count = line.split()
        result = b""
        for number in range(int(count)):
            result = operations[name](number)
        sys.stdout.write(result.hex() + "\n")
        sys.stdout.flush()
