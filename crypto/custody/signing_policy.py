"""The signing policy of a key: the last check before every signature.

A policy is an allow-list: a chain or a verifying contract that it does not name is refused, and so is a token
if the policy bounds amounts. A policy knows nothing of prices or books; the quoting code has limits of its
own, and the policy holds when these limits fail.
"""

from collections.abc import Callable, Mapping

import msgspec

from ...config.errors import PolicyError
from ..addresses import to_checksum
from ..secp256k1 import SigningKey


class SigningPolicy(msgspec.Struct, frozen=True):
    """Limits on the order signatures of one key.

    Attributes:
        contracts: (chain id, address) pairs that may be the verifying contract; other chains are refused too.
        amounts_max: (chain id, token) -> most raw units that one signature may give away; other tokens are
            refused. None sets no bound.
        expiry_min_s, expiry_max_s: least and greatest seconds from the signature to the expiry.
    """

    contracts: frozenset[tuple[int, bytes]]
    amounts_max: Mapping[tuple[int, bytes], int] | None
    expiry_min_s: int
    expiry_max_s: int

    def check(
        self, chain_id: int, contract: bytes, token: bytes, amount: int, expiry_s: int, now_s: int
    ) -> None:
        """Check an order to sign against the limits; PolicyError names the violated limit.

        Args:
            chain_id: chain of the signing domain.
            contract: 20 bytes, the domain's verifying contract.
            token: 20 bytes, the token that the signer gives.
            amount: raw units of the token.
            expiry_s: expiry in Unix seconds; 0 means no expiry and violates every policy.
            now_s: wall clock, Unix seconds.
        """
        self.check_contract(chain_id, contract)
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

    def check_contract(self, chain_id: int, contract: bytes) -> None:
        """Raise PolicyError for a contract that the policy does not list."""
        if (chain_id, contract) not in self.contracts:
            raise PolicyError(
                f"contract {to_checksum(contract)} on chain {chain_id} is not on this key's list"
            )


class PolicedKey:
    """A private key that signs only what its policy allows.

    Attributes:
        address: 20 bytes.
        policy: policy of the key.
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
        """Check the order's values against the policy, then sign its digest.

        The values to check are the arguments of `SigningPolicy.check`.

        Returns:
            (rs64, recovery_id): r and s of the signature, and 0 or 1.

        Raises:
            PolicyError: the policy forbids the order; no signature is made.

        Not guaranteed: that the digest belongs to the arguments; the caller hashes the same values.
        """
        self._check(chain_id, contract, token, amount, expiry_s, now_s)
        return self._sign(digest32)

    def signer_for(
        self, chain_id: int, contract: bytes
    ) -> Callable[[bytes, bytes, int, int, int], tuple[bytes, int]]:
        """Make a faster `sign` for the orders of one chain and contract; the contract is checked here, once.

        Returns:
            (digest32, token, amount, expiry_s, now_s) -> (rs64, recovery_id). The function raises PolicyError
            for an amount or expiry that the policy forbids.

        Raises:
            PolicyError: the policy does not list the contract.
        """
        policy, sign_digest = self.policy, self._sign
        policy.check_contract(chain_id, contract)
        amounts_max, least_s, most_s = policy.amounts_max, policy.expiry_min_s, policy.expiry_max_s

        def sign(digest32: bytes, token: bytes, amount: int, expiry_s: int, now_s: int) -> tuple[bytes, int]:
            if amounts_max is not None or not least_s <= expiry_s - now_s <= most_s:
                policy.check(chain_id, contract, token, amount, expiry_s, now_s)
            return sign_digest(digest32)

        return sign

    def __repr__(self) -> str:
        return f"PolicedKey({to_checksum(self.address)})"
