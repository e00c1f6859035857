"""Applies the operator's file of maker rules (exclusions, cleared faults) to a running venue.

If the file of rules is unreadable, the rules that were read last stay in force and the fault is logged.
"""

from collections.abc import Callable
from pathlib import Path

import structlog

from ....config.settings import Settings
from ....config.timeouts import MAKER_RULES_LOOK_S
from ....feeds.maker_cache import EXCLUDED
from ...host.safety.maker_rules import MakerRules
from ...host.safety.watched_file import WatchedFile
from ..served.served_chain import ServedChains

FILE_NAME = "makers.json"

_log = structlog.get_logger("cambist.venue")


def rules_file(settings: Settings, folder: Path) -> Path:
    """Return the path of the operator's file of maker rules, `makers.json` in `state_dir`.

    Args:
        folder: base of a relative `state_dir`.
    """
    return folder / Path(settings.state_dir).expanduser() / FILE_NAME


class MakerWatch:
    """Applies the operator's file of maker rules: excludes makers from routing, clears makers' faults.

    The method `run` has to run as a background task.

    Args:
        path: the file of maker rules.
        chains: served chains by chain id.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(self, path: Path, chains: ServedChains, wall_ms: Callable[[], int]) -> None:
        self._chains = chains
        self._wall_ms = wall_ms
        self._since_ms = wall_ms()
        self._file = WatchedFile(path, MakerRules(), self._obey)

    def change(self, change: Callable[[MakerRules], MakerRules]) -> MakerRules:
        """Apply a change to the file of rules; return the rules, which are in force at once.

        Raises:
            OSError: the file cannot be written.
            ValueError: the file is unreadable, or `change` raised the error.
        """

        def changed(rules: MakerRules) -> MakerRules:
            if rules.reason:
                raise ValueError(f"{FILE_NAME} {rules.reason}")
            return change(rules)

        self._file.change(changed)
        return self._file.state

    async def run(self) -> None:
        """Watch the operator's file of maker rules and apply its changes, until cancelled."""
        await self._file.watch(MAKER_RULES_LOOK_S)

    def _obey(self, rules: MakerRules) -> None:
        if rules.reason:
            _log.error("the file of makers is ignored", file=FILE_NAME, detail=rules.reason)
            return
        since_ms, self._since_ms = self._since_ms, self._wall_ms()
        for chain_id, served in self._chains.items():
            for maker, feed in served.feeds.items():
                if rules.releases(maker, chain_id, since_ms):
                    served.desk.scores.release(maker)
                    _log.warning("a maker is released", maker=maker, chain=chain_id)
                is_excluded = rules.excludes(maker, chain_id)
                if is_excluded is feed.cache.is_withheld(EXCLUDED):
                    continue
                if is_excluded:
                    feed.cache.withhold(EXCLUDED)
                else:
                    feed.cache.release(EXCLUDED)
                message = "a maker is left out" if is_excluded else "a maker is in again"
                _log.warning(message, maker=maker, chain=chain_id)
