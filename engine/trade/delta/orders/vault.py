"""Reads of the vault from which a ProductiveOrder sells, and their meaning for the order. Pure.

    the unfilled amount -> preview: shares that the vault takes, assets that it gives
                        -> trial: a settlement of that amount without an agent's calls; the contract has the
                           shares redeemed, and then refuses the price
                        -> VaultWorth

The preview is the vault's own statement. The trial shows whether the vault keeps to its statement: a call
that changes nothing transfers the owner's shares and redeems them as a settlement does.

Source: contracts/ProductiveSettler.sol; EIP-4626.
Choice: A vault gives an order's source if a trial settlement redeems it: a vault that is paused, capped or
    gives less than it says suspends its orders before agents work for them.
Choice: The worth of shares is `previewRedeem`, which knows the fee of a withdrawal, and not
    `convertToAssets`.
"""

from msgspec import Struct

from .....codecs.contracts.abi import SELECTOR_BYTES, selector
from .....codecs.contracts.delta_calldata import Execution, settle_productive
from .....codecs.contracts.vault_calldata import preview_redeem, preview_withdraw, vault_amount
from .....codecs.eip712_orders.delta import ProductiveOrder
from .....config.errors import Reverted
from .....config.limits import VAULT_GAS_MAX
from ....chain.port import EthCall

REDEMPTION_FAILED = selector("RedemptionFailed(address)")
TOO_MANY_SHARES = selector("TooManyShares(uint256,uint256)")
OF_VAULT = frozenset({REDEMPTION_FAILED, TOO_MANY_SHARES})
"""Selectors of contract errors that a vault causes, before any call of an agent's."""
_NOT_GIVEN = OF_VAULT | {selector("PullFailed(address)")}


class VaultWorth(Struct, frozen=True):
    """Shares and assets of an order's unfilled amount, as the order's vault stated them at one block.

    Attributes:
        amount: unfilled amount for which the vault was read: raw units of the source token; of a sale of
            shares, the number of shares.
        shares: shares that the vault takes for the amount; 0 if the vault did not answer.
        assets: raw units of the source token that the vault gives for these shares; 0 without an answer.
        is_given: whether a trial settlement got the assets out of the vault.
    """

    amount: int
    shares: int
    assets: int
    is_given: bool

    @property
    def is_told(self) -> bool:
        """Whether the vault answered, and its answer is an amount that an order can sell."""
        return self.shares > 0 and self.assets > 0


def preview_call(order: ProductiveOrder, amount: int) -> EthCall:
    """Build the call that asks a vault for the shares that an amount needs, or the amount that shares give.

    Args:
        amount: raw units of the source token; of a sale of shares, the shares.
    """
    data = preview_redeem(amount) if order.use_shares else preview_withdraw(amount)
    return EthCall(order.strategy, data, gas_max=VAULT_GAS_MAX)


def previewed(order: ProductiveOrder, amount: int, answer: bytes | Exception) -> VaultWorth:
    """Read a vault's answer to `preview_call`; `is_given` is True until a trial fails."""
    other = vault_amount(answer) or 0
    shares, assets = (amount, other) if order.use_shares else (other, amount)
    return VaultWorth(amount, shares if other else 0, assets if other else 0, is_given=True)


def trial_call(
    order: ProductiveOrder, signature: bytes, worth: VaultWorth, delta: bytes, relayer: bytes, gas_max: int
) -> EthCall:
    """Build the call of a trial settlement: without an agent's calls (steps), of the previewed amount.

    The contract has the vault redeem the shares, and then reverts, since the order's price is not reached.

    Args:
        signature: the owner's signature; without a valid signature the call fails before the vault is called.
        delta: the Delta contract, 20 bytes.
        relayer: account that sends settlements, 20 bytes.
        gas_max: largest number of units of gas that a settlement may use.
    """
    execution = Execution(0, worth.assets, ())  # the contract reads the assets of a sale of shares alone
    data = settle_productive(order, signature, worth.amount, execution)
    return EthCall(delta, data, relayer, gas_max=gas_max)


def is_refused(answer: bytes | Exception) -> bool:
    """Whether the answer to `trial_call` shows that the vault does not give the order's source."""
    return isinstance(answer, Reverted) and answer.data[:SELECTOR_BYTES] in _NOT_GIVEN
