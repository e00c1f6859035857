// Bounds of amounts; a TWAP's slices: amount of each, and the bound of all; pure. Slices of the fixed side are equal, and the last takes the rest.

/** Raw units of each slice but the last. @param {bigint} total @param {number} slices */
export const sliceOf = (total, slices) => total / BigInt(slices);

/**
 * The most that all slices of a purchase spend together, if none spends more for its share than `perSlice`.
 * @param {bigint} total bought in all
 * @param {number} slices
 * @param {bigint} perSlice the most that each slice but the last spends
 */
export const mostOf = (total, slices, perSlice) => (perSlice * total) / sliceOf(total, slices);

/** The most that each slice but the last of a purchase spends. @param {bigint} total @param {number} slices @param {bigint} most spent in all */
export const mostPerSlice = (total, slices, most) => (most * sliceOf(total, slices)) / total;

/**
 * The bound of the amount that is not fixed.
 * @param {"SELL" | "BUY"} side
 * @param {bigint} amount the quoted one
 * @param {number} slippageBps
 */
export const bounded = (side, amount, slippageBps) =>
  (side === "SELL" ? (amount * BigInt(10_000 - slippageBps)) / 10_000n : (amount * BigInt(10_000 + slippageBps) + 9_999n) / 10_000n);
