"""Order desk: checks submitted Delta orders and cancellations against rules and chain, then stores them.

    submitted body -> order struct, hash
        the order is in memory              -> its stored record
        else rules, signature, then chain   -> LiveOrders.add -> its new record
            refused, but stored already     -> its stored record

Stored orders are hardly ever submitted again, so the desk searches the store for the order only after a
refusal. Every order is checked before it is stored: if the chain does not answer, the response is 503 and the
order is not stored.

Source: spec 1.17, 1.18; ARCHITECTURE.md, "Orders", "Limits".
Choice: An order that waits for its owner's contract costs its submitter a unit of wrong signatures
    (`admission.signatures`), and its owner's limit counts such orders apart: anybody may submit them.
Choice: An order is checked at a block that was the latest at most a second ago; one that is refused there, or
    waits for its owner's contract, is checked again at the latest.
Choice: A contract that buys across chains for its own address has to exist on the destination chain too.
Choice: A repeated submission is answered with the stored order, whatever else is in the body or has happened
    since.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from .....codecs.bridges.bridge_terms import kind_of
from .....codecs.messages.delta_messages import (
    CancelBody,
    CancellationBuildBody,
    CancellationBuildResponse,
    CancelResponse,
    OrderRecord,
    SubmitBody,
)
from .....codecs.messages.vocabulary import OrderStatus
from .....config import limits
from .....config.errors import (
    InvalidCancelSignature,
    InvalidInput,
    RequestError,
    ServiceUnavailable,
    StoreError,
    TooManyOpenOrders,
)
from .....config.sections.partners import RegisteredPartner
from .....crypto.addresses import to_checksum
from .....crypto.eip712 import signing_digest
from ....chain.delegation import is_delegation
from ....chain.port import Header
from ....host.admission.signatures import SignatureBudget
from ....store.rows import DeltaOrderRow
from ...orders.order_units import order_id
from ...orders.places import OrderStake, unbacked
from ...served.asking import Permit2s, at_recent_block, in_time, latest_block, signer_has_code
from ...served.bridge_lanes import BridgeLanes
from ...served.delivery_gas import delivery_wei, gas_after
from ...served.permit_proof import needs_permit2
from ...served.served_chain import ServedChain, ServedChains, delta_chain_at
from ...served.signed_by import (
    OwnerSignature,
    SignatureState,
    read_signature,
    signature_call,
    signature_state,
)
from ..building.build import DeltaDomain, delta_domains
from ..building.order_kinds import handlers_of
from ..orders.arriving import arrival_of
from ..orders.live_orders import LiveOrders, weight_of
from ..orders.record import new_record
from ..orders.terms import is_bridge_only
from ..orders.transfers import bridge_of
from ..orders.vault_checks import vaults_of
from .cancellation import (
    cancellation_hash,
    cancellation_to_sign,
    cancelling,
    check_ids,
    check_open,
    one_signer,
)
from .order_worth import check_worth
from .stored_orders import StoredOrders
from .submission import (
    IdentifiedDelta,
    Rules,
    Submission,
    accepted,
    balance_in,
    checked,
    identify,
    submission_calls,
)


class Submitter(Struct, frozen=True):
    """The caller that submits an order.

    Attributes:
        causer: key or network that answers for what the order costs.
        partner: default partner of the request's API key; empty if the key has none.
        has_key: whether the request has an API key.
    """

    causer: str
    partner: str = ""
    has_key: bool = False


class OrderDesk:
    """Order desk: checks and stores submitted Delta orders, and checks and stores cancellations of orders.

    Args:
        chains: served chains by chain id.
        bridges: lanes between the chains.
        orders: the live orders in memory.
        stored: reader of the orders in the store.
        partners: registered partners.
        strict_partner: whether every order must name a partner (choices.md#fees-and-partners).
        delta_gas: units of gas that a settlement uses besides its fills.
    """

    def __init__(
        self,
        chains: ServedChains,
        bridges: BridgeLanes,
        orders: LiveOrders,
        stored: StoredOrders,
        partners: Mapping[str, RegisteredPartner],
        *,
        strict_partner: bool,
        delta_gas: int,
    ) -> None:
        self._chains = chains
        self._bridges = bridges
        self._orders = orders
        self._stored = stored
        self._partners = partners
        self._strict_partner = strict_partner
        self._delta_gas = delta_gas
        self._domains = delta_domains(chains)
        self._vaults = {
            chain_id: frozenset(vaults_of(served.settings.strategies)) for chain_id, served in chains.items()
        }
        self._permit2 = Permit2s()

    async def submit(
        self,
        body: SubmitBody,
        now_ms: int,
        signatures: SignatureBudget,
        submitter: Submitter,
    ) -> OrderRecord:
        """Check and store a submitted order, unless the order is stored already; return its public record.

        Args:
            signatures: context manager, entered by the API handler, that limits how many wrong signatures the
                request's caller may send.

        Raises:
            RequestError: a check fails; see spec 1.25 and `submission`.
            StoreUnavailable: the order may or may not be stored; submitting again is safe.
        """
        served = delta_chain_at(self._chains, body.chain_id, "chainId")
        domain = self._domains[served.chain_id]
        found = identify(body, domain)
        if self._orders.get(found.order_hash) is None:
            try:
                rules = self._rules(served, domain, submitter, now_ms)
                return await self._take_in(body, found, served, rules, signatures, submitter.causer)
            except RequestError as error:
                signatures.refused(error)
                if not await self._stored.is_kept(found.order_hash):
                    raise
        return await self._kept(found.order_hash)

    async def cancellation(self, body: CancellationBuildBody) -> CancellationBuildResponse:
        """Build the EIP-712 typed data that the owner of Delta orders signs to cancel them.

        Raises:
            RequestError: the orders cannot be cancelled together; see `cancellation`.
        """
        rows = await self._of_one_signer(body.order_ids)
        check_open(rows)
        return cancellation_to_sign(body.order_ids, self._domain_of(rows))

    async def cancel(self, body: CancelBody, now_ms: int, signatures: SignatureBudget) -> CancelResponse:
        """Set the orders of a signed cancellation to CANCELLING, all of them or none, in the store.

        Args:
            signatures: context manager, entered by the API handler, that limits how many wrong signatures the
                request's caller may send.

        Returns:
            The ids of the orders, once the store has the change.

        Raises:
            RequestError: the orders cannot be cancelled together, or the signature is wrong.
            StoreUnavailable: the orders may or may not be cancelled; cancelling again is safe.
        """
        rows = await self._of_one_signer(body.order_ids)
        domain, first = self._domain_of(rows), rows[0]
        signing = domain.signing(cancellation_hash(body.order_ids))
        digest = signing_digest(domain.separator, signing.struct_hash32)
        signature = read_signature(
            body.signature, digest, first.owner, InvalidCancelSignature, signing=signing
        )
        # Before the check on the chain: a key's signature gives its unit back, a refusal there spends it.
        signatures.proven(signature.is_by_key)
        await in_time(_check_cancel(self._chains[first.chain_id], signature, domain.contract))
        hashes = [row.order_hash for row in rows]
        # The states are judged last, since only the owner may learn them, and by the rows of the write.
        await self._orders.step_all(hashes, cancelling(now_ms), is_fenced=False)
        return CancelResponse(success=True, cancelled=tuple(str(order_id(key)) for key in hashes))

    async def _take_in(
        self,
        body: SubmitBody,
        found: IdentifiedDelta,
        served: ServedChain,
        rules: Rules,
        signatures: SignatureBudget,
        causer: str,
    ) -> OrderRecord:
        submission = checked(body, found, rules)
        is_transfer = is_bridge_only(submission.order, served.tokens.wrapped_native)
        gas = limits.BRIDGE_ONLY_GAS_USED if is_transfer else self._delta_gas
        check_worth(submission.order, submission.first, served, gas, self._there_wei(submission, served))
        owner, signature = submission.terms.owner, submission.signature
        # Before the calls to the chain, which an order beyond the limit must not cost. The first status of a
        # pre-signed order, which decides the limit, is known only after them.
        if not signature.is_pre_signature:
            self._check_room(owner)
        # From here on, a refusal costs the caller a unit unless the owner's key has signed.
        signatures.proven(signature.is_by_key)
        row = await in_time(self._judged(served, submission, rules.now_ms))
        if row.status is OrderStatus.AWAITING_SIGNATURE:
            signatures.wrong()  # anybody may submit it in the name of a contract
        if signature.is_pre_signature:
            self._check_room(owner, row.status)
        document = replace(submission.document, is_unwrapped=await self._is_unwrapped(submission))
        # Other orders may end to make room. It is the last step that may refuse before the order is stored.
        await self._find_room(submission, row, causer)
        order, terms = submission.order, submission.terms
        # `add` returns the stored row instead if another request has stored the same order meanwhile.
        if await self._orders.add(row, document, order, terms, causer) is row:
            return new_record(row, document, order, terms)
        return await self._kept(found.order_hash)

    def _rules(self, served: ServedChain, domain: DeltaDomain, submitter: Submitter, now_ms: int) -> Rules:
        return Rules(
            chain_id=served.chain_id,
            domain=domain,
            tokens=served.tokens,
            bridges=self._bridges,
            vaults=self._vaults[served.chain_id],
            handlers=handlers_of(served.settings),
            partners=self._partners,
            strict_partner=self._strict_partner,
            default_partner=submitter.partner,
            by_key=submitter.has_key,
            now_ms=now_ms,
        )

    def _check_room(self, owner: bytes, status: OrderStatus = OrderStatus.PENDING) -> None:
        """Check that the owner has fewer live orders than the limit; orders still being checked do not count.

        Orders that wait for a contract's signature have a limit of their own, since anybody may submit such
        orders in the contract's name.

        Args:
            status: first status of the order.

        Raises:
            TooManyOpenOrders: the owner has as many orders as the venue allows.
        """
        unsigned = self._orders.count_of(owner, OrderStatus.AWAITING_SIGNATURE)
        count, most, what = (
            (unsigned, limits.VENUE_UNSIGNED_ORDERS_PER_OWNER_MAX, "wait for the owner's signature")
            if status is OrderStatus.AWAITING_SIGNATURE
            else (
                self._orders.count_of(owner) - unsigned,
                limits.VENUE_LIVE_ORDERS_PER_OWNER_MAX,
                "may still change",
            )
        )
        if count >= most:
            raise TooManyOpenOrders(
                field="order.owner", expected=f"fewer than {most} orders that {what}", got=count
            )

    def _check_funds(self, submission: Submission, balance: int) -> None:
        """Refuse a further order of an owner whose orders together sell more of a token than the owner has.

        A few orders may share the same funds, e.g. for several prices: then the first that is settled
        suspends the others.

        Args:
            balance: what the owner has of the sold token, raw units.

        Raises:
            TooManyOpenOrders: the owner has too many such orders.
        """
        terms, most = submission.terms, limits.VENUE_LIVE_BEYOND_FUNDS_MAX
        sold = self._orders.sold(submission.chain_id, terms.owner, terms.held_token)
        if sold.count >= most and sold.amount + terms.held_total > balance:
            raise TooManyOpenOrders(
                field="order.owner",
                expected=f"fewer than {most} orders that sell more of the token than its {balance}",
                got=sold.count,
            )

    async def _find_room(self, submission: Submission, row: DeltaOrderRow, causer: str) -> None:
        """Have other orders give way to a new one while the orders in memory take as much room as they may.

        Raises:
            ServiceUnavailable: the venue has too many orders, or too many without signature or funds, and
                none gives way.
            StoreUnavailable: an order that gives way was not changed, or may have been.
        """
        is_waiting = row.status is OrderStatus.AWAITING_SIGNATURE
        stake = unbacked(causer) if is_waiting else OrderStake.BACKED
        signature = submission.document.signature
        weight = weight_of(submission.terms, submission.order.metadata, signature)
        refusal = self._lack_of_room(weight, is_waiting=is_waiting) if self._orders.runs(row.shard) else ""
        # Read only where room lacks: a repeated submission takes no place.
        if not refusal or await self._stored.is_kept(row.order_hash):
            return
        # A few at most, however many there are beyond the bound: a request ends no more of others' orders.
        # Submissions that are checked at once may pass a bound together, by no more than their number.
        for _ in range(limits.VENUE_GIVING_WAY_MAX):
            if not await self._orders.make_room(stake, causer, row.created_ms):
                raise ServiceUnavailable(refusal)
            if self._orders.bytes + weight <= limits.VENUE_LIVE_BYTES_MAX:
                return
        raise ServiceUnavailable(refusal)

    def _lack_of_room(self, weight: int, *, is_waiting: bool) -> str:
        """Reason why memory has no room for a new order; empty if it has."""
        if self._orders.bytes + weight > limits.VENUE_LIVE_BYTES_MAX:
            return "the orders that may still change take all memory that they may"
        most = limits.VENUE_UNBACKED_ORDERS_MAX
        if is_waiting and self._orders.places.unbacked >= most:
            return f"{most} orders wait for signatures or funds: only signed orders are accepted now"
        return ""

    async def _kept(self, order_hash: bytes) -> OrderRecord:
        """Read the public record of an order that the store has; a missing order raises StoreError."""
        kept = await self._stored.record(order_hash)
        if kept is None:
            raise StoreError("a stored order is missing")
        return kept

    async def _judged(self, served: ServedChain, submission: Submission, now_ms: int) -> DeltaOrderRow:
        """Check a submitted order at a recent block, or at the latest, and return the order's first row.

        Raises:
            RequestError: a check refuses the order.
            ChainError: no node answers.
        """
        await served.followed.wait()
        permit2 = b""
        if needs_permit2(submission.terms.permit):
            permit2 = await self._permit2.of(served.chain, served.delta, "order.permit")

        async def judge(header: Header) -> tuple[OrderStatus, bool]:
            # Alone: a wrong signature, which anybody can send, ends here and costs one small read.
            has_code = await signer_has_code(served.chain, submission.signature, header)
            calls = submission_calls(submission, served.delta, permit2)
            found = await served.chain.call_many([*calls.values()], header.hash)
            answers = dict(zip(calls, found, strict=True))
            status = accepted(submission, answers, header, served.delta, permit2, has_code=has_code)
            self._check_funds(submission, balance_in(answers))
            return status, has_code

        # An order that is accepted by a block before the latest is followed from then on, and its owner's
        # funds are read: a move between the two suspends it, as a move after the latest would. A signature on
        # chain between the two would be missed, since its log may have been read: it is looked for again.
        status, has_code = await at_recent_block(served.chain, judge)
        if status is OrderStatus.AWAITING_SIGNATURE:
            status, has_code = await judge(await latest_block(served.chain))
        if has_code:
            await self._check_owner_there(submission, served)
        return submission.row(status, now_ms)

    def _there_wei(self, submission: Submission, served: ServedChain) -> int:
        """Cost of an order's delivery on its destination, in wei of its origin; 0 on one chain."""
        bridge = bridge_of(submission.order)
        there = self._chains.get(bridge.destination_chain_id)
        if there is None:
            return 0
        after = gas_after(arrival_of(submission.order, submission.document.arrivals))
        return delivery_wei(kind_of(bridge), served, there, after)

    async def _is_unwrapped(self, submission: Submission) -> bool:
        """Whether the order's bridge pays the beneficiary native tokens in place of their wrapped form.

        Raises:
            ServiceUnavailable: no node of the destination answers in time.
        """
        bridge = bridge_of(submission.order)
        if submission.document.arrivals or not self._bridges.unwraps(bridge):
            return False
        there = self._chains[bridge.destination_chain_id].chain
        code = await in_time(there.code(submission.terms.beneficiary))
        return not code or is_delegation(code)

    async def _check_owner_there(self, submission: Submission, served: ServedChain) -> None:
        """Check that an owner's contract exists on the destination too, if it buys there for its own address.

        The key of a delegated account holds the address on each chain.

        Raises:
            InvalidInput: the owner's address has no contract on the destination.
        """
        terms, there = submission.terms, bridge_of(submission.order).destination_chain_id
        swap = arrival_of(submission.order, submission.document.arrivals)
        beneficiary = terms.beneficiary if swap is None else swap.beneficiary
        if not there or beneficiary != terms.owner or await self._chains[there].chain.code(terms.owner):
            return
        if not is_delegation(await served.chain.code(terms.owner)):
            raise InvalidInput(
                field="order.beneficiary",
                expected=f"an account of the owner on chain {there}: the owner is a contract, and not there",
                got=to_checksum(beneficiary),
            )

    async def _of_one_signer(self, order_ids: Sequence[str]) -> tuple[DeltaOrderRow, ...]:
        check_ids(order_ids)
        return one_signer(order_ids, await self._stored.rows_of_ids(order_ids))

    def _domain_of(self, rows: Sequence[DeltaOrderRow]) -> DeltaDomain:
        served = delta_chain_at(self._chains, rows[0].chain_id, "orderIds")
        return self._domains[served.chain_id]


async def _check_cancel(served: ServedChain, signature: OwnerSignature, delta: bytes) -> None:
    """Check that an owner has signed a cancellation, by a contract call unless the owner's key has signed.

    Raises:
        InvalidCancelSignature: the owner has not signed.
    """
    call = signature_call(signature, delta)
    if call is None:
        return

    async def judge(header: Header) -> None:
        has_code = await signer_has_code(served.chain, signature, header)
        (answer,) = await served.chain.call_many([call], header.hash)
        if signature_state(signature, answer, has_code=has_code) is not SignatureState.SIGNED:
            raise InvalidCancelSignature(
                "the signature is empty, and the owner has not signed the cancellation by a call"
            )

    await at_recent_block(served.chain, judge)
