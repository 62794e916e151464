import type { LogFilter, LogPlace } from "@/services/logs";

/** View of a log, as encoded in the address. */
export interface LogSearch extends LogFilter {
  /** True if only matching lines are shown; else the search moves between matches. */
  onlyMatches: boolean;
}

export function readSearch(params: URLSearchParams): LogSearch {
  const attempt = params.get("attempt");
  const rank = params.get("rank");
  return {
    levels: params.getAll("level"),
    rankIds: rank === null || Number.isNaN(Number(rank)) ? [] : [Number(rank)],
    search: params.get("find") ?? "",
    regex: params.get("regex") === "1",
    allocationIds: attempt ? [attempt] : [],
    onlyMatches: params.get("only") === "1",
  };
}

export function writeSearch(params: URLSearchParams, change: Partial<LogSearch>): URLSearchParams {
  const search = { ...readSearch(params), ...change };
  const next = new URLSearchParams(params);
  for (const name of ["level", "rank", "find", "regex", "attempt", "only", "line"]) next.delete(name);
  for (const level of search.levels) next.append("level", level);
  if (search.rankIds[0] !== undefined) next.set("rank", String(search.rankIds[0]));
  if (search.search) next.set("find", search.search);
  if (search.regex) next.set("regex", "1");
  if (search.allocationIds[0]) next.set("attempt", search.allocationIds[0]);
  if (search.onlyMatches) next.set("only", "1");
  return next;
}

/** Returns the filter of the lines in the window. */
export function windowFilter({ onlyMatches, ...filter }: LogSearch): LogFilter {
  return onlyMatches ? filter : { ...filter, search: "", regex: false };
}

/** Returns the place at which an address opens a log: a line, or the end. */
export function startOf(params: URLSearchParams): LogPlace {
  const line = params.get("line");
  return line ? { around: Number(line) } : {};
}
