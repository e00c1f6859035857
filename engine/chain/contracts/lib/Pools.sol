// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// What orders that are settled against each other have given of each token, and what is there to pay them.
///
/// A list ends with an empty pool. It is in memory: a pool is changed where it stands.
library Pools {
    error Overdrawn(address token, uint256 paid, uint256 left);

    /// `kept` is the token's balance that is no part of the pool.
    struct Pool {
        address token;
        uint256 kept;
        uint256 amount;
    }

    /// An order opens two at most.
    function forOrders(uint256 count) internal pure returns (Pool[] memory) {
        return new Pool[](2 * count + 1);
    }

    /// A token's pool, or the first empty one.
    function find(Pool[] memory pools, address token) internal pure returns (Pool memory) {
        uint256 i = 0;
        while (pools[i].token != token && pools[i].token != address(0)) i++;
        return pools[i];
    }

    function has(Pool[] memory pools, address token) internal pure returns (bool) {
        return find(pools, token).token != address(0);
    }

    function open(Pool[] memory pools, address token) internal pure {
        find(pools, token).token = token;
    }

    function draw(Pool[] memory pools, address token, uint256 paid) internal pure {
        Pool memory pool = find(pools, token);
        if (paid > pool.amount) revert Overdrawn(token, paid, pool.amount);
        pool.amount -= paid;
    }
}
