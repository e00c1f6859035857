"""Ten thousand firm quotes over 64 connections: every one valid, unique and kept."""

from pathlib import Path

import msgspec
import pytest
import trio

from cambist.codecs.eip712_orders.nonce_and_meta import firm_user
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.codecs.messages.maker_messages import FirmOrder, decode_firm_response
from cambist.config.settings import Settings
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.signatures import signer
from support.makers.maker_role import (
    CHAIN_ID,
    CONTRACT,
    MAKER,
    USDC,
    WETH,
    firm_request,
    running_maker,
    settings_of,
)

pytestmark = pytest.mark.seldom

QUOTES, CONNECTIONS = 10_000, 64


def rich_settings() -> Settings:
    settings = settings_of(unused_quotes_max=3)
    assert settings.maker
    tokens = {
        token_id: msgspec.structs.replace(token, balance="1000000000")
        for token_id, token in settings.maker.chains[CHAIN_ID].tokens.items()
    }
    return settings_of(unused_quotes_max=3, tokens=tokens)


async def test_ten_thousand_quotes_over_64_connections_are_valid_and_unique(tmp_path: Path) -> None:
    answers: dict[int, FirmOrder] = {}
    waiting = iter(range(1, QUOTES + 1))
    async with running_maker(tmp_path, rich_settings(), connections=CONNECTIONS) as (maker, venue):

        async def ask_on() -> None:
            for number in waiting:
                sells = number % 2
                body = firm_request(
                    makerAsset=USDC if sells else WETH,
                    takerAsset=WETH if sells else USDC,
                    takerAmount=str(10**15 + number if sells else 10**6 + number),
                    userAddress=f"0x{number:040x}",
                )
                response = await venue.ask("POST", "/firm", body)
                assert response.status == 200, response.body
                order = decode_firm_response(response.body).order
                assert isinstance(order, FirmOrder)
                answers[number] = order

        async with trio.open_nursery() as nursery:
            for _ in range(CONNECTIONS):
                nursery.start_soon(ask_on)
        assert venue.client.statistics().dialled == CONNECTIONS
        assert len(maker.chains[CHAIN_ID].desk.ledger) == QUOTES
        promised = {holding.token: holding.reserved for holding in maker.chains[CHAIN_ID].holdings}

    assert len(answers) == QUOTES
    assert len({order.nonce_and_meta for order in answers.values()}) == QUOTES
    assert len({int(order.nonce_and_meta) >> 160 for order in answers.values()}) == QUOTES
    given = dict.fromkeys(promised, 0)
    digest_of = RFQ_ORDER.compiled.digest_for(
        rfq_domain_separator("AUGUSTUS RFQ", CHAIN_ID, parse_hex(CONTRACT, ""))
    )
    for number, order in answers.items():
        members = msgspec.to_builtins(order)
        signature = parse_hex(members.pop("signature"), "")
        assert signer(digest_of(RFQ_ORDER.from_wire(members)), signature) == parse_hex(MAKER, "")
        assert firm_user(int(order.nonce_and_meta)) == number.to_bytes(20, "big")
        given[parse_hex(order.maker_asset, "")] += int(order.maker_amount)
    assert given == promised
