import { useState } from "react";

/**
 * The newest data of a query whose question moves on with the time. What was loaded last stays where the next answer fails:
 * TanStack Query keeps the data of the question before only while the next one is on its way.
 */
export function useLatest<T>(data: T | undefined): T | undefined {
  const [kept, setKept] = useState(data);
  if (data !== undefined && data !== kept) setKept(data);
  return data ?? kept;
}
