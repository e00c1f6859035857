"""Steps of a fuzz with sales from vaults and with orders of handlers."""

from typing import TYPE_CHECKING, Any

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.delta_calldata import Execution, agent_id
from cambist.codecs.eip712_orders.delta import KIND_BUY, KIND_SELL, ExternalOrder, ProductiveOrder
from cambist.crypto.secp256k1 import SigningKey
from support.chain.world import MOST, NATIVE, ONE
from support.contracts.fuzz_bridges import a_bridge
from support.contracts.fuzz_mischief import mischief

if TYPE_CHECKING:
    from support.contracts.contract_fuzz import Fuzz, Known

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
