export const auctionsPage = () => () => {};
