import type { experimentMetricNamesQuery } from "@/services/trials";
import type { Compared } from "./runs";

type Names = Awaited<ReturnType<NonNullable<ReturnType<typeof experimentMetricNamesQuery>["queryFn"]>>>;

/** Maximum number of experiments whose names are queried, since compared runs report the same metrics. */
const MAX_ASKED = 8;

/** Returns the experiments whose metric names are queried. Pure. */
export function namingExperiments(compared: readonly Compared[]): number[] {
  return [...new Set(compared.map((run) => run.experimentId))].slice(0, MAX_ASKED);
}

/** Merges the metric names of several experiments. The last one's type is used. Pure. */
export function mergedNames(all: readonly (Names | undefined)[]): Names["metrics"] {
  const seen = new Map<string, Names["metrics"][number]>();
  for (const names of all)
    for (const metric of names?.metrics ?? []) seen.set(`${metric.group}\u0000${metric.name}`, metric);
  return [...seen.values()];
}
