"""Demo steps of Delta orders with a yield vault: a limit order, and an order that a handler settles.

The user's USDC rest as shares of the vault until a maker's price, and the yield earned by then, meet the
order's limit. The next order names a contract, the handler, that sells WETH to a maker and deposits the
USDC into the vault for the user; no agent takes part.

The tables show shares with the decimals of USDC: at the vault's first deposit a raw unit of USDC buys a raw
unit of shares.
"""

import secrets
from typing import Any

import msgspec
from msgspec import Struct
from rich.console import Console

from ....codecs.amounts import format_units, parse_units
from ....codecs.contracts.abi import address_word, encode, selector, uint_word
from ....codecs.contracts.calldata import OrderInfo, approve, order_infos_tail, transfer
from ....codecs.contracts.delta_calldata import agent_caller
from ....codecs.eip712_orders.delta import (
    EXTERNAL_ORDER,
    KIND_SELL,
    PRODUCTIVE_ORDER,
    SAME_CHAIN,
    ExternalOrder,
    ProductiveOrder,
)
from ....codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from ....codecs.eip712_orders.typed_struct import TypedStruct
from ....codecs.messages.delta_messages import BuildBody, OrderRecord, SubmitBody
from ....codecs.messages.vocabulary import BuildOrderType, OrderType
from ....config.chains import ChainSettings
from ....config.sections.nodes import NodeSettings
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.signatures import to_65, to_compact64
from ...chain.artifacts import artifact, known_errors
from ...chain.nodes.rpc import RpcChain
from ...chain.port import EthCall, Receipt
from ...chain.transact import transact
from ...trader.client.client import VenueClient
from ...trader.client.order.order_following import OfferTokens, OrderFollower, SettledOnChain
from ...trader.client.order.order_terms import OrderWish
from ...trader.client.terms import TradedToken
from ...trader.client.trusted_contract import DELTA, SigningContract, signing_contract
from ..place.layout import SHARES
from .balances import Balances, balances, moved, moves_table
from .order_scene import USER, OrderScene, Tell, completed, proven_order, record_of, timed, why_it_rests
from .place_settings import GRIDS, TOKENS
from .settlement import CHAIN_ID, DemoChain
from .venue import MarketPlace

_MAKER, _PAIR = "beta", "WETH/USDC"
_DEPOSITED, _LEAST = "10000", "4.1"
_LOWERED = "2440", "2450"  # too much for the limit without the yield
_YIELD = "100"
_BORROWER = 7  # account of the devnet that pays the yield
_SOLD, _BOUGHT = "4", "10000"
_LIFE_S = 1_200
_DEPOSIT = selector("deposit(uint256,address)")
_DIGITS = {**TOKENS, SHARES: TOKENS["USDC"]}


class _Vaults(OrderScene, frozen=True):
    """Parties, connections and vault of the demo's steps 20 and 21.

    Attributes:
        contract: the Delta contract, with its signing domain.
    """

    contract: SigningContract

    @property
    def vault(self) -> bytes:
        """Return the vault's address of 20 bytes."""
        return self.stage.at("vault")

    async def of_all(self) -> Balances:
        """Read the balances of all accounts that a step may change."""
        stage = self.stage
        users = {"user": self.user.address, "vault": self.vault}
        more = {
            "vault": self.vault,
            "borrower": stage.keys[_BORROWER].address,
            "desk": stage.maker.address,
        }
        tokens = {symbol: stage.at(symbol) for symbol in TOKENS}
        return (
            await self.balances()
            | await balances(stage.chain, tokens, more)
            | await balances(stage.chain, {SHARES: self.vault}, users)
        )


class _Signing(Struct, frozen=True):
    """An order to sign: its type, and the terms that the submission adds."""

    order: ProductiveOrder | ExternalOrder
    struct_type: TypedStruct[Any]
    type: OrderType
    tokens: OfferTokens


