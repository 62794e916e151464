import { clsx } from "clsx";
import { useMemo } from "react";
import { Link } from "react-router";
import { axisOf } from "@/components/hyperparameters/axes";
import { escapeControl } from "@/format/escapeControl";
import { figure } from "@/format/number";
import type { SearchBracket, SearchDecision } from "@/services/experiments";
import parallelCoordinatesStyles from "@/components/hyperparameters/ParallelCoordinates.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./RungChart.module.css";
import { resultsOf } from "./rungs";

interface Props {
  experimentId: number;
  bracket: SearchBracket;
  decisions: readonly SearchDecision[];
  metric: string;
  unit: string;
}

const WIDTH = 640;
const HEIGHT = 220;
const LEFT = 60;
const BOTTOM = 30;

/**
 * The results at each rung of a bracket, with one point per trial, connected to the same trial's point at its next
 * rung.
 */
export function RungChart({ experimentId, bracket, decisions, metric, unit }: Props) {
  const results = useMemo(() => resultsOf(decisions, bracket.number), [decisions, bracket.number]);
  const y = axisOf(
    metric,
    results.map((each) => each.metric),
  );
  const across = (rung: number) => LEFT + ((rung - 0.5) * (WIDTH - LEFT)) / bracket.units.length;
  const down = (value: number) => HEIGHT - BOTTOM - 8 - (y.place(value) ?? 0) * (HEIGHT - BOTTOM - 20);
  const isLast = (rung: number) => rung === bracket.units.length;
  // Trials that continue are drawn over stopped ones with about the same metric.
  const drawn = [...results].sort((one, other) => Number(one.isKept) - Number(other.isKept));
  return (
    <figure className={styles.figure}>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="group"
        aria-label={escapeControl(`${metric} of bracket ${bracket.number}, ${results.length} results at rungs`)}
      >
        <line x1={LEFT} x2={WIDTH} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} stroke="var(--line)" />
        {results.length > 0 &&
          [0, 0.5, 1].map((tick) => (
            <text
              key={tick}
              className={parallelCoordinatesStyles.tick}
              x={LEFT - 6}
              y={HEIGHT - BOTTOM - 4 - tick * (HEIGHT - BOTTOM - 20)}
              textAnchor="end"
            >
              {y.label(tick)}
            </text>
          ))}
        {bracket.units.map((units, index) => (
          <text
            key={index}
            className={parallelCoordinatesStyles.tick}
            x={across(index + 1)}
            y={HEIGHT - BOTTOM + 18}
            textAnchor="middle"
          >
            {escapeControl(`rung ${index + 1}: ${figure(units)} ${unit}`)}
          </text>
        ))}
        {results.map(
          (each) =>
            each.before !== null && (
              <line
                key={`${each.trialId} ${each.rung}`}
                x1={across(each.rung - 1)}
                y1={down(each.before)}
                x2={across(each.rung)}
                y2={down(each.metric)}
                className={styles.path}
              />
            ),
        )}
        {drawn.map((each) => (
          <Link
            key={`${each.trialId} ${each.rung}`}
            to={`/experiments/${experimentId}/trials/${each.trialId}`}
            tabIndex={-1}
            aria-hidden="true"
          >
            <circle
              cx={across(each.rung)}
              cy={down(each.metric)}
              r={5}
              className={each.isKept ? styles.kept : isLast(each.rung) ? styles.finished : styles.stopped}
            >
              <title>{escapeControl(`trial ${each.trialId}: ${each.reason}`)}</title>
            </circle>
          </Link>
        ))}
      </svg>
      <table className={clsx(layout.table, layout.cardTable)}>
        <caption className={typography.hint}>
          Filled points train on or have finished, hollow ones were stopped. {bracket.trials} trials at most.
        </caption>
        <thead>
          <tr>
            <th scope="col">Rung</th>
            <th scope="col">After</th>
            <th scope="col">Results</th>
            <th scope="col">Train on</th>
          </tr>
        </thead>
        <tbody>
          {bracket.units.map((units, index) => (
            <tr key={index}>
              <th scope="row">{index + 1}</th>
              <td data-label="After">{escapeControl(`${figure(units)} ${unit}`)}</td>
              <td data-label="Results">{bracket.results[index]}</td>
              <td data-label="Train on">
                {isLast(index + 1)
                  ? "finished"
                  : results.filter((each) => each.rung === index + 1 && each.isKept).length}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}
