"""The consent to a Market swap: a user signs it, so that makers reserve stock for the user's swap.

The consent moves no tokens: it shows the venue that the user wants the swap that a request names.

Choice: A Market swap may carry the user's signed consent (`consent`). With it the user's own share of makers'
    stock counts, not the small one of callers that have shown nothing.
"""

import msgspec

from ...crypto.addresses import to_checksum
from ...crypto.eip712 import domain_separator
from .typed_struct import TypedStruct

DOMAIN_NAME, DOMAIN_VERSION = "cambist swap consent", "1"


class SwapConsent(msgspec.Struct, frozen=True, gc=False):
    """Values of a signed consent to a Market swap.

    Attributes:
        user, src_token, dest_token: 20 bytes each; the tokens as in the request, so the placeholder address
            for the native token.
        src_amount: most raw units of the source token that the user gives.
        deadline: Unix seconds.
    """

    user: bytes
    src_token: bytes
    dest_token: bytes
    src_amount: int
    deadline: int


SWAP_CONSENT = TypedStruct(
    "SwapConsent",
    "address user,address srcToken,address destToken,uint256 srcAmount,uint256 deadline",
    SwapConsent,
)


def consent_domain(chain_id: int, router: bytes) -> dict[str, object]:
    """Make the EIP-712 domain of consents to swaps of a chain's Router contract."""
    return {
        "name": DOMAIN_NAME,
        "version": DOMAIN_VERSION,
        "chainId": chain_id,
        "verifyingContract": to_checksum(router),
    }


def consent_separator(chain_id: int, router: bytes) -> bytes:
    """Compute the EIP-712 domain separator, 32 bytes, of consents to swaps of a chain's Router contract."""
    return domain_separator(consent_domain(chain_id, router))
