export const makersPage = () => () => {};
