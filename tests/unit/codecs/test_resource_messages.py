"""Resources and error bodies on the wire."""

import json
from decimal import Decimal

import msgspec
import pytest

from cambist.codecs.messages.resource_messages import (
    AdaptersContracts,
    AdaptersQuery,
    ChainContracts,
    ChainEntry,
    ContractsDocument,
    DocumentMeta,
    ErrorRow,
    ErrorsDocument,
    PartnerFee,
    ServedRoles,
    TokenEntry,
    TokenList,
    UserToken,
    UserTokens,
    decode_adapters_query,
    decode_partner_fee_query,
    error_status,
    maker_error_body,
    otc_error_body,
    trading_error_body,
)
from cambist.codecs.messages.wire import encode
from cambist.config import catalogue
from cambist.config.chains import SHIPPED_CHAINS
from cambist.config.errors import (
    AuthError,
    CambistError,
    ChainError,
    ConfigError,
    InvalidInput,
    InvalidToken,
    MakerError,
    MissingDeadline,
    NoRoute,
    PolicyError,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TransitionError,
    UnsupportedChain,
)

SECRET = "postgres://user:hunter2@db/cambist"


def test_chains() -> None:
    entry = ChainEntry(31337, "devnet", delta=True, market=True, rfq=False)
    assert encode((entry,)) == (
        b'[{"chainId":31337,"name":"devnet","delta":true,"market":true,"rfq":false,"explorerUrl":null}]'
    )


def test_tokens() -> None:
    assert encode(TokenList((TokenEntry("WETH", "0xa", 18, 1),))) == (
        b'{"tokens":[{"symbol":"WETH","address":"0xa","decimals":18,"network":1}]}'
    )
    assert encode(UserTokens((UserToken("WETH", "0xa", 18, 1, "5", "6"),))) == (
        b'{"tokens":[{"symbol":"WETH","address":"0xa","decimals":18,"network":1,"balance":"5","allowance":"6"}]}'
    )


def test_partner_fee() -> None:
    fee = PartnerFee(Decimal("0.01"), "0xa", take_surplus=False)
    assert encode(fee) == b'{"partnerFee":0.01,"partnerAddress":"0xa","takeSurplus":false}'
    assert decode_partner_fee_query(b"partner=me").partner == "me"
    assert decode_partner_fee_query(b"").partner is None


def test_adapters() -> None:
    contracts = AdaptersContracts("0x1", "0x2", "0x3", "0x4", {"Rfq": "0x5"})
    assert encode(contracts) == (
        b'{"AugustusSwapper":"0x1","TokenTransferProxy":"0x2","AugustusRFQ":"0x3","ParaswapDelta":"0x4",'
        b'"Executors":{"Rfq":"0x5"}}'
    )
    assert decode_adapters_query(b"chainId=1&version=6.2") == AdaptersQuery(chain_id=1, version="6.2")
    assert decode_adapters_query(b"network=1").network == 1


def test_contracts_document() -> None:
    chain = ChainContracts("devnet", "0x1", None, "0x3", "0x4", "0x5")
    document = ContractsDocument(DocumentMeta("contracts", "1.0"), {"31337": chain})
    told = ServedRoles(delta=True, market=True, rfq=False)
    assert b'"0x5","served":{"delta":true,"market":true,"rfq":false}}' in encode(
        ChainContracts("devnet", "0x1", None, "0x3", "0x4", "0x5", told)
    )
    assert encode(document) == (
        b'{"_meta":{"name":"contracts","version":"1.0"},"chains":{"31337":{"name":"devnet",'
        b'"augustusV6_2":"0x1","delta":null,"augustusRFQ":"0x3","executor":"0x4","feeClaimer":"0x5"}}}'
    )


def test_the_shipped_documents_read_back() -> None:
    errors = msgspec.json.decode(json.dumps(catalogue.errors_document()), type=ErrorsDocument)
    assert (
        ErrorRow(
            endpoint=MissingDeadline.endpoint,
            status=400,
            match="missing deadline",
            cause=MissingDeadline.cause,
            fix="pass Unix seconds",
            docs="docs/reference/errors.md",
        )
        in errors.errors
    )
    contracts = msgspec.json.decode(
        json.dumps(catalogue.contracts_document(SHIPPED_CHAINS)), type=ContractsDocument
    )
    assert contracts.chains["1"].rfq is None


def test_a_trading_error_says_the_same_under_three_keys() -> None:
    error = InvalidToken("0x0 is not the native placeholder", message="Invalid destToken")
    text = "Invalid destToken: 0x0 is not the native placeholder"
    body = json.loads(encode(trading_error_body(error, "r1")))
    assert body == {
        "errorType": "InvalidToken",
        "details": text,
        "description": text,
        "error": text,
        "requestId": "r1",
    }
    assert list(body) == ["errorType", "details", "description", "error", "requestId"]


def test_the_bodies_of_the_other_surfaces() -> None:
    error = UnsupportedChain(got=5)
    assert encode(otc_error_body(error, "r1")) == (
        b'{"errorType":"UnsupportedChain","details":"Unsupported chain: got 5","requestId":"r1"}'
    )
    assert encode(maker_error_body(error)) == b'{"error":"Unsupported chain: got 5"}'


@pytest.mark.parametrize(
    ("error", "status", "error_type"),
    [
        (InvalidInput("x"), 400, "InvalidInput"),
        (NoRoute(), 400, "NoRoute"),
        (UnsupportedChain(), 422, "UnsupportedChain"),
        (AuthError("X-AUTH-TIMESTAMP", "stale"), 401, "Unauthorized"),
        (ChainError(SECRET), 503, "ServiceUnavailable"),
        (StoreUnavailable(SECRET), 503, "ServiceUnavailable"),
        (StoreFull(SECRET), 503, "ServiceUnavailable"),
        (StoreError(SECRET), 500, "InternalError"),
        (MakerError(SECRET), 503, "ServiceUnavailable"),
        (PolicyError(SECRET), 500, "InternalError"),
        (TransitionError(SECRET), 500, "InternalError"),
        (ConfigError("db", SECRET), 500, "InternalError"),
        (CambistError(SECRET), 500, "InternalError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, CambistError) else None,
)
def test_the_status_and_type_of_an_error_and_that_internals_stay_inside(
    error: CambistError, status: int, error_type: str
) -> None:
    assert error_status(error) == status
    body = trading_error_body(error, "r1")
    assert body.error_type == error_type
    for written in (body, otc_error_body(error, "r1"), maker_error_body(error)):
        assert b"hunter2" not in encode(written)


def test_an_authentication_error_names_the_header() -> None:
    error = AuthError("X-AUTH-TIMESTAMP", "60 seconds off")
    assert maker_error_body(error).error == "X-AUTH-TIMESTAMP: 60 seconds off"
