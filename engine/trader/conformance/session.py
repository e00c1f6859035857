"""State of one conformance run: its options, the results so far, and the data that stages share.

Stages do not import one another; a stage stores here the data about the maker that later stages need.
"""

import random
import re
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, structs

from ....codecs.messages.maker_messages import Pair, Token
from ....feeds.books.book import Ladder
from .check_table import CHECKS
from .checks.auth import Plain, Target
from .checks.firm import Asking, Users, ask, small_amount
from .checks.grids import is_disabled
from .checks.life import Sighting
from .checks.load import LoadReport
from .checks.market import MakerMarket, market_of, read_grids, read_pairs, read_tokens
from .checks.resources import RESOURCES, entries_of
from .checks.signatures import SigningDomain
from .exchange import TOO_MANY, HttpExchange
from .node import ProbedNode
from .options import DEFAULT_TAKER, CheckOptions
from .probe import Probe
from .rules import CheckStatus, Result, Tally, gap, judged, skipped

_REDACTED_CHARS_MIN = 4  # redacting shorter credentials would make every text unreadable

ResourceSnapshot = dict[str, HttpExchange]


class Good(Struct, frozen=True):
    """A firm-quote request that the maker answered with an order, for later stages to repeat or alter.

    Attributes:
        asking: the request.
        depth: largest fixed amount for which the request's side of the price grid has levels, raw units.
        other: amount that the price grid gives in exchange for the fixed amount, raw units.
    """

    asking: Asking
    depth: int
    other: int


