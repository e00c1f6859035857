"""Prices from a file: read, read again when it changes, kept when it is bad, dropped when it is gone."""

import json
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.errors import ConfigError
from cambist.engine.roles.maker.prices import static
from cambist.engine.roles.maker.prices.source import normalise_grid
from cambist.engine.roles.maker.prices.static import JSON_BYTES_MAX, TOML_BYTES_MAX, StaticPrices
from support.makers.price_sources import WETH_USDC, Surroundings, first_updates, next_update, open_files

GRID = {"bids": [["2500", "1"]], "asks": [["2501", "1"]]}
AS_GRID = PriceGrid((("2500", "1"),), (("2501", "1"),))


def write(path: Path, grid: object = GRID, pair_id: str = "WETH/USDC") -> None:
    path.write_text(json.dumps({"prices": {pair_id: grid}}))


async def test_the_file_is_given_at_once_and_confirmed_while_it_stands(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    write(tmp_path / "prices.json")
    source = StaticPrices({"path": "prices.json"}, Surroundings(tmp_path).context)
    taken = await first_updates(source, 4)
    assert [prices for _, prices in taken] == [{"WETH/USDC": AS_GRID}] * 4
    assert [round(at, 3) for at, _ in taken] == [0, 1, 2, 3]


async def test_toml_has_the_same_shape(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    (tmp_path / "prices.toml").write_text(
        '[prices."WETH/USDC"]\nbids = [["2500", "1"]]\nasks = [["2501", "1"]]\n[prices."WBTC/USDC"]\n'
    )
    source = StaticPrices({"path": "prices.toml"}, Surroundings(tmp_path).context)
    ((_, prices),) = await first_updates(source, 1)
    assert prices == {"WETH/USDC": AS_GRID, "WBTC/USDC": PriceGrid()}


@pytest.mark.parametrize("atomic", [True, False])
async def test_a_new_version_is_seen_within_a_poll(
    tmp_path: Path, atomic: bool, autojump_clock: trio.testing.MockClock
) -> None:
    path = tmp_path / "prices.json"
    write(path)
    async with aclosing(StaticPrices({"path": str(path)}, Surroundings().context).updates()) as updates:
        await next_update(updates)
        for price in ("2400", "2300", "2200"):  # same size, within one tick of the file system's clock
            target = tmp_path / "new.json" if atomic else path
            write(target, {"bids": [[price, "1"]]})
            if atomic:
                target.rename(path)
            changed_at = trio.current_time()
            assert await next_update(updates) == {"WETH/USDC": PriceGrid(bids=((price, "1"),))}
            assert trio.current_time() - changed_at == pytest.approx(0.2)


async def test_a_pair_that_is_left_out_is_disabled(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    path = tmp_path / "prices.json"
    write(path)
    async with aclosing(StaticPrices({"path": str(path)}, Surroundings().context).updates()) as updates:
        await next_update(updates)
        write(path, {}, "WBTC/USDC")
        assert await next_update(updates) == {"WETH/USDC": PriceGrid(), "WBTC/USDC": PriceGrid()}
        assert await next_update(updates) == {"WBTC/USDC": PriceGrid()}


BAD: list[tuple[Any, str]] = [
    ("{", "not JSON: Input data was truncated"),
    ("\xff", "not JSON"),
    ("[" * 100_000, "expected one object, `prices`"),
    ('{"prices": {"WETH/USDC": ' + "[" * 100_000 + "]" * 100_000 + "}}", "not JSON"),
    ('{"prices": {"WETH/USDC": {"bids": "\xff"}}}', "not JSON"),
    (" " * (JSON_BYTES_MAX + 1), "expected at most 1048576 bytes"),
    ([], "expected one object, `prices`"),
    ({"price": {}}, "expected one object, `prices`"),
    ({"prices": {}, "message": ""}, "expected one object, `prices`"),
    ({"prices": []}, "expected one object, `prices`"),
    ({"prices": {"WETH/USDT": {}}}, "prices: expected pairs of this chain, got 'WETH/USDT'"),
    ({"prices": {"WETH/USDC": {"bids": [[2500.5, "1"]]}}}, "prices.WETH/USDC.bids[0][0]: expected a string"),
    ({"prices": {"WETH/USDC": {"bids": [[2500, "1"]]}}}, "prices.WETH/USDC.bids[0][0]: expected a string"),
    ({"prices": {"WETH/USDC": {"bid": []}}}, "prices.WETH/USDC: expected bids and asks, got 'bid'"),
    ({"prices": {"WETH/USDC": {"bids": [["1", "1"], ["2", "1"]]}}}, "bids[1][0]: expected best price first"),
    (
        {"prices": {"WBTC/USDC": {}, "WETH/USDC": {"bids": [["2", "1"]], "asks": [["2", "1"]]}}},
        "prices.WETH/USDC.asks[0][0]: expected a price above the best bid, 2",
    ),
]


@pytest.mark.parametrize(("content", "said"), BAD, ids=range(len(BAD)))
async def test_a_bad_version_is_reported_once_and_nothing_is_confirmed_until_it_is_mended(
    tmp_path: Path, content: Any, said: str, autojump_clock: trio.testing.MockClock
) -> None:
    path = tmp_path / "prices.json"
    write(path)
    surroundings = Surroundings(tmp_path)
    given: list[Any] = []

    async def follow() -> None:
        async with aclosing(StaticPrices({"path": "prices.json"}, surroundings.context).updates()) as updates:
            async for update in updates:
                given.append(update)  # noqa: PERF401  it never ends

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        await trio.sleep(3)
        assert given == [{"WETH/USDC": AS_GRID}] * len(given) != []
        path.write_bytes((content if isinstance(content, str) else json.dumps(content)).encode("latin-1"))
        await trio.sleep(1)
        given.clear()
        await trio.sleep(30)
        assert given == []
        (report,) = surroundings.reports
        assert report.startswith(f"{path}: not taken: ")
        assert said in report
        write(path)
        await trio.sleep(3)
        assert given == [{"WETH/USDC": AS_GRID}] * len(given) != []
        path.write_text("{")
        await trio.sleep(1)
        assert len(surroundings.reports) == 2
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("text", "said"), [("[prices", "not TOML"), ("#" * (TOML_BYTES_MAX + 1), "at most 65536 bytes")]
)
async def test_bad_toml_is_reported(
    tmp_path: Path, text: str, said: str, autojump_clock: trio.testing.MockClock
) -> None:
    (tmp_path / "prices.toml").write_text(text)
    surroundings = Surroundings(tmp_path)
    with trio.move_on_after(10):
        await first_updates(StaticPrices({"path": "prices.toml"}, surroundings.context), 1)
    (report,) = surroundings.reports
    assert said in report


async def test_a_file_that_is_gone_is_confirmed_no_more_until_it_is_back(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    path = tmp_path / "prices.json"
    write(path)
    surroundings = Surroundings(tmp_path)
    async with aclosing(StaticPrices({"path": "prices.json"}, surroundings.context).updates()) as updates:
        await next_update(updates)
        path.rename(tmp_path / "away.json")
        with trio.move_on_after(30) as waiting:
            await anext(updates)
        assert waiting.cancelled_caught
        assert surroundings.reports == [f"{path}: cannot be read: No such file or directory"]


async def test_a_file_that_comes_back_or_late_is_taken(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    path = tmp_path / "prices.json"
    surroundings = Surroundings(tmp_path)

    async def come_and_go() -> None:
        await trio.sleep(5)
        write(path)
        await trio.sleep(5)
        path.rename(tmp_path / "away.json")
        await trio.sleep(5)
        (tmp_path / "away.json").rename(path)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come_and_go)
        taken = await first_updates(StaticPrices({"path": "prices.json"}, surroundings.context), 7)
    seconds = [int(at) for at, _ in taken]
    assert seconds == [5, 6, 7, 8, 9, 15, 16]
    assert len(surroundings.reports) == 2


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
async def test_what_is_no_file_is_reported_and_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None], autojump_clock: trio.testing.MockClock
) -> None:
    make(tmp_path / "prices.json")
    surroundings = Surroundings(tmp_path)
    with trio.move_on_after(10):
        await first_updates(StaticPrices({"path": "prices.json"}, surroundings.context), 1)
    assert surroundings.reports == [f"{tmp_path / 'prices.json'}: cannot be read: it is no regular file"]


async def test_each_grid_of_a_new_version_leaves_others_their_turn(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [f"A{number}/B" for number in range(20)]
    (tmp_path / "prices.json").write_text(json.dumps({"prices": dict.fromkeys(pairs, GRID)}))
    context = msgspec.structs.replace(Surroundings(tmp_path).context, pairs=dict.fromkeys(pairs, WETH_USDC))
    turns, turns_at_grids = 0, []

    def normalise(*grid: Any) -> PriceGrid:
        turns_at_grids.append(turns)
        return normalise_grid(*grid)

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(static, "normalise_grid", normalise)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        await first_updates(StaticPrices({"path": "prices.json"}, context), 1)
        nursery.cancel_scope.cancel()
    assert len(turns_at_grids) == len(pairs)
    assert turns_at_grids[-1] - turns_at_grids[0] > len(pairs) // 2


async def test_a_file_that_nobody_writes_any_more_is_not_confirmed_until_it_is_written_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    path = tmp_path / "prices.json"
    surroundings = Surroundings(tmp_path)
    started_ns = 1_795_000_000_000 * 1_000_000
    context = msgspec.structs.replace(
        surroundings.context, now_ms=lambda: started_ns // 1_000_000 + round(1_000 * trio.current_time())
    )

    def written() -> None:
        write(path)
        now_ns = context.now_ms() * 1_000_000
        os.utime(path, ns=(now_ns, now_ns))

    async def write_again() -> None:
        await trio.sleep(20)
        written()

    written()
    source = StaticPrices({"path": "prices.json", "age_max_ms": 3_000}, context)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_again)
        with trio.fail_after(60):
            taken = await first_updates(source, 7)
    assert [round(at) for at, _ in taken] == [0, 1, 2, 3, 20, 21, 22]
    assert surroundings.reports == [f"{path}: was not written for more than 3000 ms"]


async def test_no_file_stays_open(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    write(tmp_path / "prices.json")
    before = open_files()
    async with aclosing(
        StaticPrices({"path": "prices.json"}, Surroundings(tmp_path).context).updates()
    ) as updates:
        await next_update(updates)
        assert open_files() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": "prices.yaml"}, r"maker\.chains\.1\.price_options: path ends in \.json or \.toml"),
        ({"path": "p.json", "poll_ms": 1}, r"price_options: poll_ms is 10 to 3600000, got 1"),
        ({"path": "p.json", "refresh_ms": 0}, r"price_options: refresh_ms is 10 to"),
        ({"path": "p.json", "age_max_ms": -1}, r"price_options: age_max_ms is 0 to 86400000, got -1"),
        ({"path": "p.json", "poll": 10}, r"price_options\.poll: is not an option"),
        ({}, r"price_options\.path: is missing"),
    ],
)
def test_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        StaticPrices(options, Surroundings().context)
