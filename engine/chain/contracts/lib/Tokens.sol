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

    /// Gas that a receiver of native tokens may use where a relayer pays for it.
    uint256 internal constant NATIVE_GAS = 100_000;

    function send(address token, address to, uint256 amount) internal returns (bool done) {
        bytes32 selector = IERC20.transfer.selector;
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            mstore(add(data, 4), and(to, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF))
            mstore(add(data, 36), amount)
            done := call(gas(), token, 0, data, 68, 0, 32)
        }
        return done && isTrue(token);
    }

    /// The receiver's data is not copied.
    function sendNative(address to, uint256 amount, uint256 gasMax) internal returns (bool done) {
        assembly ("memory-safe") {
            done := call(gasMax, to, amount, 0, 0, 0, 0)
        }
    }

    function pull(address token, address from, address to, uint256 amount) internal returns (bool done) {
        bytes32 selector = IERC20.transferFrom.selector;
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            mstore(add(data, 4), and(from, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF))
            mstore(add(data, 36), and(to, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF))
            mstore(add(data, 68), amount)
            done := call(gas(), token, 0, data, 100, 0, 32)
        }
        return done && isTrue(token);
    }

    /// Let `spender` take `amount` at least. Some tokens only change an allowance from or to zero. An error of the token's
    /// goes no further: agents name tokens, and an error of Delta's own tells whose fault a failure is.
    function allow(address token, address spender, uint256 amount) internal returns (bool) {
        try IERC20(token).allowance(address(this), spender) returns (uint256 allowed) {
            if (allowed >= amount) return true;
        } catch {
            return false;
        }
        return approve(token, spender, type(uint256).max)
            || (approve(token, spender, 0) && approve(token, spender, amount));
    }

    /// Reverts where the token does not tell.
    function balance(address token, address owner) internal view returns (uint256 amount) {
        bytes32 selector = IERC20.balanceOf.selector;
        assembly ("memory-safe") {
            mstore(0, selector)
            mstore(4, and(owner, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF))
            if iszero(staticcall(gas(), token, 0, 36, 0, 32)) { revert(0, 0) }
            if lt(returndatasize(), 32) { revert(0, 0) }
            amount := mload(0)
        }
    }

    /// The first two words of an answer; zeros where there is none.
    function ask(address target, bytes memory data) internal view returns (uint256 first, uint256 second) {
        assembly ("memory-safe") {
            mstore(0, 0)
            mstore(32, 0)
            if staticcall(gas(), target, add(data, 32), mload(data), 0, 64) {
                first := mload(0)
                second := mload(32)
            }
        }
    }

    function approve(address token, address spender, uint256 amount) internal returns (bool done) {
        (done,) = token.call(abi.encodeCall(IERC20.approve, (spender, amount)));
        if (!done) return false;
        assembly ("memory-safe") {
            if gt(returndatasize(), 31) { returndatacopy(0, 0, 32) }
        }
        return isTrue(token);
    }

    /// Of a call whose first returned word is at the start of memory: it returned true or, being a contract's, nothing.
    function isTrue(address token) private view returns (bool told) {
        assembly ("memory-safe") {
            switch returndatasize()
            case 0 { told := gt(extcodesize(token), 0) }
            default { told := and(gt(returndatasize(), 31), eq(mload(0), 1)) }
        }
    }
}
