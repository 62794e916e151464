import { wireFilter } from "@/filter/wire";
import { type Row, rowsQuery } from "@/services/columns";

export const MAX_RUNS = 500;
/** Maximum number of drawn runs. The others are counted. */
export const DISPLAY_LIMIT = 100;

export interface Chosen {
  experiments: readonly number[];
  trials: readonly number[];
}

function numbers(text: string | null): number[] {
  return [...new Set((text ?? "").split(",").map(Number))].filter((each) => Number.isInteger(each) && each > 0);
}

/** Returns the runs that an address compares. */
export function chosenRuns(params: URLSearchParams): Chosen {
  return { experiments: numbers(params.get("experiments")), trials: numbers(params.get("trials")) };
}

/** Rows of the list, which contain the best trial of each experiment. */
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

/** Returns the ids of the compared trials: the best one of each experiment, then the chosen ones. Pure. */
export function comparedTrialIds(
  { experiments, trials }: Chosen,
  rows: readonly Pick<Row, "id" | "trialId">[],
): number[] {
  const byId = new Map(rows.map((row) => [row.id, row.trialId]));
  const best = experiments.map((id) => byId.get(id)).filter((id): id is number => typeof id === "number");
  return [...new Set([...best, ...trials])].slice(0, MAX_RUNS);
}
