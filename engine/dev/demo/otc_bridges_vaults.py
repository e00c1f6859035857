"""Scenes of an OTC order, of orders across two chains, and of orders with a yield vault."""

import secrets

from ....codecs.amounts import format_units, parse_units
from ....codecs.contracts.abi import address_word, encode, selector, uint_word
from ....codecs.contracts.calldata import (
    OrderInfo,
    approve,
    order_infos_tail,
    partial_fill_order,
    transfer,
)
from ....codecs.contracts.delta_calldata import agent_caller
from ....codecs.eip712_orders.delta import EXTERNAL_ORDER, KIND_SELL, ExternalOrder
from ....codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from ....codecs.messages.vocabulary import OrderStatus, OtcState
from ....config.chains import ChainSettings
from ....config.errors import ChainError, Reverted
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.signatures import to_65, to_compact64
from ...chain.artifacts import artifact
from ...chain.port import EthCall
from ...chain.transact import transact
from ...trader.client.public.results import DeltaOrderState
from ...trader.client.public.session import ToChain
from ...trader.client.trusted_contract import DELTA, signing_contract
from ..place.layout import CHAIN_ID, FAR_CHAIN_ID, SHARES
from .stage import FILL_WITHIN_S, PRICES, THERE, WAIT_S, DemoStage, expect

_DEPOSIT = selector("deposit(uint256,address)")
_LIFE_S = 1_200


async def show_otc_order(stage: DemoStage) -> None:
    """Scene 6: an OTC order names its taker, who fills a part on chain; the maker cancels the rest."""
    venue, desk, taker = stage.venue, stage.key("desk"), stage.key("taker")
    order = await venue.otc("WETH", "USDC", 10, receive=26_000, taker=taker.address, key=desk)
    stage.say("10 WETH for 26000 USDC, signed by its maker for one taker alone")
    try:
        await venue.fill(order, key=stage.key("stranger"))
    except ChainError as refusal:
        stage.say(f"a stranger may not fill it: {refusal.detail}")
    else:
        raise AssertionError("a stranger has filled the order")
    if order.outcome.signed is None:
        raise AssertionError("a posted order is signed")
    signed = order.outcome.signed
    data = partial_fill_order(signed.order, signed.signature, 10_400 * 10**6)
    try:
        await stage.near.call(EthCall(stage.at("rfq"), data, stage.key("stranger").address))
    except Reverted as refusal:
        expect("the contract's refusal of a stranger", refusal.reason, "Access denied")
    else:
        raise AssertionError("the contract lets a stranger fill the order")
    before = await stage.balances()
    filled = await venue.fill(order, key=taker, amount=10_400)
    moves = await stage.moves(before)
    agreed = {"WETH": -4 * 10**18, "USDC": 10_400 * 10**6}
    expect("what the maker gave and got", moves["desk"], agreed)
    stage.say(f"its taker gives {filled.spent} for {filled.received}, and pays the gas")
    await venue.cancel_otc(order, key=desk)
    end = await venue.follow_otc(order, timeout_s=WAIT_S)
    expect("state of the cancelled order", (end.state, end.reason), (OtcState.CANCELLED, ""))
    stage.say("its maker cancels the rest on chain; venue and chain agree on it")


# --- Across chains --------------------------------------------------------------------------------------


async def show_bridges(stage: DemoStage) -> None:
    """Scene 7: Across and CCTP deliver on a second chain; a relayer is silent, and an order is refunded."""
    for bridge in ("across", "cctp"):
        before, order = await stage.balances(), await _sent_there(stage, bridge)
        end = await stage.settled(order)
        moves = await stage.moves(before)
        if end.received is None:
            raise AssertionError("a delivered order has a receipt")
        expect("what the user got there", moves["user" + THERE]["USDC"], end.received.raw)
        expect("what the user gave here", moves["user"], {"WBTC": -(10**7)})
        stage.say(f"{bridge} delivered {end.received} on chain {FAR_CHAIN_ID}: both chains prove it")
    bridges = stage.place.layout.bridge_url
    # Before the order: the relayer fills a deposit a second after it sees the deposit.
    await stage.rpc(bridges, "bridge_orderRelayer", {"is_silent": True})
    before, order = await stage.balances(), await _sent_there(stage, "across")
    await stage.reason(order, "bridging")
    head = await stage.near.block()
    if head is None:
        raise AssertionError("a chain has a latest block")
    stage.say(f"the relayer of Across is silent: {FILL_WITHIN_S} s pass, for both chains and for everybody")
    await stage.pass_time(head.time_s + FILL_WITHIN_S + 1)
    end = await stage.venue.follow(order, timeout_s=WAIT_S)
    expect("status of the order", (end.status, end.reason), (OrderStatus.REFUNDED, ""))
    moves = await stage.moves(before)
    # gamma has bought the WBTC: its USDC, less the fee vault's part, entered the bridge.
    back, entered = moves["user"]["USDC"], -moves["gamma"]["USDC"] - moves["fee_vault"]["USDC"]
    expect("what came back, of what entered the bridge", back, entered)
    expect("what the user got there", moves.get("user" + THERE), None)
    stage.say(f"{format_units(back, 6)} USDC, all that entered the bridge, are back with the user")
    await stage.rpc(bridges, "bridge_orderRelayer", {"is_silent": False})


