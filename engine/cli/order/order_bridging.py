"""Options of the commands that place an order across chains: the destination, its node, the bridge.

A failed bridge pays back the bridge's token alone. With --yes nobody looks at the venue's choice of that
token, and therefore --via has to name the token.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import NoReturn

import click

from ....config import limits
from ....config.sections.nodes import NodeSettings
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...chain.port import Chain
from ...trader.client.public.session import BRIDGE_FEE_BPS, ToChain
from ..parameters import RPC_HELP, node_settings, once
from ..sources import Decorator
from ..trading import TradeOptions


class BridgingOptions(TradeOptions, frozen=True, kw_only=True):
    """Options of a command that may have a bridge deliver BUY_TOKEN on another chain.

    Attributes:
        to_rpc: node of the destination chain; None to trust the venue about that chain.
        via: token on the origin that must enter the bridge, as typed; None accepts the venue's choice.
        bridges: names of the bridges that the venue may choose among; empty for any.
        bridge_fee_bps: highest fee of the bridge, basis points; None for the default.
        to_wrapped: wrapped native token of the destination, as typed; None for that of a public chain.
    """

    to_rpc: NodeSettings | None = None
    via: str | None = None
    bridges: tuple[str, ...] = ()
    bridge_fee_bps: int | None = None
    to_wrapped: str | None = None

    def run(self, do: Callable[..., Awaitable[int]], *what: object) -> NoReturn:
        """Check the options, and run the command's work as `SigningOptions.run` does."""
        self._check()
        super().run(do, *what)

    def destination(self) -> AbstractAsyncContextManager[Chain | None]:
        """Context manager that opens the destination chain; gives None without a node of that chain."""
        if self.to_chain is None or self.to_rpc is None:
            return nullcontext()
        return RpcChain.open(self.to_chain, self.to_rpc, known_errors())

    @property
    def to(self) -> ToChain | None:
        """The delivery on another chain that the options request; None for an order on one chain."""
        if self.to_chain is None:
            return None
        fee_bps = BRIDGE_FEE_BPS if self.bridge_fee_bps is None else self.bridge_fee_bps
        return ToChain(self.to_chain, self.via, self.bridges, fee_bps, self.to_wrapped)

    def names(self) -> dict[str, str]:
        """Map parameter names of `cambist.client` to the options and arguments of the command, for errors."""
        return super().names() | {"to": "--to-chain", "via": "--via", "wrapped": "--to-wrapped"}

    def _check(self) -> None:
        """Refuse options that contradict each other.

        Raises:
            click.UsageError: an option may not be used here; the error names it.
        """
        if self.to_chain is None:
            about_bridge = {
                "--to-rpc": self.to_rpc,
                "--via": self.via,
                "--bridge": self.bridges or None,
                "--max-bridge-fee": self.bridge_fee_bps,
                "--to-wrapped": self.to_wrapped,
            }
            for option, value in about_bridge.items():
                if value is not None:
                    raise click.UsageError(f"{option}: only with --to-chain")
        elif self.to_chain == self.chain_id:
            raise click.UsageError("--to-chain: equals --chain")
        elif self.is_sure and not self.is_rehearsal and self.via is None:
            raise click.UsageError(
                "--via: is needed with --yes, or the venue chooses the token that a failed bridge pays back"
            )


bridging_options: list[Decorator] = [
    click.option(
        "--to-chain",
        type=click.IntRange(1),
        help="Chain on which a bridge delivers BUY_TOKEN; --chain if absent.",
    ),
    click.option(
        "--to-rpc",
        callback=node_settings,
        help=f"With --to-chain: proves the delivery there. {RPC_HELP}",
    ),
    click.option(
        "--via",
        metavar="TOKEN",
        help="With --to-chain: token that has to enter the bridge; the venue chooses if absent.",
    ),
    click.option(
        "--bridge",
        "bridges",
        metavar="NAME",
        multiple=True,
        callback=once,
        help="With --to-chain: a bridge that may be used; repeatable, any if absent.",
    ),
    click.option(
        "--to-wrapped",
        metavar="TOKEN",
        help="With --to-chain, to buy its native token: the wrapped one; a public chain's if absent.",
    ),
    click.option(
        "--max-bridge-fee",
        "bridge_fee_bps",
        metavar="BPS",
        type=click.IntRange(0, limits.BPS_ONE - 1),
        help=f"With --to-chain: highest fee of the bridge, in basis points.  [default: {BRIDGE_FEE_BPS}]",
    ),
]
"""Click options for the members of `BridgingOptions`."""
