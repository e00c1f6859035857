"""Accepts posted OTC orders: checks them against the chain, then stores them.

    body -> struct, hash --in memory--> the stored order
                         --else--> rules -> chain, all at one block -> OtcOrders.add -> the stored order
                                     |--refused, but stored already--> the stored order
    a stored DRAFT, with another signature -> rules -> chain --accepted--> OtcOrders.sign -> the stored order

No order is stored unchecked: while the chain cannot be read, a post is answered with 503 and not stored.

An order that was partly filled before its post starts with the unfilled amount that is left. The amount
filled before the indexer began to follow the chain is the contract's filled amount at the indexed height,
less the fills that the indexer has stored.

Source: spec 2.6; ARCHITECTURE.md, "Orders", "Limits".
Choice: A repeated post is answered with the stored order whatever else is in the body. Its signature replaces
    that of a stored DRAFT if the maker's contract accepts the new one: the earlier one may have been wrong.
Choice: A DRAFT costs a unit of wrong signatures (`admission.signatures`), since it proves nothing.
Choice: Unsigned orders have room of their own, since anybody can post them in a contract's name.
Choice: At most 200,000 open OTC orders are kept, and of these 50,000 without funds or signature. A new order
    beyond that takes the place of one of less stake, or of one of a causer who has more, or is 503.
"""

from collections.abc import Sequence

from ....codecs.contracts.calldata import remaining
from ....codecs.eip712_orders.signing_names import NamedDomain
from ....codecs.messages.otc_messages import OtcOrderBody, PostedOrder, posted
from ....codecs.messages.vocabulary import OtcState
from ....config import limits
from ....config.errors import RequestError, ServiceUnavailable, StoreError, TooManyOpenOrders
from ....crypto.hexadecimal import to_hex
from ...chain.port import Chain, EthCall, Header
from ...chain.together import all_of, both
from ...host.admission.signatures import SignatureBudget
from ...store.rows import OtcOrderRow
from ..orders.places import OrderStake
from ..orders.step import OrderStep
from ..served.asking import at_recent_block, in_time, latest_block, signer_has_code
from ..served.served_chain import ServedChain, ServedChains, otc_chain_at
from .balances import backed, is_backed
from .document import OtcDocument, stored_order
from .life import signed
from .live_orders import OtcOrders, is_endless
from .stored_orders import StoredOtcOrders
from .submission import Answered, Begun, answered, begun, left_of, new_document, new_row, submission_calls
from .terms import IdentifiedOtc, OtcTerms, checked, identify, otc_domain


