"""The contracts' rules in plain Python: balances after each call, and the text of each refusal.

The model has no chain. Its state is data that can be copied: a re-organisation restores a copy. Tokens move
without allowances: in the tests that use the model, every account has allowed every amount.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from msgspec import Struct, field

from cambist.codecs.eip712_orders.delta import KIND_BUY, SAME_CHAIN, DeltaOrder, TwapOrder
from cambist.codecs.eip712_orders.partner_and_fee import unpack_partner_and_fee
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.engine.chain.proceeds import Cut, of_purchase, of_sale
from support.contracts.fuzz_parts import entering

CLOSED = 1


class Refusal(Exception):
    """A call changes nothing; the text is what the contract says, without a custom error's arguments."""


class State(Struct):
    """State of the contracts.

    Attributes:
        balances: (token, owner) -> raw units.
        remaining: order hash -> as Rfq keeps it.
        filled: order hash -> units of the fixed side; slices: order hash -> (done, time of the last).
        netted: order hash -> (surplus of its parts so far, share that was paid of it).
        nonces: those used up; order_of_nonce: nonce -> hash of the order that began with it.
        owed: (account, token) -> raw units in the vault.
    """

    balances: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    remaining: dict[bytes, int] = field(default_factory=dict)
    filled: dict[bytes, int] = field(default_factory=dict)
    slices: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    nonces: set[int] = field(default_factory=set)
    order_of_nonce: dict[int, bytes] = field(default_factory=dict)
    owed: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    netted: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    def settled_of(self, order_hash: bytes) -> int:
        """Of an order, in units of the fixed side; of a schedule, slices."""
        return self.filled.get(order_hash, 0) or self.slices.get(order_hash, (0, 0))[0]

    def of(self, token: bytes, owner: bytes) -> int:
        return self.balances.get((token, owner), 0)

    def move(self, token: bytes, giver: bytes, receiver: bytes, amount: int, word: str) -> None:
        if self.of(token, giver) < amount:
            raise Refusal(word)
        self.balances[token, giver] = self.of(token, giver) - amount
        self.balances[token, receiver] = self.of(token, receiver) + amount


class Trade(Struct, frozen=True):
    """Trade of a part: the agent receives `src_given` and delivers `delivered`; `promised` may differ."""

    src_given: int
    delivered: int
    promised: int


class Crossed(Struct, frozen=True):
    """An order that is settled against others: see codecs.delta_calldata.CrossedOrder."""

    order: DeltaOrder
    order_hash: bytes
    amount: int
    src_given: int
    paid: int
    promised: int


class Part(Struct):
    """A settlement of an order: bounds in raw units; `taken` is the amount that the owner gives at first."""

    order: DeltaOrder | TwapOrder
    order_hash: bytes
    src: int
    dest: int
    expected: int
    is_purchase: bool
    is_closed: bool
    is_whole: bool = True
    taken: int = 0


