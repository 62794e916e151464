import type { Better } from "@/components/board/direction";
import { useMemo } from "react";
import { Link } from "react-router";
import { figure } from "@/format/number";
import { useShownTheme } from "@/browser/preferences";
import type { SearchSpace } from "./searchSpace";
import { axisOf, type Point } from "./axes";
import { goodness, shade } from "./shades";
import { escapeControl } from "@/format/escapeControl";
import panelStyles from "@/components/board/Panel.module.css";
import parallelCoordinatesStyles from "./ParallelCoordinates.module.css";
import layout from "@/styles/layout.module.css";

interface Props {
  points: readonly Point[];
  name: string;
  metric: string;
  /** Null: larger values are drawn like better ones. */
  better: Better | null;
  space: SearchSpace | undefined;
}

const WIDTH = 300;
const HEIGHT = 190;
const LEFT = 52;
const BOTTOM = 30;

/** The metric over one hyperparameter, with one point per trial. */
export function Scatter({ points, name, metric, better, space }: Props) {
  useShownTheme();
  const drawn = useMemo(() => points.filter((point) => Number.isFinite(point.metric)), [points]);
  const x = axisOf(
    name,
    drawn.map((point) => point.values[name]),
    space,
  );
  const y = axisOf(
    metric,
    drawn.map((point) => point.metric),
  );
  const good = goodness(
    drawn.map((point) => point.metric),
    better === "smaller",
  );
  const left = (place: number) => LEFT + 8 + place * (WIDTH - LEFT - 20);
  const down = (place: number) => HEIGHT - BOTTOM - 6 - place * (HEIGHT - BOTTOM - 18);
  return (
    <figure className={layout.card}>
      <h3 className={panelStyles.title}>{escapeControl(name)}</h3>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="group"
        aria-label={`${metric} over ${name}, ${drawn.length} trials`}
      >
        <line x1={LEFT} x2={WIDTH - 8} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} stroke="var(--line)" />
        <line x1={LEFT} x2={LEFT} y1={8} y2={HEIGHT - BOTTOM} stroke="var(--line)" />
        {[0, 0.5, 1].map((tick) => (
          <g key={tick} className={parallelCoordinatesStyles.tick}>
            <text x={LEFT - 5} y={down(tick) + 4} textAnchor="end">
              {y.label(tick)}
            </text>
            <text
              x={left(tick)}
              y={HEIGHT - BOTTOM + 16}
              textAnchor={tick === 0 ? "start" : tick === 1 ? "end" : "middle"}
            >
              {x.kind === "words" && tick === 0.5 ? "" : x.label(tick)}
            </text>
          </g>
        ))}
        {drawn.map((point, index) => {
          const [across, up] = [x.place(point.values[name]), y.place(point.metric)];
          if (across === null || up === null) return null;
          return (
            <Link
              key={point.trialId}
              to={`/experiments/${point.experimentId}/trials/${point.trialId}`}
              tabIndex={-1}
              aria-hidden="true"
            >
              <circle
                cx={left(across)}
                cy={down(up)}
                r={good[index] === 1 ? 6 : 4}
                fill={shade(good[index]!)}
                stroke="var(--ink)"
                strokeWidth={good[index] === 1 ? 2 : 0.5}
              >
                <title>
                  {escapeControl(
                    `trial ${point.trialId}: ${name} ${figure(point.values[name])}, ${metric} ${figure(point.metric)}`,
                  )}
                </title>
              </circle>
            </Link>
          );
        })}
      </svg>
    </figure>
  );
}
