import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { seriesQuery } from "@/services/series";
import type { MetricId, TrialMark } from "@/services/trials";
import { Button } from "../base/Button";
import { EmptyState } from "../base/EmptyState";
import { axesOf } from "./axes";
import { BoardSection } from "./BoardSection";
import { useBoardState } from "./boardState";
import { panelQuestion } from "./firstQuestion";
import type { Run } from "./lines";
import { Panel } from "./Panel";
import { boardPanels, sectionsOf } from "./panels";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./MetricBoard.module.css";

interface Props {
  experimentId: number | "many";
  runs: readonly Run[];
  names: readonly (MetricId & { type?: string })[];
  searcherMetric: string;
  /** Events of the only run. */
  marks?: readonly TrialMark[];
  /** Set if runs are grouped: whether groups are drawn as bands, and the setter. */
  bands?: { isOn: boolean; set: (isOn: boolean) => void } | undefined;
}

const AXES = { batches: "steps", epochs: "epochs", time: "time" } as const;

/** Curves of all metrics under common controls. */
export function MetricBoard({ experimentId, runs, names, searcherMetric, marks, bands }: Props) {
  const [state, change] = useBoardState();
  const [query, setQuery] = useState("");
  const banded = bands?.isOn ?? false;
  const panels = useMemo(() => boardPanels(names, searcherMetric), [names, searcherMetric]);
  const wanted = query.trim().toLowerCase();
  const matching = panels.filter((panel) =>
    wanted
      ? panel.name.toLowerCase().includes(wanted)
      : state.metrics.length === 0 || state.metrics.includes(panel.name),
  );
  const isChosen = wanted !== "" || state.metrics.length > 0;
  const sections = isChosen ? [{ title: "Found", panels: matching, isOpen: true }] : sectionsOf(matching);
  // The first panel's own query: all panels of a board share the axes of its runs.
  const trialIds = runs.map((run) => run.trialId);
  const first = seriesQuery(panelQuestion(panels[0]?.metrics ?? [], experimentId, trialIds, state));
  const enabled = panels.length > 0 && runs.length > 0;
  const queries = useQueryClient();
  // The query starts while the rest of the page is being rendered.
  if (enabled && !queries.getQueryState(first.queryKey)) void queries.prefetchQuery(first);
  const sample = useQuery({ ...first, enabled });
  const axes = useMemo(() => [...new Set([...axesOf(sample.data ?? []), state.x])], [sample.data, state.x]);
  if (panels.length === 0)
    return <EmptyState title="No metrics yet">They appear here as soon as the training code reports some.</EmptyState>;
  return (
    <section className={layout.field} aria-label="Curves">
      <div className={styles.controls} role="group" aria-label="How curves are drawn">
        <label>
          <span className={typography.soft}>x</span>
          <select
            value={state.x}
            onChange={(event) => change({ x: event.target.value as typeof state.x })}
            aria-label="x axis"
          >
            {axes.map((axis) => (
              <option key={axis} value={axis}>
                {AXES[axis]}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span className={typography.soft}>Smoothing</span>
          <input
            type="range"
            min={0}
            max={0.99}
            step={0.01}
            value={state.smoothing}
            onChange={(event) => change({ smoothing: Number(event.target.value) })}
            aria-label="Smoothing"
          />
          <span className={typography.number}>{state.smoothing.toFixed(2)}</span>
        </label>
        <Button aria-pressed={state.logY} onClick={() => change({ logY: !state.logY })}>
          log y
        </Button>
        <Button
          aria-pressed={state.logX}
          why={state.x === "time" ? "not over time" : undefined}
          onClick={() => change({ logX: !state.logX })}
        >
          log x
        </Button>
        {bands && (
          <Button
            aria-pressed={banded}
            onClick={() => bands.set(!banded)}
            title="Minimum to maximum over runs that differ only in their seed"
          >
            Bands of seeds
          </Button>
        )}
        {state.zoom && <Button onClick={() => change({ zoom: null })}>Reset zoom</Button>}
        <input
          type="search"
          className={layout.grow}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          placeholder={`Find one of ${panels.length} metrics`}
          aria-label="Find a metric"
        />
      </div>
      {sections.map((section) => (
        <BoardSection key={section.title} section={section} isOnly={sections.length === 1}>
          {(panel) => (
            <Panel
              key={panel.name}
              name={panel.name}
              metrics={panel.metrics}
              experimentId={experimentId}
              runs={runs}
              state={state.x === "time" && state.logX ? { ...state, logX: false } : state}
              change={change}
              {...(marks ? { marks } : {})}
              banded={banded}
              syncKey={`board-${experimentId}`}
            />
          )}
        </BoardSection>
      ))}
      {matching.length === 0 && <p className={typography.hint}>No matching metric.</p>}
    </section>
  );
}
