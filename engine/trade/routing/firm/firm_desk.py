"""Firm-quote desk: turns an indicative plan of a swap into fills that makers have signed.

    plan --> all parts are asked at once --> all filled --> arithmetic --> the limit --> the chain --> route
                 |                                              |             |             |
                 |                                    a hop buys too   the worst quote   no funds, or
                 |                                    little: asked    is given up       no signature
                 |                                    for anew              |             |
                 |-- a maker failed: another maker is asked for its share  <-'-------------'
                 |-- a third of soft_s is over: two more makers are asked as well
                 '-- two thirds are over: all other makers of the pair are asked as well

A part is one maker's share of a hop. A maker asked in place of another is a stand-in. If the pair has no
other maker, or two thirds of soft_s are over, a further plan of the whole swap, without failed and slow
makers, starts beside the first.

Other makers may be asked until soft_s; answers are awaited until hard_s; the checks on the chain follow, with
a time-out of their own. Hanging makers, however many, do not keep a willing maker from being asked in time. A
failed maker is not asked again for this swap. A stand-in's price keeps the user's limit, or the desk finds no
route.

Each maker's outcome is scored once (`firm_scores`), when the swap is settled or given up: its own faults,
refusals, and clean quotes, used or not. A request that is cancelled with the swap does not count.

A failing part is replaced on its own pair first, and valid quotes of other parts are kept; a maker that has
signed for the hop may be asked again. The answer of a slow maker is awaited to the end beside stand-ins, and
used if it arrives before the swap settles. A stand-in is asked for the slow maker's whole share, as deep as
its book: with a divided share each hanging stand-in would leave a gap. A hop asks for more than it needs only
if the maker's book makes this at most OVER_ASK_COST_BPS dearer, and the cost stays within the user's limit.

Source: ARCHITECTURE.md, "Firm quotes"; interop.md section 4.
Choice: A maker has failed only if it had a third of `soft_s`; stalls of the venue's own event loop do not
    count.
Choice: A quote below the plan is no failure while the whole swap keeps the user's limit; the maker's score
    suffers where the quote is below the maker's own book by more than `drift_bps`.
Choice: A refusal counts nothing where the maker's book at that moment had less than the request.
Choice: A request beyond the caller's share of the maker's stock (`stock`) is not sent, and other makers take
    its place; but first the chain is asked which swaps of the caller are filled, since those weigh no more.
Choice: A refusal that the venue's own callers explain, since they have reserved the maker's stock, bounds no
    later request.
Choice: All quotes of a maker for one swap are of one account, whose funds count once.
Choice: The taker of firm quotes is `RfqExecutor`, which only Router and Delta may call. The user inside
    `nonceAndMeta` is the order's owner in a Delta settlement and the caller in a Market swap.
"""

import math
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from msgspec import Struct
from msgspec.structs import replace

from .....codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from .....codecs.messages.vocabulary import Side
from .....config import limits
from .....config.errors import NoRoute, RateLimited, RequestError
from .....config.sections.venue import FirmSettings
from .....config.timeouts import FIRM_BEAT_S
from .....feeds.books.pair_index import LiveBook, PairIndex
from .....feeds.firm.firm_check import FirmAsked, FirmFailure, FirmFault, book_amount, check_firm, is_drifted
from ....chain.port import Chain
from ....host.admission.ledger import Lack, Ledger
from ..search.ladders import book_of_each
from ..search.plan import MakerShare, RoutePlan, SwapRequest
from .firm_parts import (
    PATIENCES,
    Ask,
    FirmPart,
    HeldQuote,
    Way,
    able_alone,
    has_room,
    indicative_within,
    is_as_cheap,
    legs_of,
    parts_of,
    parts_of_hop,
)
from .firm_proof import prove
from .firm_route import FirmRoute
from .firm_scores import FirmMaker, FirmScores
from .legs import Short, arranged, over_asked
from .stock import Claimant, StockClaim, StockShares, causer_of, part_of, shortage

if TYPE_CHECKING:
    from ..search.pathfinder import Pathfinder

_MAY_HAVE_SIGNED = frozenset((FirmFault.LATE, FirmFault.UNAVAILABLE))
"""Failures after which a maker may have signed a quote that did not arrive."""
_RESIZES_MAX = 2  # most times per swap that a hop is asked anew because the next hop needs more


