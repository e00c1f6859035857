"""Scores makers by their answers to a swap's requests for firm quotes, and starts cool-downs (`rest`).

    a fault      counts; too many start a cool-down of the pair or the maker (feeds.firm.maker_health)
    blacklisted  a maker's cool-down starts once the maker has blacklisted most of the last askers
    a refusal    bounds the size of requests in that direction (feeds.firm.size_bounds); while our callers
                 reserve the maker's stock, no longer than they do, and not if they explain the refusal
    valid quote  widens that bound again
    cool-down    after a quarter, a half and three quarters of it, a probe repeats the failed request for a
                 tenth of its amount; a valid quote ends the cool-down

A probe names the user of the failed request, so that a maker cannot distinguish it from a real request. Its
quote is not used, and does not count for or against the maker.

Source: ARCHITECTURE.md, "Firm quotes".
"""

from collections.abc import Callable, Mapping

import structlog
import trio
from msgspec import Struct, field
from msgspec.structs import replace

from .....codecs.eip712_orders.rfq import RfqOrder
from .....codecs.messages.vocabulary import Side
from .....config import limits
from .....config.timeouts import FIRM_PROBE_LOOK_S
from .....feeds.books.pair_index import ends_of
from .....feeds.durations import Durations
from .....feeds.firm.firm_check import AGAINST_MAKER, FirmAsked, FirmFailure, FirmFault, check_firm
from .....feeds.firm.firm_client import FirmClient
from .....feeds.firm.maker_health import FaultTold, MakerHealth
from .....feeds.maker_cache import EXCLUDED, MakerCache
from .....feeds.remarks import Remarks
from ....host.admission.budgets import PPM
from .fault_notices import FaultNotices
from .firm_parts import Ask
from .stock import QuoteCauser

PROBES = 4  # parts of a rest; a probe follows each part but the last
PROBE_PART = 10  # a probe asks for the failed amount divided by this

_log = structlog.get_logger("cambist.venue")


class FirmMaker(Struct, frozen=True):
    """A maker on one chain: client for firm quotes, health score, cached books and notices of its faults.

    Attributes:
        durations: times from a request for a firm quote to the maker's answer, or to the end of the wait.
    """

    client: FirmClient
    health: MakerHealth
    cache: MakerCache
    notices: FaultNotices | None = None
    durations: Durations = field(default_factory=Durations)


class _Rest(Struct):
    """Cool-down of one maker on one token pair, with the times of test requests (probes) to the maker.

    Attributes:
        request: the failed request, which a probe repeats for a smaller amount.
        every_ms: time between two probes.
        next_ms, until_ms: Unix milliseconds of the next probe, and of the cool-down's end.
    """

    request: FirmAsked
    every_ms: int
    next_ms: int
    until_ms: int


