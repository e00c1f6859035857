"""Checks of a submitted order that sells from a vault, and of the vault of a build. Pure.

    without the chain   the vault is one of the chain's strategies; shares are 1 to 2^128 - 1
    with the chain      the vault's asset is `srcToken`; the vault's preview gives the shares needed now

Source: spec 1.16.26, 1.25.26; contracts/ProductiveSettler.sol.
Choice: A submitted order, too, may sell only from a vault that the chain's settings name as a strategy: the
    vault's code runs in the settlements of agents' bids.
Choice: An order that sells shares needs all of them, whatever they are worth above 0; an order that sells an
    amount needs the shares that its vault takes for the amount, within the signed number.
Choice: `srcAmount` of a sale of shares is above 0: records and limit prices start from this estimate.
"""

from collections.abc import Collection, Iterable

from .....codecs.contracts.vault_calldata import ASSET, vault_asset
from .....codecs.eip712_orders.delta import ProductiveOrder
from .....config.chains import StrategySettings
from .....config.errors import InsufficientBalance, InvalidProductiveOrderParams, ServiceUnavailable
from .....config.limits import DELTA_SHARES_MAX, VAULT_GAS_MAX
from .....crypto.addresses import parse_address, to_checksum
from ....chain.port import EthCall
from ...served.token_permits import Answers
from .fillable import shares_at_most
from .terms import whole_of
from .vault import VaultWorth, preview_call, previewed


def vaults_of(strategies: Iterable[StrategySettings]) -> dict[bytes, StrategySettings]:
    """Return a chain's configured strategies by the address of the vault, 20 bytes."""
    return {parse_address(strategy.vault, "vault"): strategy for strategy in strategies}


def check_strategy(vault: bytes, vaults: Collection[bytes], field: str) -> None:
    """Check that a vault is one of the chain's strategies.

    Args:
        field: member of the request that names the vault, for the error.

    Raises:
        InvalidProductiveOrderParams: the vault is none of these strategies.
    """
    if vault not in vaults:
        expected = "a vault of GET /v2/delta/prices/strategies/{chainId}"
        raise InvalidProductiveOrderParams(field=field, expected=expected, got=to_checksum(vault))


def check_shares(shares: int, field: str) -> None:
    """Check that an order's number of shares is one that the contract settles.

    Args:
        field: member of the request that decides the shares, for the error.

    Raises:
        InvalidProductiveOrderParams: there are no shares, or too many.
    """
    if not 0 < shares <= DELTA_SHARES_MAX:
        raise InvalidProductiveOrderParams(
            field=field, expected=f"1 to {DELTA_SHARES_MAX} shares of the vault", got=shares
        )


def asset_call(vault: bytes) -> EthCall:
    """Build the call that asks a vault for the token that it holds."""
    return EthCall(vault, ASSET, gas_max=VAULT_GAS_MAX)


def check_asset(answer: bytes | Exception, vault: bytes, src_token: bytes, field: str) -> None:
    """Check by the answer to `asset_call` that a vault holds an order's source token.

    Args:
        field: member of the request that names the source token, for the error.

    Raises:
        ServiceUnavailable: the vault does not answer.
        InvalidProductiveOrderParams: the vault holds another token.
    """
    asset = vault_asset(answer)
    if asset is None:
        raise ServiceUnavailable(f"the vault {to_checksum(vault)} does not answer")
    if asset != src_token:
        expected = f"the vault's asset, {to_checksum(asset)}"
        raise InvalidProductiveOrderParams(field=field, expected=expected, got=to_checksum(src_token))


def vault_calls(order: ProductiveOrder) -> dict[str, EthCall]:
    """Build the calls to the vault that check a submitted order: name of the check -> call."""
    return {"asset": asset_call(order.strategy), "preview": preview_call(order, whole_of(order))}


def shares_needed(order: ProductiveOrder, answers: Answers) -> int:
    """Compute from the vault's answers how many shares a new order needs of its owner.

    Args:
        answers: answers to the calls of `vault_calls`.

    Raises:
        ServiceUnavailable: the vault does not answer.
        InvalidProductiveOrderParams: the vault does not hold the order's source token.
        InsufficientBalance: the vault takes more shares for the amount than the order gives, or gives nothing
            for the shares.
    """
    check_asset(answers["asset"], order.strategy, order.src_token, "order.srcToken")
    worth: VaultWorth = previewed(order, whole_of(order), answers["preview"])
    most = shares_at_most(order, whole_of(order))
    if not worth.is_told:
        expected = f"shares that the vault {to_checksum(order.strategy)} gives srcToken for"
        raise InsufficientBalance(field="order.shares", expected=expected, got=most)
    if worth.shares > most:
        expected = f"at least {worth.shares}, which the vault takes for srcAmount"
        raise InsufficientBalance(field="order.shares", expected=expected, got=most)
    return worth.shares
