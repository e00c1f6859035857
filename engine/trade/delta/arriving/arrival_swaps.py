"""Has makers swap the tokens that bridges delivered on one destination, or pays the tokens out unswapped.

    a wanted arrival -> no try under way -> firm quotes for the beneficiary -> the call's gas is estimated
           -> relayer.relay, keyed by arrival and try, cancelled when the quotes expire
    no quotes, or a failed try -> the next try, after growing pauses
    a call that was mined and reverted in a maker's fill -> counts against the makers of its route, which are
           left out after ARRIVAL_MAKER_REVERTS_MAX of them
    any other call that was mined and reverted -> counts against the order: after ARRIVAL_REVERTS_MAX of them
           it has no further swap
    the signed time is over -> payOut, keyed by arrival and try; that of a wrap is over from the start

The key of a relayer's intent consists of the arrival and the number of the try: even after a crash, or with a
second engine, each try is sent once. The contract pays out an arrival's tokens only once. The watch of
arrivals finds the log, whoever sent the transaction. The swapper keeps only data that the process finds again
after a restart.

Source: contracts/Arrivals.sol.
"""

from collections import Counter
from collections.abc import Mapping
from math import inf

import structlog
import trio
from msgspec import Struct, field
from msgspec.structs import replace

from .....codecs.bridges.arrivals import ArrivalTerms, pay_out_arrival
from .....codecs.contracts.abi import decode_uint, selector
from .....codecs.contracts.calldata import balance_of
from .....codecs.messages.vocabulary import Side
from .....config.errors import ChainError, InvalidInput, RequestError, StoreUnavailable
from .....config.limits import (
    ARRIVAL_MAKER_REVERTS_MAX,
    ARRIVAL_PAY_OUT_GAS,
    ARRIVAL_REVERTS_MAX,
    ARRIVAL_SWAP_GAS_MAX,
    ARRIVAL_TRIES_MAX,
    ARRIVALS_AT_ONCE,
)
from .....config.timeouts import ARRIVAL_LOOK_S, ARRIVAL_PAUSE_S, ARRIVAL_PAUSE_S_MAX
from .....crypto.hexadecimal import to_hex
from ....chain.port import EthCall
from ....chain.relay.relay_lifecycles import INTENT_IN_VAIN
from ....chain.transact import gas_needed
from ...routing.search.plan import SwapRequest
from .arrival_place import ArrivalPlace
from .swap_calls import swap_call

_STEP_FAILED = selector("StepFailed(uint256,bytes)")
_SLACK_GAS = 100_000  # for tokens that come to the arrival after the estimate: they go to the beneficiary

_log = structlog.get_logger("cambist.venue")


class WantedSwap(Struct, frozen=True):
    """Swap of an arrival.

    Attributes:
        owner: owner of the order, who has signed the terms, 20 bytes.
    """

    terms: ArrivalTerms
    owner: bytes


class _SwapErrand(Struct):
    """State of one arrival: the time of its next look, the length of its pauses, and the reason why it waits.

    Attributes:
        tries: name of an intent (swap or pay-out) -> number of the first try that is not known to have
            failed.
        reverts: name of an intent -> number of its tries that were mined and reverted, but not in a maker's
            fill.
        makers: makers of the last swap's route.
        blamed: number of swaps that were mined and reverted in a fill of a route, by the route's makers.
    """

    terms: ArrivalTerms
    owner: bytes
    due_s: float
    pause_s: float
    tries: dict[str, int]
    reverts: Counter[str] = field(default_factory=Counter)
    makers: frozenset[str] = frozenset()
    blamed: Counter[str] = field(default_factory=Counter)
    hint: str = "it has arrived, and waits for its swap or wrap"


class ArrivalStatistics(Struct, frozen=True):
    """Counters of the swaps and pay-outs on one destination.

    Attributes:
        waiting: number of arrivals that wait for their swap.
        swaps, pay_outs: numbers of transactions handed to the relayer since the start.
        failed: number of tries without a transaction since the start.
    """

    waiting: int
    swaps: int
    pay_outs: int
    failed: int


