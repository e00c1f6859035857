"""Parts of the fuzz of the contracts: steps with sales from vaults and with orders of handlers, bridges that
orders leave the chain by, calls that would take another account's tokens, and the bounds that a settlement of
each kind of Delta order keeps.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    CctpTerms,
    input_of,
    output_of,
    pack_terms,
    parse_terms,
)
from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.abi import Dynamic, address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.contract_events import OrderBridged, OrderSettled, decode_event
from cambist.codecs.contracts.delta_calldata import Execution, agent_id
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    SAME_CHAIN,
    AnyDeltaOrder,
    DeltaBridge,
    ExternalOrder,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
)
from cambist.config.errors import InvalidInput
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import Receipt
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from support.chain.world import HOUR_S, MOST, NATIVE, NOBODY, ONE
from support.contracts.settling import STEP_GAS

if TYPE_CHECKING:
    from support.contracts.contract_fuzz import Fuzz, Known


def check_terms(order: AnyDeltaOrder, amount: int, event: OrderSettled) -> None:
    """Assert that a settlement of `amount` (raw units of the fixed side, or slices) keeps its order."""
    if isinstance(order, TwapOrder | TwapBuyOrder):
        assert (amount, event.is_closed) == (1, event.filled == order.num_slices)
        _check_slice(order, event)
    elif isinstance(order, ProductiveOrder):
        whole = order.shares if order.use_shares else order.src_amount
        assert event.received >= entering(order, -(-order.dest_amount * amount // whole))
        assert order.use_shares or event.spent <= amount
        assert event.filled <= whole
    elif order.kind == KIND_BUY:
        assert event.received >= entering(order, amount)
        assert event.spent <= order.src_amount * amount // order.dest_amount
        assert event.filled <= order.dest_amount
    else:
        assert event.received >= entering(order, -(-order.dest_amount * amount // order.src_amount))
        assert event.spent <= amount
        assert event.filled <= order.src_amount


def shares_given(order: AnyDeltaOrder, amount: int) -> int:
    """Most shares that a settlement of `amount` may take from the owner; 0 of an order without a vault."""
    if not isinstance(order, ProductiveOrder):
        return 0
    return amount if order.use_shares else -(-order.shares * amount // order.src_amount)


def _check_slice(order: TwapOrder | TwapBuyOrder, event: OrderSettled) -> None:
    if isinstance(order, TwapOrder):
        least = order.total_src_amount // order.num_slices
        given = order.total_src_amount - least * (order.num_slices - 1) if event.is_closed else least
        assert event.spent <= given
        assert event.received >= entering(order, -(-order.dest_amount_per_slice * given // least))
    else:
        least = order.total_dest_amount // order.num_slices
        bought = order.total_dest_amount - least * (order.num_slices - 1) if event.is_closed else least
        assert event.received >= entering(order, bought)
        assert event.spent <= order.max_src_amount * bought // order.total_dest_amount


async def mischief(fuzz: "Fuzz", to: bytes) -> tuple[bytes, bytes]:
    """A call that would take another account's tokens."""
    rng, at, token = fuzz.rng, fuzz.world.at, fuzz.rng.choice(fuzz.tokens)
    victim = rng.choice(fuzz.owners).address
    words = address_word(token) + address_word(to)
    order = await fuzz.an_order()
    quote = fuzz.quote(fuzz.owners[0].address, *rng.sample(fuzz.tokens, 2))
    info = [fuzz.world.info(quote)]
    fill = delta_calldata.rfq_step(at.rfq, info, receiver=to).data
    execution = fuzz.execution(order.order, "bob", 1, 1)
    settle = delta_calldata.settle(order.order, fuzz.signature(order), 1, execution)
    pull = selector("transferFrom(address,address,uint256)") + address_word(victim) + address_word(to)
    stolen = fuzz.stolen(order.order, to)
    order_hash = fuzz.world.delta_hash(order.order)
    told = order_hash + uint_word(0) + address_word(stolen.target)
    call = encode(told + uint_word(STEP_GAS), bytes_tail(stolen.data))
    return rng.choice(
        (
            (token, pull + uint_word(1)),
            (at.executor, selector("collect(address,address)") + words),
            (
                at.executor,
                selector("fill(address,uint256,bytes)")
                + encode(address_word(victim) + uint_word(0), bytes_tail(fill)),
            ),
            (at.delta, settle),
            (at.delta, delta_calldata.withdraw_native(1)),
            (at.bridges, module_call(a_bridge(fuzz), BridgeKind.ACROSS, token, 1, to)),
            (
                at.delta,
                delta_calldata.set_pre_signature(fuzz.world.delta_hash(order.order), is_signed=True),
            ),
            (at.delta, delta_calldata.invalidate_nonces([order.order.nonce])),
            (at.fee_vault, selector("credit(address,address,uint256)") + address_word(to) + words),
            (caller_of(at.delta, "ann"), selector("call(bytes32,uint256,address,uint256,bytes)") + call),
            (stolen.target, stolen.data),
            (at.rfq, calldata.cancel_order(fuzz.world.rfq_hash(quote))),
            (token, rng.randbytes(rng.choice((0, 4, 68)))),
        )
    )


