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
          <table className={layout.table}>
            <thead>
              <tr>
                <th>Experiment</th>
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
                  <td>
                    <Link to={`/experiments/${entry.experimentId}`}>{escapeControl(entry.experimentName)}</Link>
                  </td>
                  <td>
                    <Link to={`/experiments/${entry.experimentId}/trials/${entry.trialId}`}>{entry.trialId}</Link>
                  </td>
                  <td>
                    <StateBadge state={entry.state} />
                  </td>
                  <td className={layout.numberCell}>{entry.slots}</td>
                  <td className={layout.numberCell}>{entry.priority}</td>
                  <td>{escapeControl(entry.username)}</td>
                  <td>
                    <TimeText at={entry.since} />
                  </td>
                  <td>{escapeControl(entry.waiting)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
