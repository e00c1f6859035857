// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Tokens} from "../lib/Tokens.sol";

/// A solver's contract that delivers less in a block than in the simulation of it, by what it can see of the two;
/// or a wallet that signs in a simulation alone.
contract DevTurncoat {
    error TransferFailed();

    enum Sign {
        GAS_PRICE,
        BASE_FEE,
        COINBASE,
        BLOCK_NUMBER,
        BALANCE,
        FLAG
    }

    bool public flag;

    receive() external payable {}

    function setFlag(bool flag_) external {
        flag = flag_;
    }

    /// `shown` where nothing says that this is mined, else `mined`. `bound` is what a block's base fee or number or
    /// the balance of the transaction's sender is compared with.
    function deliver(Sign sign, uint256 bound, address token, address to, uint256 shown, uint256 mined) external {
        if (!Tokens.send(token, to, isMined(sign, bound) ? mined : shown)) revert TransferFailed();
    }

    /// Any call, as the wallet that it is.
    function act(address target, bytes calldata data) external {
        (bool done,) = target.call(data);
        if (!done) revert TransferFailed();
    }

    /// EIP-1271: of any signature.
    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        return isMined(Sign.GAS_PRICE, 0) ? bytes4(0) : this.isValidSignature.selector;
    }

    function isMined(Sign sign, uint256 bound) private view returns (bool) {
        if (sign == Sign.GAS_PRICE) return tx.gasprice != 0;
        if (sign == Sign.BASE_FEE) return block.basefee > bound;
        if (sign == Sign.COINBASE) return block.coinbase != address(0);
        if (sign == Sign.BLOCK_NUMBER) return block.number > bound;
        if (sign == Sign.BALANCE) return tx.origin.balance < bound;
        return flag;
    }
}
