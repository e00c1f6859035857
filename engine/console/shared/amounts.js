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
 * A whole amount with exactly `places` digits after the point, cut, so that digits of changing figures keep their places.
 * @param {bigint} raw
 * @param {number} decimals
 * @param {number} places
 */
export function fixedUnits(raw, decimals, places) {
  const [whole = "0", fraction = ""] = plainUnits(raw, decimals).split(".");
  return `${whole.replace(GROUPS, ",")}${places ? `.${fraction.padEnd(places, "0").slice(0, places)}` : ""}`;
}

/** Digits of prices behind a digit that counts. */
const PRICE_DIGITS = 6;

/**
 * Price of a token in another, dest for one src, times 10^18; null without an amount.
 * @param {bigint} src raw units
 * @param {number} srcDecimals
 * @param {bigint} dest raw units
 * @param {number} destDecimals
 */
export const rateOf = (src, srcDecimals, dest, destDecimals) =>
  (src > 0n ? (dest * 10n ** BigInt(srcDecimals + 18)) / (src * 10n ** BigInt(destDecimals)) : null);

/** Digits after the point of prices as large as this one. @param {bigint} rate times 10^18 */
export function placesOf(rate) {
  const size = rate.toString().length - 18; // digits before the point; zero and less: zeros behind it
  return Math.min(18, Math.max(0, PRICE_DIGITS - size));
}

/** A price as text. @param {bigint | null} rate times 10^18 @param {number} [places] */
export const rateText = (rate, places) => (rate === null ? "–" : fixedUnits(rate, 18, places ?? placesOf(rate)));

/**
 * Price of a token in another as text: dest for one src.
 * @param {bigint} src raw units
 * @param {number} srcDecimals
 * @param {bigint} dest raw units
 * @param {number} destDecimals
 */
export const price = (src, srcDecimals, dest, destDecimals) => rateText(rateOf(src, srcDecimals, dest, destDecimals));

/** US dollars of the API, decimal text, to the cent. @param {string | undefined} text */
export function usd(text) {
  const [whole = "", fraction = ""] = (text ?? "").split(".");
  if (!/^\d+$/.test(whole)) return "–";
  return `$${whole.replace(GROUPS, ",")}.${fraction.padEnd(2, "0").slice(0, 2)}`;
}

/** US dollars of the API, so many times. @param {string | undefined} text @param {number} times */
export function usdTimes(text, times) {
  if (times === 1 || !/^\d+(\.\d*)?$/.test(text ?? "")) return usd(text);
  const [whole, fraction = ""] = /** @type {string} */ (text).split(".");
  return usd(plainUnits(BigInt(whole + fraction.padEnd(6, "0").slice(0, 6)) * BigInt(times), 6));
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

/** An agent's name; an agent without one is named by its address, which is cut. @param {string} name */
export const agentName = (name) => (/^0x[0-9a-fA-F]{40}$/.test(name) ? cut(name) : name);

/** The time of day. @param {string | number | Date} when */
export const clock = (when) => new Date(when).toLocaleTimeString("en-GB", { hour12: false });

/** A day and the time of day. @param {string | number | Date} when */
export const moment = (when) => new Date(when).toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** A duration in words. @param {number} seconds */
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s} s`;
  if (s < 7_200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`;
}

/** How long ago, or in how long, a time is. @param {number} ms Unix milliseconds @param {number} now */
export function distance(ms, now) {
  const s = (now - ms) / 1_000;
  return s >= 0 ? `${duration(s)} ago` : `in ${duration(-s)}`;
}

/** A part of a whole in basis points or percent, with its sign. @param {number | bigint} bps */
export function signedBps(bps) {
  const number = Number(bps);
  const text = Math.abs(number) < 100 ? `${Math.abs(number).toFixed(1)} bps` : `${(Math.abs(number) / 100).toFixed(2)} %`;
  return `${number > 0 ? "+" : number < 0 ? "−" : ""}${text}`;
}
