/**
 * The sign-in that this page means, by its id. Pages on other ports of the host can replace the cookie of this page by
 * that of somebody else; they cannot write the storage of this origin, and the master compares both.
 */
const KEY = "detent.sign-in";
const NONE = "0";
let withoutStorage = NONE;

export function setSignIn(id: string): void {
  withoutStorage = id;
  try {
    localStorage.setItem(KEY, id);
  } catch {
    // Without storage the sign-in holds until the page is closed.
  }
}

export function signInId(): string {
  try {
    return localStorage.getItem(KEY) ?? withoutStorage;
  } catch {
    return withoutStorage;
  }
}