class OtcDesk:
    """Checks posted OTC orders against the rules of OTC orders and the state of the chain, and stores them.

    Args:
        chains: served chains by chain id.
        orders: the OTC orders in memory.
        stored: reader of OTC orders in the store.
    """

    def __init__(self, chains: ServedChains, orders: OtcOrders, stored: StoredOtcOrders) -> None:
        self._chains = chains
        self._orders = orders
        self._stored = stored
        named = {
            chain_id: NamedDomain(
                served.settings.rfq_domain_name, limits.RFQ_DOMAIN_VERSION, chain_id, served.rfq
            )
            for chain_id, served in chains.items()
            if served.settings.rfq and served.rfq
        }
        self._domains = {
            chain_id: otc_domain(
                here, named.values(), executor=served.executor, never_takers=_never_takers(served)
            )
            for chain_id, here in named.items()
            for served in (chains[chain_id],)
        }

    async def submit(
        self, chain_id: int, body: OtcOrderBody, now_ms: int, signatures: SignatureBudget, causer: str
    ) -> PostedOrder:
        """Check and store a posted order; return the stored order if the order was posted before.

        Args:
            now_ms: time of the request, Unix milliseconds.
            signatures: counter of the caller's wrong signatures, which refuses further ones above a limit;
                already entered as a context manager.
            causer: key or network that answers for what the order costs.

        Raises:
            RequestError: a check fails; see `terms` and `submission`.
            StoreUnavailable: the write failed or its outcome is unknown: posting again is safe.
        """
        served = otc_chain_at(self._chains, chain_id, "chainId")
        found = identify(body, self._domains[chain_id])
        if self._orders.get(found.order_hash) is None:
            try:
                taken = await self._take_in(served, body, found, now_ms, signatures, causer)
                if taken is not None:
                    return taken
            except RequestError as error:
                signatures.refused(error)
                if await self._stored.order(found.order_hash) is None:
                    raise
        return await self._kept(served, body, found, now_ms, signatures)

    async def _take_in(
        self,
        served: ServedChain,
        body: OtcOrderBody,
        found: IdentifiedOtc,
        now_ms: int,
        signatures: SignatureBudget,
        causer: str,
    ) -> PostedOrder | None:
        """Check and store a new order; None if another post has stored the order meanwhile."""
        terms = checked(body, found, self._domains, served.chain_id, now_ms)
        signatures.proven(terms.signature.is_by_key)
        if terms.signature.is_by_key:
            self._check_room(terms.order.maker, is_draft=False)
        row, document = await in_time(self._judged(served, terms, now_ms))
        if row.status is OtcState.DRAFT:
            signatures.wrong()
        self._check_room(terms.order.maker, is_draft=row.status is OtcState.DRAFT)
        self._check_unlisted(row)
        await self._find_room(row, causer, now_ms)
        is_new = await self._orders.add(row, document, causer) is row
        return posted(stored_order(row, document)) if is_new else None

    def _check_room(self, maker: bytes, *, is_draft: bool) -> None:
        """Refuse a new order whose maker has as many open orders, or DRAFT orders, as the venue allows.

        Orders whose checks still run are not counted.

        Raises:
            TooManyOpenOrders: the maker has too many orders.
        """
        drafts = self._orders.count_of(maker, OtcState.DRAFT)
        count, most, what = (
            (drafts, limits.OTC_LIVE_DRAFTS_PER_MAKER_MAX, "are not signed yet")
            if is_draft
            else (
                self._orders.count_of(maker) - drafts,
                limits.OTC_LIVE_ORDERS_PER_MAKER_MAX,
                "may still change",
            )
        )
        if count >= most:
            raise TooManyOpenOrders(
                field="maker", expected=f"fewer than {most} orders that {what}", got=count
            )

    def _check_unlisted(self, row: OtcOrderRow) -> None:
        """Refuse a new order with a token that the operator has not listed beyond the bounds of such orders.

        The contract of such a token may claim any balance, so that funds are no stake of the maker's.

        Raises:
            TooManyOpenOrders: the maker has as many such orders as it may have.
            ServiceUnavailable: all makers together have as many that expire late or never.
        """
        if not self._orders.is_unlisted(row):
            return
        count, most = self._orders.unlisted(row.maker), limits.OTC_LIVE_UNLISTED_PER_MAKER_MAX
        if count >= most:
            raise TooManyOpenOrders(
                field="maker", expected=f"fewer than {most} orders of unlisted tokens", got=count
            )
        if is_endless(row) and self._orders.endless >= limits.OTC_LIVE_UNLISTED_ENDLESS_MAX:
            days = limits.OTC_LIVE_UNLISTED_EXPIRY_S // 86_400
            raise ServiceUnavailable(
                f"{self._orders.endless} orders of unlisted tokens expire late or never: only orders that "
                f"expire within {days} days are accepted now"
            )

    async def _find_room(self, row: OtcOrderRow, causer: str, now_ms: int) -> None:
        """Have other orders give way to a new one while the venue has as many as its limits allow.

        Args:
            row: first row of the new order.
            causer: key or network that posts it.

        Raises:
            ServiceUnavailable: no order gives way.
            StoreUnavailable: an order that gives way was not changed, or may have been.
        """
        stake = self._orders.stake_of(row, causer)
        refusal = self._lack_of_room(stake) if stake is not None and self._orders.runs(row.shard) else ""
        # Read only where room lacks: a repeated post takes no place.
        if stake is None or not refusal or await self._stored.order(row.order_hash) is not None:
            return
        is_full = self._orders.places.total >= limits.OTC_LIVE_MAX
        least = OrderStake.UNLISTED if is_full else min(stake, OrderStake.UNBACKED)
        # One, whatever their number is beyond the bound: a post ends no more of others' orders. Posts that
        # are checked at once may pass the bound together, by no more than their number.
        if not await self._orders.make_room(stake, causer, now_ms, least):
            raise ServiceUnavailable(f"{refusal}: no more of these are accepted now")

    def _lack_of_room(self, stake: OrderStake) -> str:
        """Reason why memory has no room for a new order with a stake; empty if it has."""
        places = self._orders.places
        if places.total >= limits.OTC_LIVE_MAX:
            return f"{limits.OTC_LIVE_MAX} OTC orders may still change"
        if stake is OrderStake.UNLISTED and places.count(stake) >= limits.OTC_LIVE_UNLISTED_MAX:
            return f"{limits.OTC_LIVE_UNLISTED_MAX} OTC orders name unlisted tokens"
        is_unbacked = stake in (OrderStake.UNBACKED, OrderStake.KEYED)
        if is_unbacked and places.unbacked >= limits.OTC_LIVE_UNFUNDED_MAX:
            return f"{limits.OTC_LIVE_UNFUNDED_MAX} OTC orders wait for funds or a signature"
        return ""

    async def _kept(
        self,
        served: ServedChain,
        body: OtcOrderBody,
        found: IdentifiedOtc,
        now_ms: int,
        signatures: SignatureBudget,
    ) -> PostedOrder:
        """Return the stored order for a repeated post of the order.

        A stored DRAFT first gets the newly posted signature, if the maker's contract accepts that signature.
        """
        kept = await self._stored.order(found.order_hash)
        if kept is not None and kept.state is OtcState.DRAFT:
            await self._sign(served, body, found, kept.signature, now_ms, signatures)
            kept = await self._stored.order(found.order_hash)
        if kept is None:
            raise StoreError("a stored order is missing")
        return posted(kept)

    async def _sign(
        self,
        served: ServedChain,
        body: OtcOrderBody,
        found: IdentifiedOtc,
        known: str,
        now_ms: int,
        signatures: SignatureBudget,
    ) -> None:
        """Replace a stored DRAFT's signature by the new post's, if the maker's contract accepts the latter.

        Args:
            known: the stored signature.

        Raises:
            ServiceUnavailable, StoreUnavailable: the chain or the store does not answer.
            RateLimited: too many signatures of the caller were wrong.
        """
        # Again: `_take_in` may have spent the unit of this request, or given it back.
        signatures.begin(1)
        try:
            terms = checked(body, found, self._domains, served.chain_id, now_ms)
            if to_hex(terms.shown_signature) == known:  # `Drafts` polls the contract for it already
                return
            signatures.proven(terms.signature.is_by_key)
            state = await in_time(_latest_state(served, terms))
        except ServiceUnavailable:  # the new signature is not judged yet: the caller has to post again
            raise
        except RequestError as error:  # not raised: a repeated post is answered with the stored order
            signatures.refused(error)
            return
        if not state.is_signed:
            signatures.wrong()
            return

        def decide(row: OtcOrderRow) -> OrderStep[OtcOrderRow] | None:
            return signed(row, now_ms, is_backed=is_backed(backed(row, state.permitted), state.holding))

        await self._orders.sign(found.order_hash, terms.shown_signature, terms.permit, decide)

    async def _judged(
        self, served: ServedChain, terms: OtcTerms, now_ms: int
    ) -> tuple[OtcOrderRow, OtcDocument]:
        """Check a posted order against the chain, and build the row and document to be stored."""
        await served.followed.wait()
        state = await self._state(served, terms)
        start = Begun() if state.left is None else await self._begun(served, terms)
        others = await self._stored.live_of(served.chain_id, terms.order.maker, terms.order.maker_asset)
        row = new_row(terms, state, start, others, served.chain_id, now_ms)
        return row, new_document(terms, start)

    async def _state(self, served: ServedChain, terms: OtcTerms) -> Answered:
        """Read the chain state that a posted order is checked against, at a block of the last second.

        An order that the block leaves without funds, signature or its whole amount is judged by the latest
        block: an approval or a fill may just have been mined.
        """

        async def judge(header: Header) -> tuple[Answered, Header]:
            return await _chain_state(served, terms, header), header

        state, header = await at_recent_block(served.chain, judge)
        if state.left is None and state.is_signed and state.backs(terms.order.maker_amount):
            # Logs of later blocks may have been read, by another engine: a fill in them would be missed.
            cursor, _ = await self._stored.fills(served.chain_id, terms.order_hash)
            if cursor is None or cursor.block_number <= header.number:
                return state
        latest = await latest_block(served.chain)
        return state if latest.hash == header.hash else await _chain_state(served, terms, latest)

    async def _begun(self, served: ServedChain, terms: OtcTerms) -> Begun:
        """Find the fills that an order had before it was posted, up to the indexed height.

        Raises:
            ServiceUnavailable: the indexer has not read the chain yet.
        """
        cursor, fills = await self._stored.fills(served.chain_id, terms.order_hash)
        if cursor is None:
            raise ServiceUnavailable("the order's earlier fills are not known yet")
        call = EthCall(served.rfq, remaining(terms.order.maker, terms.order_hash))
        (answer,) = await served.chain.call_many([call], cursor.block_hash)
        return begun(terms.order.maker_amount, left_of(answer, terms), fills)


