"""A chain with contracts, tokens and people, and the actions of these people as methods.

world = await a_world(chain)
await world.mint(world.usdc, world.maker, 5_000 * USDC)
await world.approve(world.maker, world.usdc, world.at.rfq)
order = world.an_rfq_order(maker_amount=2_500 * USDC)
await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
assert await world.balance(world.weth, world.maker) == ONE
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, decode_uint, encode, selector, uint_word
from cambist.codecs.contracts.calldata import OrderInfo
from cambist.codecs.contracts.delta_calldata import DELTA, SettlementStep, rfq_step
from cambist.codecs.eip712_orders.delta import (
    KIND_SELL,
    ORDER_CANCELLATIONS,
    ORDER_TYPES,
    SAME_CHAIN,
    AnyDeltaOrder,
    DeltaOrder,
    OrderCancellations,
    delta_domain_separator,
)
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.codecs.transactions import SignedTransaction, Transaction, sign_transaction
from cambist.config import limits
from cambist.config.errors import ChainError, Reverted
from cambist.config.timeouts import TRANSACTION_LOOK_S
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65, to_compact64
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.deploy import DeployedContracts, DeploymentPlan, create, deploy
from cambist.engine.chain.port import Chain, DevChain, EthCall, Receipt
from cambist.engine.chain.transact import DEV_GAS, transact
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.anvil import KEYS
from support.patience import PATIENCE_S


async def mined(chain: Chain, tx_hash: bytes) -> Receipt:
    """Wait for a sent transaction and return its receipt.

    Raises:
        ChainError: the transaction was not mined in PATIENCE_S.
    """
    known: bytes | None = None  # a head seen before the receipt was asked for
    with trio.move_on_after(PATIENCE_S):
        while (receipt := await chain.receipt(tx_hash)) is None:
            if known is not None:
                with trio.move_on_after(TRANSACTION_LOOK_S):
                    await chain.wait_head(known)
            head = await chain.block()
            known = head.hash if head else b""
        return receipt
    raise ChainError(f"0x{tx_hash.hex()} was not mined in {PATIENCE_S:.0f} s; it may still be")


Moved = dict[tuple[str, str], int]
"""(who, token) -> raw units; of movements, negative for what went."""
NATIVE = parse_hex(limits.NATIVE_PLACEHOLDER, "native")
ONE = 10**18
USDC = 10**6
NOBODY = bytes(20)
MOST = (1 << 256) - 1
HOUR_S = 3_600
URGENT_TIP_WEI = 50 * 10**9
DOMAIN = 0
"""Of CCTP, of the chain of a world."""
RFQ_NAME, DELTA_NAME, DELTA_VERSION = "AUGUSTUS RFQ", "Portikus", "2.0.0"
DELTA_TYPES: dict[type, Any] = {kind.cls: kind for kind in ORDER_TYPES}


def person(number: int) -> SigningKey:
    """A key for tests only; the first four are of accounts that an anvil funds."""
    secret = KEYS[number] if number < len(KEYS) else f"{0xCA3B157 + number:064x}"
    return SigningKey(bytes.fromhex(secret))


ATTESTER = person(90)
"""Signs the messages of CCTP."""


class World(msgspec.Struct):
    """A chain with every contract, and the people who trade there.

    Attributes:
        at: the contracts.
        weth, usdc, dai: tokens of 18, 6 and 18 decimals; anyone mints the last two.
        spoke_pool, token_messenger: of Across and CCTP, by which orders leave the chain.
        owner: of the contracts; relayer: authorised on Delta; protocol: gets the protocol's share.
    """

    chain: DevChain
    at: DeployedContracts
    weth: bytes
    permit2: bytes
    usdc: bytes
    dai: bytes
    owner: SigningKey
    relayer: SigningKey
    maker: SigningKey
    user: SigningKey
    taker: SigningKey
    partner: SigningKey
    stranger: SigningKey
    protocol: bytes
    spoke_pool: bytes
    token_messenger: bytes

    # --- Transactions ---------------------------------------------------------------------------------

    async def send(
        self, key: SigningKey, to: bytes, data: bytes, *, value_wei: int = 0, gas: int = 0
    ) -> Receipt:
        """Mine a transaction and return its receipt. Reverted, with the reason, if it fails."""
        return await transact(self.chain, key, to, data, value_wei=value_wei, gas=gas)

    async def refused(self, key: SigningKey, to: bytes, data: bytes, *, value_wei: int = 0) -> str:
        """Reason of a refused call: simulated, then mined all the same, which changes no state."""
        call = EthCall(to, data, key.address, value_wei)
        try:
            await self.chain.call(call)
        except Reverted as error:
            reason = error.reason
        else:
            raise AssertionError("it is not refused")
        receipt = await self.forced(key, to, data, value_wei=value_wei)
        assert not receipt.succeeded
        assert receipt.logs == ()
        return reason

    async def forced(
        self, key: SigningKey, to: bytes, data: bytes, *, value_wei: int = 0, gas: int = 3_000_000
    ) -> Receipt:
        """Mine a transaction; its receipt, successful or not."""
        return await mined(
            self.chain,
            await self.chain.send_raw(
                (await self.signed_tx(key, to, data, value_wei=value_wei, gas=gas)).raw
            ),
        )

    async def signed_tx(
        self,
        key: SigningKey,
        to: bytes,
        data: bytes,
        *,
        value_wei: int = 0,
        gas: int = 3_000_000,
        tip_wei: int | None = None,
        waiting: int = 0,
    ) -> SignedTransaction:
        """The account's next transaction after `waiting` others; with URGENT_TIP_WEI it stands before all of
        the usual tip.
        """
        fees = await self.chain.fees()
        nonce = await self.chain.nonce(key.address) + waiting
        tip_wei = fees.tip_wei if tip_wei is None else tip_wei
        price = 2 * fees.base_fee_wei + tip_wei
        return sign_transaction(
            Transaction(self.chain.chain_id, nonce, tip_wei, price, gas, to, value_wei, data), key
        )

    async def first_in_block(self, key: SigningKey, to: bytes, data: bytes) -> None:
        """Hand in a transaction that is mined before all that waits."""
        signed = await self.signed_tx(key, to, data, gas=1_000_000, tip_wei=URGENT_TIP_WEI)
        await self.chain.send_raw(signed.raw)

    async def ask(self, to: bytes, data: bytes) -> int:
        """Number that a view function returns."""
        return decode_uint(await self.chain.call(EthCall(to, data)))

    async def now_s(self) -> int:
        """The time of the latest block."""
        header = await self.chain.block()
        assert header is not None
        return header.time_s

    async def pass_time(self, seconds: int) -> None:
        """Mine a block that is `seconds` later than the last one."""
        await self.chain.set_time(await self.now_s() + seconds)
        await self.chain.mine()

    # --- Tokens ---------------------------------------------------------------------------------------

    async def new_token(self, name: str = "DevToken", symbol: str = "ODD", decimals: int = 18) -> bytes:
        """Deploy another token, `DevToken` or another of contracts/dev, and return its address."""
        words = encode(bytes_tail(symbol.encode()), bytes_tail(symbol.encode()), uint_word(decimals))
        token = await create(self.chain, self.owner, name, words, secrets.token_bytes(32), gas=DEV_GAS)
        for railed in (self.at.delta, self.at.router):
            await self.send(
                self.owner,
                railed,
                selector("setCap(address,uint256)") + token.rjust(32, b"\0") + b"\xff" * 32,
            )
        return token

    async def mint(self, token: bytes, to: SigningKey | bytes, amount: int) -> None:
        """Mint tokens for an account; WETH is wrapped by its owner."""
        if token == self.weth:
            assert isinstance(to, SigningKey)
            await self.send(to, token, selector("deposit()"), value_wei=amount, gas=DEV_GAS)
            return
        words = _address(to).rjust(32, b"\0") + uint_word(amount)
        await self.send(self.owner, token, selector("mint(address,uint256)") + words, gas=DEV_GAS)

    async def approve(self, owner: SigningKey, token: bytes, spender: bytes, amount: int = MOST) -> None:
        """Let `spender` take an owner's tokens."""
        await self.send(owner, token, calldata.approve(spender, amount), gas=DEV_GAS)

    async def give(self, owner: SigningKey, token: bytes, amount: int, spender: bytes) -> None:
        """Mint and approve."""
        await self.mint(token, owner, amount)
        await self.approve(owner, token, spender)

    async def balance(self, token: bytes, owner: SigningKey | bytes) -> int:
        """Balance of an account in a token, or in native tokens."""
        if token == NATIVE:
            return await self.chain.balance(_address(owner))
        return await self.ask(token, calldata.balance_of(_address(owner)))

    async def balances(self, *owners: SigningKey | bytes) -> dict[tuple[bytes, bytes], int]:
        """Balances in WETH, USDC and DAI: (token, account) -> raw units."""
        return {
            (token, _address(owner)): await self.balance(token, owner)
            for token in (self.weth, self.usdc, self.dai)
            for owner in owners
        }

    async def held(self, people: Mapping[str, bytes], tokens: Mapping[str, bytes]) -> Moved:
        """Balances of accounts in tokens, native tokens among them if NATIVE is."""
        keys = [(who, token) for who in people for token in tokens]
        asked = [(who, token) for who, token in keys if tokens[token] != NATIVE]
        calls = [EthCall(tokens[token], calldata.balance_of(people[who])) for who, token in asked]
        words = dict(zip(asked, await self.chain.call_many(calls), strict=True))
        return {
            key: int.from_bytes(cast("bytes", words[key]))
            if key in words
            else await self.chain.balance(people[key[0]])
            for key in keys
        }

    # --- Orders ---------------------------------------------------------------------------------------

    def an_rfq_order(self, **changed: Any) -> RfqOrder:
        """An order of the maker: 2,500 USDC for one WETH, for any taker, without expiry."""
        order = RfqOrder(
            secrets.randbits(96) << 160,
            0,
            self.usdc,
            self.weth,
            self.maker.address,
            NOBODY,
            2_500 * USDC,
            ONE,
        )
        return msgspec.structs.replace(order, **changed)

    def a_firm_quote(self, user: SigningKey | None = None, **changed: Any) -> RfqOrder:
        """As `an_rfq_order`, for the executor to fill on behalf of a user."""
        terms = {"nonce_and_meta": pack_firm((user or self.user).address, secrets.randbits(96))}
        return self.an_rfq_order(**(terms | {"taker": self.at.executor} | changed))

    def rfq_hash(self, order: RfqOrder) -> bytes:
        """The digest that the maker signs, 32 bytes."""
        separator = rfq_domain_separator(RFQ_NAME, self.chain.chain_id, self.at.rfq)
        return RFQ_ORDER.compiled.digest_for(separator)(order)

    def signed(self, order: RfqOrder, key: SigningKey | None = None) -> bytes:
        """Signature of an RFQ order, by default the maker's; 65 bytes."""
        return to_65(*(key or self.maker).sign(self.rfq_hash(order)))

    def info(self, order: RfqOrder, key: SigningKey | None = None, **changed: Any) -> OrderInfo:
        """A signed order for a batch, all of it."""
        info = OrderInfo(order, self.signed(order, key), order.taker_amount)
        return msgspec.structs.replace(info, **changed)

    def fill_step(
        self, *orders: RfqOrder, taker_amount: int = 0, maker_amount: int = 0, receiver: bytes = DELTA
    ) -> SettlementStep:
        """The executor fills these orders of the maker's."""
        infos = [self.info(order) for order in orders]
        return rfq_step(self.at.rfq, infos, taker_amount, maker_amount, receiver)

    async def a_delta_order(self, **changed: Any) -> DeltaOrder:
        """The user sells one WETH for 2,400 USDC at least, 2,500 expected, within the hour, without a fee."""
        order = DeltaOrder(
            owner=self.user.address,
            beneficiary=self.user.address,
            src_token=self.weth,
            dest_token=self.usdc,
            src_amount=ONE,
            dest_amount=2_400 * USDC,
            expected_amount=2_500 * USDC,
            deadline=await self.now_s() + HOUR_S,
            kind=KIND_SELL,
            nonce=secrets.randbits(64),
            partner_and_fee=0,
            permit=b"",
            metadata=b"",
            bridge=SAME_CHAIN,
        )
        return msgspec.structs.replace(order, **changed)

    @property
    def delta_separator(self) -> bytes:
        """Domain separator of the Delta contract."""
        return delta_domain_separator(DELTA_NAME, DELTA_VERSION, self.chain.chain_id, self.at.delta)

    def delta_hash(self, order: AnyDeltaOrder) -> bytes:
        """The digest that the owner signs, 32 bytes."""
        digest: bytes = DELTA_TYPES[type(order)].compiled.digest_for(self.delta_separator)(order)
        return digest

    def delta_signed(self, order: AnyDeltaOrder, key: SigningKey | None = None) -> bytes:
        """Signature of a Delta order, by default the user's; 64 bytes."""
        return to_compact64(*(key or self.user).sign(self.delta_hash(order)))

    def delta_body(
        self,
        order: AnyDeltaOrder,
        key: SigningKey | None = None,
        *,
        signature: bytes | str | None = None,
        **changed: Any,
    ) -> dict[str, Any]:
        """Body of POST /v2/delta/orders, by default signed by the user; a member that is None is left out."""
        signature = self.delta_signed(order, key) if signature is None else signature
        sent = {
            "chainId": self.chain.chain_id,
            "order": DELTA_TYPES[type(order)].to_wire(order),
            "signature": signature if isinstance(signature, str) else to_hex(signature),
            "partner": "anon",
        }
        return {name: value for name, value in (sent | changed).items() if value is not None}

    def cancel_hash(self, ids: Sequence[str]) -> bytes:
        """The digest of a cancellation, which the owner signs, 32 bytes."""
        digest_of = ORDER_CANCELLATIONS.compiled.digest_for(self.delta_separator)
        return digest_of(OrderCancellations(tuple(ids)))

    def cancellation(self, ids: Sequence[str], key: SigningKey | None = None) -> bytes:
        """A signed cancellation, 64 bytes, by default the user's."""
        return to_compact64(*(key or self.user).sign(self.cancel_hash(ids)))

    def cancel_body(self, ids: Sequence[str], key: SigningKey | None = None) -> dict[str, Any]:
        """Body of POST /v2/delta/orders/cancel, by default signed by the user."""
        return {"orderIds": list(ids), "signature": to_hex(self.cancellation(ids, key))}


