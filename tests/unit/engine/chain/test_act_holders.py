"""Accounts that may make a call of an operator's."""

import pytest

from cambist.engine.chain.deploy.contract_acts import ACCOUNT, OWNER, PAUSER, PROPOSED, Act, Powers, holders

OWNED, NEXT, STOPS, NONE = b"\1" * 20, b"\2" * 20, b"\3" * 20, bytes(20)


@pytest.mark.parametrize(
    ("by", "pauser", "found"),
    [
        (OWNER, STOPS, (OWNED,)),
        (PROPOSED, STOPS, (NEXT,)),
        (PAUSER, STOPS, (OWNED, STOPS)),
        (PAUSER, NONE, (OWNED,)),
        (PAUSER, None, (OWNED,)),
        (ACCOUNT, STOPS, ()),
    ],
)
def test_a_role_without_an_account_has_no_holder(
    by: str, pauser: bytes | None, found: tuple[bytes, ...]
) -> None:
    powers = {"Delta": Powers(OWNED, NEXT, pauser, None, is_paused=False)}
    assert holders(Act("Delta", b"\4" * 20, "pause", b"", by), powers) == found
