import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";
import type { XAxis } from "@/services/series";

/** Options of the curves. They are stored in the address, so that a link shows the same. */
export interface BoardState {
  x: XAxis;
  smoothing: number;
  logX: boolean;
  logY: boolean;
  /** Names of the metrics whose panels are open; empty: the first ones. */
  metrics: string[];
  /** Units of x. */
  zoom: [number, number] | null;
}

export function readBoard(params: URLSearchParams): BoardState {
  const x = params.get("x");
  const zoom = (params.get("zoom") ?? "").split("..").map(Number);
  const smoothing = Number(params.get("smooth") ?? 0);
  return {
    x: x === "epochs" || x === "time" ? x : "batches",
    smoothing: smoothing >= 0 && smoothing < 1 ? smoothing : 0,
    logX: params.get("logx") === "1",
    logY: params.get("logy") === "1",
    metrics: params.getAll("metric"),
    zoom: zoom.length === 2 && zoom.every(Number.isFinite) ? [zoom[0]!, zoom[1]!] : null,
  };
}

export function writeBoard(params: URLSearchParams, change: Partial<BoardState>): URLSearchParams {
  const next = new URLSearchParams(params);
  const set = (name: string, value: string | null) => (value === null ? next.delete(name) : next.set(name, value));
  if (change.x !== undefined) set("x", change.x === "batches" ? null : change.x);
  if (change.smoothing !== undefined) set("smooth", change.smoothing === 0 ? null : String(change.smoothing));
  if (change.logX !== undefined) set("logx", change.logX ? "1" : null);
  if (change.logY !== undefined) set("logy", change.logY ? "1" : null);
  if (change.zoom !== undefined) set("zoom", change.zoom === null ? null : change.zoom.join(".."));
  // A range of steps is not valid for times.
  if (change.x !== undefined) next.delete("zoom");
  if (change.metrics !== undefined) {
    next.delete("metric");
    for (const metric of change.metrics) next.append("metric", metric);
  }
  return next;
}

export function useBoardState(): [BoardState, (change: Partial<BoardState>) => void] {
  const [params, setParams] = useSearchParams();
  const state = useMemo(() => readBoard(params), [params]);
  const change = useCallback(
    (next: Partial<BoardState>) =>
      setParams((now) => writeBoard(now, next), { replace: true, preventScrollReset: true }),
    [setParams],
  );
  return [state, change];
}
