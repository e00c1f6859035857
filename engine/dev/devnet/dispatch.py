"""The JSON-RPC 2.0 dispatcher: calls, batches, notifications, and errors for invalid requests.

A batch is answered call by call; once its answers exceed DEVNET_ANSWER_BYTES_MAX, the remaining calls get an
error, as on geth.

Source: JSON-RPC 2.0.
"""

from decimal import Decimal

import structlog

from ....codecs.messages.wire import decoder, encode
from ....config import limits
from ....config.errors import ChainError, InvalidInput
from .facade import Methods
from .faults import (
    INTERNAL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_UNKNOWN,
    TOO_LARGE,
    RpcFault,
    fault_of,
    unreadable,
)
from .parameters import decoded

_decode = decoder(object, bytes_max=limits.DEVNET_REQUEST_BYTES_MAX)
_log = structlog.get_logger("cambist.devnet")
_NAME_CHARS_MAX = 64


async def answer(body: bytes, methods: Methods) -> bytes:
    """Answer a JSON-RPC request, a call or a batch; the answer is empty if all calls are notifications.

    The function raises no errors: the answer reports them to the client.

    Args:
        body: untrusted bytes; should be JSON of a call or of a list of calls.
        methods: the methods that may be called, by name.
    """
    try:
        request = _decode(body)
    except InvalidInput as error:
        return error_body(unreadable(error))
    if not isinstance(request, list):
        return await _answer_call(request, methods)
    if not request:
        return error_body(RpcFault(INVALID_REQUEST, "empty batch"))
    if len(request) > limits.DEVNET_BATCH_CALLS_MAX:
        return error_body(
            RpcFault(INVALID_REQUEST, f"batch too large: at most {limits.DEVNET_BATCH_CALLS_MAX} calls")
        )
    answers: list[bytes] = []
    size = 0
    # One call after the other: a batch may send transactions, and read what the earlier calls have changed.
    for call in request:
        if size > limits.DEVNET_ANSWER_BYTES_MAX:
            answers.append(error_body(_too_large(), _id(call)))
        elif answered := await _answer_call(call, methods):
            size += len(answered)
            answers.append(answered)
    return b"[%b]" % b",".join(answers) if answers else b""


def error_body(fault: RpcFault, call_id: object = None) -> bytes:
    """Encode the JSON-RPC answer to a failed call or an invalid request.

    Args:
        call_id: id of the failed call; None if the request has no readable id.
    """
    error: dict[str, object] = {"code": fault.code, "message": fault.message}
    if fault.data is not None:
        error["data"] = fault.data
    return encode({"jsonrpc": "2.0", "id": call_id, "error": error})


async def _answer_call(call: object, methods: Methods) -> bytes:
    """Answer a single JSON-RPC call; the answer to a notification, a valid call without id, is empty."""
    try:
        name, parameters = _read(call)
    except RpcFault as fault:
        return error_body(fault, _id(call))
    is_notification = isinstance(call, dict) and "id" not in call
    try:
        result = await _result(name, parameters, methods)
        body = encode({"jsonrpc": "2.0", "id": _id(call), "result": result})
        if len(body) > limits.DEVNET_ANSWER_BYTES_MAX:
            raise _too_large()
    except RpcFault as fault:
        body = error_body(fault, _id(call))
    return b"" if is_notification else body


async def _result(name: str, parameters: object, methods: Methods) -> object:
    method = methods.get(name)
    if method is None:
        words = f"the method {name[:_NAME_CHARS_MAX]} does not exist/is not available"
        raise RpcFault(METHOD_UNKNOWN, words)
    if not isinstance(parameters, list):
        raise RpcFault(INVALID_PARAMS, "non-array args")
    wanted = decoded(parameters, method.takes)
    try:
        return await method.answer(wanted)
    except ChainError as error:
        raise fault_of(error) from None
    except RpcFault:
        raise
    except Exception as error:  # noqa: BLE001 - a bug of the node: answered and logged
        _log.error("a method failed", method=name, exc_info=error)
        raise RpcFault(INTERNAL, "internal error") from None


def _read(call: object) -> tuple[str, object]:
    """Parse the method name and the parameters of a JSON-RPC call.

    Raises:
        RpcFault: error -32600: the value is not a call of JSON-RPC 2.0.
    """
    if not isinstance(call, dict):
        raise RpcFault(INVALID_REQUEST, "invalid request: expected an object")
    if call.get("jsonrpc") != "2.0":
        raise RpcFault(INVALID_REQUEST, 'invalid request: jsonrpc: expected "2.0"')
    if not isinstance(call.get("id"), str | int | Decimal | None) or isinstance(call.get("id"), bool):
        raise RpcFault(INVALID_REQUEST, "invalid request: id: expected a string, a number or null")
    name = call.get("method")
    if not isinstance(name, str):
        raise RpcFault(INVALID_REQUEST, "invalid request: method: expected a string")
    parameters = call.get("params")
    return name, [] if parameters is None else parameters


def _id(call: object) -> object:
    found = call.get("id") if isinstance(call, dict) else None
    return found if isinstance(found, str | int | Decimal) and not isinstance(found, bool) else None


def _too_large() -> RpcFault:
    return RpcFault(TOO_LARGE, f"response too large: at most {limits.DEVNET_ANSWER_BYTES_MAX} bytes")
