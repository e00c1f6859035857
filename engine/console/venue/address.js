// The part of the address behind its #: a page's name, then what the page shows, such as `makers/alpha`.

/** Name of the page, and what it shows; empty texts where the address names none. @returns {[string, string]} */
export function address() {
  const [page = "", shown = ""] = location.hash.slice(1).split("/");
  try {
    return [page, decodeURIComponent(shown)];
  } catch {
    return [page, shown]; // a person's % is no escape
  }
}

/** Call `open` each time that the address names something else on a page. @param {string} page
 * @param {(shown: string) => void} open @returns {() => void} ends the calls */
export function onAddress(page, open) {
  const follow = () => {
    const [name, shown] = address();
    if (name === page) open(shown);
  };
  addEventListener("hashchange", follow);
  return () => removeEventListener("hashchange", follow);
}
