"""Interface of an agent's bidding strategies, and the loading of strategies that the settings name.

A custom strategy is a class with one method, or two:

    class MySolver:
        def __init__(self, options, context): ...          # options: [agent.options."my_solver:MySolver"]
        async def solve(self, request, market): ...        # -> bids
        def notify(self, notice): ...                      # optional

The settings list the class among the strategies as `"my_solver:MySolver"`: a module, from the settings file's
folder or an installed module, and a class or function that makes the strategy. The agent makes the strategy
once, at its start; the strategy does no I/O then. A strategy waits only by functions of trio.

All strategies of an agent solve every round, at the same time; their bids are joined. A strategy that raises,
is late, or returns invalid bids loses only its own bids, and the failure is logged.

A strategy that is cut off at the deadline bids nothing in that round.

Source: ARCHITECTURE.md, "Auction".
"""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ....codecs.messages.agent_messages import NotifyRequest, SolverBid, SolveRequest
from ....config.errors import CambistError, ConfigError
from ....config.secret import Secret
from ...host.process.own_modules import import_module

if TYPE_CHECKING:
    from .market import RoundMarket

SHIPPED = {"crossing": "coincidence:Coincidence", "firm_quotes": "firm_quotes:FirmQuotes"}


class StrategyContext(Struct, frozen=True, kw_only=True):
    """Functions and paths that the agent gives to a bidding strategy, beside the strategy's options.

    Attributes:
        folder: folder of the settings file, the base of relative file names.
        secret: function (reference, field) -> secret. The reference is the option's value, `env:NAME` or
            `file:PATH`; the field is the option's dotted name, for error messages.
        report: function that writes one line to the operator's log, at level info.
        field: dotted name of the table of the strategy's options in the settings, for error messages.
    """

    folder: Path
    secret: Callable[[str, str], Secret]
    report: Callable[[str], None]
    field: str


class SolverStrategy(Protocol):
    """Interface of a bidding strategy, which finds an agent's bids for the orders of an auction round.

    An optional method `notify(notice: NotifyRequest)` receives the outcomes of the bids.
    """

    async def solve(self, request: SolveRequest, market: "RoundMarket") -> Sequence[SolverBid | None]:
        """Return bids for the orders of an auction round, before the time `market.deadline`.

        The agent ignores elements that are None.

        Args:
            request: the round as the venue sent it.
            market: the request's orders, parsed, and the makers to trade with.
        """
        ...


def load_strategy(name: str, options: Mapping[str, Any], context: StrategyContext) -> SolverStrategy:
    """Create a bidding strategy from its name in the settings.

    Args:
        name: `crossing`, `firm_quotes`, or `module:factory`.

    Raises:
        ConfigError: no such module or factory exists, the factory makes no strategy, or the strategy refuses
            the options; the error names the setting.
    """
    factory = _factory(name, context.folder)
    try:
        strategy: SolverStrategy = factory(options, context)
    except CambistError:  # names the option itself
        raise
    except Exception as error:
        raise ConfigError(context.field, f"{name} does not take them: {error!r}") from error
    if not inspect.iscoroutinefunction(getattr(strategy, "solve", None)):
        raise ConfigError("agent.strategies", f"{name} makes an object without `async def solve`")
    # An optional method with a wrong name or kind would never run, and nobody would notice.
    if callable(getattr(strategy, "told", None)):
        raise ConfigError("agent.strategies", f"{name} makes an object with `told`: its name is `notify`")
    if inspect.iscoroutinefunction(getattr(strategy, "notify", None)):
        raise ConfigError(
            "agent.strategies", f"{name} makes an object with `async def notify`, which is never awaited"
        )
    return strategy


def tell(strategy: SolverStrategy, notice: NotifyRequest) -> None:
    """Pass a venue's notices about bids to a strategy, if the strategy has a method `notify`."""
    notify = getattr(strategy, "notify", None)
    if notify is not None:
        notify(notice)


def without_options(options: Mapping[str, Any], context: StrategyContext) -> None:
    """Raise an error if the settings give options to a strategy that takes none.

    Raises:
        ConfigError: `options` is not empty; the error names the first option.
    """
    for option in options:
        raise ConfigError(f"{context.field}.{option}", "is not an option")


def _factory(name: str, folder: Path) -> Callable[[Mapping[str, Any], StrategyContext], SolverStrategy]:
    module_name, colon, factory_name = SHIPPED.get(name, name).partition(":")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), factory_name)):
        known = ", ".join(SHIPPED)
        raise ConfigError("agent.strategies", f"expected {known} or module:factory, got {name!r}")
    if name in SHIPPED:
        module = importlib.import_module(f".{module_name}", __package__)
    else:
        module = import_module(module_name, folder.resolve(), "agent.strategies")
    found = getattr(module, factory_name, None)
    if found is None:
        raise ConfigError("agent.strategies", f"module {module_name} has no {factory_name}")
    try:
        inspect.signature(found).bind({}, None)
    except (TypeError, ValueError):
        raise ConfigError(
            "agent.strategies", f"{name} is not called as {factory_name}(options, context)"
        ) from None
    factory: Callable[[Mapping[str, Any], StrategyContext], SolverStrategy] = found
    return factory
