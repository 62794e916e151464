import type { experimentMetricNamesQuery } from "@/services/trials";
import type { Compared } from "./runs";

type Names = Awaited<ReturnType<NonNullable<ReturnType<typeof experimentMetricNamesQuery>["queryFn"]>>>;

/** Names of so many stand for all: runs that are compared report the same things. */
const MAX_ASKED = 8;

/** Returns the experiments whose metric names are asked for. Pure. */
export function namingExperiments(compared: readonly Compared[]): number[] {
  return [...new Set(compared.map((run) => run.experimentId))].slice(0, MAX_ASKED);
}

/** Merges the metric names of several experiments; the last one's type holds. Pure. */
export function mergedNames(all: readonly (Names | undefined)[]): Names["metrics"] {
  const seen = new Map<string, Names["metrics"][number]>();
  for (const names of all)
    for (const metric of names?.metrics ?? []) seen.set(`${metric.group}\u0000${metric.name}`, metric);
  return [...seen.values()];
}
