import { clsx } from "clsx";
import { useMemo } from "react";
import type { SearchSpace } from "./searchSpace";
import { axisOf, type Point } from "./axes";
import { importanceOf, MIN_TRIALS } from "./importance";
import { escapeControl } from "@/format/escapeControl";
import progressBarStyles from "@/components/ProgressBar.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./ImportanceBars.module.css";

interface Props {
  points: readonly Point[];
  names: readonly string[];
  metric: string;
  spaces: ReadonlyMap<string, SearchSpace>;
}

/** The importance of each hyperparameter for the metric. */
export function ImportanceBars({ points, names, metric, spaces }: Props) {
  const found = useMemo(() => {
    const axes = names.map((name) =>
      axisOf(
        name,
        points.map((point) => point.values[name]),
        spaces.get(name),
      ),
    );
    return importanceOf(
      names,
      points.map((point) => axes.map((axis) => axis.place(point.values[axis.name]) ?? -1)),
      points.map((point) => point.metric),
    );
  }, [points, names, spaces]);
  if (found.length === 0) {
    return (
      <p className={typography.hint}>
        {MIN_TRIALS} trials with a value are needed; there are{" "}
        {points.filter((point) => Number.isFinite(point.metric)).length}.
      </p>
    );
  }
  return (
    <table className={layout.table}>
      <caption className={typography.hint}>
        How much worse {escapeControl(metric)} is predicted without the hyperparameter, as a share of the total.
      </caption>
      <tbody>
        {found.map(({ name, share }) => (
          <tr key={name}>
            <th scope="row">{escapeControl(name)}</th>
            <td className={styles.cell}>
              <progress
                className={clsx(progressBarStyles.bar, styles.bar)}
                max={1}
                value={share}
                aria-label={`Importance of ${name}`}
              />
            </td>
            <td className={layout.numberCell}>{Math.round(share * 100)} %</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
