"""What a key may sign: the last check before a signature exists, in front of every key.

A policy is an allow-list: a chain, a verifying contract or a token that it does not name is refused. It
knows nothing of prices or books; those who quote have their own limits, and this one holds when they fail.
"""

from collections.abc import Mapping

import msgspec

from ..config.errors import PolicyError
from .addresses import to_checksum
from .secp256k1 import SigningKey


class SigningPolicy(msgspec.Struct, frozen=True):
    """Bounds of one key.

    Attributes:
        contracts: (chain id, address) pairs that may be the verifying contract; this is the chain list too.
        amounts_max: (chain id, token) -> most raw units one signature may give away; None sets no bound.
        expiry_min_s, expiry_max_s: how far ahead the expiry must and may lie, in seconds.
    """

    contracts: frozenset[tuple[int, bytes]]
    amounts_max: Mapping[tuple[int, bytes], int] | None
    expiry_min_s: int
    expiry_max_s: int

    def check(
        self, chain_id: int, contract: bytes, token: bytes, amount: int, expiry_s: int, now_s: int
    ) -> None:
        """Pass, or raise PolicyError that says which bound was hit.

        Args:
            chain_id: of the signing domain.
            contract: 20 bytes, the domain's verifying contract.
            token: 20 bytes, what the signer gives.
            amount: raw units of it.
            expiry_s: Unix seconds; 0, never, is beyond every bound.
            now_s: wall clock, Unix seconds.
        """
        if (chain_id, contract) not in self.contracts:
            raise PolicyError(
                f"contract {to_checksum(contract)} on chain {chain_id} is not on this key's list"
            )
        if self.amounts_max is not None:
            most = self.amounts_max.get((chain_id, token))
            if most is None:
                raise PolicyError(f"token {to_checksum(token)} on chain {chain_id} is not on this key's list")
            if not 0 <= amount <= most:
                raise PolicyError(f"{amount} of token {to_checksum(token)}: this key signs at most {most}")
        ahead_s = expiry_s - now_s
        if not expiry_s or not self.expiry_min_s <= ahead_s <= self.expiry_max_s:
            raise PolicyError(
                f"an expiry {ahead_s} s ahead: this key signs {self.expiry_min_s} to {self.expiry_max_s} s"
            )


class PolicedKey:
    """A key that can only be used through its policy.

    Attributes:
        address: 20 bytes.
        policy: its policy.
    """

    __slots__ = ("_check", "_sign", "address", "policy")

    def __init__(self, key: SigningKey, policy: SigningPolicy) -> None:
        self._sign = key.sign
        self._check = policy.check
        self.policy = policy
        self.address = key.address

    def sign(
        self,
        digest32: bytes,
        *,
        chain_id: int,
        contract: bytes,
        token: bytes,
        amount: int,
        expiry_s: int,
        now_s: int,
    ) -> tuple[bytes, int]:
        """Check what the digest stands for, then sign it. Arguments as `SigningPolicy.check`.

        Returns:
            (rs64, recovery_id).

        Raises:
            PolicyError: nothing was signed.

        Not guaranteed: that the digest is of what the arguments say; the caller hashes the same values.
        """
        self._check(chain_id, contract, token, amount, expiry_s, now_s)
        return self._sign(digest32)

    def __repr__(self) -> str:
        return f"PolicedKey({to_checksum(self.address)})"
