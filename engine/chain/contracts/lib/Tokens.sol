// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

interface IERC20 {
    function balanceOf(address owner) external view returns (uint256);
    function allowance(address owner, address spender) external view returns (uint256);
    function approve(address spender, uint256 amount) external returns (bool);
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

interface IWETH is IERC20 {
    function deposit() external payable;
    function withdraw(uint256 amount) external;
}

/// Calls of ERC-20 tokens that also work with those that return nothing. Each says whether it succeeded; the
/// caller reverts in its own words.
library Tokens {
    /// What clients write where a token's address stands, for the native token.
    address internal constant NATIVE = 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE;

    function send(address token, address to, uint256 amount) internal returns (bool) {
        return succeeds(token, abi.encodeCall(IERC20.transfer, (to, amount)));
    }

    function pull(address token, address from, address to, uint256 amount) internal returns (bool) {
        return succeeds(token, abi.encodeCall(IERC20.transferFrom, (from, to, amount)));
    }

    /// Let `spender` take `amount` at least. Some tokens only change an allowance from or to zero.
    function allow(address token, address spender, uint256 amount) internal returns (bool) {
        if (IERC20(token).allowance(address(this), spender) >= amount) return true;
        return succeeds(token, abi.encodeCall(IERC20.approve, (spender, type(uint256).max)))
            || (
                succeeds(token, abi.encodeCall(IERC20.approve, (spender, 0)))
                    && succeeds(token, abi.encodeCall(IERC20.approve, (spender, amount)))
            );
    }

    function balance(address token, address owner) internal view returns (uint256) {
        return IERC20(token).balanceOf(owner);
    }

    /// A call succeeded if it did not revert, and returned either true or, being a contract, nothing.
    function succeeds(address token, bytes memory data) private returns (bool) {
        (bool done, bytes memory returned) = token.call(data);
        if (!done) return false;
        if (returned.length == 0) return token.code.length > 0;
        return returned.length >= 32 && uint256(bytes32(returned)) == 1;
    }
}