class FirmDeskStatistics(Struct, frozen=True):
    """Counters of swaps and requests to makers of one chain's firm-quote desk.

    Attributes:
        under_way: swaps for which firm quotes are collected at this moment.
        filled, unfilled: swaps so far that ended with and without an executable route.
        asked: requests to makers so far, without probes.
        stand_ins: requests so far to makers in place of a failed or slow maker; `asked` includes them.
        probes: requests so far that test a maker in its cool-down.
    """

    under_way: int
    filled: int
    unfilled: int
    asked: int
    stand_ins: int
    probes: int


class FirmDesk:
    """Obtains firm quotes from the makers of one chain and turns them into an executable route.

    Args:
        makers: makers by name; includes every maker in `index`.
        chain: chain on which makers' funds and contract signatures are checked.
        rfq: the RFQ contract, 20 bytes.
        executor: the contract that fills the orders, as their taker; 20 bytes.
        separator: EIP-712 domain separator of the RFQ contract, 32 bytes.
        ledger: ledger of the shares of makers' stock that callers reserve.
        wall_ms: wall clock, Unix milliseconds.
    """

    def __init__(
        self,
        makers: Mapping[str, FirmMaker],
        pathfinder: "Pathfinder",
        index: PairIndex,
        chain: Chain,
        *,
        rfq: bytes,
        executor: bytes,
        separator: bytes,
        settings: FirmSettings,
        ledger: Ledger,
        wall_ms: Callable[[], int],
    ) -> None:
        self.makers = makers
        self.pathfinder = pathfinder
        self.index = index
        self.chain = chain
        self.rfq = rfq
        self.executor = executor
        self.digest_of = RFQ_ORDER.compiled.digest_for(separator)
        self.settings = settings
        self.wall_ms = wall_ms
        self.scores = FirmScores(makers, self.digest_of, settings.hard_s, wall_ms)
        self.stock = StockShares(ledger, chain.chain_id)
        self._begun = self._under_way = self._filled = 0
        self.asked = self.stand_ins = 0

    def statistics(self) -> FirmDeskStatistics:
        """Return the present counters of swaps and of requests to makers."""
        unfilled = self._begun - self._under_way - self._filled
        return FirmDeskStatistics(
            self._under_way, self._filled, unfilled, self.asked, self.stand_ins, self.scores.probes
        )

    async def fill(
        self,
        plan: RoutePlan,
        wanted: SwapRequest,
        *,
        user: bytes,
        limit: int,
        held: list[HeldQuote] | None = None,
        claimant: Claimant | None = None,
        freed: Callable[[], Awaitable[bool]] | None = None,
        account: Hashable = "",
    ) -> FirmRoute:
        """Obtain signed quotes for a plan, from its makers or from replacements, and return the route.

        Args:
            plan: indicative plan for `wanted`, priced by the makers' books.
            user: the trader's address, 20 bytes, which the requests to makers name and orders carry in
                `nonceAndMeta`.
            limit: least destination amount (SELL) or greatest source amount (BUY), raw units before fees.
            held: list to which the desk adds every signed quote, used or not, and every unanswered request.
            claimant: whose share of the makers' stock the quotes reserve; None if they count towards none.
            freed: called where the claimant has no share left: gives back the shares of its swaps that the
                chain has filled, and returns whether there are any; may raise a RequestError.
            account: to which the outcomes belong: the name of the caller's API key, or the owner for whom
                the venue itself fills; empty without either.

        Returns:
            A route whose amounts the execution reproduces to the unit.

        Raises:
            NoRoute: no quotes within the limit and the time; the message gives each maker's reason.
            RateLimited: likewise, and a maker was not asked since the claimant has no share left.
            ServiceUnavailable: the chain does not answer.
        """
        held = [] if held is None else held
        filling = _Filling(self, wanted, user, limit, held, claimant, freed, account)
        self._begun += 1
        self._under_way += 1
        try:
            async with trio.open_nursery() as nursery:
                filling.nursery = nursery
                nursery.start_soon(filling.beat)
                outcome = await filling.outcome(plan)
                # Ends `beat` and the open requests, which `outcome` has scored and added to `held` while they
                # were pending: their makers may sign, and a cancelled request records nothing.
                nursery.cancel_scope.cancel()
        finally:
            self._under_way -= 1
        if isinstance(outcome, RequestError):  # not raised within the nursery, which would wrap it
            raise outcome
        self._filled += 1
        return outcome


