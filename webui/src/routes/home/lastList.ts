const KEY = "detent.list";

/** Remembers the query of the list's address: filter, order, columns and groups survive a look at a run. */
export function rememberList(search: string): void {
  try {
    sessionStorage.setItem(KEY, search);
  } catch {
    // A browser that stores nothing leads back to the whole list.
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
