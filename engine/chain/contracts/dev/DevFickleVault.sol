// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Math} from "../lib/Math.sol";
import {Tokens} from "../lib/Tokens.sol";
import {DevVault} from "./DevVault.sol";

/// A yield vault that anyone can have lose, pause, cap withdrawals, take a fee, or act against those who use it.
contract DevFickleVault is DevVault {
    error Refused();

    enum Mode {
        HONEST,
        PAUSED,
        CAPPED, // gives at most `by` assets at once
        FEE, // keeps `by` basis points of what leaves
        SHORT, // gives `by` assets less than it says
        GREEDY, // says that it takes `by` shares more, and does not take them
        WASTE, // uses up its gas
        BOMB // fails with `by` bytes
    }

    uint256 private constant BPS = 10_000;

    Mode public mode;
    uint256 public by;

    constructor(address asset_) DevVault(asset_, "Fickle vault", "FICKLE") {}

    function setMode(Mode mode_, uint256 by_) external {
        (mode, by) = (mode_, by_);
    }

    function lose(uint256 assets) external {
        if (!Tokens.send(asset, address(1), assets)) revert TransferFailed();
    }

    function previewRedeem(uint256 shares) public view override returns (uint256 assets) {
        assets = super.previewRedeem(shares);
        if (mode == Mode.FEE) assets = assets * (BPS - by) / BPS;
    }

    function previewWithdraw(uint256 assets) public view override returns (uint256 shares) {
        if (mode == Mode.FEE) assets = Math.ceilDiv(assets * BPS, BPS - by);
        shares = super.previewWithdraw(assets);
        if (mode == Mode.GREEDY) shares += by;
    }

    function give(uint256 assets, uint256 shares, address receiver, address owner) internal override {
        if (mode == Mode.PAUSED || (mode == Mode.CAPPED && assets > by)) revert Refused();
        while (mode == Mode.WASTE) {}
        if (mode == Mode.BOMB) {
            uint256 size = by;
            assembly {
                revert(0, size)
            }
        }
        if (mode == Mode.SHORT) assets -= by;
        if (mode == Mode.GREEDY) shares -= by;
        super.give(assets, shares, receiver, owner);
    }
}