class Session:
    """State of a conformance run, which its stages share.

    Attributes:
        tally: all results so far.
        snapshot: last answers of GET /tokens, /pairs, /prices and /blacklist, by name.
        good: a request that the maker quoted; None until the first quote.
        quotes: number of firm quotes that the maker gave.
        sightings: listed pairs and disabled pairs of each /pairs and /prices answer and WebSocket message.
        load: the load stage's report; None before that stage.
        stage: name of the running stage, for the progress display.
        tokens: the valid tokens of the last snapshot.
    """

    def __init__(
        self,
        options: CheckOptions,
        probe: Probe,
        node: ProbedNode | None,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self.options = options
        self.probe = probe
        self.node = node
        self.rng = random.Random(options.seed)  # noqa: S311  choice of amounts, not a secret
        self.users = Users(options.seed, options.user)
        self.taker = options.taker or DEFAULT_TAKER
        self.selected = frozenset(check.id for check in CHECKS.values() if check in options.selection)
        self.tally = Tally(CHECKS, options.selection)
        self.snapshot: ResourceSnapshot = {}
        self.good: Good | None = None
        self.quotes = 0
        self.sightings: list[Sighting] = []
        self.load: LoadReport | None = None
        self.stage = "connecting"
        self._on_progress = on_progress
        self.tokens: Mapping[str, Token] = {}
        self._pairs: Mapping[str, Pair] = {}

    @property
    def prefix(self) -> str:
        """Path of the maker's base URL, without a trailing slash."""
        return self.probe.place.path

    @property
    def domain(self) -> SigningDomain | None:
        """EIP-712 domain of the maker's orders; None if the options lack the chain id or the RFQ contract."""
        options = self.options
        if options.chain_id is None or options.rfq_contract is None:
            return None
        return SigningDomain(options.domain_name, options.chain_id, options.rfq_contract)

    @property
    def is_silent(self) -> bool:
        """Whether none of the maker's four GET endpoints answered: more checks would only time out."""
        return bool(self.snapshot) and all(exchange.failure for exchange in self.snapshot.values())

    def add(self, results: Iterable[Result]) -> None:
        """Count results of the selected checks, with credentials hidden, and report progress."""
        for result in results:
            self.tally.add(self._redacted(result))
        self._on_progress(self.stage, len(self.tally), len(self.selected))

    def _redacted(self, result: Result) -> Result:
        """Return the result with credentials hidden, since a maker's answer may echo request headers."""
        credentials = self.options.credentials
        if credentials is None or result.status is not CheckStatus.FAILED:
            return result
        got = result.got
        for text in (credentials.access_key, credentials.secret.decode("utf-8", "replace")):
            if (
                len(text) > _REDACTED_CHARS_MIN
            ):  # tamperings in auth also send it in another case or without its last character
                pattern = f"{re.escape(text[:-1])}(?:{re.escape(text[-1])})?"
                got = re.sub(pattern, "(hidden)", got, flags=re.IGNORECASE)
        return structs.replace(result, got=got)

    def skip(self, reason: str, *names: str) -> None:
        """Record checks as skipped for a reason other than the maker, e.g. a missing option.

        Args:
            names: topics or ids of the checks.
        """
        self.add(skipped(check_id, reason) for check_id in self._named(names))

    def lack(self, reason: str, *names: str) -> None:
        """Record checks as gaps, i.e. as skipped because the maker gave nothing to judge them on.

        Args:
            names: topics or ids of the checks.
        """
        self.add(gap(check_id, reason) for check_id in self._named(names))

    def wants(self, *names: str) -> bool:
        """Whether the options select any check of `names`, which are topics or ids of checks."""
        return bool(self._named(names))

    def _named(self, names: Iterable[str]) -> list[str]:
        topics = frozenset(names)
        return sorted(
            check_id
            for check_id in self.selected
            if check_id in topics or check_id.partition(".")[0] in topics
        )

    async def take_snapshot(self) -> ResourceSnapshot:
        """Fetch /tokens, /pairs, /prices and /blacklist, and store the answers and their parsed entries."""
        snapshot = {name: await self.probe.get(name) for name in RESOURCES}
        self.snapshot = snapshot
        self.tokens, self._pairs = read_tokens(snapshot["tokens"]), read_pairs(snapshot["pairs"])
        self._sight(snapshot["prices"], snapshot["pairs"])
        return snapshot

    async def market(self) -> MakerMarket:
        """Fetch current prices and combine them with the tokens and pairs of the last snapshot.

        The market has books for the first `pairs_max` pairs with prices.
        """
        prices = await self.prices()
        return market_of(self.tokens, self._pairs, read_grids(prices), self.options.pairs_max)

    async def prices(self) -> HttpExchange:
        """Fetch GET /prices; an answer other than 2xx or 429 is a fault of the check `prices.status`."""
        prices = await self.probe.get("prices")
        self._sight(prices)
        if prices.status != TOO_MANY:
            self.add([judged("prices.status", prices.succeeded, prices.where, "200, each time", prices.said)])
        return prices

    def saw(self, *prices: Mapping[str, object]) -> None:
        """Record which pairs these price grids disable, for the check of removed pairs.

        Args:
            prices: price grids by pair id.
        """
        disabled = {pair_id for grids in prices for pair_id, grid in grids.items() if is_disabled(grid)}
        self.sightings.append(Sighting(disabled=frozenset(disabled)))

    def _sight(self, prices: HttpExchange, pairs: HttpExchange | None = None) -> None:
        grids = entries_of("prices", prices) or {}
        listed = entries_of("pairs", pairs) if pairs is not None else None
        self.sightings.append(
            Sighting(
                listed=None if listed is None else frozenset(listed),
                disabled=frozenset(pair_id for pair_id, grid in grids.items() if is_disabled(grid)),
            )
        )

    async def find_good(self) -> Asking | None:
        """Find a small firm-quote request that the maker quotes; None if none of up to four is quoted."""
        if self.good is None and self.snapshot:
            market = await self.market()
            for pair_id, leg, ladder in market.legs()[:4]:
                amount = small_amount(leg, ladder, self.rng)
                asking = ask(market, pair_id, leg, amount, self.users.next(), self.taker)
                exchange = await self.send_firm(asking)
                if exchange.succeeded and b'"order"' in exchange.body:
                    self.keep_good(asking, ladder)
                    break
        return self.good.asking if self.good else None

    def keep_good(self, asking: Asking, ladder: Ladder) -> None:
        """Store a quoted request for later stages, unless a request is stored already.

        Args:
            ladder: the side of the book that the request trades on.
        """
        other = asking.leg.walk(ladder, asking.amount)
        if self.good is None and other is not None:
            self.good = Good(asking, asking.leg.depth(ladder), other)

    async def send_firm(self, asking: Asking) -> HttpExchange:
        """Send a firm-quote request to POST /firm."""
        exchange = await self.probe.send("POST", f"{self.prefix}/firm", asking.raw)
        self.quotes += exchange.succeeded and b'"order"' in exchange.body
        return exchange

    def auth_target(self) -> Target:
        """Return the valid requests from which the authentication checks derive wrongly signed requests."""
        firm = Plain("POST", f"{self.prefix}/firm", self.good.asking.raw) if self.good else None
        return Target(self.prefix, firm)
