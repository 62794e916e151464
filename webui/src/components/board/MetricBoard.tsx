import { useMemo, useState } from "react";
import type { MetricId, TrialMark } from "@/services/trials";
import { Button } from "../base/Button";
import { EmptyState } from "../base/EmptyState";
import { useBoardState } from "./boardState";
import type { Run } from "./lines";
import { Panel } from "./Panel";
import { type PanelOf, panelsOf } from "./panels";
import { isProfile } from "./profile";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./MetricBoard.module.css";

interface Props {
  experimentId: number | "many";
  runs: readonly Run[];
  names: readonly (MetricId & { type?: string })[];
  searcherMetric: string;
  /** What happened to the one run that is drawn. */
  marks?: readonly TrialMark[];
  /** Runs are in groups that may be drawn as bands. */
  groupable?: boolean;
}

const FIRST = 6;
const DISPLAY_LIMIT = 60;

/** Curves of all metrics, with what is common to them above. */
export function MetricBoard({ experimentId, runs, names, searcherMetric, marks, groupable = false }: Props) {
  const [state, change] = useBoardState();
  const [query, setQuery] = useState("");
  const [shown, setShown] = useState(FIRST);
  const [banded, setBanded] = useState(false);
  const panels = useMemo(
    () =>
      panelsOf(
        names.filter(({ group }) => !isProfile(group)),
        searcherMetric,
      ),
    [names, searcherMetric],
  );
  const wanted = query.trim().toLowerCase();
  const matching = panels.filter((panel) =>
    wanted
      ? panel.name.toLowerCase().includes(wanted)
      : state.metrics.length === 0 || state.metrics.includes(panel.name),
  );
  const visible: PanelOf[] = matching.slice(0, Math.min(shown, DISPLAY_LIMIT));
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
            <option value="batches">steps</option>
            <option value="epochs">epochs</option>
            <option value="time">time</option>
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
        {groupable && (
          <Button
            aria-pressed={banded}
            onClick={() => setBanded(!banded)}
            title="Minimum to maximum over runs that differ only in their seed"
          >
            Bands of seeds
          </Button>
        )}
        {state.zoom && <Button onClick={() => change({ zoom: null })}>Zoom out</Button>}
        <input
          type="search"
          className={layout.grow}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          placeholder={`Find one of ${panels.length} metrics`}
          aria-label="Find a metric"
        />
      </div>
      <div className={layout.cards}>
        {visible.map((panel) => (
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
        ))}
      </div>
      {matching.length === 0 && <p className={typography.hint}>No matching metric.</p>}
      {matching.length > visible.length && (
        <Button onClick={() => setShown(shown + 12)}>
          {Math.min(12, matching.length - visible.length)} more of {matching.length - visible.length}
        </Button>
      )}
    </section>
  );
}
