"""State of the kill switch: the chains and pairs on which trading is stopped. Pure.

The state is a text file, so that a person, a script and a process stop trading in the same way, and a restart
does not resume it. Each line names a scope, or is a comment that begins with `#`; an empty or
malformed file stops everything.

    all
    chain 137
    pair 137 WETH/USDC

Choice: An unreadable halts file stops everything: a kill switch fails towards safety.
Choice: A halts file with an unknown pair stops its chain, with an unknown chain everything; the commands
    refuse such names.
"""

import re
from collections.abc import Collection, Mapping

import msgspec

_CHAIN = re.compile(r"chain ([1-9][0-9]{0,17})")
_PAIR = re.compile(r"pair ([1-9][0-9]{0,17}) (\S.{0,127})")


class Halts(msgspec.Struct, frozen=True):
    """State of the kill switch: scopes (everything, chains, pairs) on which trading is stopped.

    Attributes:
        everything: whether all chains are stopped.
        chains: ids of stopped chains.
        pairs: (chain id, pair id) of stopped pairs.
        reason: fault of the halts file because of which more is stopped than its lines say, such as an
            unreadable file or an unknown pair; empty without a fault.
    """

    everything: bool = False
    chains: frozenset[int] = frozenset()
    pairs: frozenset[tuple[int, str]] = frozenset()
    reason: str = ""

    def stops_chain(self, chain_id: int) -> bool:
        """Whether all trading on this chain is stopped."""
        return self.everything or chain_id in self.chains

    def with_scope(self, scope: str) -> "Halts":
        """Return a copy with one more stopped scope: `all`, `chain 137` or `pair 137 WETH/USDC`.

        Raises:
            ValueError: `scope` has none of these three forms.
        """
        return self._changed(scope, stop=True)

    def without_scope(self, scope: str) -> "Halts":
        """Return a copy with one scope resumed; `all` resumes everything.

        `chain 137` resumes neither the chain while everything is stopped, nor pairs of the chain that were
        stopped by their own names.

        Raises:
            ValueError: `scope` has none of the forms of `with_scope`.
        """
        return self._changed(scope, stop=False)

    def within(self, known: Mapping[int, Collection[str]]) -> "Halts":
        """Return a copy for a process that trades only the `known` pairs (chain id -> pair ids).

        Names in the halts file may be misspelt: a stopped pair that is not known stops the whole chain, and
        a stopped chain that is not known stops everything.
        """
        unknown = {
            (chain_id, pair_id) for chain_id, pair_id in self.pairs if pair_id not in known.get(chain_id, ())
        }
        chains = self.chains | {chain_id for chain_id, _ in unknown}
        strange = sorted(chains - known.keys())
        reasons = [f"unknown chain {chain_id}" for chain_id in strange]
        reasons += [f"chain {chain_id} has no pair {pair_id}" for chain_id, pair_id in sorted(unknown)]
        return Halts(
            self.everything or bool(strange), chains, self.pairs - unknown, "; ".join(reasons) or self.reason
        )

    def text(self) -> str:
        """Return the text of the halts file for this state, a line for each stopped scope.

        A caller must not write an empty text, since an empty file stops everything.
        """
        lines = ["all"] if self.everything else []
        lines += [f"chain {chain_id}" for chain_id in sorted(self.chains)]
        lines += [f"pair {chain_id} {pair_id}" for chain_id, pair_id in sorted(self.pairs)]
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def parse(cls, text: str) -> "Halts":
        """Parse a halts file's text to the stopped scopes; empty or malformed text stops everything."""
        halts = cls()
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
        if not lines:
            return cls(everything=True, reason="the halt file is there and names nothing")
        for line in lines:
            try:
                halts = halts.with_scope(line)
            except ValueError as error:
                return cls(everything=True, reason=f"the halt file has a line that is {error}")
        return halts

    @classmethod
    def unreadable(cls, reason: str) -> "Halts":
        """Return the state for an unreadable halts file: everything is stopped."""
        return cls(everything=True, reason=f"the halt file {reason}")

    def _changed(self, scope: str, *, stop: bool) -> "Halts":
        if scope == "all":
            return msgspec.structs.replace(self, everything=True) if stop else NOTHING_HALTED
        if chain := _CHAIN.fullmatch(scope):
            chains = {int(chain[1])}
            return Halts(self.everything, self.chains | chains if stop else self.chains - chains, self.pairs)
        if pair := _PAIR.fullmatch(scope):
            pairs = {(int(pair[1]), pair[2])}
            return Halts(self.everything, self.chains, self.pairs | pairs if stop else self.pairs - pairs)
        raise ValueError(f"not `all`, `chain ID` or `pair ID NAME`: {scope[:80]!a}")


NOTHING_HALTED = Halts()
