import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { messageOf } from "@/api/problem";
import { fetchExtent, type LogFilter, type LogPage, type LogPlace, takeLogPage } from "@/services/logs";
import { EMPTY, type LogWindow, windowOf, withAfter, withBefore } from "./window";

/** A window into a trial's log that grows at both ends, follows the end, and can jump. */
export function useLogWindow(trialId: number, taskId: string, filter: LogFilter, startAt: number | null) {
  const [window, setWindow] = useState<LogWindow>(EMPTY);
  const [problem, setProblem] = useState("");
  const [searching, setSearching] = useState<number | null>(null);
  const [stopped, setStopped] = useState<number | null>(null);
  const [busy, setBusy] = useState(true);
  const loading = useRef(false);
  const turn = useRef(0);
  const queries = useQueryClient();
  const { data: extent } = useQuery({ queryKey: ["logs", taskId, "extent"], queryFn: () => fetchExtent(trialId) });

  /** A search may read many lines without a match. It continues until a line is found or a newer query starts. */
  const page = useCallback(
    async (place: LogPlace, mine: number, fresh: boolean): Promise<LogPage | null> => {
      let from = place;
      for (;;) {
        const answer = await takeLogPage(queries, trialId, filter, from);
        if (turn.current !== mine) return null;
        const next = onward(place, from, answer);
        if (next === null) {
          setSearching(null);
          return answer;
        }
        if (typeof answer.scannedTo === "number") setSearching(answer.scannedTo);
        // The present lines belong to another query.
        if (fresh) setWindow(EMPTY);
        from = next;
      }
    },
    [queries, trialId, filter],
  );

  const run = useCallback(
    async (place: LogPlace, apply: (now: LogWindow, answer: LogPage) => LogWindow, fresh: boolean): Promise<void> => {
      if (loading.current && !fresh) return;
      if (fresh) turn.current += 1;
      const mine = turn.current;
      loading.current = true;
      setBusy(true);
      setStopped(null);
      try {
        const answer = await page(place, mine, fresh);
        if (answer) {
          setWindow((now) => apply(now, answer));
          setProblem("");
        }
      } catch (error) {
        if (turn.current === mine) {
          setProblem(messageOf(error));
          setSearching(null);
        }
      } finally {
        if (turn.current === mine) {
          loading.current = false;
          setBusy(false);
        }
      }
    },
    [page],
  );

  const jump = useCallback((place: LogPlace) => run(place, (_, answer) => windowOf(answer), true), [run]);
  const older = useCallback(() => {
    const first = window.lines[0];
    return window.atStart || !first ? Promise.resolve() : run({ before: first.id }, withBefore, false);
  }, [run, window]);
  const newer = useCallback(() => {
    const last = window.lines.at(-1);
    if (!last) return run({}, (_, answer) => windowOf(answer), false);
    return run({ after: last.id }, withAfter, false);
  }, [run, window]);
  const stop = useCallback(() => {
    turn.current += 1;
    loading.current = false;
    setStopped(searching);
    setSearching(null);
    setBusy(false);
  }, [searching]);

  useEffect(() => {
    void jump(startAt === null ? {} : { around: startAt });
    return () => {
      turn.current += 1;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- where another query starts, not where the view is
  }, [jump]);
  const newest = extent?.lastId ?? null;
  const held = window.lines.at(-1)?.id ?? 0;
  useEffect(() => {
    // The view is at the end, and the log has grown beyond it.
    if (newest !== null && newest > held && window.atEnd) void newer();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only a longer log triggers a fetch
  }, [newest]);
  return { window, extent, problem, busy, searching, stopped, stop, jump, older, newer };
}

/** Returns where a search goes on after a page without lines; null once it is over. Around a line it is over on the newer
 * side first, then on the older one. */
function onward(start: LogPlace, from: LogPlace, { lines, scannedTo, atEnd }: LogPage): LogPlace | null {
  if (lines.length > 0) return null;
  if (typeof scannedTo === "number") {
    const isUp = "after" in from || ("around" in from && !atEnd);
    return isUp ? { after: scannedTo } : { before: scannedTo };
  }
  return "around" in start && "after" in from ? { before: start.around } : null;
}
