import { clsx } from "clsx";
import { type KeyboardEvent, useState } from "react";
import { Link } from "react-router";
import { useSession } from "@/hooks/useSession";
import { StateBadge } from "@/components/StateBadge";
import { TimeText } from "@/components/TimeText";
import { escapeControl } from "@/format/escapeControl";
import { useApiMutation } from "@/hooks/useApiMutation";
import { moveJob, type QueueEntry, type QueueMove } from "@/services/cluster";
import { oneStep, toPlaceOf } from "./queueMoves";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./Queue.module.css";

const STEPS: Record<string, -1 | 1> = { ArrowUp: -1, ArrowDown: 1 };

/**
 * Tasks that hold slots or wait for them, in order, with the waiting reasons. Owners and admins can move waiting ones.
 */
export function Queue({ entries }: { entries: readonly QueueEntry[] }) {
  const { user, payers } = useSession();
  const [dragged, setDragged] = useState<QueueEntry | null>(null);
  const { mutate: move } = useApiMutation({ mutationFn: moveJob, invalidates: [["cluster"]] });
  const apply = (change: QueueMove | null) => {
    if (change) move(change);
  };
  const isMovable = (entry: QueueEntry) => entry.state === "STATE_QUEUED" && (user.admin || user.id === entry.userId);
  const onKey = (event: KeyboardEvent, entry: QueueEntry) => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    apply(oneStep(entries, entry, step));
  };
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
                <th>
                  <span className={typography.visuallyHidden}>Move</span>
                </th>
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
                <tr
                  key={entry.allocationId}
                  className={clsx(dragged?.jobId === entry.jobId && styles.dragged)}
                  onDragOver={(event) => {
                    if (dragged && toPlaceOf(entries, dragged, entry)) event.preventDefault();
                  }}
                  onDrop={() => {
                    if (dragged) apply(toPlaceOf(entries, dragged, entry));
                    setDragged(null);
                  }}
                >
                  <td data-label="Move">
                    {isMovable(entry) && (
                      <button
                        type="button"
                        className={styles.handle}
                        aria-label={`Move ${entry.name}`}
                        title="Drag, or press the up and down arrow keys"
                        draggable
                        onDragStart={() => setDragged(entry)}
                        onDragEnd={() => setDragged(null)}
                        onKeyDown={(event) => onKey(event, entry)}
                      >
                        ⠿
                      </button>
                    )}
                  </td>
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
                  <td data-label="User">
                    {escapeControl(entry.username)}
                    {payers[entry.pool] && (
                      <div className={clsx(typography.soft, typography.small)}>
                        charged to {escapeControl(payers[entry.pool]!)}
                      </div>
                    )}
                  </td>
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