async def run_earning_orders(console: Console, stage: DemoChain, place: MarketPlace) -> None:
    """Run the demo's steps with a vault (20 and 21) and print each on `console`; raise if a step fails.

    Afterwards the maker beta has its initial prices.
    """
    await place.live()
    async with (
        RpcChain.open(CHAIN_ID, NodeSettings(urls=(stage.running.url,)), known_errors()) as chain,
        VenueClient.open(place.url) as venue,
    ):
        contract = await signing_contract(chain, venue, DELTA, None)
        vaults = _Vaults(
            console=console,
            stage=stage,
            place=place,
            chain=chain,
            venue=venue,
            user=stage.keys[USER],
            contract=contract,
        )
        console.rule("20. An order that earns while it rests: its USDC are in a vault")
        await _show_yield(vaults)
        console.rule("21. A handler: WETH becomes yield by one signature, without an agent")
        await _show_handler(vaults)


# --- Sold from a vault --------------------------------------------------------------------------------


async def _show_yield(vaults: _Vaults) -> None:
    tell, stage = timed(vaults.console), vaults.stage
    deposited, limit = parse_units(_DEPOSITED, TOKENS["USDC"]), parse_units(_LEAST, TOKENS["WETH"])
    shares = await _deposited(vaults, tell, deposited)
    before = await vaults.of_all()
    wish = vaults.wish("USDC", "WETH", _DEPOSITED, _LEAST)
    order = await _built(vaults, tell, wish, shares)
    follower = await _placed(
        vaults, tell, _Signing(order, PRODUCTIVE_ORDER, OrderType.LIMIT, OfferTokens(wish.src, wish.dest))
    )
    record = record_of(follower)
    reason = await why_it_rests(vaults, record)
    tell(f"{_MAKER} lowers its ask from {GRIDS[_MAKER][_PAIR]['asks'][0][0]} to {_LOWERED[1]}")
    await vaults.place.quote(_MAKER, _PAIR, *_LOWERED)
    await why_it_rests(vaults, record, reason)
    tell(f"a borrower pays {_YIELD} USDC to the vault: its shares are worth more")
    paid = transfer(vaults.vault, parse_units(_YIELD, TOKENS["USDC"]))
    await transact(stage.chain, stage.keys[_BORROWER], stage.at("USDC"), paid)
    record = await completed(follower)
    settled, (receipt,) = await proven_order(vaults, vaults.contract, record)
    after = await vaults.of_all()
    vaults.console.print(moves_table(before, after, _DIGITS))
    _check_sale(moved(before, after), settled, receipt, shares)
    alone = settled.received * deposited // settled.spent
    if not alone < limit <= settled.received:
        raise AssertionError(f"{settled.received} were received, {alone} without the yield; {limit} signed")
    spent, digits = format_units(settled.spent, TOKENS["USDC"]), TOKENS["WETH"]
    vaults.show(
        f"{_DEPOSITED} USDC were deposited, and {spent} were sold: the yield of the wait is the user's. "
        f"Without it {format_units(alone, digits)} WETH were too little for the limit of {_LEAST}."
    )
    grid = GRIDS[_MAKER][_PAIR]
    await vaults.place.quote(_MAKER, _PAIR, grid["bids"][0][0], grid["asks"][0][0])


async def _deposited(vaults: _Vaults, tell: Tell, amount: int) -> int:
    """Deposit the user's USDC into the vault, and let Delta take the shares.

    Args:
        amount: raw units of USDC.

    Returns:
        The number of shares, in raw units.
    """
    stage, user = vaults.stage, vaults.user
    deposit = _DEPOSIT + uint_word(amount) + address_word(user.address)
    before = await balances(stage.chain, {SHARES: vaults.vault}, {"user": user.address})
    await transact(stage.chain, user, stage.at("USDC"), approve(vaults.vault, amount))
    await transact(stage.chain, user, vaults.vault, deposit)
    after = await balances(stage.chain, {SHARES: vaults.vault}, {"user": user.address})
    shares = after["user", SHARES] - before["user", SHARES]
    await transact(stage.chain, user, vaults.vault, approve(vaults.contract.address, shares))
    tell(f"the user deposits {_DEPOSITED} USDC into the vault, and approves Delta for the shares")
    return shares


