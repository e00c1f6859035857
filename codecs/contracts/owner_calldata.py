"""Calldata of calls that only a contract's owner may make, and of reads of its settings.

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
    """Stop every settlement or swap, or allow them again."""
    return SET_PAUSED + uint_word(paused)


def set_cap(token: bytes, cap: int) -> bytes:
    """Most raw units of a token that one call of the Router, or all calls of Delta in an hour, may give.

    Args:
        cap: below 2^112 - 1, or 2^256 - 1 for no bound.
    """
    return SET_CAP + address_word(token) + uint_word(cap)


def set_relayer(relayer: bytes, *, allowed: bool) -> bytes:
    """Allow or forbid an account to settle orders on Delta."""
    return SET_RELAYER + address_word(relayer) + uint_word(allowed)


def set_caller(caller: bytes, *, allowed: bool) -> bytes:
    """Allow or forbid a contract to have the executor fill firm quotes."""
    return SET_CALLER + address_word(caller) + uint_word(allowed)


def set_collector(collector: bytes, *, allowed: bool) -> bytes:
    """Allow or forbid a contract to credit fees to the vault."""
    return SET_COLLECTOR + address_word(collector) + uint_word(allowed)


def propose_owner(proposed: bytes) -> bytes:
    """First step of a change of owner."""
    return PROPOSE_OWNER + address_word(proposed)


def set_pauser(pauser: bytes) -> bytes:
    """Set the account that may pause a contract, beside its owner, and has no other right."""
    return SET_PAUSER + address_word(pauser)


def set_protocol(protocol: bytes) -> bytes:
    """Set the account that gets the protocol's share of surplus and fees without a partner from now on."""
    return SET_PROTOCOL + address_word(protocol)


def given_of(token: bytes) -> bytes:
    """Raw units of a token that Delta has given in the present hour of the clock."""
    return GIVEN_OF + address_word(token)


def cap_of(token: bytes) -> bytes:
    """The cap of a token, in raw units."""
    return CAP_OF + address_word(token)


def is_relayer(account: bytes) -> bytes:
    """Whether an account may settle orders on Delta."""
    return IS_RELAYER + address_word(account)


def is_caller(account: bytes) -> bytes:
    """Whether a contract may have the executor fill firm quotes."""
    return IS_CALLER + address_word(account)


def is_collector(account: bytes) -> bytes:
    """Whether a contract may credit fees to the vault."""
    return IS_COLLECTOR + address_word(account)
