import { clsx } from "clsx";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { messageOf } from "@/api/problem";
import { useShownTheme } from "@/browser/preferences";
import { useLatest } from "@/hooks/useLatest";
import { useOnScreen } from "@/hooks/useOnScreen";
import { seriesQuery } from "@/services/series";
import type { MetricId, TrialMark } from "@/services/trials";
import { Button } from "../base/Button";
import { Failure } from "../base/Failure";
import { useSay } from "../base/Toasts";
import { csvOf, download } from "../charts/csv";
import { type ChartHandle, LineChart } from "../charts/LineChart";
import type { BoardState } from "./boardState";
import { panelQuestion } from "./firstQuestion";
import { Legend } from "./Legend";
import { linesOf, type Run } from "./lines";
import { NO_MARKS, placed } from "./marks";
import { escapeControl } from "@/format/escapeControl";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./Panel.module.css";

interface Props {
  name: string;
  metrics: readonly MetricId[];
  experimentId: number | "many";
  runs: readonly Run[];
  state: BoardState;
  change: (change: Partial<BoardState>) => void;
  marks?: readonly TrialMark[];
  banded?: boolean;
  syncKey: string;
}

/** One metric: its curve for each run, with training and validation in one chart. */
export function Panel({
  name,
  metrics,
  experimentId,
  runs,
  state,
  change,
  marks = NO_MARKS,
  banded = false,
  syncKey,
}: Props) {
  const queries = useQueryClient();
  const say = useSay();
  const theme = useShownTheme();
  const frame = useRef<HTMLElement>(null);
  const chart = useRef<ChartHandle>(null);
  // There may be thousands of panels, so only those that were on the screen load their series.
  const seen = useOnScreen(frame);
  const trialIds = runs.map((run) => run.trialId);
  const question = panelQuestion(metrics, experimentId, trialIds, state);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [highlighted, setHighlighted] = useState<string | null>(null);
  const toggle = (key: string) => {
    setHighlighted(null);
    setHidden((now) => (now.has(key) ? new Set([...now].filter((each) => each !== key)) : new Set([...now, key])));
  };
  const asked = useQuery({ ...seriesQuery(question), enabled: seen });
  const { error } = asked;
  const data = useLatest(asked.data);
  const lines = useMemo(
    () => linesOf(data ?? [], runs, { x: state.x, smoothing: state.smoothing, banded }),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- colours depend on the theme
    [data, runs, state.x, state.smoothing, banded, theme],
  );
  const shownMarks = useMemo(() => placed(marks, state.x, data ?? []), [marks, state.x, data]);
  const savePicture = async () => {
    try {
      if (chart.current) download(await chart.current.picture(), `${name}.png`);
    } catch (failure) {
      say({ text: messageOf(failure), kind: "failed" });
    }
  };
  const saveTable = async () => {
    try {
      const all = await queries.fetchQuery(seriesQuery({ ...question, maxPoints: 5000 }));
      download(new Blob([csvOf(all)], { type: "text/csv" }), `${name}.csv`);
    } catch (failure) {
      say({ text: messageOf(failure), kind: "failed" });
    }
  };
  const thinned = (data ?? []).filter((series) => series.count > series.values.length).length;
  return (
    <section className={layout.card} ref={frame} aria-label={name} aria-busy={(seen && !data && !error) || undefined}>
      <div className={styles.tools}>
        <h3 className={clsx(styles.title, layout.grow)}>{escapeControl(name)}</h3>
        <Button kind="quiet" aria-label={`PNG of ${name}`} onClick={() => void savePicture()}>
          PNG
        </Button>
        <Button kind="quiet" aria-label={`CSV of ${name}`} onClick={() => void saveTable()}>
          CSV
        </Button>
      </div>
      {error && !data ? (
        <Failure error={error} />
      ) : data && lines.length === 0 ? (
        <p className={typography.hint}>
          No point of {escapeControl(name)} over {state.x} yet.
        </p>
      ) : (
        <LineChart
          ref={chart}
          title={name}
          lines={lines}
          marks={shownMarks}
          x={state.x}
          logX={state.logX}
          logY={state.logY}
          syncKey={syncKey}
          hidden={hidden}
          highlighted={highlighted}
          zoom={state.zoom}
          onZoom={(zoom) => change({ zoom })}
        />
      )}
      <Legend lines={lines} hidden={hidden} onToggle={toggle} onHighlight={setHighlighted} />
      {thinned > 0 && (
        <p className={typography.visuallyHidden}>Downsampled: minima and maxima are kept. Zoom in for all points.</p>
      )}
    </section>
  );
}
