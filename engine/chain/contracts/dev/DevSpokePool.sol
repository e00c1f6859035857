// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Owned} from "../lib/Owned.sol";
import {IWETH, Tokens} from "../lib/Tokens.sol";

interface IAcrossMessageHandler {
    function handleV3AcrossMessage(address tokenSent, uint256 amount, address relayer, bytes memory message) external;
}

/// One chain's end of an Across V3 bridge, for devnets and tests, never for production: its calls, events, errors and
/// the hash of a relay are the public ones of a SpokePool.
///
/// The real pool repays relayers and refunds unfilled deposits by leaves of bundles that others may dispute; here the
/// owner pays out what the owner says. Routes are not listed, and slow fills and later changes of a deposit are left out.
///
/// Source: across-protocol/contracts, V3SpokePoolInterface and SpokePool.
contract DevSpokePool is Owned {
    error DepositsArePaused();
    error FillsArePaused();
    error MsgValueDoesNotMatchInputAmount();
    error InvalidQuoteTimestamp();
    error InvalidFillDeadline();
    error InvalidExclusiveRelayer();
    error NotExclusiveRelayer();
    error ExpiredFillDeadline();
    error RelayFilled();
    error InvalidBytes32();
    error InvalidChainId();
    error InvalidMerkleLeaf();
    error ClaimedMerkleLeaf();
    error InsufficientSpokePoolBalanceToExecuteLeaf();
    error TransferFailed();

    enum FillStatus {
        Unfilled,
        RequestedSlowFill,
        Filled
    }

    enum FillType {
        FastFill,
        ReplacedSlowFill,
        SlowFill
    }

    struct V3RelayData {
        bytes32 depositor;
        bytes32 recipient;
        bytes32 exclusiveRelayer;
        bytes32 inputToken;
        bytes32 outputToken;
        uint256 inputAmount;
        uint256 outputAmount;
        uint256 originChainId;
        uint256 depositId;
        uint32 fillDeadline;
        uint32 exclusivityDeadline;
        bytes message;
    }

    struct V3RelayExecutionEventInfo {
        bytes32 updatedRecipient;
        bytes32 updatedMessageHash;
        uint256 updatedOutputAmount;
        FillType fillType;
    }

    struct RelayerRefundLeaf {
        uint256 amountToReturn;
        uint256 chainId;
        uint256[] refundAmounts;
        uint32 leafId;
        address l2TokenAddress;
        address[] refundAddresses;
    }

    event FundsDeposited(
        bytes32 inputToken,
        bytes32 outputToken,
        uint256 inputAmount,
        uint256 outputAmount,
        uint256 indexed destinationChainId,
        uint256 indexed depositId,
        uint32 quoteTimestamp,
        uint32 fillDeadline,
        uint32 exclusivityDeadline,
        bytes32 indexed depositor,
        bytes32 recipient,
        bytes32 exclusiveRelayer,
        bytes message
    );
    event FilledRelay(
        bytes32 inputToken,
        bytes32 outputToken,
        uint256 inputAmount,
        uint256 outputAmount,
        uint256 repaymentChainId,
        uint256 indexed originChainId,
        uint256 indexed depositId,
        uint32 fillDeadline,
        uint32 exclusivityDeadline,
        bytes32 exclusiveRelayer,
        bytes32 indexed relayer,
        bytes32 depositor,
        bytes32 recipient,
        bytes32 messageHash,
        V3RelayExecutionEventInfo relayExecutionInfo
    );
    event ExecutedRelayerRefundRoot(
        uint256 amountToReturn,
        uint256 indexed chainId,
        uint256[] refundAmounts,
        uint32 indexed rootBundleId,
        uint32 indexed leafId,
        address l2TokenAddress,
        address[] refundAddresses,
        bool deferredRefunds,
        address caller
    );
    event PausedDeposits(bool isPaused);
    event PausedFills(bool isPaused);

    /// Seconds; a larger exclusivity is a time.
    uint32 public constant MAX_EXCLUSIVITY_PERIOD_SECONDS = 31_536_000;
    uint32 public constant depositQuoteTimeBuffer = 1 hours;
    uint32 public constant fillDeadlineBuffer = 6 hours;

    IWETH public immutable wrappedNativeToken;
    uint32 public numberOfDeposits;
    bool public pausedDeposits;
    bool public pausedFills;
    mapping(bytes32 relayHash => uint256) public fillStatuses;
    mapping(uint32 rootBundleId => mapping(uint32 leafId => bool)) private isClaimed;

    constructor(IWETH wrappedNativeToken_, address owner_) Owned(owner_) {
        wrappedNativeToken = wrappedNativeToken_;
    }

    receive() external payable {}

    function getCurrentTime() public view returns (uint256) {
        return block.timestamp;
    }

    function pauseDeposits(bool pause) external onlyOwner {
        pausedDeposits = pause;
        emit PausedDeposits(pause);
    }

    function pauseFills(bool pause) external onlyOwner {
        pausedFills = pause;
        emit PausedFills(pause);
    }

    function depositV3(
        address depositor,
        address recipient,
        address inputToken,
        address outputToken,
        uint256 inputAmount,
        uint256 outputAmount,
        uint256 destinationChainId,
        address exclusiveRelayer,
        uint32 quoteTimestamp,
        uint32 fillDeadline,
        uint32 exclusivityParameter,
        bytes calldata message
    ) external payable {
        if (pausedDeposits) revert DepositsArePaused();
        uint256 time = block.timestamp;
        if (quoteTimestamp > time || time - quoteTimestamp > depositQuoteTimeBuffer) revert InvalidQuoteTimestamp();
        if (fillDeadline < time || fillDeadline > time + fillDeadlineBuffer) revert InvalidFillDeadline();
        if (exclusivityParameter > 0) {
            if (exclusiveRelayer == address(0)) revert InvalidExclusiveRelayer();
            if (exclusivityParameter <= MAX_EXCLUSIVITY_PERIOD_SECONDS) exclusivityParameter += uint32(time);
        }
        uint256 depositId = numberOfDeposits++;
        receiveInput(inputToken, inputAmount);
        emit FundsDeposited(
            toBytes32(inputToken),
            toBytes32(outputToken),
            inputAmount,
            outputAmount,
            destinationChainId,
            depositId,
            quoteTimestamp,
            fillDeadline,
            exclusivityParameter,
            toBytes32(depositor),
            toBytes32(recipient),
            toBytes32(exclusiveRelayer),
            message
        );
    }

    /// The caller pays `outputAmount` to the recipient, and names who is repaid where.
    function fillRelay(V3RelayData calldata relayData, uint256 repaymentChainId, bytes32 repaymentAddress) external {
        if (pausedFills) revert FillsArePaused();
        bool isExclusive = relayData.exclusivityDeadline >= block.timestamp;
        if (isExclusive && toAddress(relayData.exclusiveRelayer) != msg.sender) revert NotExclusiveRelayer();
        if (relayData.fillDeadline < block.timestamp) revert ExpiredFillDeadline();
        bytes32 relayHash = getV3RelayHash(relayData);
        if (fillStatuses[relayHash] == uint256(FillStatus.Filled)) revert RelayFilled();
        fillStatuses[relayHash] = uint256(FillStatus.Filled);
        emitFilled(relayData, repaymentChainId, repaymentAddress);
        address recipient = toAddress(relayData.recipient);
        payOutput(toAddress(relayData.outputToken), recipient, relayData.outputAmount, relayData.message);
    }

    function getV3RelayHash(V3RelayData calldata relayData) public view returns (bytes32) {
        return keccak256(abi.encode(relayData, block.chainid));
    }

    /// Repay relayers and refund depositors out of what is deposited here, once for a bundle's leaf. By the owner, who
    /// proves nothing.
    function executeRelayerRefundLeaf(uint32 rootBundleId, RelayerRefundLeaf calldata leaf, bytes32[] calldata)
        external
        onlyOwner
    {
        if (leaf.chainId != block.chainid) revert InvalidChainId();
        if (leaf.refundAmounts.length != leaf.refundAddresses.length) revert InvalidMerkleLeaf();
        if (isClaimed[rootBundleId][leaf.leafId]) revert ClaimedMerkleLeaf();
        isClaimed[rootBundleId][leaf.leafId] = true;
        address token = leaf.l2TokenAddress;
        for (uint256 i = 0; i < leaf.refundAmounts.length; i++) {
            uint256 amount = leaf.refundAmounts[i];
            if (amount > Tokens.balance(token, address(this))) revert InsufficientSpokePoolBalanceToExecuteLeaf();
            if (!Tokens.send(token, leaf.refundAddresses[i], amount)) revert TransferFailed();
        }
        emit ExecutedRelayerRefundRoot(
            leaf.amountToReturn,
            leaf.chainId,
            leaf.refundAmounts,
            rootBundleId,
            leaf.leafId,
            token,
            leaf.refundAddresses,
            false,
            msg.sender
        );
    }

    function receiveInput(address token, uint256 amount) private {
        if (msg.value > 0) {
            if (token != address(wrappedNativeToken) || msg.value != amount) revert MsgValueDoesNotMatchInputAmount();
            wrappedNativeToken.deposit{value: amount}();
        } else if (!Tokens.pull(token, msg.sender, address(this), amount)) {
            revert TransferFailed();
        }
    }

    /// Wrapped native tokens reach an account without code unwrapped, and one that has delegated (EIP-7702), whose code
    /// is 0xef0100 and an address.
    function payOutput(address token, address recipient, uint256 amount, bytes calldata message) private {
        if (msg.sender == recipient) return;
        bytes memory code = recipient.code;
        bool isDelegated = code.length == 23 && bytes3(code) == 0xef0100;
        bool isUnwrapped = token == address(wrappedNativeToken) && (code.length == 0 || isDelegated);
        if (!Tokens.pull(token, msg.sender, isUnwrapped ? address(this) : recipient, amount)) revert TransferFailed();
        if (isUnwrapped) {
            wrappedNativeToken.withdraw(amount);
            (bool done,) = recipient.call{value: amount}("");
            if (!done) revert TransferFailed();
        }
        if (message.length > 0 && recipient.code.length > 0) {
            IAcrossMessageHandler(recipient).handleV3AcrossMessage(token, amount, msg.sender, message);
        }
    }

    function emitFilled(V3RelayData calldata relayData, uint256 repaymentChainId, bytes32 repaymentAddress) private {
        bytes32 messageHash = relayData.message.length == 0 ? bytes32(0) : keccak256(relayData.message);
        emit FilledRelay(
            relayData.inputToken,
            relayData.outputToken,
            relayData.inputAmount,
            relayData.outputAmount,
            repaymentChainId,
            relayData.originChainId,
            relayData.depositId,
            relayData.fillDeadline,
            relayData.exclusivityDeadline,
            relayData.exclusiveRelayer,
            repaymentAddress,
            relayData.depositor,
            relayData.recipient,
            messageHash,
            V3RelayExecutionEventInfo(relayData.recipient, messageHash, relayData.outputAmount, FillType.FastFill)
        );
    }

    function toBytes32(address account) private pure returns (bytes32) {
        return bytes32(uint256(uint160(account)));
    }

    function toAddress(bytes32 word) private pure returns (address) {
        if (uint256(word) >> 160 != 0) revert InvalidBytes32();
        return address(uint160(uint256(word)));
    }
}
