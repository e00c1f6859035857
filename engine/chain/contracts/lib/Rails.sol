// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Bounds of a contract that moves what others allow it: a pause, on from the start, and a cap for each token, zero from
/// the start. Guardrails says who changes them.
abstract contract Rails {
    error Paused();
    error CapExceeded(address token, uint256 amount, uint256 left);

    /// Raw units; the largest cap is none. `given` is counted in the hour since 1970 that it belongs to.
    struct Rail {
        uint112 cap;
        uint112 given;
        uint32 hour;
    }

    /// Whether everything is stopped.
    bool public isPaused = true;
    /// The account that may stop everything; zero for none.
    address public pauser;
    mapping(address token => Rail) internal rails;

    /// The bound of a token.
    /// @param token the address of the token.
    /// @return cap most raw units of the token that may be given; type(uint256).max for no bound.
    function capOf(address token) public view returns (uint256 cap) {
        cap = rails[token].cap;
        if (cap == type(uint112).max) cap = type(uint256).max;
    }

    /// The bound for one call. Reverts with Paused or CapExceeded.
    function checkCall(address token, uint256 amount) internal view {
        if (isPaused) revert Paused();
        uint256 cap = capOf(token);
        if (amount > cap) revert CapExceeded(token, amount, cap);
    }

    /// The bound for all calls of an hour: a stolen key gives no more before the theft is noticed. Reverts with Paused or
    /// CapExceeded.
    function countGiven(address token, uint256 amount) internal {
        if (isPaused) revert Paused();
        Rail storage rail = rails[token];
        uint112 cap = rail.cap;
        if (cap == type(uint112).max) return;
        uint32 hour = uint32(block.timestamp / 1 hours);
        uint112 given = rail.hour == hour ? rail.given : 0;
        uint256 left = cap > given ? cap - given : 0;
        if (amount > left) revert CapExceeded(token, amount, left);
        (rail.given, rail.hour) = (given + uint112(amount), hour);
    }
}