async def _built(vaults: _Vaults, tell: Tell, wish: OrderWish, shares: int) -> ProductiveOrder:
    """Have the venue build an order that sells the user's shares, and check each member of the order."""
    quoted = await vaults.venue.delta_quote(wish)
    deadline, nonce = vaults.place.clock.now_ms() // 1_000 + _LIFE_S, secrets.randbits(256)
    tell("having the order built")
    response = await vaults.venue.build_order(
        BuildBody(
            route=quoted.route,
            owner=to_checksum(wish.owner),
            deadline=deadline,
            nonce=str(nonce),
            limit_amount=str(wish.limit_amount),
            order_type=BuildOrderType.PRODUCTIVE_ORDER,
            strategy=to_checksum(vaults.vault),
        )
    )
    order: ProductiveOrder = PRODUCTIVE_ORDER.from_wire(msgspec.json.decode(response.to_sign.value), "value")
    expected = ProductiveOrder(
        owner=wish.owner,
        beneficiary=wish.beneficiary,
        src_token=wish.src.address,
        dest_token=wish.dest.address,
        src_amount=wish.amount,
        dest_amount=wish.limit_amount or 0,
        expected_amount=wish.limit_amount or 0,
        deadline=deadline,
        nonce=nonce,
        partner_and_fee=order.partner_and_fee,
        permit=b"",
        metadata=b"",
        strategy=vaults.vault,
        shares=shares,
        use_shares=True,
        bridge=SAME_CHAIN,
    )
    if order != expected:
        raise AssertionError(f"the venue built {order}, agreed was {expected}")
    return order


def _check_sale(found: Balances, settled: SettledOnChain, receipt: Receipt, shares: int) -> None:
    """Check the moves of a sale from the vault, of the yield that was paid, and of the gas.

    Raises:
        AssertionError: a move differs from the settlement.
    """
    earned = parse_units(_YIELD, TOKENS["USDC"])
    fee = found.get(("fee vault", "WETH"), 0)
    expected = {
        ("user", SHARES): -shares,
        ("user", "WETH"): settled.received,
        ("borrower", "USDC"): -earned,
        ("vault", "USDC"): earned - settled.spent,
        (_MAKER, "USDC"): settled.spent,
        (_MAKER, "WETH"): -settled.received - fee,
        ("fee vault", "WETH"): fee,
        ("relayer", "ETH"): -receipt.gas_used * receipt.gas_price_wei,
    }
    if found != expected or fee <= 0:
        raise AssertionError(f"it moved {found}, expected was {expected}")
    if settled.spent != parse_units(_DEPOSITED, TOKENS["USDC"]) + earned:
        raise AssertionError(f"the user had deposited {_DEPOSITED}, earned {earned} and sold {settled.spent}")


# --- Bought by a handler ------------------------------------------------------------------------------


