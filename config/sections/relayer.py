"""Settings of a relayer: the key that sends a chain's transactions, and their fee bounds."""

import msgspec

from .. import limits, timeouts


class RelayerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of the account (relayer) that sends the venue's transactions on one chain.

    A transaction is final once it is `confirmations` (`[chains]`) blocks deep.

    Attributes:
        key: name of the account's signing key; no other program may send transactions with that key.
        fee_cap_wei: most wei for a unit of gas; a transaction that needs more waits.
        tip_min_wei, tip_max_wei: bounds of a transaction's first tip, in wei per unit of gas.
        bump_bps: basis points by which a replacement transaction raises the tip and the fee limit; nodes
            require at least 1000.
        stuck_s: seconds after which the oldest unmined transaction is replaced at higher fees.
        in_flight_max: most sent transactions that are not mined yet.
        gas_floor_wei: least balance of the account, in wei, for a new transaction to be sent.
        gas_max: most units of gas of one transaction.
    """

    key: str
    fee_cap_wei: int = limits.RELAY_FEE_CAP_WEI
    tip_min_wei: int = 0
    tip_max_wei: int = limits.RELAY_TIP_WEI_MAX
    bump_bps: int = limits.RELAY_BUMP_BPS
    stuck_s: float = timeouts.RELAY_STUCK_S
    in_flight_max: int = limits.RELAY_IN_FLIGHT_MAX
    gas_floor_wei: int = 0
    gas_max: int = limits.RELAY_GAS_MAX

    def __post_init__(self) -> None:
        if not 1 <= self.fee_cap_wei <= limits.RELAY_WEI_MAX:
            raise ValueError(f"fee_cap_wei is 1 to {limits.RELAY_WEI_MAX}, got {self.fee_cap_wei}")
        if not 0 <= self.tip_min_wei <= self.tip_max_wei <= self.fee_cap_wei:
            raise ValueError("tip_min_wei, tip_max_wei and fee_cap_wei must not fall in this order")
        if not 0 <= self.gas_floor_wei <= limits.RELAY_WEI_MAX:
            raise ValueError(f"gas_floor_wei is 0 to {limits.RELAY_WEI_MAX}, got {self.gas_floor_wei}")
        if not 1_000 <= self.bump_bps <= 10_000:
            raise ValueError(f"bump_bps is 1000 to 10000, got {self.bump_bps}")
        if not 1 <= self.stuck_s <= 3_600:
            raise ValueError(f"stuck_s is 1 to 3600, got {self.stuck_s}")
        if not 1 <= self.in_flight_max <= 32:
            raise ValueError(f"in_flight_max is 1 to 32, got {self.in_flight_max}")
        if not 21_000 <= self.gas_max <= 1_000_000_000:
            raise ValueError(f"gas_max is 21000 to 1000000000, got {self.gas_max}")
