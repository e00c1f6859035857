export const operatorPage = () => () => {};
