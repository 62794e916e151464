import { useState } from "react";

/**
 * Returns the newest data of a query whose key changes over time. The last loaded data stays if the next answer fails:
 * TanStack Query keeps the data of the previous key only while the next one is loading.
 */
export function useLatest<T>(data: T | undefined): T | undefined {
  const [kept, setKept] = useState(data);
  if (data !== undefined && data !== kept) setKept(data);
  return data ?? kept;
}
