"""Errors (spec 1.25): each of them, word for word, is a row of our catalogue."""

import pytest

from cambist.codecs.messages.resource_messages import trading_error_body
from cambist.config import errors
from cambist.config.catalogue import errors_document
from cambist.config.errors import RequestError, catalogue_rows
from support.delta.error_rows import SPEC_ROWS

CASES = [
    pytest.param(int(cell[:3]), message, kind, id=f"{cell[:3]} {message} {kind.__name__}")
    for cell, said in SPEC_ROWS
    for message, kind in said.items()
]

SPEC_HANDLING = {
    errors.MissingSlippage: "add `slippage` in basis points and retry",
    errors.NoRoute: "check decimals; retry with `mode=ALL`; reduce size",
    errors.TokenNotSupported: "check support before quoting",
    errors.InvalidToken: "use the mixed-case placeholder",
    errors.UnsupportedChain: "check GET /chains",
    errors.RouteValidationFailed: "pass the route verbatim",
    errors.MissingDeadline: "pass Unix seconds",
    errors.InvalidTWAPParams: "provide all required fields",
    errors.InvalidTWAPBuyParams: "provide all required fields",
    errors.InvalidTWAPSrcAmount: "requote the per-slice amount",
    errors.InvalidTWAPBuyDestAmount: "requote the per-slice amount",
    errors.InvalidExternalOrderParams: "supply both",
    errors.InvalidProductiveOrderParams: "supply it",
    errors.PermitRequired: "attach a signed payload; a separate approval is not accepted for these tokens",
    errors.InvalidSignature: "sign `toSign` exactly; submit `toSign.value`",
    errors.OrderExpired: "rebuild or use a later deadline",
    errors.InsufficientAllowance: "approve the Delta spender, not the Market router",
    errors.InsufficientBalance: "requote and rebuild",
    errors.TwapDeadlineTooShort: "extend deadline or reduce slices or interval",
    errors.TwapTotalTooSmall: "raise total or lower `numSlices`",
    errors.OrderAlreadySettled: "cancel only PENDING, AWAITING_SIGNATURE, ACTIVE, SUSPENDED orders",
    errors.TooManyOrderIds: "chunk to at most 100",
    errors.InvalidPriceRoute: "requote and pass verbatim",
    errors.StalePriceRoute: "requote and pass verbatim",
    errors.PartnerNotAllowed: "drop the parameter",
    errors.RateLimited: "back off and retry",
}
"""The third column. The cancel signature's is ours: the table speaks of a payload, we name where it is."""

ERROR_TYPES = {
    errors.MissingSlippage: "MissingSlippage",
    errors.NoRoute: "NoRoute",
    errors.TokenNotSupported: "TokenNotSupported",
    errors.InvalidToken: "InvalidToken",
    errors.UnsupportedChain: "UnsupportedChain",
    errors.RouteValidationFailed: "RouteValidationFailed",
    errors.MissingDeadline: "MissingDeadline",
    errors.InvalidTWAPParams: "InvalidTWAPParams",
    errors.InvalidTWAPBuyParams: "InvalidTWAPBuyParams",
    errors.InvalidTWAPSrcAmount: "InvalidTWAPSrcAmount",
    errors.InvalidTWAPBuyDestAmount: "InvalidTWAPBuyDestAmount",
    errors.InvalidExternalOrderParams: "InvalidExternalOrderParams",
    errors.InvalidProductiveOrderParams: "InvalidProductiveOrderParams",
    errors.PermitRequired: "PermitRequired",
    errors.InvalidSignature: "InvalidSignature",
    errors.InvalidCancelSignature: "InvalidSignature",
    errors.OrderExpired: "OrderExpired",
    errors.InsufficientAllowance: "InsufficientAllowance",
    errors.InsufficientBalance: "InsufficientBalance",
    errors.TwapDeadlineTooShort: "TwapDeadlineTooShort",
    errors.TwapTotalTooSmall: "TwapTotalTooSmall",
    errors.OrderAlreadySettled: "OrderAlreadySettled",
    errors.TooManyOrderIds: "TooManyOrderIds",
    errors.InvalidPriceRoute: "InvalidPriceRoute",
    errors.StalePriceRoute: "StalePriceRoute",
    errors.PartnerNotAllowed: "PartnerNotAllowed",
    errors.RateLimited: "RateLimited",
}
"""Tags that clients branch on: the message, in CamelCase where it is a sentence
(choices.md#requests-and-errors)."""


@pytest.mark.parametrize(("status", "message", "kind"), CASES)
def test_row_carries_the_specs_status_and_message(
    status: int, message: str, kind: type[RequestError]
) -> None:
    error = kind("what was wrong", message=message)
    assert error.status == status
    assert error.message == message
    assert str(error) == f"{message}: what was wrong"


@pytest.mark.parametrize(("status", "message", "kind"), CASES)
def test_row_is_told_by_its_tag(status: int, message: str, kind: type[RequestError]) -> None:
    assert kind.error_type == ERROR_TYPES[kind]
    assert trading_error_body(kind(message=message), "request-1").error_type == ERROR_TYPES[kind]


@pytest.mark.parametrize(("status", "message", "kind"), CASES)
def test_row_is_in_the_served_catalogue(status: int, message: str, kind: type[RequestError]) -> None:
    assert kind in catalogue_rows()
    (row,) = (
        row
        for row in errors_document()["errors"]
        if (row["match"], row["endpoint"]) == (message, kind.endpoint)
    )
    assert (row["status"], row["cause"], row["fix"]) == (status, kind.cause, kind.fix)


@pytest.mark.parametrize(
    ("kind", "handling"), SPEC_HANDLING.items(), ids=[kind.__name__ for kind in SPEC_HANDLING]
)
def test_fix_starts_with_the_specs_handling(kind: type[RequestError], handling: str) -> None:
    assert kind.fix.startswith(handling)


def test_both_signature_rows_have_one_tag_for_clients() -> None:
    assert (
        errors.InvalidCancelSignature.error_type == errors.InvalidSignature.error_type == "InvalidSignature"
    )
    assert errors.InvalidCancelSignature.endpoint == "POST /v2/delta/orders/cancel"


def test_a_rate_limited_caller_is_told_when_to_come_back() -> None:
    assert errors.RateLimited.retry_after_s == 1


def test_table_here_is_as_long_as_the_specs() -> None:
    assert len(SPEC_ROWS) == 24
