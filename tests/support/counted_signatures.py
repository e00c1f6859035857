"""Counts of a venue's work on signatures: recoveries, and questions to its chain."""

from collections import Counter
from typing import Any

import pytest

from cambist.crypto.secp256k1 import recover_address
from cambist.engine.trade.served import signed_by


class CountedChain:
    """A chain that counts its requests by method; `call_many` counts each call."""

    def __init__(self, chain: Any) -> None:
        self._chain = chain
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._chain, name)
        if name not in ("block", "call", "call_many", "code"):
            return found

        async def counted(*args: Any, **named: Any) -> Any:
            self.asked[name] += len(args[0]) if name == "call_many" else 1
            return await found(*args, **named)

        return counted


def counted_recoveries(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Digests of which a signer is recovered from now on."""
    digests: list[bytes] = []

    def counted(digest32: bytes, rs64: bytes, recovery_id: int) -> bytes:
        digests.append(digest32)
        return recover_address(digest32, rs64, recovery_id)

    monkeypatch.setattr(signed_by, "recover_address", counted)
    return digests
