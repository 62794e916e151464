import type { Better } from "@/components/board/direction";
import { useMemo, useState } from "react";
import { figure } from "@/format/number";
import { useShownTheme } from "@/browser/preferences";
import type { SearchSpace } from "./searchSpace";
import { type Axis, axisOf, type Point } from "./axes";
import { goodness, inkOn, shade } from "./shades";
import { escapeControl } from "@/format/escapeControl";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./HeatMap.module.css";

interface Props {
  points: readonly Point[];
  names: readonly string[];
  metric: string;
  /** Null: larger values are drawn like better ones. */
  better: Better | null;
  spaces: ReadonlyMap<string, SearchSpace>;
}

const CELLS = 6;

interface Cell {
  mean: number;
  count: number;
}

/** Returns the values of an axis in at most six bins. Few values have one bin each. */
export function stepOf(axis: Axis, value: unknown): number | null {
  const place = axis.place(value);
  if (place === null) return null;
  if (axis.few) {
    const step = axis.few.findIndex((each) => Math.abs(each.place - place) < 1e-9);
    return step < 0 ? null : step;
  }
  return Math.min(CELLS - 1, Math.floor(place * CELLS));
}

export function stepsOf(axis: Axis): string[] {
  if (axis.few) return axis.few.map((each) => each.title);
  return Array.from({ length: CELLS }, (_, index) => `${axis.label(index / CELLS)}–${axis.label((index + 1) / CELLS)}`);
}

/** The mean of the metric over two hyperparameters. Each cell shows its value; the colour is only an aid. */
export function HeatMap({ points, names, metric, better, spaces }: Props) {
  useShownTheme();
  const [first, setFirst] = useState(names[0] ?? "");
  const [second, setSecond] = useState(names[1] ?? names[0] ?? "");
  const across = useMemo(
    () =>
      axisOf(
        first,
        points.map((point) => point.values[first]),
        spaces.get(first),
      ),
    [points, first, spaces],
  );
  const down = useMemo(
    () =>
      axisOf(
        second,
        points.map((point) => point.values[second]),
        spaces.get(second),
      ),
    [points, second, spaces],
  );
  const cells = useMemo(() => {
    const sums = new Map<string, Cell>();
    for (const point of points) {
      const [x, y] = [stepOf(across, point.values[first]), stepOf(down, point.values[second])];
      if (x === null || y === null || !Number.isFinite(point.metric)) continue;
      const cell = sums.get(`${x}/${y}`) ?? { mean: 0, count: 0 };
      sums.set(`${x}/${y}`, {
        mean: (cell.mean * cell.count + point.metric) / (cell.count + 1),
        count: cell.count + 1,
      });
    }
    return sums;
  }, [points, across, down, first, second]);
  const keys = [...cells.keys()];
  const good = goodness(
    [...cells.values()].map((cell) => cell.mean),
    better === "smaller",
  );
  const choose = (value: string, set: (name: string) => void, label: string) => (
    <label>
      <span className={typography.soft}>{label}</span>
      <select value={value} onChange={(event) => set(event.target.value)}>
        {names.map((name) => (
          <option key={name} value={name}>
            {escapeControl(name)}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <div className={layout.field}>
      <div className={layout.row}>
        {choose(first, setFirst, "across")} {choose(second, setSecond, "down")}
      </div>
      <div
        className={layout.scrollX}
        role="region"
        aria-label={`Mean ${metric} over ${first} and ${second}`}
        tabIndex={0}
      >
        <table className={styles.heat}>
          <caption className={typography.visuallyHidden}>
            Mean {escapeControl(metric)} over {escapeControl(first)} and {escapeControl(second)}
          </caption>
          <thead>
            <tr>
              <th />
              {stepsOf(across).map((step) => (
                <th key={step}>{step}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {stepsOf(down).map((step, y) => (
              <tr key={step}>
                <th>{step}</th>
                {stepsOf(across).map((_, x) => {
                  const cell = cells.get(`${x}/${y}`);
                  const fraction = good[keys.indexOf(`${x}/${y}`)] ?? 0;
                  return (
                    <td
                      key={x}
                      style={cell ? { background: shade(fraction), color: inkOn(fraction) } : {}}
                      title={cell ? `${cell.count} trials` : "no trial"}
                    >
                      {cell ? figure(cell.mean) : ""}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