async def _sent_there(stage: DemoStage, bridge: str) -> DeltaOrderState:
    """Sign an order for 0.1 WBTC, whose USDC a bridge carries to the second chain."""
    to = ToChain(FAR_CHAIN_ID, via="USDC", bridges=(bridge,))
    return await stage.venue.order("WBTC", "USDC", "0.1", key=stage.key("user"), to=to)


# --- With a vault ---------------------------------------------------------------------------------------


async def show_vaults(stage: DemoStage) -> None:
    """Scene 8: a vault's yield brings an order to its limit; a handler deposits an order's proceeds in it."""
    user, usdc, vault = stage.key("user"), stage.at("USDC"), stage.at("vault")
    deposit = parse_units("10000", 6)
    await transact(stage.near, user, usdc, approve(vault, deposit))
    await transact(stage.near, user, vault, _DEPOSIT + uint_word(deposit) + address_word(user.address))
    stage.say("the user deposits 10000 USDC in a vault, and offers them from there")
    order = await stage.venue.order("USDC", "WETH", 10_000, key=user, vault=to_checksum(vault), limit="4.1")
    reason = await stage.reason(order, "resting")
    for maker in ("alpha", "beta"):
        await stage.quote(maker, "WETH/USDC", "2440", "2450")  # too much for the limit without the yield
    await stage.reason(order, "resting", reason)
    before, paid = await stage.balances(), parse_units("100", 6)
    await transact(stage.near, stage.key("borrower"), usdc, transfer(vault, paid))
    end = await stage.settled(order)
    moves = await stage.moves(before)
    expect("USDC that were sold", end.spent and end.spent.raw, deposit + paid)
    expect("shares of the user", -moves["user"][SHARES] > 0, wanted=True)
    stage.say(
        f"a borrower pays 100 USDC to the vault: {end.spent} sold for {end.received}, at least 4.1 WETH"
    )
    for maker in ("alpha", "beta"):
        await stage.quote(maker, "WETH/USDC", *PRICES[maker]["WETH/USDC"])
    await _show_handler(stage)


async def _show_handler(stage: DemoStage) -> None:
    """Have a handler sell the user's WETH to the desk, and deposit the USDC in the vault for the user."""
    user, desk, now_s = stage.key("user"), stage.key("desk"), stage.clock.now_ms() // 1_000
    contract = await signing_contract(stage.near, None, DELTA, stage.at("delta"))
    sold, bought = parse_units("4", 18), parse_units("10000", 6)
    # Delta calls each handler through the same contract, the agent caller of the id 0; VaultHandler refuses
    # any other caller.
    caller = await stage.near.call(EthCall(contract.address, agent_caller(bytes(32))))
    code = artifact("VaultHandler").init_code(caller + address_word(stage.at("rfq")))
    created = await transact(stage.near, stage.key("deployer"), b"", code)
    await transact(stage.near, desk, stage.at("USDC"), approve(stage.at("rfq"), bought))
    offer = RfqOrder(
        nonce_and_meta=secrets.randbits(96),
        expiry=now_s + _LIFE_S,
        maker_asset=stage.at("USDC"),
        taker_asset=stage.at("WETH"),
        maker=desk.address,
        taker=ZERO_ADDRESS,  # open to any taker: VaultHandler refuses any other quote
        maker_amount=bought,
        taker_amount=sold,
    )
    domain = rfq_domain_separator(ChainSettings(name="").rfq_domain_name, CHAIN_ID, stage.at("rfq"))
    signature = to_65(*desk.sign(RFQ_ORDER.compiled.digest_for(domain)(offer)))
    order = ExternalOrder(
        owner=user.address,
        handler=created.contract or b"",
        src_token=stage.at("WETH"),
        dest_token=stage.at("vault"),
        src_amount=sold,
        dest_amount=bought,
        expected_amount=bought,
        deadline=now_s + _LIFE_S,
        kind=KIND_SELL,
        nonce=secrets.randbits(256),
        partner_and_fee=0,
        permit=b"",
        metadata=b"",
        data=encode(order_infos_tail([OrderInfo(offer, signature, sold)])),
    )
    order_hash = contract.digest(EXTERNAL_ORDER.compiled.hash_struct(order))
    body = {
        "chainId": CHAIN_ID,
        "order": EXTERNAL_ORDER.to_wire(order),
        "signature": to_hex(to_compact64(*user.sign(order_hash))),
        "type": "MARKET",
    }
    before = await stage.balances()
    record = await stage.json("POST", f"{stage.url}/v2/delta/orders", body)
    end = await stage.settled(record["id"])
    moves = await stage.moves(before)
    expect("what the desk gave and got", moves["desk"], {"WETH": sold, "USDC": -bought})
    expect("WETH of the user", moves["user"]["WETH"], -sold)
    bidders = [bid["agent"] for bid in await stage.bids(end)]
    expect("who has bid", bidders, [to_checksum(order.handler)])
    stage.say("a handler makes 10000 USDC with yield of 4 WETH by one signature: the only bid was its own")