def _never_takers(served: ServedChain) -> tuple[bytes, ...]:
    """Contracts of the venue that call the RFQ contract never, or through the executor alone."""
    return served.router, served.rfq, served.delta, served.fee_vault, served.arrivals


async def _latest_state(served: ServedChain, terms: OtcTerms) -> Answered:
    return await _chain_state(served, terms, await latest_block(served.chain))


async def _chain_state(served: ServedChain, terms: OtcTerms, header: Header) -> Answered:
    """Read at a block the chain state that a posted order is checked against."""
    # Alone: a wrong signature, which anybody can send, ends here and costs one small read.
    has_code = await signer_has_code(served.chain, terms.signature, header, may_be_deployed=True)
    calls = submission_calls(terms, served.rfq)
    assets = {"makerAsset": terms.order.maker_asset, "takerAsset": terms.order.taker_asset}
    # The operator vouches for a listed token's code.
    unlisted = {field: asset for field, asset in assets.items() if asset not in served.tokens.by_address}
    found, codes = await both(
        lambda: served.chain.call_many([*calls.values()], header.hash),
        lambda: _codes(served.chain, [*unlisted.values()], header),
    )
    answers = dict(zip(calls, found, strict=True))
    without_code = [field for field, code in zip(unlisted, codes, strict=True) if not code]
    return answered(terms, answers, without_code=without_code, has_code=has_code)


async def _codes(chain: Chain, accounts: Sequence[bytes], header: Header) -> list[bytes]:
    """Read the code of accounts; an empty one is of an account without a contract."""
    return await all_of(lambda account: chain.code(account, header.hash), accounts, len(accounts))
