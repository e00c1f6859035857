// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {NonReentrant} from "./lib/NonReentrant.sol";
import {Owned} from "./lib/Owned.sol";
import {Tokens} from "./lib/Tokens.sol";

/// Keeps partner fees and shares of surplus for those they belong to, who claim them.
///
/// Who is trusted with what: a collector says whose the tokens are that it sends here, and can credit no more than has
/// arrived. The owner decides which contracts are collectors; it cannot touch what is kept.
contract FeeVault is Owned, NonReentrant {
    error NotCollector();
    error NothingToClaim(address token);
    error TransferFailed(address token);

    event CollectorChanged(address indexed collector, bool isCollector);
    event Credited(address indexed account, address indexed token, uint256 amount);
    event Claimed(address indexed account, address indexed token, address receiver, uint256 amount);

    /// Whether a contract may credit fees.
    mapping(address collector => bool) public isCollector;
    /// Raw units of a token that an account may claim.
    mapping(address account => mapping(address token => uint256)) public owed;
    /// Raw units of a token that all accounts together may claim.
    mapping(address token => uint256) public totalOwed;

    constructor(address owner_) Owned(owner_) {}

    /// Let a contract credit fees, or no longer. By the owner; reverts with NotOwner.
    /// @param collector the contract.
    /// @param allowed whether it may.
    function setCollector(address collector, bool allowed) external onlyOwner {
        isCollector[collector] = allowed;
        emit CollectorChanged(collector, allowed);
    }

    /// Credit tokens that the caller has just sent. No more is credited than has arrived: nothing where a token has
    /// taken back some of what is owed. By a collector; reverts with NotCollector or Reentered, and
    /// without a reason where the token tells no balance.
    /// @param account the account that the fees belong to.
    /// @param token the address of the token.
    /// @param sent raw units that the caller has sent.
    /// @return amount raw units that are credited.
    function credit(address account, address token, uint256 sent) external nonReentrant returns (uint256 amount) {
        if (!isCollector[msg.sender]) revert NotCollector();
        uint256 held = Tokens.balance(token, address(this));
        uint256 arrived = held > totalOwed[token] ? held - totalOwed[token] : 0;
        amount = sent < arrived ? sent : arrived;
        owed[account][token] += amount;
        totalOwed[token] += amount;
        emit Credited(account, token, amount);
    }

    /// Send the caller's fees of each token to `receiver`, all or none. Reverts with NothingToClaim, TransferFailed or
    /// Reentered.
    /// @param tokens the addresses of the tokens, each no more than once.
    /// @param receiver the account that the fees are sent to.
    function claim(address[] calldata tokens, address receiver) external nonReentrant {
        for (uint256 i = 0; i < tokens.length; i++) {
            address token = tokens[i];
            uint256 amount = owed[msg.sender][token];
            if (amount == 0) revert NothingToClaim(token);
            owed[msg.sender][token] = 0;
            totalOwed[token] -= amount;
            if (!Tokens.send(token, receiver, amount)) revert TransferFailed(token);
            emit Claimed(msg.sender, token, receiver, amount);
        }
    }
}
