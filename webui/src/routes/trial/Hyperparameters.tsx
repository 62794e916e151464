import { EmptyState } from "@/components/base/EmptyState";
import { figure } from "@/format/number";
import { flatten } from "@/format/nested";
import type { TrialTabProps } from "./tabProps";
import { escapeControl } from "@/format/escapeControl";
import layout from "@/styles/layout.module.css";

/** The hyperparameters of the trial. */
export default function Hyperparameters({ trial }: TrialTabProps) {
  const values = Object.entries(flatten(trial.hparams));
  if (values.length === 0) return <EmptyState title="No hyperparameters">The configuration has none.</EmptyState>;
  return (
    <section className={layout.card} aria-label="Hyperparameters">
      <table className={layout.table}>
        <thead>
          <tr>
            <th>Name</th>
            <th>Value</th>
          </tr>
        </thead>
        <tbody>
          {values.map(([name, value]) => (
            <tr key={name}>
              <td>
                <code>{escapeControl(name)}</code>
              </td>
              <td className={layout.numberCell}>{typeof value === "boolean" ? String(value) : figure(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