async def a_world(chain: DevChain, domain: int = DOMAIN) -> World:
    """Deploy every contract on a chain, and mint no token.

    Args:
        domain: of the chain, in CCTP.
    """
    owner, relayer, maker, user, taker, partner, stranger = map(person, range(7))
    for key in (owner, relayer, maker, user, taker, partner, stranger):
        await chain.set_balance(key.address, 1_000 * ONE)
    own = uint_word(domain)  # worlds of other domains have no address in common
    weth, permit2 = [
        await create(chain, owner, name, salt32=own, gas=DEV_GAS) for name in ("DevWeth", "DevPermit2")
    ]
    usdc, dai = [
        await create(
            chain,
            owner,
            "DevToken",
            encode(bytes_tail(name), bytes_tail(name), uint_word(decimals)),
            salt32=own,
            gas=DEV_GAS,
        )
        for name, decimals in ((b"USDC", 6), (b"DAI", 18))
    ]
    protocol = b"\x9b" * 20
    pool = await create(
        chain, owner, "DevSpokePool", address_word(weth) + address_word(owner.address), gas=DEV_GAS
    )
    messenger = await a_token_messenger(chain, owner, domain)
    plan = DeploymentPlan(
        owner=owner.address,
        weth=weth,
        permit2=permit2,
        protocol=protocol,
        rfq_name=RFQ_NAME,
        delta_name=DELTA_NAME,
        delta_version=DELTA_VERSION,
        relayers=(relayer.address,),
        caps=dict.fromkeys((weth, usdc, dai), MOST),
        is_open=True,
        spoke_pool=pool,
        token_messenger=messenger,
    )
    at = await deploy(chain, owner, plan, gas=DEV_GAS)
    return World(
        chain,
        at,
        weth,
        permit2,
        usdc,
        dai,
        owner,
        relayer,
        maker,
        user,
        taker,
        partner,
        stranger,
        protocol,
        spoke_pool=pool,
        token_messenger=messenger,
    )