class Model:
    """The contracts, at work on a state.

    Args:
        delta, vault, agent: addresses of Delta, of the fee vault and of the agent that trades for Delta.
        pool: address of the bridge, to which the purchase of a bridged order goes.
    """

    def __init__(self, delta: bytes, vault: bytes, agent: bytes, protocol: bytes, pool: bytes) -> None:
        self.state = State()
        self._delta = delta
        self._vault = vault
        self._agent = agent
        self._protocol = protocol
        self._pool = pool

    def attempt(self, rule: Any, *arguments: Any) -> str | None:
        """Apply a rule; returns the refusal, after which the state is as before."""
        before = deepcopy(self.state)
        try:
            rule(*arguments)
        except Refusal as refusal:
            self.state = before
            return str(refusal)
        return None

    # --- Rfq ------------------------------------------------------------------------------------------

    def fill(
        self, order: RfqOrder, order_hash: bytes, taker: bytes, now_s: int, taker_fill: int | None
    ) -> None:
        """Fill a part of an order, or all of it: None."""
        state = self.state
        if order.expiry and now_s > order.expiry:
            raise Refusal("Order expired")
        if any(order.taker) and order.taker != taker:
            raise Refusal("Access denied")
        kept = state.remaining.get(order_hash, 0)
        if kept == CLOSED or (kept and taker_fill is None):
            raise Refusal("Order already filled or expired")
        left = kept - 1 if kept else order.maker_amount
        taker_fill = order.taker_amount if taker_fill is None else taker_fill
        if not 0 < taker_fill <= order.taker_amount:
            raise Refusal("Invalid Taker amount")
        maker_fill = taker_fill * order.maker_amount // order.taker_amount
        if maker_fill == 0:
            raise Refusal("Maker token fill amount cannot be 0")
        if maker_fill > left:
            raise Refusal("Invalid amount")
        state.remaining[order_hash] = left - maker_fill + 1
        state.move(order.taker_asset, taker, order.maker, taker_fill, "TRANSFER_FROM_FAILED")
        state.move(order.maker_asset, order.maker, taker, maker_fill, "TRANSFER_FROM_FAILED")

    def cancel(self, order: RfqOrder, order_hash: bytes, sender: bytes) -> None:
        """Close an order of the sender's; another's stays as it is."""
        if sender == order.maker:
            self.state.remaining[order_hash] = CLOSED

    # --- Delta ----------------------------------------------------------------------------------------

    def settle(self, order: DeltaOrder, order_hash: bytes, amount: int, trade: Trade, now_s: int) -> None:
        """Settle a part of a swap or limit order."""
        self._settle_part(self._counted(order, order_hash, amount), trade, now_s)

    def cross(self, crossings: Sequence[Crossed], now_s: int) -> None:
        """Settle parts of orders against each other, without a trade."""
        state, parts = self.state, []
        for one in crossings:
            if one.order.bridge != SAME_CHAIN:
                raise Refusal("BridgeNotEnabled")
            part = self._counted(one.order, one.order_hash, one.amount)
            self._begin(part, one.src_given, now_s)
            parts.append(part)
        there: dict[bytes, int] = {}
        for one, part in zip(crossings, parts, strict=True):
            src = one.order.src_token
            state.move(src, one.order.owner, self._delta, part.taken, "PullFailed")
            there[src] = there.get(src, 0) + (one.src_given if part.is_purchase else part.src)
        for one in crossings:
            if there.get(one.order.dest_token, 0) < one.paid:
                raise Refusal("Overdrawn")
            there[one.order.dest_token] -= one.paid
        paid = [one.paid + there.pop(one.order.dest_token, 0) for one in crossings]
        back = [there.pop(one.order.src_token, 0) for one in crossings]
        for one, part, received, unspent in zip(crossings, parts, paid, back, strict=True):
            order = one.order
            given = (one.src_given if part.is_purchase else part.src) - unspent
            state.move(order.dest_token, self._delta, order.owner, received, "TransferFailed")
            state.move(order.src_token, self._delta, order.owner, part.taken - given, "TransferFailed")
            self._share(part, given, received, one.promised)

    def settle_slice(self, order: TwapOrder, order_hash: bytes, trade: Trade, now_s: int) -> None:
        """Settle the next slice of a scheduled sale."""
        done, last_s = self.state.slices.get(order_hash, (0, 0))
        self._check_nonce(order.nonce, order_hash)
        if done and now_s < last_s + order.interval:
            raise Refusal("TooEarly")
        self.state.slices[order_hash] = (done + 1, now_s)
        each = order.total_src_amount // order.num_slices
        src, dest = each, order.dest_amount_per_slice
        is_last = done + 1 == order.num_slices
        self._take_nonce(order.nonce, order_hash, is_closed=is_last)
        if is_last:
            src = order.total_src_amount - each * done
            dest = -(-order.dest_amount_per_slice * src // each)
        self._settle_part(Part(order, order_hash, src, dest, 0, False, is_last), trade, now_s)

    def invalidate(self, nonce: int) -> None:
        """Give up a nonce of the owner's."""
        self.state.nonces.add(nonce)

    def _counted(self, order: DeltaOrder, order_hash: bytes, amount: int) -> Part:
        is_purchase = order.kind == KIND_BUY
        whole = order.dest_amount if is_purchase else order.src_amount
        before = self.state.filled.get(order_hash, 0)
        self._check_nonce(order.nonce, order_hash)
        if amount == 0:
            raise Refusal("InvalidAmount")
        if amount > whole - before:
            raise Refusal("Overfilled")
        self.state.filled[order_hash] = before + amount
        self._take_nonce(order.nonce, order_hash, is_closed=before + amount == whole)
        if is_purchase:
            src, dest = order.src_amount * amount // whole, amount
            expected = order.expected_amount * amount // whole
        else:
            src, dest = amount, -(-order.dest_amount * amount // whole)
            expected = entering(order, -(-order.expected_amount * amount // whole))
        dest = entering(order, dest)
        is_whole, is_closed = amount == whole, before + amount == whole
        return Part(order, order_hash, src, dest, expected, is_purchase, is_closed, is_whole)

    def _begin(self, part: Part, src_given: int, now_s: int) -> None:
        if now_s > part.order.deadline:
            raise Refusal("OrderExpired")
        part.taken = part.src
        if part.is_purchase:
            terms = unpack_partner_and_fee(part.order.partner_and_fee)
            cut = of_purchase(src_given, part.expected, part.src, terms)
            if cut is None:
                raise Refusal("AboveMaximum")
            part.taken = src_given + cut.total
            if terms.partner_takes_surplus and part.taken + 1 == min(part.expected, part.src):
                part.taken += 1

    def _settle_part(self, part: Part, trade: Trade, now_s: int) -> None:
        state, order = self.state, part.order
        self._begin(part, trade.src_given, now_s)
        given = trade.src_given if part.is_purchase else part.src
        if state.of(order.src_token, order.owner) < part.taken:
            raise Refusal("PullFailed")
        state.move(order.src_token, order.owner, self._agent, given, "PullFailed")
        state.move(order.dest_token, self._agent, order.owner, trade.delivered, "StepFailed")
        net = trade.delivered - self._share(part, given, trade.delivered, trade.promised)
        if order.bridge != SAME_CHAIN:
            state.move(order.dest_token, order.owner, self._pool, net, "TransferFailed")

    def _share(self, part: Part, given: int, delivered: int, promised: int) -> int:
        """Send a settlement's fee and surplus share to the vault; refuse a settlement that breaks the order's
        bound or the agent's promise. Returns what is taken of the destination.
        """
        state, order = self.state, part.order
        terms = unpack_partner_and_fee(order.partner_and_fee)
        if part.is_purchase:
            if delivered < part.dest:
                raise Refusal("BelowMinimum")
            cut, token = of_purchase(given, part.expected, part.src, terms), order.src_token
            if cut is None:
                raise Refusal("AboveMaximum")
            cut = self._netted(part, cut, min(part.expected, part.src) - given - cut.fee)
        else:
            cut, token = of_sale(delivered, part.expected, part.dest, terms), order.dest_token
            cut = self._netted(part, cut, delivered - cut.fee - max(part.expected, part.dest))
            if delivered - cut.total < part.dest:
                raise Refusal("BelowMinimum")
        state.move(token, order.owner, self._vault, cut.total, "PullFailed")
        if given + cut.total > promised if part.is_purchase else delivered - cut.total < promised:
            raise Refusal("PromiseBroken")
        self._credit(cut, token, terms.partner if any(terms.partner) else self._protocol)
        return 0 if part.is_purchase else cut.total

    def _netted(self, part: Part, cut: Cut, surplus: int) -> Cut:
        """The share of a part is bounded by that of all parts so far."""
        terms = unpack_partner_and_fee(part.order.partner_and_fee)
        if part.is_whole or not part.expected or not terms.partner_takes_surplus:
            return cut
        before, shared = self.state.netted.get(part.order_hash, (0, 0))
        share = min(cut.share, max(max(before + surplus, 0) // 2 - shared, 0))
        self.state.netted[part.order_hash] = before + surplus, shared + share
        return Cut(cut.fee, share)

    def _check_nonce(self, nonce: int, order_hash: bytes) -> None:
        state = self.state
        if nonce in state.nonces or state.order_of_nonce.get(nonce, order_hash) != order_hash:
            raise Refusal("NonceUsed")

    def _take_nonce(self, nonce: int, order_hash: bytes, *, is_closed: bool) -> None:
        state = self.state
        if is_closed:
            state.nonces.add(nonce)
        else:
            state.order_of_nonce[nonce] = order_hash

    def _credit(self, cut: Cut, token: bytes, partner: bytes) -> None:
        for account, amount in ((partner, cut.fee), (partner, cut.share), (self._protocol, cut.share)):
            if amount:
                self.state.owed[account, token] = self.state.owed.get((account, token), 0) + amount
