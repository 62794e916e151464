import { useQuery } from "@tanstack/react-query";
import { Confirmation } from "@/components/Confirmation";
import { useNow } from "@/hooks/useNow";
import { type ExperimentStatus, timelineQuery } from "@/services/experiments";
import { unsavedText, unsavedWork, withUnsavedWork } from "./unsavedWork";
import experimentNamesStyles from "@/components/ExperimentNames.module.css";
import typography from "@/styles/typography.module.css";

interface Props {
  id: number;
  status: ExperimentStatus;
  onClose: () => void;
  kill: () => void;
  stop: () => void;
}

const MAX_TRIALS = 8;

/** Names the lost work before an experiment is killed, and offers to stop it instead. */
export function KillDialog({ id, status, onClose, kill, stop }: Props) {
  const now = useNow();
  const { data: timeline, error } = useQuery(timelineQuery(id));
  const running = withUnsavedWork(status.trials).length;
  const listed = timeline ? unsavedWork(status.trials, timeline).slice(0, MAX_TRIALS) : null;
  const more = running - (listed?.length ?? 0);
  return (
    <Confirmation
      open
      onClose={onClose}
      title={`Kill experiment ${id}?`}
      action="Kill"
      run={kill}
      alternative={status.can.cancel ? { title: "Stop instead", run: stop } : undefined}
    >
      <p>Kill ends it at once, without a checkpoint. Stop saves a checkpoint first, then ends it.</p>
      {listed === null ? (
        <p>
          {error
            ? "The work since the last checkpoint is lost; the checkpoints could not be loaded."
            : "The work since the last checkpoint is lost."}
        </p>
      ) : running === 0 ? (
        <p>No trial is running, so no work is lost.</p>
      ) : (
        <>
          <p>This work is lost:</p>
          <ul className={experimentNamesStyles.names} aria-label="Lost work">
            {listed.map((work) => (
              <li key={work.trialId}>{unsavedText(work, now)}</li>
            ))}
            {more > 0 && (
              <li className={typography.soft}>
                that of {more} {listed.length > 0 && "more "}
                {more === 1 ? "trial" : "trials"}
              </li>
            )}
          </ul>
        </>
      )}
    </Confirmation>
  );
}
