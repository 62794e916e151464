import { clsx } from "clsx";
import { useMemo, useState } from "react";
import { Link } from "react-router";
import { Button } from "@/components/base/Button";
import { StateBadge } from "@/components/StateBadge";
import { figure } from "@/format/number";
import { flatten } from "@/format/nested";
import type { Compared } from "./runs";
import { escapeControl } from "@/format/escapeControl";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

interface Props {
  runs: readonly Compared[];
  values: readonly Record<string, unknown>[];
  what: string;
  drop: (run: Compared) => void;
}

/** Values that differ between the runs, one line each. Equal ones are shown on demand. */
export function DifferenceTable({ runs, values, what, drop }: Props) {
  const [all, setAll] = useState(false);
  const lines = useMemo(() => {
    const flat = values.map((value) => flatten(value));
    const names = [...new Set(flat.flatMap((each) => Object.keys(each)))];
    return names.map((name) => {
      const exact = flat.map((each) => (Object.hasOwn(each, name) ? JSON.stringify(each[name]) : null));
      const short = flat.map((each) => (Object.hasOwn(each, name) ? text(each[name]) : null));
      const count = new Set(exact).size;
      // If two values differ beyond the usual precision, all digits are shown.
      return { name, cells: new Set(short).size === count ? short : exact, differs: count > 1 };
    });
  }, [values]);
  const shown = lines.filter((line) => all || line.differs);
  return (
    <section aria-label={`Difference of ${what}`}>
      <div className={layout.row}>
        <Button aria-pressed={all} onClick={() => setAll(!all)}>
          Show equal values
        </Button>
        <span className={typography.soft}>
          {lines.filter((line) => line.differs).length} of {lines.length} differ
        </span>
      </div>
      <div className={layout.scrollX}>
        <table className={clsx(layout.table, layout.cardTable)}>
          <thead>
            <tr>
              <th>Name</th>
              {runs.map((run) => (
                <th key={run.trialId} className={layout.numberCell}>
                  <Link to={`/experiments/${run.experimentId}/trials/${run.trialId}`}>{escapeControl(run.name)}</Link>{" "}
                  <StateBadge state={run.state} />
                  <Button
                    kind="quiet"
                    aria-label={`Remove ${run.name}, trial ${run.trialId}`}
                    onClick={() => drop(run)}
                  >
                    <Icon name="close" />
                  </Button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((line) => (
              <tr key={line.name} data-differs={line.differs || undefined}>
                <td data-label="Name">
                  <code>{escapeControl(line.name)}</code>
                  {line.differs && all && <span className={typography.tag}>differs</span>}
                </td>
                {line.cells.map((cell, index) => (
                  <td key={index} data-label={escapeControl(runs[index]!.name)} className={layout.numberCell}>
                    {cell ?? <span className={typography.soft}>none</span>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length === 0 && <p className={typography.hint}>No differences in {what}.</p>}
    </section>
  );
}

function text(value: unknown): string {
  return typeof value === "boolean" || value === null ? String(value) : figure(value);
}
