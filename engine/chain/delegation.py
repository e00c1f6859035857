"""Code of accounts that have delegated to a contract. Pure.

Source: EIP-7702: the code of such an account is 0xef0100 and the contract's address.
"""

DELEGATION_PREFIX = bytes.fromhex("ef0100")
_DELEGATION_BYTES = len(DELEGATION_PREFIX) + 20


def is_delegation(code: bytes) -> bool:
    """Whether an account's code is a delegation: a key still holds the account."""
    return len(code) == _DELEGATION_BYTES and code.startswith(DELEGATION_PREFIX)
