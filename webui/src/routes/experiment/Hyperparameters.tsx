import { failureOf } from "@/api/problem";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { type Part, pointsOf, varying } from "@/components/hyperparameters/axes";
import { betterOf, searcherOf } from "@/components/board/direction";
import { searchSpaces } from "@/components/hyperparameters/searchSpace";
import { HeatMap } from "@/components/hyperparameters/HeatMap";
import { ImportanceBars } from "@/components/hyperparameters/ImportanceBars";
import { ParallelCoordinates } from "@/components/hyperparameters/ParallelCoordinates";
import { Scatter } from "@/components/hyperparameters/Scatter";
import { SearchRungs } from "@/components/rungs/SearchRungs";
import { flatten } from "@/format/nested";
import { figure } from "@/format/number";
import { trialsQuery } from "@/services/experiments";
import { experimentMetricNamesQuery, summariesQuery } from "@/services/trials";
import type { TabProps } from "./tabProps";
import { escapeControl } from "@/format/escapeControl";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./Hyperparameters.module.css";

const DISPLAY_LIMIT = 500;
/** Below this number of trials the page shows a caveat. */
const FEW_TRIALS = 20;

/** Searchers that compare trials at rungs. */
const HALVING = ["adaptive_asha", "async_halving"];

const BEST = { smaller: "min", larger: "max" } as const;
/** Values of a metric without a known direction that can be compared. */
const PARTS = [
  ["last", "Last"],
  ["min", "Min"],
  ["max", "Max"],
] as const;

/** The decisions of a search, and the relation of its hyperparameters to the metric. */
export default function Hyperparameters({ experiment }: TabProps) {
  return (
    <>
      {HALVING.includes(experiment.searcherType) && <SearchRungs experimentId={experiment.id} />}
      <Influences experiment={experiment} />
    </>
  );
}

function Influences({ experiment }: TabProps) {
  const trials = useQuery(trialsQuery(experiment.id));
  const names = useQuery(experimentMetricNamesQuery(experiment.id));
  const [chosen, setChosen] = useState("");
  const [chosenPart, setChosenPart] = useState<Part>("last");
  const metrics = (names.data?.metrics ?? []).filter(
    (metric) => metric.type === "number" && metric.group === "validation",
  );
  const metric = metrics.find((each) => each.name === (chosen || experiment.searcherMetric)) ?? metrics[0];
  const ids = useMemo(() => (trials.data ?? []).slice(0, DISPLAY_LIMIT).map((trial) => trial.id), [trials.data]);
  const asked = useMemo(() => (metric ? [{ group: metric.group, name: metric.name }] : []), [metric]);
  const summaries = useQuery(summariesQuery(experiment.id, ids, asked));
  const better = betterOf(metric?.name ?? "", searcherOf(experiment));
  const part = better ? BEST[better] : chosenPart;
  const spaces = useMemo(
    () => searchSpaces((experiment.config as { hyperparameters?: unknown }).hyperparameters),
    [experiment.config],
  );
  const points = useMemo(
    () => (metric && summaries.data ? pointsOf(summaries.data, metric, part) : []),
    [summaries.data, metric, part],
  );
  const different = useMemo(() => varying(points), [points]);
  const failure = failureOf(trials, names, summaries);
  if (failure !== null) return <Failure error={failure} />;
  const isAwaited = metric !== undefined && ids.length > 0 && !summaries.data;
  if (!trials.data || !names.data || isAwaited) return <Loading what="the hyperparameters" />;
  if (different.length === 0 || !metric) return <Same hparams={trials.data[0]?.hparams ?? {}} />;
  const shared = { points, metric: metric.name, better };
  const reached = points.filter((point) => Number.isFinite(point.metric)).length;
  return (
    <section className={layout.field} aria-label="Hyperparameters">
      <div className={layout.row}>
        <label>
          <span className={typography.soft}>Metric</span>
          <select value={metric.name} onChange={(event) => setChosen(event.target.value)}>
            {metrics.map((each) => (
              <option key={each.name} value={each.name}>
                {escapeControl(each.name)}
              </option>
            ))}
          </select>
        </label>
        {!better && (
          <label>
            <span className={typography.soft}>Value</span>
            <select value={chosenPart} onChange={(event) => setChosenPart(event.target.value as Part)}>
              {PARTS.map(([value, title]) => (
                <option key={value} value={value}>
                  {title}
                </option>
              ))}
            </select>
          </label>
        )}
        {trials.data.length > DISPLAY_LIMIT && (
          <span className={typography.hint}>
            The first {DISPLAY_LIMIT} of {trials.data.length} trials.
          </span>
        )}
      </div>
      {reached < FEW_TRIALS && (
        <p className={typography.warning}>
          Only {reached} {reached === 1 ? "trial has" : "trials have"} a value. With fewer than {FEW_TRIALS}, what looks
          like an influence may be chance.
        </p>
      )}
      <section className={layout.card} aria-label="Parallel coordinates">
        <h2>Parallel coordinates</h2>
        <ParallelCoordinates {...shared} names={different} spaces={spaces} />
      </section>
      <div className={layout.cards}>
        <section className={layout.card} aria-label="Importance">
          <h2>Importance</h2>
          <ImportanceBars points={points} names={different} metric={metric.name} spaces={spaces} />
        </section>
        <section className={layout.card} aria-label="Heat map">
          <h2>Heat map</h2>
          <HeatMap key={different.join()} {...shared} names={different} spaces={spaces} />
        </section>
      </div>
      <section className={layout.field} aria-label="Scatter">
        <h2>Scatter</h2>
        <div className={styles.scatters}>
          {different.slice(0, 24).map((name) => (
            <Scatter key={name} {...shared} name={name} space={spaces.get(name)} />
          ))}
        </div>
      </section>
    </section>
  );
}

/** The values of a single run, or of a search whose trials have not reported yet. */
function Same({ hparams }: { hparams: Record<string, unknown> }) {
  const values = Object.entries(flatten(hparams));
  if (values.length === 0) return <EmptyState title="No hyperparameters">The configuration has none.</EmptyState>;
  return (
    <section className={layout.card} aria-label="Hyperparameters">
      <p className={typography.hint}>All trials have the same values, or none has reported a metric yet.</p>
      <table className={layout.table}>
        <tbody>
          {values.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">
                <code>{escapeControl(name)}</code>
              </th>
              <td className={layout.numberCell}>{typeof value === "boolean" ? String(value) : figure(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
