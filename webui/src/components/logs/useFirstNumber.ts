import { useQuery } from "@tanstack/react-query";
import { fetchLineNumber } from "@/services/logs";
import type { LogWindow } from "./window";

/**
 * Returns the number of the window's first line within the log, from 1. Null while it is not known, and if lines are
 * left out (`isWhole` is false), since the lines between are not counted then.
 */
export function useFirstNumber(trialId: number, { lines, atStart }: LogWindow, isWhole: boolean): number | null {
  const first = lines[0]?.id ?? null;
  const { data } = useQuery({
    queryKey: ["log-number", trialId, first],
    queryFn: () => fetchLineNumber(trialId, first ?? 0),
    enabled: isWhole && !atStart && first !== null,
  });
  if (!isWhole || first === null) return null;
  return atStart ? 1 : (data ?? null);
}
