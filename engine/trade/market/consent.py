"""Checks a user's signed consent to a Market swap: its terms, then the signature, by key or by contract.

Source: docs/explanation/security.md, "Costs and stakes"; choices.md#market-swaps.
"""

from typing import TYPE_CHECKING

from ....codecs.amounts import parse_positive_amount
from ....codecs.eip712_orders.swap_consent import SWAP_CONSENT, SwapConsent, consent_separator
from ....codecs.messages.market_messages import ConsentBody
from ....config.errors import InvalidInput
from ....config.limits import VENUE_CONSENT_S_MAX
from ...chain.port import Header
from ...host.admission.signatures import SignatureBudget
from ..served.asking import at_recent_block, signer_has_code
from ..served.signed_by import SignatureState, read_signature, signature_call, signature_state
from .ticket import SwapTicket

if TYPE_CHECKING:
    from ..served.served_chain import ServedChain


async def check_consent(
    served: "ServedChain", body: ConsentBody, ticket: SwapTicket, signatures: SignatureBudget, now_s: int
) -> None:
    """Check that the user has signed its consent to a swap.

    Args:
        signatures: number of wrong signatures that the caller may still send; its context is entered.

    Raises:
        InvalidInput: the consent is over, too far ahead, or for less than the swap gives.
        InvalidSignature: the user has not signed the consent.
        ChainError: no node answers.
    """
    most = parse_positive_amount(body.src_amount, "consent.srcAmount")
    if most < ticket.src_amount:
        raise InvalidInput(field="consent.srcAmount", expected=f"at least {ticket.src_amount}", got=str(most))
    if not now_s <= body.deadline <= now_s + VENUE_CONSENT_S_MAX:
        raise InvalidInput(
            field="consent.deadline", expected=f"{now_s} to {now_s + VENUE_CONSENT_S_MAX}", got=body.deadline
        )
    consent = SwapConsent(ticket.user, ticket.src_token, ticket.dest_token, most, body.deadline)
    digest = SWAP_CONSENT.compiled.digest_for(consent_separator(served.chain_id, served.router))(consent)
    # `is_awaited` has a contract asked for an empty signature too, since a swap has no pre-signature.
    signature = read_signature(body.signature, digest, ticket.user, is_awaited=True)
    signatures.proven(signature.is_by_key)
    call = signature_call(signature, served.router)
    if call is None:
        return

    async def judge(header: Header) -> None:
        has_code = await signer_has_code(served.chain, signature, header)
        (answer,) = await served.chain.call_many([call], header.hash)
        if signature_state(signature, answer, has_code=has_code) is not SignatureState.SIGNED:
            raise signature.kind("the user has not signed the consent", field="consent.signature")

    await at_recent_block(served.chain, judge)