FAR = 10


def a_bridge(fuzz: "Fuzz") -> DeltaBridge:
    """The bridge of an order: none in most cases, else Across, else one that the contracts refuse."""
    rng = fuzz.rng
    if rng.random() < 0.8:
        return SAME_CHAIN
    fee = BridgeFee(rng.choice((0, 1, 500, 400_000)), rng.choice((0, 1, 30_000)))
    bridge = DeltaBridge(
        SELECTORS[BridgeKind.ACROSS],
        FAR,
        b"\xfa" * 20,
        rng.choice((0, 0, 3, -3)),
        pack_terms(AcrossTerms(fee, HOUR_S, NOBODY, 0)),
    )
    if rng.random() < 0.9:
        return bridge
    burn = pack_terms(CctpTerms(fee, 2_000, 2))
    selector4, chain, scaling, data = rng.choice(
        (
            (rng.randbytes(4), FAR, 0, bridge.protocol_data),
            (bridge.protocol_selector, fuzz.world.chain.chain_id, 0, bridge.protocol_data),
            (bridge.protocol_selector, FAR, -31, bridge.protocol_data),
            (bridge.protocol_selector, FAR, 0, rng.randbytes(160)),
            (SELECTORS[BridgeKind.CCTP], FAR, 0, burn),
        )
    )
    return DeltaBridge(selector4, chain, b"\xfa" * 20, scaling, data)


def entering(order: AnyDeltaOrder, output: int) -> int:
    """Raw units that have to enter an order's bridge for `output` to arrive; `output` itself without one."""
    if isinstance(order, ExternalOrder) or order.bridge == SAME_CHAIN:
        return output
    try:
        return input_of(parse_terms(order.bridge).fee, order.bridge.scaling_factor, output)
    except InvalidInput:
        return output  # a bridge that the contracts refuse


def module_call(bridge: DeltaBridge, kind: BridgeKind, token: bytes, amount: int, thief: bytes) -> bytes:
    """Calldata of a call of the bridge module by somebody else than Delta, to its own benefit."""
    terms = encode(
        bridge.protocol_selector.ljust(32, b"\0"),
        uint_word(bridge.destination_chain_id),
        address_word(bridge.output_token),
        uint_word(bridge.scaling_factor % (MOST + 1)),
        bytes_tail(bridge.protocol_data),
    )
    its = address_word(thief)
    transfer = encode(its, its, address_word(token), uint_word(amount), Dynamic(terms))
    return SELECTORS[kind] + encode(Dynamic(transfer))


def check_bridged(
    fuzz: "Fuzz",
    receipt: Receipt,
    before: dict[tuple[bytes, bytes], int],
    after: dict[tuple[bytes, bytes], int],
) -> None:
    """Assert that the pool gained what orders handed over, each for its signed least, and nobody else did."""
    at, pool = fuzz.world.at, fuzz.world.spoke_pool
    gained: Counter[bytes] = Counter()
    settled: OrderSettled | None = None
    left: list[OrderBridged] = []
    for log in receipt.logs:
        event = decode_event(log.topics, log.data) if log.address == at.delta else None
        if isinstance(event, OrderBridged):
            left.append(event)
        elif isinstance(event, OrderSettled):
            settled = event
    for event in left:
        assert settled is not None
        assert settled.order_hash == event.order_hash
        assert settled.received == event.amount
        known = (fuzz.known | fuzz.twaps | fuzz.others)[event.order_hash]
        bridge: DeltaBridge = known.order.bridge
        fee = parse_terms(bridge).fee
        assert event.output == output_of(fee, bridge.scaling_factor, event.amount) > 0
        gained[settled.dest_token] += event.amount
        fuzz.did["bridged"] += 1
    for token in fuzz.tokens:
        assert after[pool, token] - before[pool, token] == gained[token]
        assert after[at.bridges, token] == 0


SET_MODE = selector("setMode(uint8,uint256)")
MODES = 8
"""Number of behaviours of contracts/dev/DevFickleVault.sol."""
HANDLED = 5
"""Number of behaviours of contracts/dev/DevHandler.sol."""


