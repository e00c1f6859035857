"""From an indicative plan to signed fills: asks the makers, checks what they sign, replaces those who fail.

    plan --> all parts are asked at once --> all filled --> arithmetic --> the limit --> the chain --> route
                 |                                              |             |             |
                 |                                    a hop buys too   the worst quote   no funds, or
                 |                                    little: asked    is given up       no signature
                 |                                    for anew              |             |
                 '-- a maker failed, or let us wait for half of soft_s <---'-------------'
                         its share is asked of others on the same pair; where there are none,
                         the whole swap is planned anew without those who failed

Until soft_s somebody else may be asked; until hard_s answers are waited for; what the chain has to say comes
after that, in a time of its own. A maker that failed is not asked again for this swap. A stand-in costs the
user nothing but its price, which keeps within the limit, or there is no route.

What each maker did is recorded once, when the swap is settled or given up: faults of its own, and clean
quotes, whether they were used or not. One that was cancelled has done nothing.

Source: design, "Firm quotes"; interop.md section 4; choices.md 18.
Choice: a failing part is replaced on its own pair first, and good quotes of other parts are kept; a maker
    that has signed for the hop may be asked for more.
Choice: a slow maker is waited for to the end while somebody else is asked beside it; its own quote is taken
    if it is there when the swap can be settled.
Choice: half of soft_s is a maker's due: one that was given less before time was up has not failed.
Choice: more than the need is asked for only where that makes the need dearer by OVER_ASK_COST_BPS at most, by
    the maker's own book, and where the user's limit leaves room for that: otherwise makers that sign exactly
    what they show would not come to what was quoted.
Choice: a quote worse than the plan is no fault as long as the whole swap keeps the user's limit. The maker is
    scored for it where it is worse than its own book by more than drift_bps.
Choice: a refusal is no fault where the maker's book had less, or nothing, when it was asked.
Choice: all quotes of a maker for one swap are of one account: what it has is counted once.
"""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import trio
from msgspec import Struct
from msgspec.structs import replace

from ....codecs.eip712_orders.rfq import RFQ_ORDER
from ....codecs.vocabulary import Side
from ....config import limits
from ....config.errors import NoRoute, RequestError
from ....config.venue import FirmSettings
from ....feeds.firm_check import FirmAsked, FirmFailure, FirmFault, book_amount, check_firm, is_drifted
from ....feeds.firm_client import FirmClient
from ....feeds.maker_cache import MakerCache
from ....feeds.maker_health import MakerHealth
from ....feeds.pair_index import PairIndex
from ...chain.port import Chain
from ..pricing.plan import MakerShare, RoutePlan, Wanted
from .firm_parts import (
    Ask,
    Part,
    has_room,
    indicative_within,
    is_as_cheap,
    legs_of,
    parts_of,
    parts_of_hop,
)
from .firm_proof import prove
from .firm_route import FirmRoute
from .legs import Short, arranged, over_asked

if TYPE_CHECKING:
    from ..pricing.pathfinder import Pathfinder

_RESIZES_MAX = 2  # a hop of a purchase is asked for anew so often, because the one after it needs more


class FirmMaker(Struct, frozen=True):
    """One maker on the desk's chain."""

    client: FirmClient
    health: MakerHealth
    cache: MakerCache


class FirmDeskStatistics(Struct, frozen=True):
    """One moment of a desk.

    Attributes:
        under_way: swaps.
        filled, unfilled: swaps so far that came to a route, and that did not.
        asked: questions to makers so far.
        stand_ins: of them, those that were asked because of others.
    """

    under_way: int
    filled: int
    unfilled: int
    asked: int
    stand_ins: int


