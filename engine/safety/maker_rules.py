"""The operator's rules for makers: makers that are left out, and makers whose record is cleared. Pure.

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
    """A maker that is left out of a chain, or of all chains without one."""

    maker: str
    chain: int | None = None


class MakerRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """A release of a maker, whose faults, rests and bounds are forgotten; at Unix milliseconds."""

    maker: str
    at: int
    chain: int | None = None


class MakerRules(Struct, frozen=True, forbid_unknown_fields=True):
    """All rules of the operator.

    Attributes:
        reason: why the file is unreadable; empty for a readable file.
    """

    excluded: tuple[Exclusion, ...] = ()
    released: tuple[MakerRelease, ...] = ()
    reason: str = ""

    def excludes(self, maker: str, chain_id: int) -> bool:
        """Whether a maker is left out of a chain."""
        return any(rule.maker == maker and rule.chain in (None, chain_id) for rule in self.excluded)

    def releases(self, maker: str, chain_id: int, since_ms: int) -> bool:
        """Whether a maker was released on a chain after a time."""
        return any(
            rule.maker == maker and rule.chain in (None, chain_id) and rule.at > since_ms
            for rule in self.released
        )

    def excluding(self, maker: str, chain: int | None) -> "MakerRules":
        """These rules, with one maker more left out."""
        rule = Exclusion(maker, chain)
        return self if rule in self.excluded else replace(self, excluded=(*self.excluded, rule))

    def releasing(self, maker: str, chain: int | None, now_ms: int) -> "MakerRules":
        """These rules, with a maker included and released again; without a chain on all chains.

        Raises:
            ValueError: the maker is left out of all chains, and a single chain is given.
        """
        if chain is not None and Exclusion(maker) in self.excluded:
            raise ValueError(f"{maker} is left out of all chains: release it on all of them")
        kept = [rule for rule in self.excluded if rule.maker != maker or chain not in (None, rule.chain)]
        others = [rule for rule in self.released if (rule.maker, rule.chain) != (maker, chain)]
        return replace(self, excluded=tuple(kept), released=(*others, MakerRelease(maker, now_ms, chain)))

    def lines(self) -> Iterator[str]:
        """Lines for people, one for each exclusion."""
        for rule in self.excluded:
            yield f"{rule.maker}: left out of {'all chains' if rule.chain is None else f'chain {rule.chain}'}"

    def text(self) -> str:
        """The file's text; empty for no file."""
        return msgspec.json.encode(self).decode() + "\n" if self.excluded or self.released else ""

    @classmethod
    def parse(cls, text: str) -> "MakerRules":
        """The rules of a file's text."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            return cls.unreadable(f"is no list of makers: {error}")

    @classmethod
    def unreadable(cls, reason: str) -> "MakerRules":
        """Empty rules with the reason."""
        return cls(reason=reason)
