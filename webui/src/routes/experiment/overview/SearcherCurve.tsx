import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { BoardState } from "@/components/board/boardState";
import { searcherOf } from "@/components/board/direction";
import { Panel } from "@/components/board/Panel";
import { panelsOf } from "@/components/board/panels";
import { trialsQuery } from "@/services/experiments";
import { experimentMetricNamesQuery } from "@/services/trials";
import type { TabProps } from "../tabProps";
import { bestTrials } from "./bestTrials";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const DISPLAY_LIMIT = 8;
const STATE: BoardState = { x: "batches", smoothing: 0, logX: false, logY: false, metrics: [], zoom: null };

/** The curves of the searcher's metric: of the only trial, or of the best ones. */
export default function SearcherCurve({ experiment }: TabProps) {
  const [zoom, setZoom] = useState<BoardState["zoom"]>(null);
  const names = useQuery(experimentMetricNamesQuery(experiment.id));
  const trials = useQuery(trialsQuery(experiment.id));
  const runs = useMemo(
    () => bestTrials(trials.data ?? [], searcherOf(experiment), DISPLAY_LIMIT),
    [trials.data, experiment],
  );
  const { searcherMetric } = experiment;
  const panel = useMemo(
    () =>
      panelsOf(names.data?.metrics ?? [], searcherMetric).find(({ metrics }) =>
        metrics.some(({ group, name }) => group === "validation" && name === searcherMetric),
      ),
    [names.data, searcherMetric],
  );
  const state = useMemo(() => ({ ...STATE, zoom }), [zoom]);
  if (!panel || runs.length === 0) {
    return (
      <section className={layout.card} aria-label="Searcher metric">
        <p className={typography.hint}>
          {names.data ? "The curve appears with the first validation." : "loading the curve…"}
        </p>
      </section>
    );
  }
  // Curves of several trials are distinguished only by their colours.
  const metrics = runs.length === 1 ? panel.metrics : panel.metrics.filter(({ group }) => group === "validation");
  return (
    <Panel
      name={runs.length === 1 ? panel.name : searcherMetric}
      metrics={metrics}
      experimentId={experiment.id}
      runs={runs}
      state={state}
      change={(change) => change.zoom !== undefined && setZoom(change.zoom)}
      syncKey={`overview-${experiment.id}`}
    />
  );
}
