// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Nonces in no order, a bit for each: used up by what closes an order, or invalidated by their owner.
abstract contract Nonces {
    error NonceUsed(uint256 nonce);

    event NonceInvalidated(address indexed owner, uint256 nonce);

    /// A bit per nonce that is used up or invalidated; nonce >> 8 is the word.
    mapping(address owner => mapping(uint256 word => uint256)) public nonceBitmap;
    /// The order that a nonce belongs to once a part of it is filled.
    mapping(address owner => mapping(uint256 nonce => bytes32)) public orderOfNonce;

    /// Invalidate nonces of the caller's.
    function invalidateNonces(uint256[] calldata nonces) external {
        invalidate(msg.sender, nonces);
    }

    function isNonceUsed(address account, uint256 nonce) public view returns (bool) {
        return nonceBitmap[account][nonce >> 8] & 1 << (nonce & 0xFF) != 0;
    }

    /// The nonce is used up by what closes the order; until then it belongs to the order that began with it.
    function takeNonce(address account, uint256 nonce, bytes32 orderHash, bool isClosed) internal {
        if (isNonceUsed(account, nonce)) revert NonceUsed(nonce);
        bytes32 order = orderOfNonce[account][nonce];
        if (order != 0 && order != orderHash) revert NonceUsed(nonce);
        if (isClosed) {
            nonceBitmap[account][nonce >> 8] |= 1 << (nonce & 0xFF);
        } else if (order == 0) {
            orderOfNonce[account][nonce] = orderHash;
        }
    }

    function invalidate(address account, uint256[] calldata nonces) internal {
        for (uint256 i = 0; i < nonces.length; i++) {
            uint256 nonce = nonces[i];
            if (isNonceUsed(account, nonce)) continue;
            nonceBitmap[account][nonce >> 8] |= 1 << (nonce & 0xFF);
            emit NonceInvalidated(account, nonce);
        }
    }
}
