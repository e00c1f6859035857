"""The signing policy of a relayer's key: the last check before a transaction's signature.

The policy is an allow-list, as in `signing_policy`: an unnamed chain or contract is refused, and the policy
holds when the relayer's own limits fail.
"""

import msgspec

from ...config.errors import PolicyError
from ..addresses import to_checksum
from ..secp256k1 import SigningKey


class TransactionPolicy(msgspec.Struct, frozen=True):
    """Limits on the transactions of one key.

    A transaction costs at most gas_max * fee_max_wei + value_max_wei.

    Attributes:
        contracts: (chain id, address) pairs that a transaction may go to.
        fee_max_wei: most wei per unit of gas.
        gas_max: most units of gas.
        value_max_wei: most wei that a transaction may carry.
        creates_on: ids of the chains where a transaction may create contracts.
    """

    contracts: frozenset[tuple[int, bytes]]
    fee_max_wei: int
    gas_max: int
    value_max_wei: int = 0
    creates_on: frozenset[int] = frozenset()

    def check(self, chain_id: int, to: bytes, value_wei: int, gas: int, fee_max_wei: int) -> None:
        """Check a transaction to sign against the limits; PolicyError names the violated limit.

        Args:
            to: 20 bytes; empty creates a contract.
            value_wei: wei that the transaction carries.
            gas: units of gas that the transaction may use.
            fee_max_wei: most wei that the transaction may pay per unit of gas.
        """
        if not to and chain_id not in self.creates_on:
            raise PolicyError(f"this key creates no contracts on chain {chain_id}")
        if to and (chain_id, to) not in self.contracts:
            raise PolicyError(f"contract {to_checksum(to)} on chain {chain_id} is not on this key's list")
        for name, number, most in (
            ("value in wei", value_wei, self.value_max_wei),
            ("gas", gas, self.gas_max),
            ("fee per gas in wei", fee_max_wei, self.fee_max_wei),
        ):
            if not 0 <= number <= most:
                raise PolicyError(f"{name} {number}: this key signs at most {most}")


class PolicedRelayKey:
    """A private key that signs only transactions that its policy allows.

    Attributes:
        address: 20 bytes.
        policy: policy of the key.
    """

    __slots__ = ("_sign", "address", "policy")

    def __init__(self, key: SigningKey, policy: TransactionPolicy) -> None:
        self._sign = key.sign
        self.policy = policy
        self.address = key.address

    def sign(
        self, digest32: bytes, *, chain_id: int, to: bytes, value_wei: int, gas: int, fee_max_wei: int
    ) -> tuple[bytes, int]:
        """Check the transaction's values against the policy, then sign its digest.

        The values to check are the arguments of `TransactionPolicy.check`.

        Returns:
            (rs64, recovery_id): r and s of the signature, and 0 or 1.

        Raises:
            PolicyError: the policy forbids the transaction; no signature is made.

        Not guaranteed: that the digest belongs to the arguments; `codecs.transactions` hashes the same
        values.
        """
        self.policy.check(chain_id, to, value_wei, gas, fee_max_wei)
        return self._sign(digest32)

    def __repr__(self) -> str:
        return f"PolicedRelayKey({to_checksum(self.address)})"