async def from_vault(fuzz: "Fuzz") -> tuple[SigningKey, bytes, bytes, str, int]:
    """Settle a new or known sale from a vault; or have a vault act in another way from now on."""
    rng, market, world = fuzz.rng, fuzz.market, fuzz.world
    if rng.random() < 0.15:
        mode = rng.choice((0, 0, 0, rng.randrange(MODES)))
        data = SET_MODE + uint_word(mode) + uint_word(rng.choice((1, 100, 9_999)))
        return world.partner, rng.choice(fuzz.vaults)[0], data, "", 0
    agent, known = rng.choice(("ann", "bob")), await _a_sale(fuzz)
    order: ProductiveOrder = known.order
    whole = order.shares if order.use_shares else order.src_amount
    amount = rng.choice((whole, whole - known.filled, whole // 3, rng.randint(0, whole)))
    wanted = order.dest_amount * amount // max(whole, 1)
    execution = fuzz.execution(order, agent, amount, wanted)
    data = market.calldata_of(order, execution, world.delta_signed(order, known.key), amount)
    return world.relayer, world.at.delta, data, agent, 0


async def by_handler(fuzz: "Fuzz") -> tuple[SigningKey, bytes, bytes, str, int]:
    """Settle a new or known order of a handler, which delivers, or acts against the contracts."""
    rng, market, world = fuzz.rng, fuzz.market, fuzz.world
    known = await _a_handled_order(fuzz)
    order: ExternalOrder = known.order
    is_purchase = order.kind == KIND_BUY
    whole = order.dest_amount if is_purchase else order.src_amount
    amount = rng.choice((whole, whole, whole - known.filled, whole // 3))
    given = order.src_amount * amount // max(whole, 1) * 97 // 100
    execution = Execution(
        MOST if is_purchase else 0, given, (), (), agent_id("ann"), rng.choice((bytes(20), world.at.router))
    )
    data = market.calldata_of(order, execution, world.delta_signed(order, known.key), amount)
    return world.relayer, world.at.delta, data, "", 0


async def _a_sale(fuzz: "Fuzz") -> "Known":
    if (known := fuzz.again(ProductiveOrder)) is not None:
        return known
    rng, key = fuzz.rng, fuzz.rng.choice(fuzz.owners)
    vault, asset = rng.choice(fuzz.vaults)
    terms = fuzz.terms(key, asset, rng.choice([token for token in fuzz.tokens if token != asset]))
    terms |= {
        "strategy": rng.choice((vault, vault, vault, vault, fuzz.vaults[0][0], asset)),
        "shares": rng.choice((1, 1_000, ONE, 4 * ONE)),
        "use_shares": rng.random() < 0.5,
        "bridge": a_bridge(fuzz),
    }
    return fuzz.learn(await fuzz.market.a_productive_order(**terms), key)


async def _a_handled_order(fuzz: "Fuzz") -> "Known":
    if (known := fuzz.again(ExternalOrder)) is not None:
        return known
    rng, key = fuzz.rng, fuzz.rng.choice(fuzz.owners)
    src, dest = rng.sample(fuzz.tokens, 2)
    terms = fuzz.terms(key, src, dest)
    del terms["beneficiary"]
    wanted = terms["dest_amount"]
    target, data = await mischief(fuzz, fuzz.handler)
    acts = (
        uint_word(rng.choice((0, 0, 0, 4, 4, rng.randrange(HANDLED)))),
        uint_word(rng.choice((wanted * 103 // 100 + 2, wanted, wanted // 2))),
        uint_word(rng.choice((0, 0, 1))),
        address_word(target),
    )
    terms |= {
        "kind": rng.choice((KIND_SELL, KIND_SELL, KIND_BUY)),
        "handler": rng.choice((fuzz.handler, fuzz.handler, fuzz.handler, fuzz.many, fuzz.world.at.delta)),
        "data": uint_word(32) + encode(*acts, bytes_tail(data)),
    }
    return fuzz.learn(await fuzz.market.an_external_order(**terms), key)


def terms_of(fuzz: "Fuzz", key: SigningKey, src: bytes, dest: bytes, nonce: int, fee: int) -> dict[str, Any]:
    """Members that both kinds have."""
    rng, weth = fuzz.rng, fuzz.world.weth
    return {
        "owner": key.address,
        "beneficiary": rng.choice((key.address, bytes(20))),
        "src_token": src,
        "dest_token": rng.choice((dest, NATIVE)) if dest == weth else dest,
        "src_amount": rng.choice((1, 9, 1_000, ONE, 3 * ONE)),
        "dest_amount": rng.choice((1, 8, 999, ONE)),
        "expected_amount": rng.choice((0, 10, ONE)),
        "nonce": nonce,
        "partner_and_fee": fee,
    }
