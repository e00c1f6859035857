"""What a venue does to find out about signatures, counted: recoveries, and questions to its chain."""

from collections import Counter
from typing import Any

import pytest

from cambist.crypto.secp256k1 import recover_address
from cambist.engine.served import signed_by


class CountedChain:
    """A chain that counts what it is asked, by method; `call_many` by its calls."""

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
    """The digests whose signer is looked for, from now on."""
    digests: list[bytes] = []

    def counted(digest32: bytes, rs64: bytes, recovery_id: int) -> bytes:
        digests.append(digest32)
        return recover_address(digest32, rs64, recovery_id)

    monkeypatch.setattr(signed_by, "recover_address", counted)
    return digests
