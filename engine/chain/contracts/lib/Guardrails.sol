// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Owned} from "./Owned.sol";
import {Rails} from "./Rails.sol";

/// Who changes the bounds: the owner all of them; a pauser can stop everything and nothing else, and the owner lets it go
/// on.
abstract contract Guardrails is Rails, Owned {
    error NotPauser();
    error InvalidCap(uint256 cap);

    event PauseChanged(bool isPaused);
    event PauserChanged(address indexed pauser);
    event CapChanged(address indexed token, uint256 cap);

    /// Stop everything, or let it go on. By the owner; reverts with NotOwner.
    /// @param paused true to stop.
    function setPaused(bool paused) external onlyOwner {
        isPaused = paused;
        emit PauseChanged(paused);
    }

    /// Name the account that may stop everything; zero for none. By the owner; reverts with NotOwner.
    /// @param pauser_ the account.
    function setPauser(address pauser_) external onlyOwner {
        pauser = pauser_;
        emit PauserChanged(pauser_);
    }

    /// Stop everything. By the pauser or the owner; reverts with NotPauser.
    function pause() external {
        if (msg.sender != pauser && msg.sender != owner) revert NotPauser();
        isPaused = true;
        emit PauseChanged(true);
    }

    /// Bound how much of a token may be given. By the owner; reverts with NotOwner or InvalidCap.
    /// @param token the address of the token.
    /// @param cap raw units: type(uint256).max for no bound, else below 2^112 - 1.
    function setCap(address token, uint256 cap) external onlyOwner {
        if (cap >= type(uint112).max && cap != type(uint256).max) revert InvalidCap(cap);
        rails[token].cap = cap > type(uint112).max ? type(uint112).max : uint112(cap);
        emit CapChanged(token, cap);
    }

    /// How much of a token was given in the present hour of the clock. Tokens without a bound are not counted.
    /// @param token the address of the token.
    /// @return raw units of the token; 0 where they are not counted.
    function givenOf(address token) external view returns (uint256) {
        Rail memory rail = rails[token];
        return rail.hour == block.timestamp / 1 hours ? rail.given : 0;
    }
}
