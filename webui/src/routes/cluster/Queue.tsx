import { clsx } from "clsx";
import { Link } from "react-router";
import { StateBadge } from "@/components/StateBadge";
import { TimeText } from "@/components/TimeText";
import { escapeControl } from "@/format/escapeControl";
import type { QueueEntry } from "@/services/cluster";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

/** What holds slots or waits for them, in order, and in words why it waits. */
export function Queue({ entries }: { entries: readonly QueueEntry[] }) {
  return (
    <section className={layout.card} aria-label="Queue">
      <h2>Queue</h2>
      {entries.length === 0 ? (
        <p className={typography.soft}>The queue is empty.</p>
      ) : (
        <div className={layout.scrollX}>
          <table className={clsx(layout.table, layout.cardTable)}>
            <thead>
              <tr>
                <th>Experiment or task</th>
                <th>Trial</th>
                <th>State</th>
                <th className={layout.numberCell}>Slots</th>
                <th className={layout.numberCell}>Priority</th>
                <th>User</th>
                <th>Since</th>
                <th>Waiting reason</th>
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={entry.allocationId}>
                  <td data-label="Experiment or task">
                    {entry.experimentId === null ? (
                      escapeControl(entry.name)
                    ) : (
                      <Link to={`/experiments/${entry.experimentId}`}>{escapeControl(entry.name)}</Link>
                    )}
                  </td>
                  <td data-label="Trial">
                    {entry.trialId === null ? null : (
                      <Link to={`/experiments/${entry.experimentId}/trials/${entry.trialId}`}>{entry.trialId}</Link>
                    )}
                  </td>
                  <td data-label="State">
                    <StateBadge state={entry.state} />
                  </td>
                  <td data-label="Slots" className={layout.numberCell}>
                    {entry.slots}
                  </td>
                  <td data-label="Priority" className={layout.numberCell}>
                    {entry.priority}
                  </td>
                  <td data-label="User">{escapeControl(entry.username)}</td>
                  <td data-label="Since">
                    <TimeText at={entry.since} />
                  </td>
                  <td data-label="Waiting reason">{escapeControl(entry.waiting)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
