import type { SeriesQuestion } from "@/services/series";
import type { MetricId } from "@/services/trials";
import type { BoardState } from "./boardState";
import { boardPanels } from "./panels";

/** Query of a panel. Pure. */
export function panelQuestion(
  metrics: readonly MetricId[],
  experimentId: number | "many",
  trialIds: readonly number[],
  state: BoardState,
): SeriesQuestion {
  return {
    experimentId,
    trialIds,
    metrics,
    x: state.x,
    start: state.zoom?.[0],
    end: state.zoom?.[1],
    maxPoints: trialIds.length > 20 ? 200 : 500,
  };
}

/** Query of a board's first panel; null if the board has no panel or no run. Pure. */
export function firstQuestion(
  names: readonly (MetricId & { type?: string })[],
  searcherMetric: string,
  experimentId: number | "many",
  trialIds: readonly number[],
  state: BoardState,
): SeriesQuestion | null {
  const first = boardPanels(names, searcherMetric)[0];
  return first && trialIds.length > 0 ? panelQuestion(first.metrics, experimentId, trialIds, state) : null;
}
