"""What the permits of OTC orders grant, where the maker's allowance alone falls short. Pure.

    permits of one account whose orders need them -> trial_calls -> trial_results -> raw units, or 0

The permit that came with an order is kept, and whoever fills it hands it to the RFQ contract. So as long as
the token would take it, it is as good as an approval. A token that refuses it gives nothing, and that is no
error: the permit may have been shown before, when the allowance is there; its nonce may be used; or its
deadline may have passed, when the token is not asked any more.

Source: spec 2.2.3, 2.3.11; interop.md 1.
Choice: A permit counts for the orders posted with it alone.
"""

from collections.abc import Sequence

from ..chain.holdings import Holding
from ..chain.port import EthCall
from ..served.token_permits import granted, is_over, permit_calls

_NAMES = ("permit", "nonces")


def is_wanted(permit: bytes | None, remaining: int, holding: Holding | None, now_s: int) -> bool:
    """Whether a permit can make a difference to an order now, Unix seconds."""
    if not permit or holding is None:
        return False
    return holding.allowance < remaining and not is_over(permit, now_s)


def trial_calls(permits: Sequence[bytes], token: bytes, maker: bytes, rfq: bytes) -> list[EthCall]:
    """What the chain is asked to find what permits of 224 or 256 bytes grant the RFQ contract."""
    calls: list[EthCall] = []
    for permit in permits:
        found = permit_calls(permit, token, maker, rfq)
        calls += [found[name] for name in _NAMES]
    return calls


def trial_results(permits: Sequence[bytes], answers: Sequence[bytes | Exception]) -> dict[bytes, int]:
    """Permit -> raw units that it lets be taken; 0 where the token refuses it.

    Args:
        answers: to `trial_calls`.
    """
    found = {}
    for at, permit in enumerate(permits):
        some = answers[at * len(_NAMES) : (at + 1) * len(_NAMES)]
        found[permit] = granted(permit, dict(zip(_NAMES, some, strict=True))).amount or 0
    return found
