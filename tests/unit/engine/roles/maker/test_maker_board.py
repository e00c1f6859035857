"""The maker's published resources: bodies, changes, refusals, staleness."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.messages.maker_messages import (
    PriceGrid,
    decode_pairs,
    decode_prices,
    decode_stream_message,
    decode_tokens,
)
from cambist.config.errors import InvalidInput
from cambist.engine.roles.maker.quoting.board import Board
from support.makers.maker_role import GRID, NOW_MS, USDC, WETH, a_chain

PAIR = "WETH/USDC"
OTHER = PriceGrid(bids=(("2400", "1"),), asks=(("2401", "1"),))


def shown(board: Board) -> Any:
    body = msgspec.json.decode(board.prices_body())
    assert body.keys() == {"prices"}
    return body["prices"][PAIR]


def changes(board: Board, now_ms: int = NOW_MS) -> Any:
    message = board.take_changes(now_ms)
    return None if message is None else msgspec.json.decode(message)


def test_tokens_and_pairs_are_the_documented_bodies() -> None:
    board = a_chain().board
    tokens, pairs = decode_tokens(board.tokens_body), decode_pairs(board.pairs_body)
    assert not tokens.refused | pairs.refused
    assert {token.address for token in tokens.body.tokens.values()} >= {WETH, USDC}
    assert all(token.description and token.type == "ERC20" for token in tokens.body.tokens.values())
    assert (pairs.body.pairs[PAIR].base, pairs.body.pairs[PAIR].quote) == ("WETH", "USDC")


def test_a_grid_is_shown_as_it_was_given() -> None:
    board = a_chain().board
    assert decode_prices(board.prices_body()).body.prices[PAIR] == GRID


def test_a_grid_in_exponents_is_shown_in_plain_digits() -> None:
    fine = "0." + "3" * 40
    board = a_chain(grid=PriceGrid(bids=((fine, "1E-7"),), asks=(("2.5e+3", ".5"),))).board
    assert shown(board) == {"bids": [[fine[:38], "0.0000001"]], "asks": [["2500", "0.5"]]}
    board.apply(PAIR, PriceGrid(asks=((fine, "1"),)), NOW_MS)
    assert shown(board) == {"bids": [], "asks": [["0." + "3" * 35 + "4", "1"]]}


def test_an_absent_side_is_shown_empty_and_a_disabled_pair_as_an_empty_object() -> None:
    board = a_chain(grid=PriceGrid(asks=(("2501", "1"),))).board
    assert shown(board) == {"bids": [], "asks": [["2501", "1"]]}
    board.apply(PAIR, PriceGrid(), NOW_MS)
    assert shown(board) == {}
    board.apply(PAIR, GRID, NOW_MS)
    board.apply(PAIR, PriceGrid(bids=(), asks=()), NOW_MS)
    assert shown(board) == {}


def test_a_pair_without_a_price_yet_is_shown_disabled() -> None:
    assert shown(a_chain(grid=None).board) == {}


@pytest.mark.parametrize(
    "grid",
    [
        PriceGrid(bids=(("2501", "1"),), asks=(("2501", "1"),)),
        PriceGrid(bids=(("2502", "1"),), asks=(("2501", "1"),)),
        PriceGrid(bids=(("2499", "1"), ("2500", "1"))),
        PriceGrid(bids=(("x", "1"),)),
        PriceGrid(bids=(("0", "1"),)),
    ],
    ids=["locked", "crossed", "unsorted", "malformed", "zero"],
)
def test_a_grid_that_cannot_be_quoted_disables_its_pair(grid: PriceGrid) -> None:
    board = a_chain().board
    with pytest.raises(InvalidInput, match=r"prices\.WETH/USDC"):
        board.apply(PAIR, grid, NOW_MS)
    assert shown(board) == {}
    assert board.pairs[PAIR].book is None


def test_an_unknown_pair_is_refused() -> None:
    with pytest.raises(InvalidInput, match="WBTC/USDC"):
        a_chain().board.apply("WBTC/USDC", GRID, NOW_MS)


def test_the_first_message_is_the_whole_of_the_four_endpoints() -> None:
    board = a_chain().board
    first = msgspec.json.decode(board.first_message(b'["0x12"]'))
    assert first.keys() == {"tokens", "pairs", "prices", "blacklist"}
    assert first["tokens"] == msgspec.json.decode(board.tokens_body)["tokens"]
    assert first["pairs"] == msgspec.json.decode(board.pairs_body)["pairs"]
    assert first["prices"] == msgspec.json.decode(board.prices_body())["prices"]
    assert first["blacklist"] == ["0x12"]
    assert not decode_stream_message(board.first_message(b"[]")).refused


def test_only_what_changed_is_published() -> None:
    board = a_chain().board
    assert changes(board) is not None
    assert changes(board) is None
    board.apply(PAIR, GRID, NOW_MS)
    assert changes(board) is None
    board.apply(PAIR, OTHER, NOW_MS)
    assert changes(board) == {"prices": {PAIR: {"bids": [["2400", "1"]], "asks": [["2401", "1"]]}}}
    board.apply(PAIR, PriceGrid(), NOW_MS)
    assert changes(board) == {"prices": {PAIR: {}}}


def test_a_stale_price_is_taken_down_and_comes_back_when_it_is_confirmed() -> None:
    board = a_chain().board
    changes(board)
    board.refresh(NOW_MS + 10_000)
    assert changes(board) is None
    board.refresh(NOW_MS + 10_001)
    assert changes(board) == {"prices": {PAIR: {}}}
    assert shown(board) == {}
    board.apply(PAIR, GRID, NOW_MS + 11_000)
    assert changes(board)["prices"][PAIR] != {}


def test_a_halted_pair_is_taken_down_and_comes_back() -> None:
    board = a_chain().board
    board.pairs[PAIR].halted = True
    board.refresh(NOW_MS)
    assert shown(board) == {}
    board.apply(PAIR, OTHER, NOW_MS)
    assert shown(board) == {}
    board.pairs[PAIR].halted = False
    board.refresh(NOW_MS)
    assert shown(board) == {"bids": [["2400", "1"]], "asks": [["2401", "1"]]}


def test_an_unchanged_price_is_published_again_after_a_while() -> None:
    board = a_chain().board
    changes(board)
    board.apply(PAIR, GRID, NOW_MS + 1_000)
    board.mark_for_refresh(NOW_MS + 1_999, 2_000)
    assert changes(board) is None
    board.mark_for_refresh(NOW_MS + 2_000, 2_000)
    assert changes(board, NOW_MS + 2_000)["prices"][PAIR] != {}
    board.mark_for_refresh(NOW_MS + 2_001, 2_000)
    assert changes(board) is None
    board.mark_for_refresh(NOW_MS + 9_000, 2_000)
    assert changes(board) is None, "nobody confirmed it since"


def test_a_withheld_board_shows_nothing() -> None:
    board = a_chain().board
    board.withheld = True
    board.refresh(NOW_MS)
    assert shown(board) == {}
    board.withheld = False
    board.refresh(NOW_MS)
    assert shown(board) != {}


def test_message_is_sent_only_where_it_is_set() -> None:
    board = a_chain(message="maintenance at noon").board
    for body in (board.tokens_body, board.pairs_body, board.prices_body(), board.first_message(b"[]")):
        assert msgspec.json.decode(body)["message"] == "maintenance at noon"
