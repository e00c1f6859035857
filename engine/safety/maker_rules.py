"""What an operator says of makers: which are left out, and which are asked anew whatever they did. Pure.

It is a JSON file, so that a person, a script and the venue's process know the same, and a restart keeps it:

    {"excluded": [{"maker": "alpha", "chain": 137}],
     "released": [{"maker": "beta", "chain": null, "at": 1795000000000}]}

`chain` null stands for all chains. A release counts once, for the process that runs at that time (Unix
milliseconds).

Choice: An unreadable file of maker rules changes nothing: the rules in force stay, and the fault is reported.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace


class Exclusion(Struct, frozen=True, forbid_unknown_fields=True):
    """A maker that is left out; of all chains where none is named."""

    maker: str
    chain: int | None = None


class MakerRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """A maker whose faults, rests and bounds are forgotten; at Unix milliseconds."""

    maker: str
    at: int
    chain: int | None = None


class MakerRules(Struct, frozen=True, forbid_unknown_fields=True):
    """All that is said.

    Attributes:
        reason: why the file cannot be understood; empty where it can.
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
        """These, and one maker more left out."""
        rule = Exclusion(maker, chain)
        return self if rule in self.excluded else replace(self, excluded=(*self.excluded, rule))

    def releasing(self, maker: str, chain: int | None, now_ms: int) -> "MakerRules":
        """These, with a maker in again and asked anew. Without a chain it is in again on all of them.

        Raises:
            ValueError: it is left out of all chains, and one alone is named.
        """
        if chain is not None and Exclusion(maker) in self.excluded:
            raise ValueError(f"{maker} is left out of all chains: release it on all of them")
        kept = [rule for rule in self.excluded if rule.maker != maker or chain not in (None, rule.chain)]
        others = [rule for rule in self.released if (rule.maker, rule.chain) != (maker, chain)]
        return replace(self, excluded=tuple(kept), released=(*others, MakerRelease(maker, now_ms, chain)))

    def lines(self) -> Iterator[str]:
        """For people, a maker that is left out a line."""
        for rule in self.excluded:
            yield f"{rule.maker}: left out of {'all chains' if rule.chain is None else f'chain {rule.chain}'}"

    def text(self) -> str:
        """The file that says so; empty for no file."""
        return msgspec.json.encode(self).decode() + "\n" if self.excluded or self.released else ""

    @classmethod
    def parse(cls, text: str) -> "MakerRules":
        """What a file of this text says."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            return cls.unreadable(f"is no list of makers: {error}")

    @classmethod
    def unreadable(cls, reason: str) -> "MakerRules":
        """Nothing, and why."""
        return cls(reason=reason)
