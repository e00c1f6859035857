// Amounts as people read them. Money is BigInt in raw units, never a float.

const GROUPS = /\B(?=(\d{3})+(?!\d))/g;

/**
 * Raw units of a whole amount, such as "1,250.5" with 6 decimals.
 * @param {string} text
 * @param {number} decimals
 * @returns {bigint}
 */
export function parseUnits(text, decimals) {
  const plain = text.trim().replaceAll(",", "");
  if (!/^\d+\.?\d*$|^\.\d+$/.test(plain)) throw new RangeError("Enter an amount such as 1.25");
  const [whole, fraction = ""] = plain.split(".");
  if (fraction.length > decimals) throw new RangeError(`At most ${decimals} digits after the point`);
  const raw = BigInt((whole || "0") + fraction.padEnd(decimals, "0"));
  if (raw >= 1n << 256n) throw new RangeError("The amount is too large");
  return raw;
}

/**
 * The exact whole amount without separators, as an input field holds it.
 * @param {bigint} raw
 * @param {number} decimals
 */
export function plainUnits(raw, decimals) {
  const digits = (raw < 0n ? -raw : raw).toString().padStart(decimals + 1, "0");
  const [whole, fraction] = [digits.slice(0, digits.length - decimals), digits.slice(digits.length - decimals).replace(/0+$/, "")];
  return `${raw < 0n ? "-" : ""}${whole}${fraction ? `.${fraction}` : ""}`;
}

/**
 * The whole amount with separators, cut (not rounded) to about `digits` significant digits.
 * @param {bigint | string} raw
 * @param {number} decimals
 * @param {number} [digits]
 */
export function formatUnits(raw, decimals, digits = 7) {
  const [whole = "0", fraction = ""] = plainUnits(BigInt(raw), decimals).split(".");
  const size = whole.replace("-", "").length;
  const zeros = /^-?0$/.test(whole) ? (/^0*/.exec(fraction)?.[0].length ?? 0) : 0;
  const kept = fraction.slice(0, Math.max(0, (zeros || /^-?0$/.test(whole) ? digits + zeros : digits - size))).replace(/0+$/, "");
  return `${whole.replace(GROUPS, ",")}${kept ? `.${kept}` : ""}`;
}

/**
 * Price of a token in another: dest for one src.
 * @param {bigint} src raw units
 * @param {number} srcDecimals
 * @param {bigint} dest raw units
 * @param {number} destDecimals
 */
export function price(src, srcDecimals, dest, destDecimals) {
  if (src <= 0n) return "–";
  const scaled = (dest * 10n ** BigInt(srcDecimals + 18)) / (src * 10n ** BigInt(destDecimals));
  return formatUnits(scaled, 18, 6);
}

/** US dollars of the API, decimal text, to the cent. @param {string | undefined} text */
export function usd(text) {
  const [whole = "", fraction = ""] = (text ?? "").split(".");
  if (!/^\d+$/.test(whole)) return "–";
  return `$${whole.replace(GROUPS, ",")}.${fraction.padEnd(2, "0").slice(0, 2)}`;
}

/** Basis points as percent. @param {number | bigint} bps */
export const percent = (bps) => `${plainUnits(BigInt(bps), 2)} %`;

/**
 * Difference between two amounts in basis points of the second.
 * @param {bigint} amount
 * @param {bigint} base
 */
export const bpsOff = (amount, base) => (base === 0n ? 0n : ((amount - base) * 10_000n) / base);

/** An address or hash, cut in its middle. @param {string} text */
export const cut = (text) => (text.length > 14 ? `${text.slice(0, 6)}…${text.slice(-4)}` : text);

/** The time of day. @param {string | number | Date} when */
export const clock = (when) => new Date(when).toLocaleTimeString("en-GB", { hour12: false });

/** A duration in words. @param {number} seconds */
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s} s`;
  if (s < 7_200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`;
}
