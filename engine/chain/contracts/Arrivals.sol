// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {RfqExecutor} from "./RfqExecutor.sol";
import {NonReentrant} from "./lib/NonReentrant.sol";
import {IWETH, Tokens} from "./lib/Tokens.sol";

/// The functions of a Delta contract that Arrivals calls.
interface IRelayers {
    /// Whether an account may settle.
    /// @param relayer the account.
    /// @return whether it may.
    function isRelayer(address relayer) external view returns (bool);

    /// Whether all settlements are stopped.
    /// @return whether they are.
    function isPaused() external view returns (bool);
}

/// Holds what a bridge delivers for one set of terms, at an address that follows from them. Arrivals creates it, and it
/// gives to nobody else.
contract Arrival {
    error NotArrivals();
    error TransferFailed(address token);

    /// The contract that created this one, and the only account that may use it.
    address public immutable arrivals = msg.sender;

    /// Bridges that unwrap for accounts without code deliver native tokens here before this contract is created.
    receive() external payable {}

    /// Send all there is of a token. By Arrivals; reverts with NotArrivals or TransferFailed.
    /// @param token the address of the token.
    /// @param weth the wrapped native token: where it is asked for, native tokens are wrapped first.
    /// @param to the account that gets the tokens.
    /// @return amount raw units that were sent.
    function give(address token, IWETH weth, address to) external returns (uint256 amount) {
        if (msg.sender != arrivals) revert NotArrivals();
        if (token == address(weth) && address(this).balance > 0) weth.deposit{value: address(this).balance}();
        amount = Tokens.balance(token, address(this));
        if (amount > 0 && !Tokens.send(token, to, amount)) revert TransferFailed(token);
    }
}

/// Swaps what a bridge has delivered, on the chain where it arrives: an order across chains names an Arrival as its
/// beneficiary, and the terms of the swap with it.
///
/// The Arrival's address follows from the terms, so that the owner signs them with the order, and every bridge can
/// deliver there. A relayer of this chain's Delta has makers fill the swap by firm quotes; where none does until the time
/// in the terms, anybody can have the bridge's token paid out as it came.
///
/// Who is trusted with what: relayers, with the price between the signed minimum and the market, as Delta trusts them.
/// All goes to the beneficiary in every case. Nobody owns this contract, it keeps nothing, and it gives no allowance.
contract Arrivals is NonReentrant {
    error NotRelayer();
    error Paused();
    error NotYet(uint256 until);
    error NothingArrived();
    error BelowMinimum(uint256 received, uint256 minimum);
    error TransferFailed(address token);

    event ArrivalSwapped(
        address indexed arrival, address indexed beneficiary, address token, uint256 amount, uint256 received
    );
    event ArrivalPaidOut(
        address indexed arrival, address indexed beneficiary, address token, uint256 amount
    );

    /// `least` raw units of destToken are wanted for what arrives of `token`, by `until` in Unix seconds; `salt` makes
    /// otherwise equal terms distinct.
    struct Terms {
        address beneficiary;
        address token;
        address destToken;
        uint256 least;
        uint256 until;
        bytes32 salt;
    }

    /// This chain's Delta, whose relayers swap.
    IRelayers public immutable delta;
    /// The taker of firm quotes.
    RfqExecutor public immutable executor;
    /// The wrapped native token.
    IWETH public immutable weth;

    constructor(IRelayers delta_, RfqExecutor executor_, IWETH weth_) {
        delta = delta_;
        executor = executor_;
        weth = weth_;
    }

    /// Only what the wrapped token gives back when it is unwrapped; reverts with TransferFailed for other senders.
    receive() external payable {
        if (msg.sender != address(weth)) revert TransferFailed(Tokens.NATIVE);
    }

    /// The account that an order names as its beneficiary for these terms.
    /// @param terms of the swap.
    /// @return the address of the terms' Arrival, created or not.
    function arrivalOf(Terms calldata terms) public view returns (address) {
        bytes32 created = keccak256(type(Arrival).creationCode);
        return address(
            uint160(
                uint256(
                    keccak256(
                        abi.encodePacked(bytes1(0xff), address(this), keccak256(abi.encode(terms)), created)
                    )
                )
            )
        );
    }

    /// Swap all that has arrived, by makers' orders. By a relayer of Delta; reverts with NotRelayer, Paused, Reentered,
    /// NothingArrived, TransferFailed, BelowMinimum, or as the executor does.
    /// @param terms of the swap.
    /// @param fills what the executor fills in turn, each as its `fill` takes it, for the beneficiary as the user; the
    /// last ones deliver to this contract.
    /// @param leftovers tokens of which the executor's rest goes to the beneficiary.
    /// @return received raw units of destToken that the beneficiary got.
    function swap(Terms calldata terms, bytes[] calldata fills, address[] calldata leftovers)
        external
        nonReentrant
        returns (uint256 received)
    {
        if (!delta.isRelayer(msg.sender)) revert NotRelayer();
        if (delta.isPaused()) revert Paused();
        for (uint256 i = 0; i < leftovers.length; i++) executor.collect(leftovers[i], terms.beneficiary);
        (Arrival arrival, uint256 amount) = take(terms, terms.token, address(executor));
        address dest = terms.destToken == Tokens.NATIVE ? address(weth) : terms.destToken;
        uint256 before = Tokens.balance(dest, address(this));
        for (uint256 i = 0; i < fills.length; i++) executor.fill(terms.beneficiary, i, fills[i]);
        for (uint256 i = 0; i < leftovers.length; i++) executor.collect(leftovers[i], terms.beneficiary);
        received = pay(terms, dest, Tokens.balance(dest, address(this)) - before);
        if (received < terms.least) revert BelowMinimum(received, terms.least);
        emit ArrivalSwapped(address(arrival), terms.beneficiary, terms.token, amount, received);
    }

    /// Send all that has arrived of a token to the beneficiary, as it came. By the beneficiary, or by anybody after
    /// `until`; reverts with NotYet, Reentered, NothingArrived or TransferFailed.
    /// @param terms of the swap.
    /// @param token the bridge's token, or one that came by mistake.
    /// @return amount raw units that were sent.
    function payOut(Terms calldata terms, address token) external nonReentrant returns (uint256 amount) {
        if (msg.sender != terms.beneficiary && block.timestamp <= terms.until) revert NotYet(terms.until);
        Arrival arrival;
        (arrival, amount) = take(terms, token, terms.beneficiary);
        emit ArrivalPaidOut(address(arrival), terms.beneficiary, token, amount);
    }

    function take(Terms calldata terms, address token, address to)
        private
        returns (Arrival arrival, uint256 amount)
    {
        address at = arrivalOf(terms);
        arrival = at.code.length > 0 ? Arrival(payable(at)) : new Arrival{salt: keccak256(abi.encode(terms))}();
        amount = arrival.give(token, weth, to);
        if (amount == 0) revert NothingArrived();
    }

    /// Returns what arrived, which is less than was sent where a token takes a fee on transfers.
    function pay(Terms calldata terms, address dest, uint256 amount) private returns (uint256 arrived) {
        address to = terms.beneficiary;
        uint256 before = Tokens.balance(dest, to);
        bool done;
        if (terms.destToken == Tokens.NATIVE) {
            weth.withdraw(amount);
            done = Tokens.sendNative(to, amount, Tokens.NATIVE_GAS);
            arrived = amount;
        } else {
            done = Tokens.send(dest, to, amount);
            arrived = Tokens.balance(dest, to) - before;
        }
        if (!done) revert TransferFailed(terms.destToken);
    }
}
