"""Live quotes across restarts: a good end hands them over, a bad one makes the next run wait."""

from pathlib import Path
from typing import Any

import pytest

from cambist.config.errors import ConfigError, ServiceUnavailable
from cambist.engine.roles.maker.quoting.memory import QuoteMemory
from cambist.engine.roles.maker.role import ChainRole
from support.makers.maker_role import NOW_MS, USDC, a_chain, firm_request

NOW_S = NOW_MS // 1000


def memory_of(role: ChainRole, folder: Path, index: int = 0, inherited: tuple[int, ...] = ()) -> QuoteMemory:
    return QuoteMemory(
        folder / f"{index}.json",
        [folder / f"{number}.json" for number in inherited],
        role.desk.ledger,
        {holding.token: holding for holding in role.holdings},
        {pair_id: state.exposure for pair_id, state in role.board.pairs.items()},
        role.settings.expiry_s,
    )


def a_run(
    folder: Path, index: int = 0, inherited: tuple[int, ...] = (), **chain: Any
) -> tuple[ChainRole, QuoteMemory, int]:
    role = a_chain(**chain)
    memory = memory_of(role, folder, index, inherited)
    return role, memory, memory.begin(NOW_S)


def reserved(role: ChainRole) -> int:
    return next(holding.reserved for holding in role.holdings if holding.token.hex() == USDC[2:])


def test_the_first_start_waits_for_nothing(tmp_path: Path) -> None:
    assert a_run(tmp_path)[2] == 0


def test_a_good_end_hands_the_live_quotes_over(tmp_path: Path) -> None:
    role, memory, _ = a_run(tmp_path, unused_quotes_max=2)
    for _ in range(2):
        role.desk.answer(firm_request(), NOW_MS)
    first, second = role.desk.ledger.promises()
    role.desk.ledger.settle(first, 1_000_000_001)
    memory.end()
    after, _, hold_until_s = a_run(tmp_path, unused_quotes_max=2)
    assert hold_until_s == 0
    assert reserved(after) == reserved(role) == 3_500_000_000
    hashes = [promise.order_hash for promise in after.desk.ledger.promises()]
    assert hashes == [first.order_hash, second.order_hash]
    exposure, before = after.board.pairs["WETH/USDC"].exposure, role.board.pairs["WETH/USDC"].exposure
    assert (exposure.notional, exposure.base_sold) == (before.notional, before.base_sold)
    assert b'"order"' in after.desk.answer(firm_request(), NOW_MS)  # one of two was used
    assert b'"order"' not in after.desk.answer(firm_request(), NOW_MS)
    after.desk.ledger.release_expired(NOW_S + 166)
    assert reserved(after) == 0


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"running":true,"expiry_s":200,"quotes":[]}'])
def test_after_a_bad_end_nothing_is_signed_until_its_quotes_have_expired(
    tmp_path: Path, content: bytes | None
) -> None:
    a_run(tmp_path)
    if content is not None:
        (tmp_path / "0.json").write_bytes(content)
    role, _, hold_until_s = a_run(tmp_path)
    assert hold_until_s == NOW_S + (200 if content and b"200" in content else 150) + 15
    role.desk.hold(hold_until_s)
    with pytest.raises(ServiceUnavailable, match="ended badly"):
        role.desk.answer(firm_request(), NOW_MS)
    role.desk.look(hold_until_s - 1)
    assert role.desk.withheld
    role.desk.look(hold_until_s)
    assert b'"order"' in role.desk.answer(firm_request(), NOW_MS)


def test_two_crashes_in_a_row_wait_for_the_first_ones_quotes_too(tmp_path: Path) -> None:
    a_run(tmp_path, expiry_s=1_000)
    _, _, first = a_run(tmp_path)
    _, _, second = a_run(tmp_path)
    assert first == NOW_S + 1_015
    assert second >= first


def test_files_of_processes_that_are_no_more_are_taken_over(tmp_path: Path) -> None:
    for index in (0, 1):
        role, memory, _ = a_run(tmp_path, index)
        role.desk.answer(firm_request(), NOW_MS)
        memory.end()
    role, _, hold_until_s = a_run(tmp_path, 0, (1,))
    assert (hold_until_s, reserved(role)) == (0, 5_000_000_000)
    assert not (tmp_path / "1.json").exists()


def test_quotes_of_a_token_that_was_removed_are_left_out(tmp_path: Path) -> None:
    role, memory, _ = a_run(tmp_path)
    role.desk.answer(firm_request(), NOW_MS)
    memory.end()
    text = (tmp_path / "0.json").read_text().replace("WETH/USDC", "WETH/USDT")
    (tmp_path / "0.json").write_text(text)
    after, _, _ = a_run(tmp_path)
    assert reserved(after) == 0


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(ConfigError, match="state_dir"):
        memory_of(a_chain(), tmp_path / "state").begin(NOW_S)


def test_a_hold_that_is_not_over_outlives_a_good_end(tmp_path: Path) -> None:
    a_run(tmp_path)
    _, memory, hold_until_s = a_run(tmp_path)
    assert hold_until_s
    memory.end()
    role = a_chain()
    again = memory_of(role, tmp_path)
    assert again.begin(NOW_S + 1) == hold_until_s
    again.end()
    assert memory_of(role, tmp_path).begin(hold_until_s) == 0


def test_a_second_process_cannot_use_the_same_file(tmp_path: Path) -> None:
    first, second = (memory_of(a_chain(), tmp_path) for _ in range(2))
    with first.locked(), pytest.raises(ConfigError, match="another process uses it"), second.locked():
        pass
    with second.locked():
        pass
