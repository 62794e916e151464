import { clsx } from "clsx";
import { type KeyboardEvent, useState } from "react";
import { Link } from "react-router";
import { useSession } from "@/hooks/useSession";
import { Button } from "@/components/base/Button";
import { useSay } from "@/components/base/Toasts";
import { Confirmation } from "@/components/Confirmation";
import { OpenPorts } from "@/components/OpenPorts";
import { StateBadge } from "@/components/StateBadge";
import { TimeText } from "@/components/TimeText";
import { duration } from "@/format/duration";
import { escapeControl } from "@/format/escapeControl";
import { useApiMutation } from "@/hooks/useApiMutation";
import { useNow } from "@/hooks/useNow";
import { killTask, moveJob, type QueueEntry, type QueueMove } from "@/services/cluster";
import { oneStep, toPlaceOf } from "./queueMoves";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./Queue.module.css";

const STEPS: Record<string, -1 | 1> = { ArrowUp: -1, ArrowDown: 1 };

const KINDS: Record<string, string> = {
  COMMAND: "command",
  SHELL: "shell",
  CHECKPOINT_GC: "removal of checkpoints",
  ENVIRONMENT: "environment",
  SEARCH: "search",
};

/**
 * Tasks of all kinds that run or wait for slots, in order, with the waiting reasons. Owners and admins can move waiting
 * ones, and kill all.
 */
export function Queue({ entries }: { entries: readonly QueueEntry[] }) {
  const { user, payers } = useSession();
  const [dragged, setDragged] = useState<QueueEntry | null>(null);
  const { mutate: move } = useApiMutation({ mutationFn: moveJob, invalidates: [["cluster"]] });
  const say = useSay();
  const [killed, setKilled] = useState<QueueEntry | null>(null);
  const { mutate: kill } = useApiMutation({
    mutationFn: killTask,
    onSuccess: (_, entry) => say({ text: `Killed ${titleOf(entry)}` }),
    invalidates: [["cluster"]],
  });
  const apply = (change: QueueMove | null) => {
    if (change) move(change);
  };
  const isOwn = (entry: QueueEntry) => user.admin || user.id === entry.userId;
  const isMovable = (entry: QueueEntry) => entry.state === "STATE_QUEUED" && isOwn(entry);
  const onKey = (event: KeyboardEvent, entry: QueueEntry) => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    apply(oneStep(entries, entry, step));
  };
  return (
    <section className={layout.card} aria-label="Tasks" id="tasks" tabIndex={-1} ref={reached}>
      <h2>Tasks</h2>
      {entries.length === 0 ? (
        <p className={typography.soft}>No task runs or waits.</p>
      ) : (
        <div className={layout.scrollX}>
          <table className={clsx(layout.table, layout.cardTable)}>
            <thead>
              <tr>
                <th>
                  <span className={typography.visuallyHidden}>Move</span>
                </th>
                <th>Experiment or task</th>
                <th>Kind</th>
                <th>State</th>
                <th className={layout.numberCell}>Slots</th>
                <th className={layout.numberCell}>Priority</th>
                <th>User</th>
                <th>Since</th>
                <th>Agents or waiting reason</th>
                <th>
                  <span className={typography.visuallyHidden}>Open and kill</span>
                </th>
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
                    <Name entry={entry} isOwn={isOwn(entry)} />
                  </td>
                  <td data-label="Kind">
                    {entry.trialId === null ? (
                      (KINDS[entry.kind] ?? entry.kind.toLowerCase())
                    ) : (
                      <Link to={`/experiments/${entry.experimentId}/trials/${entry.trialId}`}>
                        trial {entry.trialId}
                      </Link>
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
                    <Idle since={entry.idleSince} />
                  </td>
                  <td data-label="Agents or waiting reason">
                    {escapeControl(entry.waiting || entry.agents.join(", "))}
                  </td>
                  <td data-label="Open and kill">
                    {isOwn(entry) && <OpenPorts taskId={entry.taskId} ports={entry.ports} />}{" "}
                    {isOwn(entry) && (
                      <Button kind="danger" aria-label={`Kill ${titleOf(entry)}…`} onClick={() => setKilled(entry)}>
                        Kill…
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {killed && (
        <Confirmation
          open
          onClose={() => setKilled(null)}
          title={`Kill ${escapeControl(titleOf(killed))}?`}
          action="Kill"
          run={() => kill(killed)}
        >
          <p>
            {killed.trialId === null
              ? "Kill ends it at once, and what it has not saved is lost."
              : "Kill ends the trial at once, without a checkpoint. Its work since the last checkpoint is lost."}
          </p>
        </Confirmation>
      )}
    </section>
  );
}

/** The name, which leads to the experiment, or to a terminal in a shell of the user's own. */
function Name({ entry, isOwn }: { entry: QueueEntry; isOwn: boolean }) {
  const name = escapeControl(entry.name);
  if (entry.experimentId !== null) return <Link to={`/experiments/${entry.experimentId}`}>{name}</Link>;
  return entry.kind === "SHELL" && isOwn ? <Link to={`/cluster/shells/${entry.taskId}`}>{name}</Link> : name;
}

/** For how long nobody has been connected to a service. */
function Idle({ since }: { since: string | null }) {
  const now = useNow();
  if (since === null) return null;
  return (
    <div className={clsx(typography.soft, typography.small)} title={`Idle since ${since}`}>
      idle for {duration(now - Date.parse(since))}
    </div>
  );
}

function titleOf({ name, trialId }: QueueEntry): string {
  return trialId === null ? name : `trial ${trialId} of ${name}`;
}

/** Moves to the tasks if the address names them. */
function reached(section: HTMLElement | null): void {
  if (window.location.hash === "#tasks") section?.focus();
}
