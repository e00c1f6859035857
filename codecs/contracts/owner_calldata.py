"""Calldata of calls that only a contract's owner may make, and of reads of the owner's settings.

    Delta, Router   pause, pauser and caps, which hold until they are lifted; the receiver of protocol fees
    Delta           relayers
    RfqExecutor     its callers
    FeeVault        the contracts that may credit
    all but Rfq     the owner, handed over in two steps

Source: contracts/lib/Guardrails.sol, contracts/lib/Owned.sol and the contracts named.
"""

from .abi import address_word, selector, uint_word

SET_PAUSED = selector("setPaused(bool)")
SET_PAUSER = selector("setPauser(address)")
PAUSE = selector("pause()")
SET_CAP = selector("setCap(address,uint256)")
SET_RELAYER = selector("setRelayer(address,bool)")
SET_CALLER = selector("setCaller(address,bool)")
SET_COLLECTOR = selector("setCollector(address,bool)")
PROPOSE_OWNER = selector("proposeOwner(address)")
ACCEPT_OWNER = selector("acceptOwner()")
IS_PAUSED = selector("isPaused()")
PAUSER = selector("pauser()")
CAP_OF = selector("capOf(address)")
GIVEN_OF = selector("givenOf(address)")
IS_RELAYER = selector("isRelayer(address)")
IS_CALLER = selector("isCaller(address)")
IS_COLLECTOR = selector("isCollector(address)")
OWNER = selector("owner()")
PROPOSED_OWNER = selector("proposedOwner()")
SET_PROTOCOL = selector("setProtocol(address)")
PROTOCOL = selector("protocol()")


def set_paused(*, paused: bool) -> bytes:
    """Encode the start or the end of a pause of all settlements or swaps of a contract."""
    return SET_PAUSED + uint_word(paused)


def set_cap(token: bytes, cap: int) -> bytes:
    """Encode the cap of a token: the most that one Router call, or all Delta calls of an hour, may spend.

    Args:
        cap: raw units, below 2^112 - 1; or 2^256 - 1 for no cap.
    """
    return SET_CAP + address_word(token) + uint_word(cap)


def set_relayer(relayer: bytes, *, allowed: bool) -> bytes:
    """Encode the permission, or its withdrawal, for an account (relayer) to settle orders on Delta."""
    return SET_RELAYER + address_word(relayer) + uint_word(allowed)


def set_caller(caller: bytes, *, allowed: bool) -> bytes:
    """Encode the permission, or its withdrawal, for a contract to have the executor fill firm quotes."""
    return SET_CALLER + address_word(caller) + uint_word(allowed)


def set_collector(collector: bytes, *, allowed: bool) -> bytes:
    """Encode the permission, or its withdrawal, for a contract to credit fees to the fee vault."""
    return SET_COLLECTOR + address_word(collector) + uint_word(allowed)


def propose_owner(proposed: bytes) -> bytes:
    """Encode the proposal of a new owner, the first of the two steps of a change of owner."""
    return PROPOSE_OWNER + address_word(proposed)


def set_pauser(pauser: bytes) -> bytes:
    """Encode the choice of the pauser: an account that may pause, as the owner may, without other rights."""
    return SET_PAUSER + address_word(pauser)


def set_protocol(protocol: bytes) -> bytes:
    """Encode the account that gets, from now on, the protocol's surplus share and fees without a partner."""
    return SET_PROTOCOL + address_word(protocol)


def given_of(token: bytes) -> bytes:
    """Encode a read of the raw units of a token that Delta has spent since the last full hour.

    Tokens without a cap are not counted.
    """
    return GIVEN_OF + address_word(token)


def cap_of(token: bytes) -> bytes:
    """Encode a read of a token's cap: most raw units for one Router call, or for an hour of Delta calls."""
    return CAP_OF + address_word(token)


def is_relayer(account: bytes) -> bytes:
    """Encode a read of whether an account may settle orders on Delta."""
    return IS_RELAYER + address_word(account)


def is_caller(account: bytes) -> bytes:
    """Encode a read of whether a contract may have the executor fill firm quotes."""
    return IS_CALLER + address_word(account)


def is_collector(account: bytes) -> bytes:
    """Encode a read of whether a contract may credit fees to the vault."""
    return IS_COLLECTOR + address_word(account)