async def _show_handler(vaults: _Vaults) -> None:
    tell, stage = timed(vaults.console), vaults.stage
    sold, bought = parse_units(_SOLD, TOKENS["WETH"]), parse_units(_BOUGHT, TOKENS["USDC"])
    caller = await stage.chain.call(EthCall(vaults.contract.address, agent_caller(bytes(32))))
    code = artifact("VaultHandler").init_code(caller + address_word(stage.at("rfq")))
    created = await transact(stage.chain, stage.keys[0], b"", code)
    if created.contract is None:
        raise AssertionError("the handler was not created")
    tell(f"the handler is at {to_checksum(created.contract)}: anybody may use it")
    await transact(stage.chain, vaults.user, stage.at("WETH"), approve(vaults.contract.address, sold))
    tell(f"the user approves Delta for {_SOLD} WETH")
    order = ExternalOrder(
        owner=vaults.user.address,
        handler=created.contract,
        src_token=stage.at("WETH"),
        dest_token=vaults.vault,
        src_amount=sold,
        dest_amount=bought,
        expected_amount=bought,
        deadline=vaults.place.clock.now_ms() // 1_000 + _LIFE_S,
        kind=KIND_SELL,
        nonce=secrets.randbits(256),
        partner_and_fee=0,
        permit=b"",
        metadata=b"",
        data=_offer(vaults, sold, bought),
    )
    before = await vaults.of_all()
    tokens = OfferTokens(vaults.token("WETH"), TradedToken(vaults.vault, SHARES, _DIGITS[SHARES]))
    follower = await _placed(vaults, tell, _Signing(order, EXTERNAL_ORDER, OrderType.MARKET, tokens))
    record = await completed(follower)
    settled, (receipt,) = await proven_order(vaults, vaults.contract, record)
    after = await vaults.of_all()
    vaults.console.print(moves_table(before, after, _DIGITS))
    expected = {
        ("user", "WETH"): -sold,
        ("user", SHARES): settled.received,
        ("desk", "WETH"): sold,
        ("desk", "USDC"): -bought,
        ("vault", "USDC"): bought,
        ("relayer", "ETH"): -receipt.gas_used * receipt.gas_price_wei,
    }
    if moved(before, after) != expected or settled.received < bought:
        raise AssertionError(f"it moved {moved(before, after)}, expected was {expected}")
    told = await vaults.venue.explanation(record.id)
    auction = await vaults.venue.auction(told.last_rounds[0].auction_id)
    bidders = [bid.agent for each in auction.orders for bid in each.bids]
    if bidders != [to_checksum(created.contract)]:
        raise AssertionError(f"the bids of an order of a handler are of {bidders}")
    vaults.show(
        f"{_SOLD} WETH became {_BOUGHT} USDC that earn: one signature for the swap and the deposit, at the "
        "venue's gas. The only bid was the handler's, and no agent took part."
    )


def _offer(vaults: _Vaults, sold: int, bought: int) -> bytes:
    """Return the data that an order gives to the handler: an RFQ order that a maker signs for any taker."""
    stage = vaults.stage
    offer = RfqOrder(
        nonce_and_meta=secrets.randbits(96),
        expiry=vaults.place.clock.now_ms() // 1_000 + _LIFE_S,
        maker_asset=stage.at("USDC"),
        taker_asset=stage.at("WETH"),
        maker=stage.maker.address,
        taker=ZERO_ADDRESS,
        maker_amount=bought,
        taker_amount=sold,
    )
    domain = rfq_domain_separator(ChainSettings(name="").rfq_domain_name, CHAIN_ID, stage.at("rfq"))
    signature = to_65(*stage.maker.sign(RFQ_ORDER.compiled.digest_for(domain)(offer)))
    return encode(order_infos_tail([OrderInfo(offer, signature, sold)]))


# --- Both ---------------------------------------------------------------------------------------------


async def _placed(vaults: _Vaults, tell: Tell, signing: _Signing) -> OrderFollower:
    """Sign an order as the user, submit it, and return an object that follows its state."""
    struct_type, contract = signing.struct_type, vaults.contract
    order_hash = contract.digest(struct_type.compiled.hash_struct(signing.order))
    tell(f"signing the order {to_hex(order_hash)}")
    record: OrderRecord = await vaults.venue.submit_order(
        SubmitBody(
            chain_id=contract.chain_id,
            order=msgspec.Raw(msgspec.json.encode(struct_type.to_wire(signing.order))),
            signature=to_hex(to_compact64(*vaults.user.sign(order_hash))),
            type=signing.type,
        )
    )
    if record.order_hash != to_hex(order_hash):
        raise AssertionError(f"the venue took another order: {record}")
    follower = OrderFollower(vaults.venue, record.id, tell, signing.tokens)
    follower.see(record)
    return follower
