// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

library Math {
    function least(uint256 a, uint256 b) internal pure returns (uint256) {
        return a < b ? a : b;
    }

    function most(uint256 a, uint256 b) internal pure returns (uint256) {
        return a > b ? a : b;
    }

    function lessOrNone(uint256 a, uint256 b) internal pure returns (uint256) {
        return a > b ? a - b : 0;
    }

    /// a * b / c, rounded up.
    function ceilDiv(uint256 a, uint256 b) internal pure returns (uint256) {
        return a == 0 ? 0 : (a - 1) / b + 1;
    }
}