class _Filling:
    """State of one call of `FirmDesk.fill`: the plans of the swap, and the requests for quotes to makers."""

    nursery: trio.Nursery

    def __init__(
        self,
        desk: FirmDesk,
        wanted: SwapRequest,
        user: bytes,
        limit: int,
        held: list[HeldQuote],
        claimant: Claimant | None,
        freed: Callable[[], Awaitable[bool]] | None,
        account: Hashable,
    ) -> None:
        self._desk = desk
        self._held = held
        self._claimant = claimant
        self._freed = freed
        self._causer = causer_of(claimant, account, user)
        self._lack: Lack | None = None
        self._is_over = False
        self._wanted = wanted
        self._user = user
        self._limit = limit
        self._began_at = now = trio.current_time()
        self._soft_at = now + desk.settings.soft_s
        self._hard_at = now + desk.settings.hard_s
        self._due_s = desk.settings.soft_s / PATIENCES
        self._beat_at = now + FIRM_BEAT_S
        self._lag_s = 0.0
        self._asks: list[Ask] = []
        self._ways: list[Way] = []  # in the order of their planning
        self._planned_without = {wanted.without}
        self._waited_for: frozenset[str] = frozenset()  # makers that were slow when the swap was planned anew
        self._resizes = 0
        self._changed = trio.Event()

    async def beat(self) -> None:
        """Measure how long the venue's event loop stalls, since a stall does not count as a maker's delay."""
        while True:
            await trio.sleep_until(self._beat_at)
            now = trio.current_time()
            self._lag_s = self._lag(now)
            self._beat_at = now + FIRM_BEAT_S

    def _lag(self, now: float) -> float:
        """Return the total time, in seconds, for which the event loop has stalled during this swap.

        A wake-up that is late by up to FIRM_BEAT_S is no stall.
        """
        late_s = now - self._beat_at
        return self._lag_s + (late_s if late_s > FIRM_BEAT_S else 0.0)

    async def outcome(self, plan: RoutePlan) -> FirmRoute | RequestError:
        """Collect the quotes for a plan of the swap; return the executable route, or the error.

        The makers are scored in either case.
        """
        is_cancelled = True
        try:
            found: FirmRoute | RequestError = await self._route(plan)
            is_cancelled = False
        except RequestError as error:
            found = error
            is_cancelled = False
        finally:
            self._report_makers(is_cancelled=is_cancelled)
        return found

    async def _route(self, plan: RoutePlan) -> FirmRoute:
        self._go(plan, self._began_at)
        while True:
            self._tend()
            way = next((way for way in self._ways if way.is_filled), None)
            if way is None:
                await self._news()
                continue
            route = await self._judged(way)
            if route is not None:
                return route

    def _report_makers(self, *, is_cancelled: bool) -> None:
        """Score the maker of each request of the swap.

        Unanswered requests are added to the held quotes (quotes that may bind makers' funds), since their
        makers may have signed.

        Args:
            is_cancelled: whether the swap was cancelled, so that a missing answer is no fault of the maker.
        """
        now = trio.current_time()
        self._is_over = True
        for ask in self._asks:
            if ask.is_pending:
                self._hold_unseen(ask)
        for ask in self._asks:
            fault = ask.failure.fault if ask.failure else None
            if fault is FirmFault.NO_SHARE:
                continue
            if ask.is_pending:
                if is_cancelled or ask.claim is None:  # nothing was sent
                    continue
                fault = FirmFault.LATE
            if fault is FirmFault.LATE and self._given_s(ask, now) < self._due_s:
                continue
            if fault is FirmFault.REFUSED and ask.shown is None:
                continue
            if ask.quote is not None and ask.is_drifted:
                fault = FirmFault.DRIFTED
            reserved = self._desk.stock.reserved(ask.maker, ask.asked.dest_token, self._desk.wall_ms())
            self._desk.scores.note(ask, fault, self._causer, reserved)

    def _given_s(self, ask: Ask, now: float) -> float:
        """Return the seconds that a maker has had to answer a request, less stalls of the event loop."""
        return min(now, self._hard_at) - ask.asked_at - (self._lag(now) - ask.lag_s)

    # --- Asking ---------------------------------------------------------------------------------------

    def _is_late(self) -> bool:
        return trio.current_time() >= self._soft_at

    def _go(self, plan: RoutePlan, now: float) -> Way:
        """Start collecting quotes for a plan of the swap: request a quote from every maker in the plan."""
        way = Way(self._waited_for, has_room(plan, self._limit), [])
        self._ways.append(way)
        self._begin(way, parts_of(plan, now, self._soft_at), now)
        return way

    def _drop(self, way: Way, why: str) -> None:
        """Abandon one of the swap's plans, for the reason `why`.

        Raises:
            NoRoute: no other plan of the swap is left.
        """
        self._ways.remove(way)
        if not self._ways:
            raise self._no_route(why)

    def _begin(self, way: Way, parts: list[FirmPart], now: float) -> None:
        """Add parts (makers' shares) to a plan of the swap, and request each part's quote from its maker."""
        way.parts += parts
        for part in parts:
            self._try(way, part, [part.share], now)

    def _try(self, way: Way, part: FirmPart, shares: Sequence[MakerShare], now: float) -> None:
        asks = [self._ask_for(way, part, share, now) for share in shares]
        part.tries.append(tuple(asks))
        self._asks += asks
        for ask in asks:
            self.nursery.start_soon(self._ask, ask)

    def _ask_for(self, way: Way, part: FirmPart, share: MakerShare, now: float) -> Ask:
        """Build the request to a maker for its share of a hop.

        The request is for more than the share if the hop may need more, the user's limit leaves room for the
        cost, and the maker's book has nearly the same rate for the larger amount.
        """
        desk, side = self._desk, self._wanted.side
        live = book_of_each(desk.index.between(part.src_token, part.dest_token).values()).get(share.maker)
        needed = share.src_amount if side is Side.SELL else share.dest_amount
        request = FirmAsked(part.src_token, part.dest_token, side, needed, self._user, desk.executor)
        shown = None if live is None else book_amount(live, request)
        # An exact part fills the user's own amount: no other hop's outcome can make it need more.
        if live is not None and shown is not None and way.has_room and not part.is_exact:
            wider = replace(request, amount=over_asked(needed, self._over_ask_bps()))
            shown_wider = book_amount(live, wider)
            if shown_wider is not None and is_as_cheap(request, shown, wider, shown_wider):
                request, shown = wider, shown_wider
        ask = Ask(
            maker=share.maker,
            share=share,
            asked=request,
            shown=shown,
            asked_at=now,
            lag_s=self._lag(now),
        )
        if live is not None:
            ask.base_amount = _base_amount(live, share, request)
            ask.part_ppm = part_of(ask.base_amount, _base_depth(live, request))
        return ask

    def _over_ask_bps(self) -> int:
        settings = self._desk.settings
        return settings.over_ask_bps if self._wanted.side is Side.SELL else settings.over_ask_buy_bps

    async def _ask(self, ask: Ask) -> None:
        # A task that was started in the pass in which the swap ended still runs up to its first checkpoint:
        # its claim would be of a request that nobody counts any more.
        if self._is_over:
            return
        desk = self._desk
        maker = desk.makers[ask.maker]
        claim = self._claim(ask)
        if isinstance(claim, Lack):
            claim = await self._claim_again(ask, claim)
        if isinstance(claim, Lack):
            self._lack = claim
            ask.fail(FirmFailure(FirmFault.NO_SHARE))
            self._changed.set()
            return
        # No await from the claim to here: a claim that no request, and no quote, holds would never end.
        ask.claim = claim
        desk.asked += 1
        try:
            answer = await maker.client.ask(ask.asked, deadline_s=self._hard_at - trio.current_time())
            quote = check_firm(answer, ask.asked, desk.digest_of, desk.wall_ms() // 1_000)
        except FirmFailure as failure:
            if failure.fault in _MAY_HAVE_SIGNED:
                self._hold_unseen(ask)
            else:
                desk.stock.drop(claim)
            ask.fail(failure)
            if failure.fault is FirmFault.BLACKLISTED:
                maker.cache.blacklist.add((self._user,), desk.wall_ms())
        else:
            order, latest_s = quote.order, desk.wall_ms() // 1_000 + limits.VENUE_UNFILLED_S_MAX
            expiry_s = min(order.expiry, latest_s)
            desk.stock.keep(claim, expiry_s)
            self._held.append(HeldQuote(expiry_s, order.maker, quote.digest32, order.maker_amount, claim))
            ask.quote = quote
            ask.is_drifted = is_drifted(quote.order, ask.asked.side, ask.shown, desk.settings.drift_bps)
        maker.durations.add(trio.current_time() - ask.asked_at)
        self._changed.set()

    def _claim(self, ask: Ask) -> StockClaim | Lack:
        stock, token = self._desk.stock, ask.asked.dest_token
        return stock.claim(self._claimant, ask.maker, token, ask.part_ppm, self._desk.wall_ms())

    async def _claim_again(self, ask: Ask, lack: Lack) -> StockClaim | Lack:
        """Claim a share once more, after the shares of filled swaps came back."""
        if self._freed is None:
            return lack
        with suppress(RequestError), trio.move_on_at(self._soft_at):
            await self._freed()
        if self._is_over:  # the swap may have ended meanwhile: nobody would count a claim
            return lack
        now = trio.current_time()
        ask.asked_at, ask.lag_s = now, self._lag(now)  # a maker's time begins with its request
        return self._claim(ask)

    def _hold_unseen(self, ask: Ask) -> None:
        """Count a request whose answer did not arrive as signed: its maker may reserve the stock.

        A request that was never sent reserves nothing.
        """
        if ask.claim is not None:
            until_s = self._desk.wall_ms() // 1_000 + limits.FIRM_EXPIRY_MIN_S
            self._desk.stock.keep(ask.claim, until_s)
            self._held.append(HeldQuote(until_s, claim=ask.claim))

    async def _news(self) -> None:
        """Wait for a maker's answer, or until further makers may be asked for an unfilled share."""
        # No answer is missed: nothing is awaited between the look of `_route` at all requests and this line.
        self._changed = trio.Event()
        now = trio.current_time()
        unfilled = [part for way in self._ways for part in way.parts if not part.filled()]
        looks = [at for part in unfilled for at in (part.beside_at, part.everybody_at) if at > now]
        with trio.CancelScope(deadline=min(looks, default=math.inf)):
            await self._changed.wait()

    # --- In a maker's place ---------------------------------------------------------------------------

    def _tend(self) -> None:
        """Request quotes from other makers in place of failed and slow makers.

        A plan of the swap for which no maker is left is abandoned.

        Raises:
            NoRoute: no plan of the swap is left.
        """
        now = trio.current_time()
        for way in tuple(self._ways):
            for part in way.parts:
                if not part.lacking(now) or self._stand_in(way, part, now):
                    continue
                self._plan_anew(now)
                if not part.alive:
                    self._drop(way, "time is up" if self._is_late() else "nobody else quotes")
                    break

    def _stand_in(self, way: Way, part: FirmPart, now: float) -> bool:
        """Request quotes for a maker's share (part) from other makers of the same token pair.

        The part's waiting time and its failed requests determine how many makers are asked.

        Returns:
            Whether the part can do without another plan of the swap. The result is False if it is too late to
            ask further makers, or if the other makers do not suffice. If they do not suffice, the result is
            nevertheless True as long as two tries may still succeed and `everybody_at` has not come.
        """
        if self._is_late():
            return False
        if now >= part.beside_at:
            for share in self._able_alone(way, part)[: part.lacking(now)]:
                self._stand_ins(way, part, [share], now)
        while part.lacking(now):
            plan = self._find(way, part, _needed(part, self._wanted.side), part.pending())
            if plan is None or not part.may_do(plan.paths[0].hops[0].shares):
                return part.alive > 1 and now < part.everybody_at
            self._stand_ins(way, part, plan.paths[0].hops[0].shares, now)
        return True

    def _stand_ins(self, way: Way, part: FirmPart, shares: Sequence[MakerShare], now: float) -> None:
        self._desk.stand_ins += len(shares)
        self._try(way, part, shares, now)

    def _able_alone(self, way: Way, part: FirmPart) -> list[MakerShare]:
        """List the shares of other makers whose books hold the part's whole amount, best rate first."""
        src, dest, wanted = part.src_token, part.dest_token, self._wanted
        request = FirmAsked(
            src, dest, wanted.side, _needed(part, wanted.side), self._user, self._desk.executor
        )
        without = self._without(way) | part.pending()
        books = book_of_each(self._desk.index.between(src, dest).values())
        shares = able_alone(books, request, wanted.only, without)
        return [share for share in shares if part.may_do([share])]

    def _find(self, way: Way, part: FirmPart, amount: int, without: set[str]) -> RoutePlan | None:
        """Find a plan in which other makers, possibly several, fill an amount on a part's token pair.

        The result is None if the other makers' books cannot fill the amount.
        """
        wanted = SwapRequest(
            src_token=part.src_token,
            dest_token=part.dest_token,
            amount=amount,
            side=self._wanted.side,
            only=self._wanted.only,
            without=self._without(way) | without,
            route=(part.src_token, part.dest_token),
            gas_price_wei=self._wanted.gas_price_wei,
        )
        return self._desk.pathfinder.find(wanted)

    def _without(self, way: Way) -> frozenset[str]:
        return self._wanted.without | way.without | self._failed()

    def _plan_anew(self, now: float) -> None:
        """Start another plan of the whole swap without failed and slow makers, if such a plan exists.

        No plan starts once it is too late to ask further makers. The other plans continue. No two plans
        exclude the same makers, so that the number of plans is finite.
        """
        if self._is_late():
            return
        lacking = [part for way in self._ways for part in way.parts if part.lacking(now)]
        waited_for = self._waited_for.union(*(part.pending() for part in lacking))
        without = self._wanted.without | waited_for | self._failed()
        if without in self._planned_without:
            return
        self._planned_without.add(without)
        plan = self._desk.pathfinder.find(replace(self._wanted, without=without))
        if plan is None or not indicative_within(plan, self._limit):
            return
        self._waited_for = waited_for
        self._desk.stand_ins += len(self._go(plan, now).parts)

    def _failed(self) -> set[str]:
        return {ask.maker for ask in self._asks if ask.failure is not None}

    # --- Judging --------------------------------------------------------------------------------------

    async def _judged(self, way: Way) -> FirmRoute | None:
        """Check a plan of the swap whose makers have all signed; return its route if all checks pass.

        Otherwise the method marks faulty quotes as failed or changes the plan's parts, and returns None.

        Raises:
            NoRoute: the plan is dropped, and no other plan of the swap is left.
            ServiceUnavailable: the chain does not answer.
        """
        asks = [ask for part in way.parts for ask in part.filled()]
        if not (_of_one_account_each(asks) and _given_once_each(asks)):
            return None
        side = self._wanted.side
        taxes = self._wanted.taxes
        found = arranged(side, legs_of(way.parts, side), is_taxed=bool(taxes.src or taxes.src_dex))
        if isinstance(found, Short):
            self._resize(way, found)
            return None
        is_within = found.dest_amount >= self._limit if side is Side.SELL else found.src_amount <= self._limit
        if not is_within:
            self._give_up_worst(way, asks)
            return None
        await prove(self._desk.chain, self._desk.rfq, asks)
        return found if all(ask.quote is not None for ask in asks) else None

    def _resize(self, way: Way, short: Short) -> None:
        """Request a hop's quotes again, for the amount that the next hop's signed orders cost.

        The plan is dropped if the swap is a sale, makers or time do not suffice, or the swap has resized
        _RESIZES_MAX times before.

        Args:
            short: the hop whose signed orders buy too little, and the amount that it must buy.

        Raises:
            NoRoute: the plan is dropped, and no other plan of the swap is left.
        """
        parts = [part for part in way.parts if (part.path, part.hop) == (short.path, short.hop)]
        self._resizes += 1
        plan = None
        if short.needed and self._resizes <= _RESIZES_MAX and not self._is_late():
            plan = self._find(way, parts[0], short.needed, set().union(*(part.pending() for part in parts)))
        if plan is None:
            self._drop(way, "the hops do not fit together")
            return
        way.parts = [part for part in way.parts if part not in parts]
        hop, now = plan.paths[0].hops[0], trio.current_time()
        is_exact = parts[0].is_exact
        further = parts_of_hop(hop, short.path, short.hop, now, self._soft_at, is_exact=is_exact)
        self._begin(way, further, now)

    def _give_up_worst(self, way: Way, asks: list[Ask]) -> None:
        """Discard the quote with the greatest loss against the plan of the swap.

        If no quote is worse than planned, the plan itself breaks the user's limit: the desk waits for better
        quotes of a part with open requests. Without such a part, the desk drops this plan, and starts another
        if it finds one.

        Raises:
            NoRoute: the plan is dropped, and no other plan of the swap is left.
        """
        worst = max(asks, key=lambda ask: ask.loss())
        if worst.loss() > 0:
            part = next(part for part in way.parts if worst in part.filled())
            part.raise_bar((worst,))
            fault = FirmFault.DRIFTED if worst.is_drifted else FirmFault.TOO_STRICT
            worst.fail(FirmFailure(fault, "worse than planned, beyond the user's limit"))
            return
        waiting = next((part for part in way.parts if part.alive > 1), None)
        if waiting is not None:
            waiting.raise_bar(waiting.filled())
            waiting.tries.remove(waiting.filled())
            return
        self._plan_anew(trio.current_time())
        self._drop(way, "the books do not keep the limit")

    def _no_route(self, summary: str) -> NoRoute | RateLimited:
        if self._lack is not None:
            wait_s = self._lack.wait_s or self._desk.stock.next_end_s(self._desk.wall_ms())
            error = RateLimited(shortage(self._lack))
            error.retry_after_s = wait_s
            return error
        reasons: dict[str, str] = {}
        for ask in self._asks:
            if ask.failure is not None:
                reasons.setdefault(ask.maker, ask.failure.detail)
            elif ask.is_pending:
                reasons.setdefault(ask.maker, FirmFault.LATE.value)
        texts = [f"{maker}: {reason}" for maker, reason in reasons.items()][: limits.MAKER_REASONS_MAX]
        return NoRoute("; ".join([summary, *texts]))


def _base_amount(live: LiveBook, share: MakerShare, request: FirmAsked) -> int:
    """Return the amount of a request to a maker in raw units of the pair's base token.

    If the request fixes the amount of the quote token, the result is the base amount of the planned share.
    """
    gives_base = request.src_token == live.base
    if gives_base is (request.side is Side.SELL):
        return request.amount
    return share.src_amount if gives_base else share.dest_amount


def _base_depth(live: LiveBook, request: FirmAsked) -> int:
    """Return what a maker's book holds in a request's direction, raw base units."""
    side = live.book.bids if request.src_token == live.base else live.book.asks
    return side.base_before[-1]


def _needed(part: FirmPart, side: Side) -> int:
    """Return a part's planned amount, in raw units of the token whose amount the user fixed."""
    return part.share.src_amount if side is Side.SELL else part.share.dest_amount


def _of_one_account_each(asks: list[Ask]) -> bool:
    """Mark as failed each quote that names another account than the first quote of the same maker.

    Returns:
        Whether no quote failed.
    """
    accounts: dict[str, bytes] = {}
    is_whole = True
    for ask in asks:
        account = ask.order.maker
        if accounts.setdefault(ask.maker, account) != account:
            ask.fail(FirmFailure(FirmFault.INVALID, "maker: another account than in its quote beside"))
            is_whole = False
    return is_whole


def _given_once_each(asks: list[Ask]) -> bool:
    """Mark as failed each quote whose order is already in another quote, since an order fills only once.

    Returns:
        Whether no quote failed.
    """
    seen: set[RfqOrder] = set()
    is_whole = True
    for ask in asks:
        order = ask.order
        if order in seen:
            ask.fail(FirmFailure(FirmFault.INVALID, "order: the same as in its quote beside"))
            is_whole = False
        else:
            seen.add(order)
    return is_whole