class ArrivalSwaps:
    """Has makers swap the arrivals on one destination, or pays the arrivals out. `run` is its task.

    An arrival is the account of one order to which a bridge has delivered tokens.

    Args:
        place: the destination.
    """

    def __init__(self, place: ArrivalPlace) -> None:
        self._place = place
        self._served = place.served
        self._errands: dict[bytes, _SwapErrand] = {}
        self._wake = trio.Event()
        self._room = trio.CapacityLimiter(ARRIVALS_AT_ONCE)
        self._swaps = self._pay_outs = self._failed = 0

    def statistics(self) -> ArrivalStatistics:
        """Return the number of waiting arrivals, and the counters since the start."""
        return ArrivalStatistics(len(self._errands), self._swaps, self._pay_outs, self._failed)

    def want(self, wanted: Mapping[bytes, WantedSwap]) -> None:
        """Set the arrivals to be swapped, by their accounts, and forget all other arrivals."""
        fresh = wanted.keys() - self._errands.keys()
        self._errands = {
            account: self._errands.get(account)
            or _SwapErrand(swap.terms, swap.owner, 0.0, ARRIVAL_PAUSE_S, {})
            for account, swap in wanted.items()
        }
        if fresh:
            self._wake.set()

    def hint(self, account: bytes) -> str:
        """Return a text that says what an arrival waits for; empty for an unknown arrival."""
        errand = self._errands.get(account)
        return "" if errand is None else errand.hint

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look at each wanted arrival when it is due, until cancelled."""
        task_status.started()
        while True:
            self._wake = trio.Event()
            await self.look()
            next_s = min((errand.due_s for errand in self._errands.values()), default=inf)
            with trio.move_on_at(next_s):
                await self._wake.wait()

    async def look(self) -> None:
        """Serve all due arrivals, ARRIVALS_AT_ONCE at a time, and set the time of each arrival's next turn.

        The relayer receives a swap for each arrival without a transaction under way, or the pay-out once the
        signed time is over.
        """
        now_s = trio.current_time()
        async with trio.open_nursery() as nursery:
            for account, errand in self._errands.items():
                if errand.due_s <= now_s:
                    nursery.start_soon(self._run, account, errand)

    async def _run(self, account: bytes, errand: _SwapErrand) -> None:
        async with self._room:
            if account not in self._errands:
                return
            try:
                await self._serve(account, errand)
            except (RequestError, ChainError, StoreUnavailable) as error:
                self._failed += 1
                errand.hint = f"it waits for its swap or wrap: {error.detail}"
            except Exception as error:  # noqa: BLE001  one arrival's bug is not the others' end
                _log.error("an arrival is stuck", arrival=to_hex(account), detail=repr(error), exc_info=True)
                errand.hint = "it is stuck by an error of the venue"
            else:
                # The pause stays as long as it has grown: a transaction that is handed in may still fail.
                errand.due_s = trio.current_time() + ARRIVAL_LOOK_S
                return
            errand.due_s = trio.current_time() + errand.pause_s
            errand.pause_s = min(2 * errand.pause_s, ARRIVAL_PAUSE_S_MAX)

    async def _serve(self, account: bytes, errand: _SwapErrand) -> None:
        """Hand a swap or pay-out to the relayer, unless one is under way.

        Raises:
            RequestError: makers give no quotes that reach the signed minimum.
            ChainError, StoreUnavailable: the chain refuses the call, or the chain or the store does not
                answer.
        """
        swap_key = await self._free_key("arrival", account, errand)
        head = await self._served.chain.block()
        if swap_key is None or head is None:
            return
        if head.time_s > errand.terms.until:
            await self._pay_out(account, errand)
            return
        # A contract of the order's can tell a mined call from an estimate, and revert at the relayer's cost.
        is_reverting = errand.reverts["arrival"] >= ARRIVAL_REVERTS_MAX
        if errand.tries["arrival"] >= ARRIVAL_TRIES_MAX or is_reverting:
            errand.hint = "its swap has failed too often: it is paid out after the signed time"
            return
        amount = await self._amount(account, errand.terms)
        if not amount:
            errand.hint = "it is taken from its account, and waits to be verified"
            return
        await self._swap(swap_key, errand, amount)

    async def _swap(self, key: str, errand: _SwapErrand, amount: int) -> None:
        served, terms = self._served, errand.terms
        tokens = served.tokens.by_address
        # Else one maker that moves its funds before each block would have all tries of an owner used up.
        failed = {maker for maker, times in errand.blamed.items() if times >= ARRIVAL_MAKER_REVERTS_MAX}
        wanted = SwapRequest(
            tokens[terms.token].routed,
            tokens[terms.dest_token].routed,
            amount,
            Side.SELL,
            without=served.barred(terms.beneficiary, now_ms=served.desk.wall_ms()) | failed,
            gas_price_wei=served.gas.gas_price_wei,
        )
        plan = served.pathfinder.find(wanted)
        if plan is None:
            raise ChainError("no live books lead to the wanted token")
        # The owner has signed the swap; its beneficiary was only named, and knows nothing of the quotes.
        route = await served.desk.fill(
            plan, wanted, user=terms.beneficiary, limit=terms.least, account=errand.owner
        )
        gas_max = min(ARRIVAL_SWAP_GAS_MAX, self._place.gas_max)
        call = self._call(swap_call(terms, route, served), gas_max)
        # By the estimate: a contract that acts otherwise once the call is mined wastes no more than that.
        gas = min(await gas_needed(served.chain, call) + _SLACK_GAS, gas_max)
        errand.makers = frozenset([fill.maker for hop in route.hops for fill in hop.fills])
        await self._place.relayer.relay(key, replace(call, gas_max=gas), route.expiry_s)
        self._swaps += 1
        errand.hint = "its swap is under way"

    async def _pay_out(self, account: bytes, errand: _SwapErrand) -> None:
        key = await self._free_key("arrival-out", account, errand)
        if key is None:
            return
        if errand.tries["arrival-out"] >= ARRIVAL_TRIES_MAX:
            errand.hint = "its pay-out has failed too often: anybody may call payOut of the arrivals contract"
            return
        call = self._call(pay_out_arrival(errand.terms, errand.terms.token), ARRIVAL_PAY_OUT_GAS)
        await self._served.chain.call(call)
        await self._place.relayer.relay(key, call)
        self._pay_outs += 1
        why = "" if errand.terms.is_wrap else "no maker has filled its swap in time: "
        errand.hint = f"{why}its pay-out is under way"

    def _call(self, data: bytes, gas_max: int) -> EthCall:
        return EthCall(self._served.arrivals, data, self._place.relayer.address, gas_max=gas_max)

    async def _amount(self, account: bytes, terms: ArrivalTerms) -> int:
        """Read the raw units that an arrival holds; for the wrapped native token, native units count too."""
        served = self._served
        try:
            held = decode_uint(await served.chain.call(EthCall(terms.token, balance_of(account))))
        except InvalidInput as error:
            raise ChainError(error.detail) from None
        if terms.token == served.tokens.wrapped_native:
            held += await served.chain.balance(account)
        return held

    async def _free_key(self, name: str, account: bytes, errand: _SwapErrand) -> str | None:
        """Return the key of the next try; None while a try is under way or mined.

        The caller checks `errand.tries`: after ARRIVAL_TRIES_MAX failed tries the key must not be used.

        Raises:
            ChainError: a try has failed since the last call; the next try has to wait.
        """
        before = number = errand.tries.setdefault(name, 0)
        why = ""
        while number < ARRIVAL_TRIES_MAX:
            outcome = await self._place.relayer.outcome(_key(name, account, number))
            if outcome is None:
                break
            if outcome.state not in INTENT_IN_VAIN:
                return None
            number += 1
            errand.tries[name], why = number, outcome.reason
            # After a restart the makers of earlier tries are unknown: none is blamed for them.
            if outcome.error4 == _STEP_FAILED:
                errand.blamed.update(errand.makers)
            elif outcome.tx_hash is not None:
                errand.reverts[name] += 1
        if number > before:
            raise ChainError(f"its last transaction had no effect: {why}")
        return _key(name, account, number)


def _key(name: str, account: bytes, number: int) -> str:
    return f"{name}:{account.hex()}:{number}"
