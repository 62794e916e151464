import { toNumber } from "@/format/number";
import type { SearchDecision } from "@/services/experiments";

/** One trial's result at one rung. */
export interface RungResult {
  trialId: number;
  rung: number;
  metric: number;
  /** The metric at the previous rung; null at the first. */
  before: number | null;
  isKept: boolean;
  reason: string;
}

/** Returns the results at the rungs of a bracket, in the order of their arrival. */
export function resultsOf(decisions: readonly SearchDecision[], bracket: number): RungResult[] {
  const last = new Map<number, number>();
  const results: RungResult[] = [];
  for (const each of decisions) {
    const metric = toNumber(each.metric);
    if (each.bracket !== bracket || each.rung === null || !Number.isFinite(metric)) continue;
    results.push({
      trialId: each.trialId,
      rung: each.rung,
      metric,
      before: last.get(each.trialId) ?? null,
      isKept: each.kind === "kept",
      reason: each.reason,
    });
    last.set(each.trialId, metric);
  }
  return results;
}
