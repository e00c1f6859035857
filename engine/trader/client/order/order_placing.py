"""A Delta order from the price request until the venue has accepted it; `order_following` follows it.

    offer     contracts.json -> the Delta contract, its code and its domain -> GET /v2/quote, mode DELTA
              -> across chains, the token that enters the bridge, and the bridge -> balance and allowance
    (the trader agrees)
    place     approve, or sign a permit -> POST .../build -> checked -> a native source is deposited for the
              order's hash -> signed -> POST /v2/delta/orders
    rehearse  POST .../build -> checked; nothing is signed

The Delta contract is trusted for its code, like a swap's Router, unless the trader pins the address.

A deposit needs the hash of the built and checked order. If the trader names no partner, the submission names
the quote's partner.

Source: spec 1.1.12 to 1.1.19, 1.3.1; contracts/Delta.sol.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from .....codecs.contracts.delta_calldata import deposit_native_and_pre_sign, deposits, withdraw_to
from .....codecs.contracts.vault_calldata import ASSET, preview_withdraw, vault_amount, vault_asset
from .....codecs.messages.delta_messages import BuildResponse, OrderRecord, Route, SubmitBody
from .....codecs.messages.resource_messages import TokenList
from .....config.errors import ChainError, ConfigError, UnsafeTransaction, VenueError
from .....config.limits import VAULT_GAS_MAX
from .....crypto.hexadecimal import to_hex
from .....crypto.signatures import to_compact64
from ....chain.port import EthCall, Receipt
from ....chain.together import both
from ..allowing import Held, MissingAllowance, held
from ..following import Placed, placed
from ..order_terms import (
    CheckedBridge,
    OrderWish,
    QuotedDelta,
    SignableTerms,
    SigningInputs,
    build_body,
    terms_of,
)
from ..tokens import find_token
from ..trader import Trader, VenueTrader
from ..trusted_contract import DELTA, SigningContract, address_in, signing_contract
from .bridge_safety import check_bridge, check_contract, contract_getter, entering_token
from .order_safety import CheckedOrder, check_build, check_price, check_record


class OrderOffer(Struct, frozen=True, kw_only=True):
    """A Delta order's terms, shown to the trader before anything is signed.

    Attributes:
        held: the owner's balance and allowance of the token that the contract takes: the source token, or the
            shares of a vault. A TWAP needs a balance for its first slice only, but an allowance for all
            slices; the native token needs a deposit in place of an allowance.
    """

    terms: SignableTerms
    quoted: QuotedDelta
    contract: SigningContract
    held: Held

    @property
    def must_deposit(self) -> bool:
        """Whether the order sells native tokens, which must be deposited with the Delta contract first."""
        return self.terms.wish.src.is_native

    @property
    def missing(self) -> MissingAllowance | None:
        """The allowance that the Delta contract needs for the order and lacks; None if it lacks none."""
        return self.held.missing(self.terms.held_max)


class OrderPlacer(VenueTrader):
    """Places Delta orders of one key on one chain through one venue."""

    async def offer(self, wish: OrderWish, pinned: bytes | None = None) -> OrderOffer:
        """Ask the venue for a price of the wished order, and read the owner's balance and allowance on chain.

        Args:
            pinned: the Delta contract that the trader insists on; its code is not checked.

        Raises:
            PolicyError: the wish is for another chain than the trader's.
            VenueError: the venue has no price, or its price is not the requested one.
            ConfigError: the wish's vault holds another token, or gives no number of shares for the amount.
            ChainError: the source balance is too low, or the chain does not answer.
        """
        self._trader.check_chain(wish.chain_id)
        self._tell("looking at the Delta contract")
        self._tell("asking for a price")
        contract, quoted = await both(
            lambda: signing_contract(self._chain, self._venue, DELTA, pinned),
            lambda: self._venue.delta_quote(wish),
        )
        fee_bps = check_price(quoted.block, wish, contract.address)
        bridge, shares = await both(
            lambda: self._bridge(quoted.block.route, wish, contract), lambda: self._shares(wish)
        )
        terms = terms_of(wish, quoted.block, contract.address, fee_bps, bridge, shares)
        _check_bounds(terms)
        has = await held(self._chain, terms.held_token, wish.owner, contract.address)
        has.check_balance(terms.src_amount_max if wish.src.is_native else terms.src_amount_first)
        return OrderOffer(terms=terms, quoted=quoted, contract=contract, held=has)

    async def rehearse(self, offer: OrderOffer) -> CheckedOrder:
        """Check the order that the venue builds; sign no permit, order or transaction.

        Raises:
            VenueError: the built order is not the agreed one, or the venue refuses.
        """
        checked, _ = await self._built(offer, await self._signing(offer))
        return checked

    async def place(
        self, offer: OrderOffer, about_to: Callable[[bytes], None] | None = None
    ) -> Placed[OrderRecord]:
        """Place the order of agreed terms at the venue.

        The steps are: approve, or sign a permit; have the order built; deposit native tokens; sign; submit.

        Args:
            about_to: receives the order's hash, 32 bytes, before the deposit and the submission.

        Raises:
            StepFailedError: the approval or the deposit failed, or may still be mined; no order was signed.
            VenueError: the built order is not the agreed one, or the venue refuses.
            ChainError: a transaction would be refused, or the chain does not answer.
        """
        await self._trader.approve(offer.missing)
        # The deadline is chosen after the approval, whose wait would shorten the order's life.
        signing = await self._signing(offer)
        permit = await self._trader.permit(offer.missing, signing.deadline)
        checked, built = await self._built(offer, SigningInputs(signing.deadline, signing.nonce, permit))
        # The caller learns the hash first: an interrupt from here on may leave a deposit or a live order.
        if about_to is not None:
            about_to(checked.order_hash)
        if offer.must_deposit:
            await self._deposit(offer, checked.order_hash)
        self._tell(f"signing the order {to_hex(checked.order_hash)}")
        body = SubmitBody(
            chain_id=offer.contract.chain_id,
            order=built.to_sign.value,
            signature=to_hex(to_compact64(*self._trader.key.sign(checked.order_hash))),
            partner=offer.terms.wish.partner or offer.terms.partner,
            type=offer.terms.wish.type,
            partially_fillable=offer.terms.wish.is_partial,
        )
        try:
            return await placed(
                checked.order_hash,
                partial(self._venue.submit_order, body),
                self._venue.order,
                partial(check_record, order_hash=checked.order_hash, terms=offer.terms),
                self._tell,
            )
        except VenueError as fault:
            if not offer.must_deposit:
                raise
            raise _with_deposit(fault) from None

    # --- Parts ------------------------------------------------------------------------------------

    async def _bridge(self, route: Route, wish: OrderWish, contract: SigningContract) -> CheckedBridge | None:
        """Check the bridge of a price across chains; None for an order on one chain.

        Raises:
            UnsafeTransaction: the bridge differs from the wish, or no token is at the address of the token
                that enters the bridge.
            ChainError: the Delta contract names no bridge, or the chain does not answer.
        """
        bridging = wish.bridging
        if bridging is None:
            return None
        text = entering_token(route, wish, bridging)
        try:
            token, module = await both(
                lambda: find_token(self._chain, TokenList(()), text, "route.origin.output"),
                lambda: address_in(self._chain, contract.address, "bridges"),
            )
        except ConfigError as fault:
            raise UnsafeTransaction("route.origin.output", "a token on the origin chain", text) from fault
        bridge = check_bridge(route, wish, bridging, token)
        into = await address_in(self._chain, module, contract_getter(bridge.terms))
        bridge = replace(bridge, contract=into)
        check_contract(wish.chain_id, bridge)
        return bridge

    async def _shares(self, wish: OrderWish) -> int:
        """Ask the vault of a wish, on the trader's own node, how many shares give the sold amount.

        Returns:
            The shares; 0 without a vault.

        Raises:
            ConfigError: the vault holds another token, or gives no number of shares for the amount.
            ChainError: no node answers.
        """
        if wish.vault is None:
            return 0
        questions = (ASSET, preview_withdraw(wish.amount))
        calls = [EthCall(wish.vault.address, data, gas_max=VAULT_GAS_MAX) for data in questions]
        asset, shares = await self._chain.call_many(calls)
        if vault_asset(asset) != wish.src.address:
            raise ConfigError("--strategy", f"{wish.vault.text} is no vault of {wish.src.symbol}")
        found = vault_amount(shares)
        if not found:
            raise ConfigError("--strategy", f"{wish.vault.text} does not say how many shares give the amount")
        return found

    async def _signing(self, offer: OrderOffer) -> SigningInputs:
        """Choose the order's nonce, at random, and its deadline, counted from the later of the trader's clock
        and the chain's."""
        deadline = await self._trader.clock_s() + offer.terms.wish.life_s
        return SigningInputs(deadline, int.from_bytes(self._trader.random32(), "big"))

    async def _built(self, offer: OrderOffer, signing: SigningInputs) -> tuple[CheckedOrder, BuildResponse]:
        self._tell("having the order built")
        built = await self._venue.build_order(build_body(offer.terms, signing, offer.quoted.route))
        return check_build(built, offer.terms, signing, offer.contract), built

    async def _deposit(self, offer: OrderOffer, order_hash: bytes) -> None:
        amount = offer.terms.src_amount_max
        data = deposit_native_and_pre_sign(order_hash)
        call = EthCall(offer.contract.address, data, self._trader.key.address, amount)
        await self._trader.send("deposit", call, offer.contract.address, value_max_wei=amount)


