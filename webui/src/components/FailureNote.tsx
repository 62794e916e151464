import { Link } from "react-router";
import { escapeControl } from "@/format/escapeControl";
import type { TrialStatus } from "@/services/experiments";
import typography from "@/styles/typography.module.css";
import failureStyles from "@/components/base/Failure.module.css";

interface Props {
  experimentId: number;
  /** The trial of the failed attempt. */
  trial: TrialStatus;
  failure: NonNullable<TrialStatus["failure"]>;
}

/** The reason of a trial's failure, the attempt, and a link to the place in its log. */
export function FailureNote({ experimentId, trial, failure }: Props) {
  const base = `/experiments/${experimentId}/trials/${trial.trialId}`;
  const line = failure.logLine === null ? "" : `&line=${failure.logLine}`;
  const isOver = trial.state === "STATE_ERROR";
  return (
    <p className={isOver ? failureStyles.failure : typography.warning} role="status">
      <span>
        <strong>
          {isOver
            ? `Trial ${trial.trialId} failed on attempt ${trial.attempt} of ${trial.maxAttempts}`
            : `An earlier attempt failed; this is attempt ${trial.attempt} of ${trial.maxAttempts}`}
        </strong>
        : {escapeControl(failure.text)}
      </span>{" "}
      <Link to={`${base}/logs?attempt=${encodeURIComponent(failure.allocationId)}${line}`}>Show in log</Link>
    </p>
  );
}
