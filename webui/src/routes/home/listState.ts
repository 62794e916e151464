import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";
import { type Filter, parseFilter } from "@/filter/language";
import { FilterProblem } from "@/filter/tokens";

export interface Sort {
  column: string;
  descending: boolean;
}

/** Everything that determines the content of the list. All of it is in the address. */
export interface ListState {
  query: string;
  sort: Sort[];
  columns: string[];
  group: string;
  showArchived: boolean;
}

export const DEFAULT_COLUMNS = [
  "id",
  "name",
  "state",
  "progress",
  "searcherMetricsVal",
  "startTime",
  "ran",
  "user",
  "tags",
];
export const PHONE_COLUMNS = ["state", "name", "progress"];
export const DEFAULT_SORT: Sort[] = [{ column: "id", descending: true }];

export function readState(params: URLSearchParams): ListState {
  const sort = (params.get("sort") ?? "")
    .split(",")
    .filter(Boolean)
    .map((part) => ({ column: part.replace(/=(asc|desc)$/, ""), descending: part.endsWith("=desc") }));
  const columns = params.getAll("col").filter(Boolean);
  return {
    query: params.get("q") ?? "",
    sort: sort.length > 0 ? sort : DEFAULT_SORT,
    columns: columns.length > 0 ? [...new Set(columns)] : DEFAULT_COLUMNS,
    group: params.get("group") ?? "",
    showArchived: params.get("archived") === "1",
  };
}

/** Returns the shortest address that reads back as the same state. */
export function writeState(state: ListState): URLSearchParams {
  const params = new URLSearchParams();
  if (state.query) params.set("q", state.query);
  if (sortText(state.sort) !== sortText(DEFAULT_SORT)) params.set("sort", sortText(state.sort));
  if (state.columns.join() !== DEFAULT_COLUMNS.join()) for (const column of state.columns) params.append("col", column);
  if (state.group) params.set("group", state.group);
  if (state.showArchived) params.set("archived", "1");
  return params;
}

export function sortText(sort: readonly Sort[]): string {
  return sort.map(({ column, descending }) => `${column}=${descending ? "desc" : "asc"}`).join(",");
}

/**
 * Returns the order after a click on a column's name: ascending, descending, none. With Shift the column is added to
 * the others.
 */
export function pressed(sort: readonly Sort[], column: string, add: boolean): Sort[] {
  const found = sort.find((each) => each.column === column);
  const others = add ? sort.filter((each) => each.column !== column) : [];
  if (!found) return [...others, { column, descending: false }];
  if (!found.descending)
    return add
      ? sort.map((each) => (each === found ? { column, descending: true } : each))
      : [{ column, descending: true }];
  return others.length > 0 ? others : DEFAULT_SORT;
}

export function useListState(): [ListState, (change: Partial<ListState>, replace?: boolean) => void] {
  const [params, setParams] = useSearchParams();
  const state = useMemo(() => readState(params), [params]);
  const change = useCallback(
    (next: Partial<ListState>, replace = true) =>
      setParams((now) => writeState({ ...readState(now), ...next }), { replace }),
    [setParams],
  );
  return [state, change];
}

export interface ReadFilter {
  filter: Filter | null;
  problem: FilterProblem | null;
}

export function readFilter(query: string): ReadFilter {
  try {
    return { filter: parseFilter(query), problem: null };
  } catch (error) {
    if (error instanceof FilterProblem) return { filter: null, problem: error };
    throw error;
  }
}
