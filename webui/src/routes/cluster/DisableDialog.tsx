import { Confirmation } from "@/components/Confirmation";
import { escapeControl } from "@/format/escapeControl";
import type { OverviewSlot } from "@/services/cluster";
import experimentNamesStyles from "@/components/ExperimentNames.module.css";

interface Props {
  /** The object, as in "agent gpu-1" or "slot 0 of gpu-1". */
  what: string;
  slots: readonly OverviewSlot[];
  onClose: () => void;
  disable: () => void;
  drain: () => void;
}

/**
 * Names the trials and other tasks that are killed when a machine or one slot is disabled, and offers to drain it
 * instead.
 */
export function DisableDialog({ what, slots, onClose, disable, drain }: Props) {
  const held = slots.flatMap((slot) => slot.held ?? []);
  const tasks = [...new Map(held.map((holder) => [holder.taskId, holder])).values()];
  const trials = tasks.filter(({ trialId }) => trialId !== null);
  const others = tasks.filter(({ trialId }) => trialId === null);
  return (
    <Confirmation
      open
      onClose={onClose}
      title={`Disable ${escapeControl(what)}?`}
      action="Disable"
      run={disable}
      alternative={{ title: "Drain instead", run: drain }}
    >
      {trials.length === 0 ? (
        <p>No trial uses a slot here. {others.length === 0 && "Tasks without slots are killed."}</p>
      ) : (
        <>
          <p>
            {trials.length === 1 ? "This trial is" : `These ${trials.length} trials are`} killed at once, without a
            checkpoint. The work since the last checkpoint is lost:
          </p>
          <ul className={experimentNamesStyles.names} aria-label="Trials">
            {trials.map(({ trialId, experimentId, name }) => (
              <li key={trialId}>
                Trial {trialId} of experiment {experimentId}, {escapeControl(name)}
              </li>
            ))}
          </ul>
        </>
      )}
      {others.length > 0 && (
        <>
          <p>{others.length === 1 ? "This task is" : "These tasks are"} killed, and not started again:</p>
          <ul className={experimentNamesStyles.names} aria-label="Other tasks">
            {others.map(({ taskId, name }) => (
              <li key={taskId}>{escapeControl(name)}</li>
            ))}
          </ul>
        </>
      )}
      <p>Drain lets what runs finish and starts nothing new.</p>
    </Confirmation>
  );
}