async def take_back(
    trader: Trader, contract: SigningContract, amount_wei: int | None, receiver: bytes
) -> tuple[Receipt, int]:
    """Take back native tokens that the trader has deposited with the Delta contract.

    Args:
        amount_wei: amount to take back; None for the whole deposit.
        receiver: account that gets the tokens, 20 bytes.

    Returns:
        (the receipt, the amount in wei).

    Raises:
        ChainError: the deposit is empty or too small, or the chain does not answer.
        StepFailedError: the transaction reverted, or may still be mined.
    """
    account = trader.key.address
    answer = await trader.chain.call(EthCall(contract.address, deposits(account)))
    there = int.from_bytes(answer, "big")
    amount = there if amount_wei is None else amount_wei
    if amount > there or not amount:
        raise ChainError(f"{trader.account} has deposited {there} wei")
    call = EthCall(contract.address, withdraw_to(amount, receiver), account)
    return await trader.send("withdrawal", call, contract.address), amount


def _check_bounds(terms: SignableTerms) -> None:
    """Check that the bound of an order is above zero, and for a TWAP also the bound of each slice.

    Raises:
        VenueError: the bound of the order or of a slice is zero.
    """
    if terms.limit == 0:
        raise VenueError("this slippage allows a receipt of 0: use less slippage")
    if terms.wish.schedule is not None and terms.slice_limit == 0:
        raise VenueError("a slice may spend less than one unit: use fewer slices or a larger maximum")


def _with_deposit(fault: VenueError) -> VenueError:
    """The venue's refusal of an order, with a hint at the command that takes the order's deposit back."""
    return VenueError(
        f"{fault.detail}. The deposit remains; `cambist order withdraw` takes it back",
        status=fault.status,
        error_type=fault.error_type,
        details=fault.details,
        request_id=fault.request_id,
    )