def moved(before: Moved, after: Moved) -> Moved:
    """Changes of balances, without zeros."""
    return {key: after[key] - before[key] for key in before if after[key] != before[key]}


class MadeWorld:
    """A world on an embedded chain that is made once in a process, and the way back to it.

    Args:
        furnish: gives people what they begin with.
    """

    def __init__(self, furnish: Callable[[World], Awaitable[None]]) -> None:
        self._furnish = furnish
        self._world: World | None = None
        self._snapshot = 0

    async def again(self) -> World:
        """The world as it was made; its latest block is of now."""
        if self._world is None:
            self._world = await a_world(EmbeddedChain(31_337, lambda: int(time.time()), {}, known_errors()))
            await self._furnish(self._world)
        else:
            await self._world.chain.restore(self._snapshot)
        await self._world.chain.mine()
        self._snapshot = await self._world.chain.snapshot()
        return self._world


async def a_token_messenger(chain: DevChain, owner: SigningKey, domain: int) -> bytes:
    """Create CCTP's messenger of a domain, whose messages ATTESTER signs and whose fees `owner` gets."""
    words = uint_word(domain) + address_word(ATTESTER.address)
    transmitter = await create(chain, owner, "DevMessageTransmitter", words, gas=DEV_GAS)
    words = address_word(transmitter) + address_word(owner.address) + address_word(owner.address)
    return await create(chain, owner, "DevTokenMessenger", words, gas=DEV_GAS)


def _address(who: SigningKey | bytes) -> bytes:
    return who.address if isinstance(who, SigningKey) else who
