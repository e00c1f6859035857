"""Calls of a fuzz that would take another account's tokens."""

from typing import TYPE_CHECKING

from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.engine.delta.bids.agent_caller import caller_of
from support.contracts.fuzz_bridges import a_bridge, module_call
from support.contracts.settling import STEP_GAS

if TYPE_CHECKING:
    from support.contracts.contract_fuzz import Fuzz


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
