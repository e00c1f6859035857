// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Owned} from "./Owned.sol";

/// Bounds that are on until the owner lifts them: the contract starts paused, and no token may be given until it has
/// a cap of its own. A pauser can stop everything and nothing else: what is stopped, the owner lets go on.
abstract contract Guardrails is Owned {
    error Paused();
    error NotPauser();
    error InvalidCap(uint256 cap);
    error CapExceeded(address token, uint256 amount, uint256 left);

    event PauseChanged(bool isPaused);
    event PauserChanged(address indexed pauser);
    event CapChanged(address indexed token, uint256 cap);

    /// Raw units; the largest cap is none. `given` is counted in the hour since 1970 that it belongs to.
    struct Rail {
        uint112 cap;
        uint112 given;
        uint32 hour;
    }

    bool public isPaused = true;
    address public pauser;
    mapping(address token => Rail) private rails;

    function setPaused(bool paused) external onlyOwner {
        isPaused = paused;
        emit PauseChanged(paused);
    }

    function setPauser(address pauser_) external onlyOwner {
        pauser = pauser_;
        emit PauserChanged(pauser_);
    }

    /// Stop everything. By the pauser or the owner.
    function pause() external {
        if (msg.sender != pauser && msg.sender != owner) revert NotPauser();
        isPaused = true;
        emit PauseChanged(true);
    }

    /// Most raw units of a token that may be given; type(uint256).max for no bound, else below 2^112 - 1.
    function setCap(address token, uint256 cap) external onlyOwner {
        if (cap >= type(uint112).max && cap != type(uint256).max) revert InvalidCap(cap);
        rails[token].cap = cap > type(uint112).max ? type(uint112).max : uint112(cap);
        emit CapChanged(token, cap);
    }

    function capOf(address token) public view returns (uint256 cap) {
        cap = rails[token].cap;
        if (cap == type(uint112).max) cap = type(uint256).max;
    }

    /// What was given of a token in the hour that now is, in raw units, where that is counted.
    function givenOf(address token) external view returns (uint256) {
        Rail memory rail = rails[token];
        return rail.hour == block.timestamp / 1 hours ? rail.given : 0;
    }

    /// Of one call.
    function checkCall(address token, uint256 amount) internal view {
        if (isPaused) revert Paused();
        uint256 cap = capOf(token);
        if (amount > cap) revert CapExceeded(token, amount, cap);
    }

    /// Of all calls of an hour: a key that is stolen gives no more before it is noticed.
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
