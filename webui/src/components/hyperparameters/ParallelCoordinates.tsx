import type { Better } from "@/components/board/direction";
import { clsx } from "clsx";
import { type PointerEvent, useMemo, useState } from "react";
import { useNavigate } from "react-router";
import { figure } from "@/format/number";
import { useShownTheme } from "@/browser/preferences";
import type { SearchSpace } from "./searchSpace";
import { type Axis, axisOf, type Point } from "./axes";
import { goodness, shade } from "./shades";
import { escapeControl } from "@/format/escapeControl";
import buttonStyles from "@/components/base/Button.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./ParallelCoordinates.module.css";

interface Props {
  points: readonly Point[];
  names: readonly string[];
  metric: string;
  /** Null: larger values are drawn like better ones. */
  better: Better | null;
  spaces: ReadonlyMap<string, SearchSpace>;
}

const WIDTH = 1000;
const HEIGHT = 320;
const TOP = 34;
const BOTTOM = 18;
const DISPLAY_LIMIT = 1000;

type Brushes = Record<string, [number, number]>;

/**
 * One line per trial over all hyperparameters, with the metric last. Dragging along an axis selects the lines in that
 * range.
 */
export function ParallelCoordinates({ points, names, metric, better, spaces }: Props) {
  useShownTheme();
  const navigate = useNavigate();
  const [brushes, setBrushes] = useState<Brushes>({});
  const [over, setOver] = useState<Point | null>(null);
  const axes = useMemo<Axis[]>(
    () => [
      ...names.map((name) =>
        axisOf(
          name,
          points.map((point) => point.values[name]),
          spaces.get(name),
        ),
      ),
      axisOf(metric, points.map((point) => point.metric).filter(Number.isFinite)),
    ],
    [points, names, metric, spaces],
  );
  const good = useMemo(
    () =>
      goodness(
        points.map((point) => point.metric),
        better === "smaller",
      ),
    [points, better],
  );
  const left = (index: number) => 50 + (index * (WIDTH - 100)) / Math.max(1, axes.length - 1);
  const down = (place: number) => HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM);
  const placeOf = (axis: Axis, index: number, point: Point) =>
    axis.place(index === axes.length - 1 ? point.metric : point.values[axis.name]);
  const isKept = (point: Point) =>
    axes.every((axis, index) => {
      const brush = brushes[axis.name];
      const place = placeOf(axis, index, point);
      return !brush || (place !== null && place >= brush[0] && place <= brush[1]);
    });
  const shown = points
    .map((point, index) => ({ point, good: good[index]! }))
    .filter(({ good: each }) => !Number.isNaN(each))
    .sort((a, b) => a.good - b.good)
    .slice(-DISPLAY_LIMIT);
  const kept = shown.filter(({ point }) => isKept(point));
  return (
    <figure>
      <div className={layout.scrollX} role="region" aria-label="Parallel coordinates, drawn" tabIndex={0}>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          role="img"
          aria-label={`Hyperparameters of ${shown.length} trials against ${metric}`}
          className={styles.plot}
        >
          {shown.map(({ point, good: each }) => {
            const places = axes
              .map((axis, index) => [left(index), placeOf(axis, index, point)] as const)
              .filter(([, place]) => place !== null);
            const on = kept.some((one) => one.point === point);
            return (
              <polyline
                key={point.trialId}
                points={places.map(([x, place]) => `${x},${down(place!)}`).join(" ")}
                fill="none"
                stroke={on ? shade(each) : "var(--ink-soft)"}
                strokeWidth={over === point ? 4 : on ? 1.6 : 1}
                opacity={on ? 1 : 0.3}
                className={styles.line}
                onPointerEnter={() => setOver(point)}
                onPointerLeave={() => setOver(null)}
                onClick={() => void navigate(`/experiments/${point.experimentId}/trials/${point.trialId}`)}
              />
            );
          })}
          {axes.map((axis, index) => (
            <AxisLine
              key={axis.name}
              axis={axis}
              x={left(index)}
              down={down}
              isLast={index === axes.length - 1}
              brush={brushes[axis.name]}
              onBrush={(brush) => setBrushes((now) => withBrush(now, axis.name, brush))}
            />
          ))}
        </svg>
      </div>
      <figcaption className={clsx(layout.row, typography.small)}>
        <span className={typography.soft}>{better ? "worst" : "lowest"}</span>
        <svg width="120" height="8" aria-hidden="true">
          {Array.from({ length: 24 }, (_, index) => (
            <rect key={index} x={index * 5} width="5" height="8" fill={shade(index / 23)} />
          ))}
        </svg>
        <span className={typography.soft}>{better ? "best" : "highest"}</span>
        <span className={layout.grow} role="status">
          {over
            ? `trial ${over.trialId}: ${metric} ${figure(over.metric)}`
            : Object.keys(brushes).length > 0
              ? `${kept.length} of ${shown.length} trials`
              : `${shown.length} trials`}
        </span>
        {Object.keys(brushes).length > 0 && (
          <button
            type="button"
            className={clsx(buttonStyles.button, buttonStyles.quiet)}
            onClick={() => setBrushes({})}
          >
            Clear ranges
          </button>
        )}
      </figcaption>
    </figure>
  );
}

function withBrush(now: Brushes, name: string, brush: [number, number] | null): Brushes {
  const rest = Object.fromEntries(Object.entries(now).filter(([each]) => each !== name));
  return brush ? { ...rest, [name]: brush } : rest;
}

interface AxisProps {
  axis: Axis;
  x: number;
  down: (place: number) => number;
  isLast: boolean;
  brush: [number, number] | undefined;
  onBrush: (brush: [number, number] | null) => void;
}

function AxisLine({ axis, x, down, isLast, brush, onBrush }: AxisProps) {
  const drag = (event: PointerEvent<SVGRectElement>) => {
    const target = event.currentTarget;
    const box = target.ownerSVGElement!.getBoundingClientRect();
    const place = (y: number) =>
      Math.min(1, Math.max(0, 1 - (((y - box.top) / box.height) * HEIGHT - TOP) / (HEIGHT - TOP - BOTTOM)));
    const start = place(event.clientY);
    target.setPointerCapture(event.pointerId);
    target.onpointermove = (move) =>
      onBrush([Math.min(start, place(move.clientY)), Math.max(start, place(move.clientY))]);
    target.onpointerup = (up) => {
      target.onpointermove = null;
      if (Math.abs(place(up.clientY) - start) < 0.01) onBrush(null);
    };
  };
  return (
    <g>
      <text x={isLast ? x + 40 : x} y={16} textAnchor={isLast ? "end" : "middle"} className={styles.name}>
        {escapeControl(axis.name.length > 22 ? `${axis.name.slice(0, 21)}…` : axis.name)}
        <title>{escapeControl(axis.name)}</title>
      </text>
      <line x1={x} x2={x} y1={down(0)} y2={down(1)} stroke="var(--ink-soft)" />
      {axis.ticks.map(({ place, title }) => (
        <text key={place} x={x + 6} y={down(place) - 4} className={styles.tick}>
          {escapeControl(title)}
        </text>
      ))}
      {brush && (
        <rect
          x={x - 6}
          width={12}
          y={down(brush[1])}
          height={Math.max(1, down(brush[0]) - down(brush[1]))}
          className={styles.brush}
        />
      )}
      <rect
        x={x - 12}
        width={24}
        y={TOP}
        height={HEIGHT - TOP - BOTTOM}
        fill="transparent"
        className={styles.grip}
        onPointerDown={drag}
      />
    </g>
  );
}
