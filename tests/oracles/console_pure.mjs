// Pure functions of the console's modules, called by name. arguments: FUNCTION JSON
import { fileURLToPath } from "node:url";

const module = (name) => import(fileURLToPath(new URL(`../../engine/console/${name}`, import.meta.url)));
const [amounts, http, abi, checks, bridges, schedules] = await Promise.all(["shared/amounts.js", "shared/http.js", "venue/abi.js", "venue/checks.js", "venue/bridge_checks.js", "venue/schedule.js"].map(module));
const refused = (act) => {
  try {
    return act();
  } catch (error) {
    return { refused: error.message };
  }
};

const FUNCTIONS = {
  units: ({ raw, decimals }) => {
    const plain = amounts.plainUnits(BigInt(raw), decimals);
    return { plain, back: amounts.parseUnits(plain, decimals), shown: amounts.formatUnits(BigInt(raw), decimals, 12) };
  },
  parse: ({ text, decimals }) => refused(() => amounts.parseUnits(text, decimals)),
  price: ({ src, srcDecimals, dest, destDecimals }) => amounts.price(BigInt(src), srcDecimals, BigInt(dest), destDecimals),
  usd: ({ text }) => amounts.usd(text),
  event: ({ block }) => http.event(block),
  swap: ({ data }) => abi.swapTerms(data),
  bounded: ({ side, amount, slippageBps }) => schedules.bounded(side, BigInt(amount), slippageBps),
  bridge: ({ route, wish }) => refused(() => {
    const via = (address) => (wish.viaDecimals[address] === undefined ? null : { address, decimals: wish.viaDecimals[address] });
    const there = (address) => ((wish.listedThere ?? []).includes(address) ? { address, decimals: 18 } : null);
    const { via: token, ...checked } = bridges.checkBridge(route, {
      ...wish, amount: BigInt(wish.amount), src: { address: wish.srcToken }, dest: { address: wish.destToken, decimals: wish.destDecimals }, via, there,
    });
    return { ...checked, via: token.address };
  }),
  bridgeContract: ({ chainId, kind, contract }) => refused(() => ({ held: bridges.checkContract(chainId, kind, contract) })),
  bridgeGetter: ({ kind }) => bridges.GETTERS[kind],
  bridgeAmounts: ({ entering, ppm, fixed, scaling }) => bridges.amounts(BigInt(entering), BigInt(ppm), BigInt(fixed), scaling),
  slices: ({ total, slices, perSlice }) => {
    const most = schedules.mostOf(BigInt(total), slices, BigInt(perSlice));
    return { cut: schedules.sliceOf(BigInt(total), slices), most, perSlice: schedules.mostPerSlice(BigInt(total), slices, most) };
  },
  typed: ({ toSign, terms }) => refused(() => checks.orderToSign(toSign, { ...terms, srcAmount: BigInt(terms.srcAmount), destAmount: BigInt(terms.destAmount) })),
};

export const run = ([name, text]) => FUNCTIONS[name](JSON.parse(text));
