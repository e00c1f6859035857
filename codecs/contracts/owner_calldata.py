"""Calldata by which a contract's owner changes the contract's settings, and reads of these settings.

    Delta, Router                          pause, pauser, caps of tokens; receiver of protocol fees
    Delta                                  relayers
    RfqExecutor                            its callers
    FeeVault                               the contracts that may credit fees
    Delta, Router, RfqExecutor, FeeVault   the owner: proposed by the owner, accepted by the new owner

The pauser may call PAUSE too. A pause and a cap hold until the owner lifts them.

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
    """Encode the call by which the owner of Delta or of the Router pauses or resumes the contract.

    A paused Delta contract settles no orders; a paused Router makes no swaps.
    """
    return SET_PAUSED + uint_word(paused)


def set_cap(token: bytes, cap: int) -> bytes:
    """Encode the call that sets a token's cap on the Router or on Delta.

    The cap on the Router bounds each call's spending of the token; the cap on Delta bounds the spending of
    all calls within a clock hour together.

    Args:
        cap: raw units, below 2^112 - 1; or 2^256 - 1 for no cap.
    """
    return SET_CAP + address_word(token) + uint_word(cap)


def set_relayer(relayer: bytes, *, allowed: bool) -> bytes:
    """Encode the call that allows or forbids an account (relayer) to settle orders on Delta."""
    return SET_RELAYER + address_word(relayer) + uint_word(allowed)


def set_caller(caller: bytes, *, allowed: bool) -> bytes:
    """Encode the call that allows or forbids a contract to fill firm quotes through the executor contract."""
    return SET_CALLER + address_word(caller) + uint_word(allowed)


def set_collector(collector: bytes, *, allowed: bool) -> bytes:
    """Encode the call that allows or forbids a contract to credit fees to accounts in the fee vault."""
    return SET_COLLECTOR + address_word(collector) + uint_word(allowed)


def propose_owner(proposed: bytes) -> bytes:
    """Encode the call that proposes a new owner of a contract; the proposed owner then has to accept."""
    return PROPOSE_OWNER + address_word(proposed)


def set_pauser(pauser: bytes) -> bytes:
    """Encode the call that names the pauser: an account that may pause the contract, and do nothing else."""
    return SET_PAUSER + address_word(pauser)


def set_protocol(protocol: bytes) -> bytes:
    """Encode the call that names the account of the protocol.

    From then on, the account receives the protocol's share of surplus, and fees of trades without a partner.
    """
    return SET_PROTOCOL + address_word(protocol)


def given_of(token: bytes) -> bytes:
    """Encode a read of the raw units of a token that Delta has spent in the current clock hour.

    The contract counts no token without a cap.
    """
    return GIVEN_OF + address_word(token)


def cap_of(token: bytes) -> bytes:
    """Encode a read of a token's cap on the Router or on Delta, in raw units, as `set_cap` sets it."""
    return CAP_OF + address_word(token)


def is_relayer(account: bytes) -> bytes:
    """Encode a read of whether an account may settle orders on Delta."""
    return IS_RELAYER + address_word(account)


def is_caller(account: bytes) -> bytes:
    """Encode a read of whether a contract may fill firm quotes through the executor contract."""
    return IS_CALLER + address_word(account)


def is_collector(account: bytes) -> bytes:
    """Encode a read of whether a contract may credit fees to accounts in the fee vault."""
    return IS_COLLECTOR + address_word(account)
