"""Planted faults: the type of a fault, and the functions that make one."""

from collections.abc import Callable
from typing import Any

import msgspec

from support.conformance.faulty_maker import Maker

Apply = Callable[[Maker], None]


class Planted(msgspec.Struct, frozen=True):
    """A planted fault.

    Attributes:
        expects: ids of the checks that must fail, each of them and none besides.
        apply: plants it.
        only: patterns of the checks that run; by default the topics of `expects`.
        strict: run with --strict.
    """

    expects: frozenset[str]
    apply: Apply
    only: tuple[str, ...] = ()
    strict: bool = False

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns for `Selection.only`."""
        topics = {check.partition(".")[0] for check in self.expects}
        return self.only or tuple(sorted(f"{topic}.*" for topic in topics))


def plant(*expects: str, only: tuple[str, ...] = (), strict: bool = False) -> Callable[[Apply], Planted]:
    """A fault that a function plants."""
    return lambda apply: Planted(frozenset(expects), apply, only, strict)


def flags(*names: str) -> Apply:
    """Plants leniences and habits."""
    return lambda maker: maker.flags.update(names)


def flagged(names: str, *expects: str, only: tuple[str, ...] = ()) -> Planted:
    """A fault that is a lenience or a habit; several flags are joined by spaces."""
    return Planted(frozenset(expects), flags(*names.split()), only)


def entry(resource: str, key: str, changes: dict[str, Any], *expects: str, strict: bool = False) -> Planted:
    """A fault: an entry of a resource with other members."""

    def change(content: dict[str, Any]) -> dict[str, Any]:
        return content | {key: content.get(key, {}) | changes}

    def apply(maker: Maker) -> None:
        maker.entries[resource] = change

    return Planted(frozenset(expects), apply, (f"{resource}.*",), strict)


def grid(changes: Any, *expects: str, strict: bool = False) -> Planted:
    """A fault in the grid of WBTC/USDC, which no quote of `prices.*` needs."""

    def apply(maker: Maker) -> None:
        maker.entries["prices"] = lambda prices: prices | {"WBTC/USDC": changes}

    return Planted(frozenset(expects), apply, ("prices.*",), strict)


def body(resource: str, change: Callable[[bytes], bytes], *expects: str, strict: bool = False) -> Planted:
    """A fault: a resource's body with other bytes."""

    def apply(maker: Maker) -> None:
        maker.raw[resource] = change

    return Planted(frozenset(expects), apply, (f"{resource}.*", "resources.*"), strict)


def terms(change: Callable[[Maker, dict[str, Any]], None], *expects: str) -> Planted:
    """A fault: the maker signs other terms."""

    def apply(maker: Maker) -> None:
        maker.terms = lambda signed: change(maker, signed)

    return Planted(frozenset(expects), apply, ("firm.*",))


def order(change: Callable[[dict[str, Any]], None], *expects: str) -> Planted:
    """A fault: the order in the answer differs from the signed order."""

    def apply(maker: Maker) -> None:
        maker.order = change

    return Planted(frozenset(expects), apply, ("firm.*",))


def domain(**changes: object) -> Planted:
    """A fault: the maker signs for another domain."""

    def apply(maker: Maker) -> None:
        maker.domain |= changes

    return Planted(frozenset({"firm.signature"}), apply, ("firm.*",))


def first(change: Callable[[dict[str, Any]], Any], *expects: str) -> Planted:
    """A fault: another first message of the socket."""

    def apply(maker: Maker) -> None:
        maker.first = change

    return Planted(frozenset(expects), apply, ("stream.*",))


def update(change: Callable[[dict[str, Any]], Any], *expects: str) -> Planted:
    """A fault: other updates of the socket."""

    def apply(maker: Maker) -> None:
        maker.updates = change

    return Planted(frozenset(expects), apply, ("stream.*",))
