"""Calldata of yield vaults (ERC-4626), and the decoding of a vault's answers.

A vault is a token whose shares stand for a part of the vault's assets. Addresses have 20 bytes. Amounts are
raw units: `shares` of the vault's own token, `assets` of the token that the vault holds.

Source: EIP-4626.
"""

from .abi import WORD_BYTES, decode_address, selector, uint_word

ASSET = selector("asset()")
CONVERT_TO_ASSETS = selector("convertToAssets(uint256)")
PREVIEW_REDEEM = selector("previewRedeem(uint256)")
PREVIEW_WITHDRAW = selector("previewWithdraw(uint256)")


def convert_to_assets(shares: int) -> bytes:
    """Encode a read of the assets that shares stand for, before any fee of a withdrawal."""
    return CONVERT_TO_ASSETS + uint_word(shares)


def preview_redeem(shares: int) -> bytes:
    """Encode a read of the assets that the vault gives for shares, after the fees of the withdrawal."""
    return PREVIEW_REDEEM + uint_word(shares)


def preview_withdraw(assets: int) -> bytes:
    """Encode a read of the shares that the vault takes for assets, including the fees of the withdrawal."""
    return PREVIEW_WITHDRAW + uint_word(assets)


def vault_amount(answer: bytes | Exception) -> int | None:
    """Decode the amount in a vault's answer; None if the vault gave no amount.

    Args:
        answer: return data of the call, or the error of a failed call.
    """
    if isinstance(answer, Exception) or len(answer) < WORD_BYTES:
        return None
    return int.from_bytes(answer[:WORD_BYTES], "big")


def vault_asset(answer: bytes | Exception) -> bytes | None:
    """Decode the address of a vault's asset, 20 bytes; None if the vault gave no address.

    Args:
        answer: return data of the call, or the error of a failed call.
    """
    if isinstance(answer, Exception) or len(answer) < WORD_BYTES or any(answer[:12]):
        return None
    return decode_address(answer)