class FirmScores:
    """Scores one chain's makers by their answers to requests for firm quotes, and starts their cool-downs.

    Args:
        makers: makers by name.
        digest_of: order -> its EIP-712 hash, 32 bytes.
        hard_s: seconds for which a probe (test request to a maker in cool-down) waits for its answer.
        wall_ms: wall clock, Unix milliseconds.

    Attributes:
        probes: probes sent so far.
    """

    def __init__(
        self,
        makers: Mapping[str, FirmMaker],
        digest_of: Callable[[RfqOrder], bytes],
        hard_s: float,
        wall_ms: Callable[[], int],
    ) -> None:
        self._makers = makers
        self._digest_of = digest_of
        self._hard_s = hard_s
        self._wall_ms = wall_ms
        self._rests: dict[tuple[str, bytes, bytes], _Rest] = {}
        self._remarks = {name: Remarks(_logged(name), wall_ms) for name in makers}
        self.probes = 0

    def note(
        self, ask: Ask, fault: FirmFault | None, causer: QuoteCauser, reserved: tuple[int, int] = (0, 0)
    ) -> None:
        """Score a maker by the outcome of a request for a firm quote; a `fault` of None is a valid quote.

        The outcome may start cool-downs and change the bounds on request sizes. Refusals and faults against
        the maker are also logged, and queued as notices to the maker.

        Args:
            causer: account that caused the request.
            reserved: part of the maker's stock that unfilled swaps reserve, parts per million, and when the
                last of their quotes expires, Unix seconds.
        """
        maker, now_ms = self._makers[ask.maker], self._wall_ms()
        src, dest = ask.asked.src_token, ask.asked.dest_token
        # Every outcome goes to `record`, which itself skips faults that the user or the venue causes.
        rests = maker.health.record(src, dest, fault, now_ms, causer.account)
        if fault is not None and (fault in AGAINST_MAKER or fault is FirmFault.REFUSED):
            record = FaultTold(now_ms, fault, src, dest, _detail(ask, fault))
            maker.health.remember(record)
            if maker.notices is not None:
                maker.notices.tell(record)
            pair = f"0x{src.hex()} for 0x{dest.hex()}"
            self._remarks[ask.maker].take(f"{pair}: {record.detail}")
        if causer.is_shown and (fault is None or fault is FirmFault.BLACKLISTED):
            until_ms = maker.health.served(causer.account, now_ms, is_served=fault is None)
            if until_ms:
                maker.cache.rest_maker(until_ms)
        if rests.pair_until_ms:
            ends = ends_of(src, dest)  # both directions of the pair rest together
            maker.cache.rest_pair(*ends, rests.pair_until_ms)
            every_ms = (rests.pair_until_ms - now_ms) // PROBES
            rest = _Rest(ask.asked, every_ms, now_ms + every_ms, rests.pair_until_ms)
            self._rests[ask.maker, *ends] = rest
        if rests.maker_until_ms:
            maker.cache.rest_maker(rests.maker_until_ms)
        if ask.base_amount:
            # Faults other than a refusal do not show how much the maker would sign.
            bounds, bound = maker.health.bounds, None
            part_ppm, until_s = reserved
            is_explained = part_ppm and part_ppm + ask.part_ppm > PPM
            if fault is FirmFault.REFUSED and not is_explained:
                ends_ms = 1_000 * until_s if part_ppm else None
                bound = bounds.refused(src, dest, ask.base_amount, now_ms, ends_ms)
            elif fault is None:
                bound = bounds.signed(src, dest, ask.base_amount, now_ms)
            if bound is not None:
                maker.cache.bound(src, dest, bound.amount, bound.until_ms)

    def release(self, name: str) -> None:
        """Clear a maker's score, cool-downs and bounds on request sizes, at the operator's command."""
        maker = self._makers[name]
        maker.health.release()
        maker.cache.free(self._wall_ms())
        for key in [key for key in self._rests if key[0] == name]:
            del self._rests[key]

    async def run(self) -> None:
        """Send test requests to makers in a cool-down, and notices of faults to makers, until cancelled."""
        async with trio.open_nursery() as nursery:
            for maker in self._makers.values():
                if maker.notices is not None:
                    nursery.start_soon(maker.notices.run)
            while True:
                await trio.sleep(FIRM_PROBE_LOOK_S)
                for key, rest in self._due():
                    self.probes += 1
                    nursery.start_soon(self._probe, key[0], rest.request)

    def _due(self) -> list[tuple[tuple[str, bytes, bytes], _Rest]]:
        """Return the makers' cool-downs in which a test request is due now, at most MAKER_PROBES_MAX.

        Each returned cool-down gets the time of its next test request. Cool-downs that are over, and those of
        makers that the operator excludes, are removed.
        """
        now_ms = self._wall_ms()
        for key, rest in tuple(self._rests.items()):
            if rest.until_ms <= now_ms or self._makers[key[0]].cache.is_withheld(EXCLUDED):
                del self._rests[key]
        due = [(key, rest) for key, rest in self._rests.items() if rest.next_ms <= now_ms]
        for _, rest in due[: limits.MAKER_PROBES_MAX]:
            rest.next_ms = now_ms + rest.every_ms
        return due[: limits.MAKER_PROBES_MAX]

    async def _probe(self, name: str, failed: FirmAsked) -> None:
        maker = self._makers[name]
        request = replace(failed, amount=max(failed.amount // PROBE_PART, 1))
        try:
            answer = await maker.client.ask(request, deadline_s=self._hard_s)
            check_firm(answer, request, self._digest_of, self._wall_ms() // 1_000)
        except FirmFailure:
            return
        now_ms = self._wall_ms()
        ends = ends_of(request.src_token, request.dest_token)
        self._rests.pop((name, *ends), None)
        maker.health.end_rest(*ends, now_ms)
        maker.cache.rest_pair(*ends, now_ms)
        maker.cache.rest_maker(now_ms)
        maker.cache.expire(now_ms)


def _logged(name: str) -> Callable[[str], object]:
    return lambda text: _log.warning("a maker's fault", maker=name, detail=text)


def _detail(ask: Ask, fault: FirmFault) -> str:
    """Describe a maker's fault for notices and the log: kind of fault, expected and signed amount."""
    if ask.failure is not None:
        text = str(ask.failure)
    elif ask.quote is not None:
        order, sells = ask.quote.order, ask.asked.side is Side.SELL
        signed = order.maker_amount if sells else order.taker_amount
        book = f"its book {'gives' if sells else 'takes'} {ask.shown}"
        text = f"{fault.value}: {book}, it signed {signed}, in its own favour"
    else:
        text = f"{fault.value}: no answer in time"
    return text[: limits.MAKER_FAULT_CHARS_MAX]