class FirmDesk:
    """The firm quotes of one chain.

    Args:
        makers: by name: all that the index may name.
        chain: where funds and contracts' signatures are checked.
        rfq: the RFQ contract, 20 bytes.
        executor: the contract that fills the orders: their taker, 20 bytes.
        separator: of the RFQ contract's signing domain, 32 bytes.
        wall_ms: Unix milliseconds.
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
        self._begun = self._under_way = self._filled = 0
        self.asked = self.stand_ins = 0

    def statistics(self) -> FirmDeskStatistics:
        """What happened so far."""
        unfilled = self._begun - self._under_way - self._filled
        return FirmDeskStatistics(self._under_way, self._filled, unfilled, self.asked, self.stand_ins)

    async def fill(
        self, plan: RoutePlan, wanted: Wanted, *, user: bytes, limit: int, check_funds: bool = True
    ) -> FirmRoute:
        """Have a plan signed, by its makers or by others in their place.

        Args:
            plan: of `wanted`, by the books.
            user: who will execute the swap; 20 bytes.
            limit: raw units before fees: the least of the destination (SELL) or the most of the source (BUY).
            check_funds: False leaves out whether the orders are open and the makers have the tokens.

        Returns:
            A route whose amounts are to the unit what its execution brings.

        Raises:
            NoRoute: nobody signs within the limit and the time; tells of each maker why.
            ServiceUnavailable: the chain does not answer.
        """
        filling = _Filling(self, wanted, user, limit, check_funds=check_funds)
        self._begun += 1
        self._under_way += 1
        try:
            async with trio.open_nursery() as nursery:
                filling.nursery = nursery
                outcome = await filling.outcome(plan)
                nursery.cancel_scope.cancel()
        finally:
            self._under_way -= 1
        if isinstance(outcome, RequestError):  # not raised within the nursery, which would wrap it
            raise outcome
        self._filled += 1
        return outcome


class _Filling:
    """One swap on its way to being signed."""

    nursery: trio.Nursery

    def __init__(self, desk: FirmDesk, wanted: Wanted, user: bytes, limit: int, *, check_funds: bool) -> None:
        self._desk = desk
        self._wanted = wanted
        self._user = user
        self._limit = limit
        self._check_funds = check_funds
        now = trio.current_time()
        self._soft_at = now + desk.settings.soft_s
        self._hard_at = now + desk.settings.hard_s
        self._patience_s = desk.settings.soft_s / 2
        self._asks: list[Ask] = []
        self._parts: list[Part] = []
        self._planned_without = wanted.without
        self._given_up: set[str] = set()  # makers that were too slow when the swap was planned anew
        self._resizes = 0
        self._has_room = False  # for what asking for more than the need may cost
        self._changed = trio.Event()

    async def outcome(self, plan: RoutePlan) -> FirmRoute | RequestError:
        """The route, or why there is none; what the makers did is told in either case."""
        is_cancelled = True
        try:
            found: FirmRoute | RequestError = await self._route(plan)
            is_cancelled = False
        except RequestError as error:
            found = error
            is_cancelled = False
        finally:
            self._settle(is_cancelled=is_cancelled)
        return found

    async def _route(self, plan: RoutePlan) -> FirmRoute:
        self._has_room = has_room(plan, self._limit)
        self._begin(parts_of(plan))
        while True:
            if not self._tend():
                raise self._no_route("time is up" if self._is_late() else "nobody else quotes")
            if all(part.filled() for part in self._parts):
                route = await self._judged()
                if route is not None:
                    return route
            else:
                await self._news()

    def _settle(self, *, is_cancelled: bool) -> None:
        """Tell what each maker did."""
        now, now_ms = trio.current_time(), self._desk.wall_ms()
        for ask in self._asks:
            fault = ask.failure.fault if ask.failure else None
            if ask.is_pending:
                if is_cancelled:
                    continue
                fault = FirmFault.LATE
            if fault is FirmFault.LATE and min(now, self._hard_at) - ask.asked_at < self._patience_s:
                continue
            if fault is FirmFault.REFUSED and ask.shown is None:
                continue
            if ask.quote is not None and ask.is_drifted:
                fault = FirmFault.DRIFTED
            maker = self._desk.makers[ask.maker]
            src, dest = ask.asked.src_token, ask.asked.dest_token
            rests = maker.health.record(src, dest, fault, now_ms)
            if rests.pair_until_ms:
                maker.cache.rest_pair(src, dest, rests.pair_until_ms)
            if rests.maker_until_ms:
                maker.cache.rest_maker(rests.maker_until_ms)

    # --- Asking ---------------------------------------------------------------------------------------

    def _is_late(self) -> bool:
        return trio.current_time() >= self._soft_at

    def _begin(self, parts: list[Part]) -> None:
        """Ask for each part the maker that it is planned for."""
        self._parts += parts
        for part in parts:
            self._try(part, [part.share])

    def _try(self, part: Part, shares: list[MakerShare] | tuple[MakerShare, ...]) -> None:
        now = trio.current_time()
        asks = [self._ask_for(part, share, now) for share in shares]
        part.tries.append(tuple(asks))
        part.next_try_at = now + self._patience_s
        self._asks += asks
        self._desk.asked += len(asks)
        for ask in asks:
            self.nursery.start_soon(self._ask, ask)

    def _ask_for(self, part: Part, share: MakerShare, now: float) -> Ask:
        """The question: for more than the need where that varies and makes the need no dearer."""
        desk, side = self._desk, self._wanted.side
        books = desk.index.between(part.src_token, part.dest_token).values()
        live = next((live for live in books if live.maker == share.maker), None)
        needed = share.src_amount if side is Side.SELL else share.dest_amount
        asked = FirmAsked(part.src_token, part.dest_token, side, needed, self._user, desk.executor)
        shown = None if live is None else book_amount(live, asked)
        if live is not None and shown is not None and self._has_room and not part.is_exact:
            wider = replace(asked, amount=over_asked(needed, self._over_ask_bps()))
            shown_wider = book_amount(live, wider)
            if shown_wider is not None and is_as_cheap(asked, shown, wider, shown_wider):
                asked, shown = wider, shown_wider
        return Ask(share.maker, share, asked, shown, now)

    def _over_ask_bps(self) -> int:
        settings = self._desk.settings
        return settings.over_ask_bps if self._wanted.side is Side.SELL else settings.over_ask_buy_bps

    async def _ask(self, ask: Ask) -> None:
        desk = self._desk
        maker = desk.makers[ask.maker]
        try:
            answer = await maker.client.ask(ask.asked, deadline_s=self._hard_at - trio.current_time())
            quote = check_firm(answer, ask.asked, desk.digest_of, desk.wall_ms() // 1_000)
        except FirmFailure as failure:
            ask.fail(failure)
            if failure.fault is FirmFault.BLACKLISTED:
                maker.cache.blacklist.add((self._user,), desk.wall_ms())
        else:
            ask.quote = quote
            ask.is_drifted = is_drifted(quote.order, ask.asked.side, ask.shown, desk.settings.drift_bps)
        self._changed.set()

    async def _news(self) -> None:
        """Wait until something is answered, or somebody has been waited for long enough."""
        self._changed = trio.Event()
        looks = [part.next_try_at for part in self._parts if not part.filled() and not part.is_exhausted]
        wake_at = min((at for at in looks if at < self._soft_at), default=math.inf)
        with trio.CancelScope(deadline=wake_at):
            await self._changed.wait()

    # --- In a maker's place ---------------------------------------------------------------------------

    def _tend(self) -> bool:
        """Ask others where somebody failed or lets us wait. False where a part cannot be filled any more."""
        now = trio.current_time()
        for part in self._parts:
            if not part.is_due(now) or self._stand_in(part):
                continue
            if self._plan_anew():
                return True
            if part.is_stuck:
                return False
            part.is_exhausted = True
        return True

    def _stand_in(self, part: Part) -> bool:
        """Ask others for a part, on its own pair. False where there are none, or no time."""
        if self._is_late():
            return False
        side, share = self._wanted.side, part.share
        amount = share.src_amount if side is Side.SELL else share.dest_amount
        plan = self._find(part, amount, part.pending())
        if plan is None:
            return False
        if part.to_beat is not None and plan.dest_amount <= part.to_beat * plan.src_amount:
            return False
        shares = plan.paths[0].hops[0].shares
        self._desk.stand_ins += len(shares)
        self._try(part, shares)
        return True

    def _find(self, part: Part, amount: int, without: set[str]) -> RoutePlan | None:
        """Others for a part's pair."""
        wanted = Wanted(
            part.src_token,
            part.dest_token,
            amount,
            self._wanted.side,
            only=self._wanted.only,
            without=self._wanted.without | self._failed() | without,
            route=(part.src_token, part.dest_token),
            gas_price_wei=self._wanted.gas_price_wei,
        )
        return self._desk.pathfinder.find(wanted)

    def _plan_anew(self) -> bool:
        """Begin again without those that failed or let us wait. False where there is no way, or no time.

        A plan without the same makers is not made twice, so that this comes to an end.
        """
        if self._is_late():
            return False
        waited_for: set[str] = set()
        for part in self._parts:
            if not part.filled():
                waited_for |= part.pending()
        without = self._wanted.without | self._failed() | waited_for
        if without == self._planned_without:
            return False
        self._planned_without = without
        plan = self._desk.pathfinder.find(replace(self._wanted, without=without))
        if plan is None or not indicative_within(plan, self._limit):
            return False
        self._given_up |= waited_for
        self._has_room = has_room(plan, self._limit)
        self._parts = []
        parts = parts_of(plan)
        self._desk.stand_ins += len(parts)
        self._begin(parts)
        return True

    def _failed(self) -> set[str]:
        return self._given_up | {ask.maker for ask in self._asks if ask.failure is not None}

    # --- Judging --------------------------------------------------------------------------------------

    async def _judged(self) -> FirmRoute | None:
        """The route, if it holds; else what keeps it from that is failed or replaced, and None."""
        asks = [ask for part in self._parts for ask in part.filled()]
        if not (_of_one_account_each(asks) and _given_once_each(asks)):
            return None
        side = self._wanted.side
        taxes = self._wanted.taxes
        found = arranged(side, legs_of(self._parts, side), is_taxed=bool(taxes.src or taxes.src_dex))
        if isinstance(found, Short):
            self._resize(found)
            return None
        is_within = found.dest_amount >= self._limit if side is Side.SELL else found.src_amount <= self._limit
        if not is_within:
            self._give_up_worst(asks)
            return None
        await prove(self._desk.chain, self._desk.rfq, asks, check_funds=self._check_funds)
        return found if all(ask.quote is not None for ask in asks) else None

    def _resize(self, short: Short) -> None:
        """Ask for a hop anew, for what is needed of it now."""
        parts = [part for part in self._parts if (part.path, part.hop) == (short.path, short.hop)]
        self._resizes += 1
        plan = None
        if short.needed and self._resizes <= _RESIZES_MAX and not self._is_late():
            plan = self._find(parts[0], short.needed, set())
        if plan is None:
            raise self._no_route("the hops do not fit together")
        self._parts = [part for part in self._parts if part not in parts]
        hop = plan.paths[0].hops[0]
        self._begin(parts_of_hop(hop, short.path, short.hop, is_exact=parts[0].is_exact))

    def _give_up_worst(self, asks: list[Ask]) -> None:
        """Of the quotes that are worse than planned, fail the one that is so by most; or plan anew."""
        worst = max(asks, key=lambda ask: ask.loss())
        if worst.loss() <= 0:
            if self._plan_anew():
                return
            raise self._no_route("the books do not keep the limit")
        part = next(part for part in self._parts if worst in part.filled())
        part.to_beat = worst.rate()
        fault = FirmFault.DRIFTED if worst.is_drifted else FirmFault.TOO_STRICT
        worst.fail(FirmFailure(fault, "worse than planned, beyond the user's limit"))

    def _no_route(self, summary: str) -> NoRoute:
        reasons: dict[str, str] = {}
        for ask in self._asks:
            if ask.failure is not None:
                reasons.setdefault(ask.maker, ask.failure.detail)
            elif ask.is_pending:
                reasons.setdefault(ask.maker, FirmFault.LATE.value)
        told = [f"{maker}: {reason}" for maker, reason in reasons.items()][: limits.MAKER_REASONS_MAX]
        return NoRoute("; ".join([summary, *told]))


def _of_one_account_each(asks: list[Ask]) -> bool:
    """Fail the quotes of a maker that are of another account than its first."""
    accounts: dict[str, bytes] = {}
    is_whole = True
    for ask in asks:
        account = ask.order.maker
        if accounts.setdefault(ask.maker, account) != account:
            ask.fail(FirmFailure(FirmFault.INVALID, "maker: another account than in its quote beside"))
            is_whole = False
    return is_whole


def _given_once_each(asks: list[Ask]) -> bool:
    """Fail the quotes of an order that stands in another quote already: it is filled once."""
    seen: set[bytes] = set()
    is_whole = True
    for ask in asks:
        if ask.quote is None:
            continue
        if ask.quote.digest32 in seen:
            ask.fail(FirmFailure(FirmFault.INVALID, "order: the same as in its quote beside"))
            is_whole = False
        else:
            seen.add(ask.quote.digest32)
    return is_whole
