import { useCallback, useEffect, useRef, useState } from "react";
import { messageOf } from "@/api/problem";
import { fetchLogPage, type LogFilter } from "@/services/logs";

/** Maximum number of counted matches. */
export const MAX_MATCHES = 10_000;
const PAGE = 1_000;

interface Found {
  /** Ids of matching lines, ascending. */
  ids: readonly number[];
  /** Last searched line. */
  upTo: number;
  isComplete: boolean;
}

export interface LogMatches extends Found {
  isSearching: boolean;
  problem: string;
  stop: () => void;
}

const NONE: Found = { ids: [], upTo: 0, isComplete: false };

/** Finds the lines of a log that match its search, from its start. New lines are searched as they arrive. */
export function useLogMatches(
  trialId: number,
  filter: LogFilter,
  isWanted: boolean,
  newest: number | null,
): LogMatches {
  const [found, setFound] = useState(NONE);
  const [problem, setProblem] = useState("");
  const [isSearching, setSearching] = useState(false);
  const running = useRef<AbortController | null>(null);
  const known = useRef({ filter, found: NONE, isStopped: false });
  useEffect(() => {
    if (known.current.filter !== filter) {
      known.current = { filter, found: NONE, isStopped: false };
      setFound(NONE);
      setProblem("");
    }
    if (!isWanted || newest === null || known.current.isStopped) return undefined;
    const controller = new AbortController();
    running.current = controller;
    const search = async () => {
      setSearching(true);
      let now = known.current.found;
      do {
        now = await more(trialId, filter, now, newest, controller.signal);
        if (controller.signal.aborted) return;
        known.current.found = now;
        setFound(now);
      } while (!now.isComplete && now.ids.length < MAX_MATCHES);
    };
    search()
      .catch((error: unknown) => controller.signal.aborted || setProblem(messageOf(error)))
      .finally(() => controller.signal.aborted || setSearching(false));
    return () => {
      controller.abort();
      setSearching(false);
    };
  }, [trialId, filter, isWanted, newest]);
  const stop = useCallback(() => {
    known.current.isStopped = true;
    running.current?.abort();
    setSearching(false);
  }, []);
  return { ...found, isSearching, problem, stop };
}

/** Adds the next page of matches. The answer says where to continue if it stopped early. */
async function more(
  trialId: number,
  filter: LogFilter,
  found: Found,
  newest: number,
  signal: AbortSignal,
): Promise<Found> {
  const page = await fetchLogPage(trialId, filter, { after: found.upTo }, PAGE, signal);
  const ids = [...found.ids, ...page.lines.map(({ id }) => id)];
  const scanned = page.scannedTo ?? null;
  const isComplete = scanned === null && (page.atEnd || page.lines.length === 0);
  return { ids, upTo: Math.max(found.upTo, scanned ?? page.lastId ?? 0, isComplete ? newest : 0), isComplete };
}
