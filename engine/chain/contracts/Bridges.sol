// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {BridgeErrors, ISpokePool, ITokenMessenger} from "./lib/Bridging.sol";
import {DeltaOrders} from "./lib/DeltaOrders.sol";
import {Math} from "./lib/Math.sol";
import {IERC20, Tokens} from "./lib/Tokens.sol";

/// Hands what orders bought to bridges, as their owners signed it in `bridge`. The same arithmetic is in bridge_terms.py,
/// and tests hold the two equal.
///
///     fee(amount)    = ceil(amount * feePpm / 1,000,000) + feeFixed
///     output(amount) = amount - fee(amount), in units of the output token: rounded down
///     input(output)  = the least amount whose output is `output` or more
///
/// `protocolSelector` is the selector of `across` or `cctp`, and `protocolData` whole words, nothing else:
///
///     across: feePpm, feeFixed, fillWithin in seconds, exclusiveRelayer, exclusivity in seconds
///     cctp:   feePpm, feeFixed, minFinalityThreshold, destinationDomain
///
/// Who is trusted with what: the two bridges, fixed at construction, are trusted with what is handed to them from then
/// on. This contract has no owner and no storage: between calls it holds nothing and allows nobody anything, so that it
/// answers anybody. Tokens that somebody leaves here go to the account that calls first.
contract Bridges is BridgeErrors {
    /// Tokens that are here and have to arrive at the destination. `owner` gets them back where the bridge fails.
    struct Transfer {
        address owner;
        address beneficiary;
        address token;
        uint256 amount;
        DeltaOrders.Bridge bridge;
    }

    /// The signed fee. `flat` is raw units of the token that enters the bridge.
    struct Fee {
        uint256 ppm;
        uint256 flat;
    }

    uint256 private constant PPM = 1_000_000;
    uint256 private constant FLAT_MAX = type(uint128).max;
    uint256 private constant SCALING_MAX = 30;

    /// The pool of Across V3; zero for none.
    address public immutable spokePool;
    /// The messenger of CCTP V2; zero for none.
    address public immutable tokenMessenger;

    constructor(address spokePool_, address tokenMessenger_) {
        spokePool = spokePool_;
        tokenMessenger = tokenMessenger_;
    }

    /// Hand the tokens that are here to the bridge that their owner signed, by the function of its selector. Reverts as
    /// that function does.
    /// @param transfer tokens, parties and signed bridge.
    /// @return output raw units of the output token that arrive, or arrive at least.
    /// @return id of the deposit at Across; zero for CCTP.
    function carry(Transfer calldata transfer) external returns (uint256 output, uint256 id) {
        bool isAcross = transfer.bridge.protocolSelector == this.across.selector;
        return isAcross ? across(transfer) : cctp(transfer);
    }

    /// Deposit the tokens that are here at Across: a relayer pays `output` at the destination, or the owner gets the deposit back.
    /// Reverts with InvalidBridge, UnknownBridge, BridgeNotEnabled, BelowBridgeFee, BridgeFailed or an error of the
    /// pool's.
    /// @param transfer tokens, parties and signed bridge.
    /// @return output raw units of the output token that arrive.
    /// @return id of the deposit.
    function across(Transfer calldata transfer) public returns (uint256 output, uint256 id) {
        output = arrivingOf(transfer, this.across.selector);
        allow(transfer, spokePool);
        id = ISpokePool(spokePool).numberOfDeposits();
        deposit(transfer, output);
        checkTaken(transfer, spokePool);
    }

    /// Burn the tokens that are here by CCTP, which mints `output` or more at the destination. Reverts with InvalidBridge,
    /// UnknownBridge, BridgeNotEnabled, BelowBridgeFee, BridgeFailed or an error of the messenger's.
    /// @param transfer tokens, parties and signed bridge.
    /// @return output raw units of the output token that arrive at least.
    /// @return id zero: the message gets its nonce when it is attested.
    function cctp(Transfer calldata transfer) public returns (uint256 output, uint256 id) {
        output = arrivingOf(transfer, this.cctp.selector);
        allow(transfer, tokenMessenger);
        bytes calldata data = transfer.bridge.protocolData;
        ITokenMessenger(tokenMessenger).depositForBurn(
            transfer.amount,
            uint32(word(data, 3, type(uint32).max)),
            bytes32(uint256(uint160(transfer.beneficiary))),
            transfer.token,
            0,
            transfer.amount - output,
            uint32(word(data, 2, type(uint32).max))
        );
        checkTaken(transfer, tokenMessenger);
        return (output, 0);
    }

    /// Amounts that have to enter a bridge, rounded up. Reverts with InvalidBridge, UnknownBridge or BridgeNotEnabled where
    /// `bridge` is none.
    /// @param bridge as an order's owner signed it.
    /// @param least raw units of the output token that have to arrive.
    /// @param expected raw units of the output token that are expected to; 0 for no expectation.
    /// @return raw units of the bridge's token, of which `least` arrive at least.
    /// @return raw units of the bridge's token, of which `expected` arrive at least; 0 for no expectation.
    function inputsOf(DeltaOrders.Bridge calldata bridge, uint256 least, uint256 expected)
        external
        view
        returns (uint256, uint256)
    {
        Fee memory fee = feeOf(bridge);
        return (inputOf(fee, bridge.scalingFactor, least), inputOf(fee, bridge.scalingFactor, expected));
    }

    /// Amount that arrives of one that enters a bridge, rounded down; 0 where the fee takes all. Reverts with InvalidBridge,
    /// UnknownBridge or BridgeNotEnabled where `bridge` is none.
    /// @param bridge as an order's owner signed it.
    /// @param amount raw units of the bridge's token.
    /// @return raw units of the output token.
    function outputOf(DeltaOrders.Bridge calldata bridge, uint256 amount) public view returns (uint256) {
        Fee memory fee = feeOf(bridge);
        uint256 left = Math.lessOrNone(amount, Math.ceilDiv(amount * fee.ppm, PPM) + fee.flat);
        int256 scaling = bridge.scalingFactor;
        return scaling < 0 ? left / 10 ** uint256(-scaling) : left * 10 ** uint256(scaling);
    }

    function inputOf(Fee memory fee, int256 scaling, uint256 output) private pure returns (uint256) {
        if (output == 0) return 0;
        uint256 left =
            scaling < 0 ? output * 10 ** uint256(-scaling) : Math.ceilDiv(output, 10 ** uint256(scaling));
        return Math.ceilDiv((left + fee.flat) * PPM, PPM - fee.ppm);
    }

    /// Checks the signed terms of a bridge, and returns its fee.
    function feeOf(DeltaOrders.Bridge calldata bridge) private view returns (Fee memory fee) {
        uint256 destination = bridge.destinationChainId;
        if (destination == 0 || destination == block.chainid) revert InvalidBridge();
        bool isAcross = bridge.protocolSelector == this.across.selector;
        if (!isAcross && bridge.protocolSelector != this.cctp.selector) {
            revert UnknownBridge(bridge.protocolSelector);
        }
        if ((isAcross ? spokePool : tokenMessenger) == address(0)) revert BridgeNotEnabled();
        int256 scaling = bridge.scalingFactor;
        uint256 most = isAcross ? SCALING_MAX : 0;
        if (uint256(scaling < 0 ? -scaling : scaling) > most) revert InvalidBridge();
        bytes calldata data = bridge.protocolData;
        if (bridge.outputToken == address(0) || data.length != (isAcross ? 160 : 128)) revert InvalidBridge();
        fee = Fee(word(data, 0, PPM - 1), word(data, 1, FLAT_MAX));
        word(data, 2, type(uint32).max);
        word(data, 3, isAcross ? type(uint160).max : type(uint32).max);
        if (isAcross) word(data, 4, type(uint32).max);
    }

    function word(bytes calldata data, uint256 number, uint256 most) private pure returns (uint256 value) {
        value = uint256(bytes32(data[32 * number:]));
        if (value > most) revert InvalidBridge();
    }

    /// Returns the output of a transfer, whose owner has to have signed the bridge of a function's selector.
    function arrivingOf(Transfer calldata transfer, bytes4 own) private view returns (uint256 output) {
        bytes4 selector = transfer.bridge.protocolSelector;
        if (selector != own) revert UnknownBridge(selector);
        output = outputOf(transfer.bridge, transfer.amount);
        if (output == 0) revert BelowBridgeFee(transfer.amount);
    }

    function allow(Transfer calldata transfer, address bridge) private {
        if (!Tokens.approve(transfer.token, bridge, transfer.amount)) revert BridgeFailed(bridge);
    }

    /// Tokens that a bridge may take and does not would be left here, for anybody.
    function checkTaken(Transfer calldata transfer, address bridge) private view {
        if (IERC20(transfer.token).allowance(address(this), bridge) != 0) revert BridgeFailed(bridge);
    }

    function deposit(Transfer calldata transfer, uint256 output) private {
        DeltaOrders.Bridge calldata bridge = transfer.bridge;
        bytes calldata data = bridge.protocolData;
        uint256 deadline = block.timestamp + word(data, 2, type(uint32).max);
        if (deadline > type(uint32).max) revert InvalidBridge();
        ISpokePool(spokePool).depositV3(
            transfer.owner,
            transfer.beneficiary,
            transfer.token,
            bridge.outputToken,
            transfer.amount,
            output,
            bridge.destinationChainId,
            address(uint160(word(data, 3, type(uint160).max))),
            uint32(block.timestamp),
            uint32(deadline),
            uint32(word(data, 4, type(uint32).max)),
            ""
        );
    }
}
