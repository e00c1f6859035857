// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Nonces in no order. A nonce belongs to the order that is settled with it first, and is used up by the settlement that
/// closes this order, or invalidated by its owner.
abstract contract Nonces {
    error NonceUsed(uint256 nonce);

    event NonceInvalidated(address indexed owner, uint256 nonce);

    /// The last bit of a use. An order is known by the other bits of its hash.
    uint256 private constant USED = 1;

    /// 0 while a nonce is free, USED alone once it is invalidated; else of the order that it belongs to.
    mapping(address owner => mapping(uint256 nonce => uint256)) private uses;
    /// What is settled of an order that is begun and not closed: raw units of the side that is fixed, or of a schedule the
    /// number of slices with the time of the last << 64.
    mapping(bytes32 orderHash => uint256) private progress;

    /// Whether a nonce is used up or invalidated.
    /// @param account the owner of the nonce.
    /// @param nonce the number that the owner signs in an order.
    /// @return true once no order with this nonce can be settled any more.
    function isNonceUsed(address account, uint256 nonce) public view returns (bool) {
        return uses[account][nonce] & USED != 0;
    }

    /// The state of an order.
    /// @param account the owner of the order.
    /// @param nonce the nonce of the order.
    /// @param orderHash the digest that the owner signs.
    /// @return order that the nonce belongs to, the last bit of its hash cleared; zero where none was settled with it.
    /// @return isUsed whether the nonce is used up or invalidated.
    /// @return done as long as the order is begun and not closed, what is settled of it: raw units of the side that is
    /// fixed, or of a schedule the number of slices with the time of the last << 64.
    function orderState(address account, uint256 nonce, bytes32 orderHash)
        external
        view
        returns (bytes32 order, bool isUsed, uint256 done)
    {
        uint256 use = uses[account][nonce];
        return (bytes32(use & ~USED), use & USED != 0, progress[orderHash]);
    }

    /// What is settled of an order. Reverts with NonceUsed where its nonce is used or another order's.
    function progressOf(address account, uint256 nonce, bytes32 orderHash) internal view returns (uint256) {
        uint256 use = uses[account][nonce];
        if (use == 0) return 0;
        if (use != uint256(orderHash) & ~USED) revert NonceUsed(nonce);
        return progress[orderHash];
    }

    /// Keep that of an order `done` is settled, of which `before` was.
    function advance(
        address account,
        uint256 nonce,
        bytes32 orderHash,
        uint256 before,
        uint256 done,
        bool isClosed
    ) internal {
        uint256 own = uint256(orderHash) & ~USED;
        if (isClosed) {
            uses[account][nonce] = own | USED;
            if (before != 0) delete progress[orderHash];
        } else {
            if (before == 0) uses[account][nonce] = own;
            progress[orderHash] = done;
        }
    }

    function invalidate(address account, uint256 nonce) internal {
        uint256 use = uses[account][nonce];
        if (use & USED != 0) return;
        uses[account][nonce] = use | USED;
        emit NonceInvalidated(account, nonce);
    }
}
