import { Confirmation } from "@/components/Confirmation";
import { escapeControl } from "@/format/escapeControl";
import type { OverviewSlot } from "@/services/cluster";
import experimentNamesStyles from "@/components/ExperimentNames.module.css";

interface Props {
  /** As in "agent gpu-1" or "slot 0 of gpu-1". */
  what: string;
  slots: readonly OverviewSlot[];
  onClose: () => void;
  disable: () => void;
  drain: () => void;
}

/** Names the trials that are killed when a machine or one slot is disabled, and offers to drain it instead. */
export function DisableDialog({ what, slots, onClose, disable, drain }: Props) {
  const held = slots.flatMap((slot) => slot.held ?? []);
  const trials = [...new Map(held.map((holder) => [holder.trialId, holder])).values()];
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
        <p>No trial uses a slot here. Tasks without slots are killed.</p>
      ) : (
        <>
          <p>
            {trials.length === 1 ? "This trial is" : `These ${trials.length} trials are`} killed at once, without a
            checkpoint. The work since the last checkpoint is lost:
          </p>
          <ul className={experimentNamesStyles.names} aria-label="Trials">
            {trials.map(({ trialId, experimentId, experimentName }) => (
              <li key={trialId}>
                Trial {trialId} of experiment {experimentId}, {escapeControl(experimentName)}
              </li>
            ))}
          </ul>
        </>
      )}
      <p>Drain lets running trials finish and starts no new ones.</p>
    </Confirmation>
  );
}
