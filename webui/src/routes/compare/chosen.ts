import { wireFilter } from "@/filter/wire";
import { rowsQuery } from "@/services/columns";

export const MAX_RUNS = 500;

export interface Chosen {
  experiments: number[];
  trials: number[];
}

function numbers(text: string | null): number[] {
  return [...new Set((text ?? "").split(",").map(Number))].filter((each) => Number.isInteger(each) && each > 0);
}

/** The runs that an address compares. */
export function chosenRuns(params: URLSearchParams): Chosen {
  return { experiments: numbers(params.get("experiments")), trials: numbers(params.get("trials")) };
}

/** Rows of the list, which name the best trial of each experiment. */
export function chosenRowsQuery(experiments: readonly number[]) {
  const children = experiments.map((value) => ({
    kind: "field" as const,
    column: "id",
    operator: "=" as const,
    value,
  }));
  const filter = wireFilter({ kind: "group", conjunction: "or", children }, true);
  return rowsQuery({ filter, sort: "id=asc", showArchived: true }, [], 0);
}
