"""Init code that deploys a wallet in a simulated call and asks it whether a signature is its own (ERC-6492).

    call the factory with the call that the signature holds -> isValidSignature at the owner's address
        -> revert with the answer's first word

The code is for an `eth_call` that creates a contract. It ends with a revert in every case: nodes return the
data of a revert as it is, and what a constructor returns in different ways.

Source: ERC-6492, "Verification"; EIP-1271; Yellow Paper, appendix H (opcodes).
"""

from ...crypto.eip1271 import MAGIC_VALUE4, WrappedSignature, is_valid_signature_calldata

_CODECOPY, _CALL, _STATICCALL, _GAS, _POP = b"\x39", b"\xf1", b"\xfa", b"\x5a", b"\x50"
_LT, _AND, _MUL, _MLOAD, _MSTORE, _RETURNDATASIZE, _REVERT = (
    b"\x10",
    b"\x16",
    b"\x02",
    b"\x51",
    b"\x52",
    b"\x3d",
    b"\xfd",
)
_WORD = 32


def signature_probe(wrapped: WrappedSignature, owner: bytes, digest32: bytes) -> bytes:
    """Encode the init code that asks a wallet, which its factory deploys first, whether it signed a digest.

    Args:
        owner: address of the wallet, 20 bytes.
    """
    question = is_valid_signature_calldata(digest32, wrapped.signature)

    def code(data_at: int) -> bytes:
        asked_at = data_at + len(wrapped.factory_call)
        return b"".join(
            (
                _copied(data_at, len(wrapped.factory_call)),
                *(_push(number) for number in (0, 0, len(wrapped.factory_call), 0, 0)),
                _push_address(wrapped.factory), _GAS, _CALL, _POP,
                _copied(asked_at, len(question)),
                # The answer's place is behind the question. A short answer may leave bytes of the deploying
                # call there, which do not count: its size decides, too.
                *(_push(number) for number in (_WORD, len(question), len(question), 0)),
                _push_address(owner), _GAS, _STATICCALL,
                _RETURNDATASIZE, _push(_WORD - 1), _LT, _AND,
                _push(len(question)), _MLOAD, _MUL, _push(0), _MSTORE,
                _push(_WORD), _push(0), _REVERT,
            )
        )  # fmt: skip

    return code(len(code(0))) + wrapped.factory_call + question


def is_probe_yes(reverted: bytes) -> bool:
    """Whether the data with which a probe reverted says that the wallet signed."""
    return reverted == MAGIC_VALUE4.ljust(_WORD, b"\0")


def _push(number: int) -> bytes:
    return b"\x61" + number.to_bytes(2, "big")  # PUSH2, so that the code's length depends on no number


def _push_address(address: bytes) -> bytes:
    return b"\x73" + address


def _copied(at: int, length: int) -> bytes:
    """Copy bytes that follow the code to the start of memory."""
    return _push(length) + _push(at) + _push(0) + _CODECOPY
