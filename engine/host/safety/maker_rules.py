"""The operator's rules for makers: makers excluded from routing, and makers whose faults are cleared. Pure.

The rules are a JSON file, so that people, scripts and the venue share them, and a restart keeps them:

    {"excluded": [{"maker": "alpha", "chain": 137}],
     "released": [{"maker": "beta", "chain": null, "at": 1795000000000}]}

`chain` null means all chains. A release counts once, for the process that runs at that time (Unix
milliseconds).

Choice: An unreadable file of maker rules changes nothing: the rules in force stay, and the fault is reported.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace


class Exclusion(Struct, frozen=True, forbid_unknown_fields=True):
    """Exclusion of a maker from routing on one chain; on all chains if `chain` is None."""

    maker: str
    chain: int | None = None


class MakerRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """Release of a maker: the venue clears the maker's faults, cool-downs and size bounds.

    Attributes:
        at: time of the release, Unix milliseconds.
        chain: id of the chain; None for all chains.
    """

    maker: str
    at: int
    chain: int | None = None


class MakerRules(Struct, frozen=True, forbid_unknown_fields=True):
    """The operator's rules for makers: exclusions from routing, and releases that clear a maker's faults.

    Attributes:
        reason: why the rules file is unreadable; empty for a readable file.
    """

    excluded: tuple[Exclusion, ...] = ()
    released: tuple[MakerRelease, ...] = ()
    reason: str = ""

    def excludes(self, maker: str, chain_id: int) -> bool:
        """Whether the operator excludes a maker from routing on a chain."""
        return any(rule.maker == maker and rule.chain in (None, chain_id) for rule in self.excluded)

    def releases(self, maker: str, chain_id: int, since_ms: int) -> bool:
        """Whether the operator released a maker (cleared its faults) on a chain after `since_ms`.

        Args:
            since_ms: Unix milliseconds.
        """
        return any(
            rule.maker == maker and rule.chain in (None, chain_id) and rule.at > since_ms
            for rule in self.released
        )

    def excluding(self, maker: str, chain: int | None) -> "MakerRules":
        """Return the rules with a maker excluded from a chain; from all chains if `chain` is None."""
        rule = Exclusion(maker, chain)
        return self if rule in self.excluded else replace(self, excluded=(*self.excluded, rule))

    def releasing(self, maker: str, chain: int | None, now_ms: int) -> "MakerRules":
        """Return the rules without a maker's exclusion, and with a release that clears the maker's faults.

        Args:
            chain: id of the chain; None for all chains.

        Raises:
            ValueError: the maker is excluded from all chains, and only a single chain is to be released.
        """
        if chain is not None and Exclusion(maker) in self.excluded:
            raise ValueError(f"{maker} is left out of all chains: release it on all of them")
        kept = [rule for rule in self.excluded if rule.maker != maker or chain not in (None, rule.chain)]
        others = [rule for rule in self.released if (rule.maker, rule.chain) != (maker, chain)]
        return replace(self, excluded=tuple(kept), released=(*others, MakerRelease(maker, now_ms, chain)))

    def lines(self) -> Iterator[str]:
        """Yield a line of text for each exclusion of a maker, for people to read."""
        for rule in self.excluded:
            yield f"{rule.maker}: left out of {'all chains' if rule.chain is None else f'chain {rule.chain}'}"

    def text(self) -> str:
        """Return the JSON text for the rules file; empty if no rules exist, so that the file is removed."""
        return msgspec.json.encode(self).decode() + "\n" if self.excluded or self.released else ""

    @classmethod
    def parse(cls, text: str) -> "MakerRules":
        """Parse the JSON text of a file of maker rules; malformed text gives `unreadable` rules."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            return cls.unreadable(f"is no list of makers: {error}")

    @classmethod
    def unreadable(cls, reason: str) -> "MakerRules":
        """Return empty maker rules that carry the reason why their file is unreadable."""
        return cls(reason=reason)
