const KEY = "detent.list";

/** Stores the query of the list's address, so that filter, order, columns and groups survive navigation. */
export function rememberList(search: string): void {
  try {
    sessionStorage.setItem(KEY, search);
  } catch {
    // Without storage the link leads to the unfiltered list.
  }
}

/** The address of the list as it was last shown in this tab. */
export function listAddress(): string {
  try {
    const search = sessionStorage.getItem(KEY);
    return search ? `/?${search}` : "/";
  } catch {
    return "/";
  }
}
