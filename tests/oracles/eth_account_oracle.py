"""eth-account and eth-abi as a process of .venv-peers: one JSON request a line, one JSON answer a line."""

# pyright: reportMissingImports=false
import json
import sys
from typing import Any

from eth_abi import encode
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils import keccak


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["ask"] == "typed_data":
        signable = encode_typed_data(full_message=request["document"])
        signed = Account.sign_message(signable, request["key"])
        digest = keccak(b"\x19" + signable.version + signable.header + signable.body)
        return {
            "digest": digest.hex(),
            "signature": signed.signature.hex(),
            "separator": signable.header.hex(),
        }
    if request["ask"] == "read":  # the digest of a document as it stands, or the words of the refusal
        try:
            signable = encode_typed_data(full_message=request["document"])
        except Exception as error:  # noqa: BLE001 - errors of many kinds, all of them refusals
            return {"refused": f"{type(error).__name__}: {error}"}
        digest = keccak(b"\x19" + signable.version + signable.header + signable.body)
        return {"digest": "0x" + digest.hex()}
    if request["ask"] == "abi":
        return {"encoded": encode(request["types"], _from_json(request["values"])).hex()}
    if request["ask"] == "transaction":
        transaction = Account.sign_transaction(request["members"], request["key"])
        return {"raw": transaction.raw_transaction.hex(), "hash": transaction.hash.hex()}
    if request["ask"] == "delegating":  # EIP-7702: each authorization is signed by a key of its own
        signed = [Account.sign_authorization(one["of"], one["key"]) for one in request["authorizations"]]
        members = request["members"] | {"type": 4, "authorizationList": signed}
        transaction = Account.sign_transaction(members, request["key"])
        return {"raw": transaction.raw_transaction.hex(), "hash": transaction.hash.hex()}
    if request["ask"] == "keystore":
        return {"key": bytes(Account.decrypt(request["text"], request["password"])).hex()}
    if request["ask"] == "mnemonic":
        Account.enable_unaudited_hdwallet_features()
        paths = [f"m/44'/60'/0'/0/{number}" for number in range(request["count"])]
        keys = [Account.from_mnemonic(request["mnemonic"], account_path=path).key for path in paths]
        return {"keys": [bytes(key).hex() for key in keys]}
    raise ValueError(request["ask"])


def _from_json(value: Any) -> Any:
    """A JSON value with lists as tuples, `hex:...` as bytes, `int:...` as integers."""
    if isinstance(value, list):
        return tuple(map(_from_json, value))
    if isinstance(value, str) and value.startswith("hex:"):
        return bytes.fromhex(value[4:])
    if isinstance(value, str) and value.startswith("int:"):
        return int(value[4:])
    return value


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()
