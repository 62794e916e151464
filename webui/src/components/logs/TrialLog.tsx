import { useQuery } from "@tanstack/react-query";
import { exitPhrase } from "@/format/exitReasons";
import { isLive } from "@/format/states";
import { attemptsQuery, type Trial } from "@/services/trials";
import { LogViewer } from "./LogViewer";

/** The log of one trial, with filters for its attempts and ranks. */
export function TrialLog({ trial }: { trial: Trial }) {
  const { data: attempts = [] } = useQuery(attemptsQuery(trial.experimentId, trial.id));
  const world = Math.max(
    1,
    ...attempts.map((attempt) =>
      attempt.containers.reduce((sum, container) => sum + Math.max(1, container.slots.length), 0),
    ),
  );
  return (
    <LogViewer
      key={trial.id}
      trialId={trial.id}
      taskId={trial.taskId}
      isLive={isLive(trial.state)}
      ranks={Array.from({ length: world }, (_, rank) => rank)}
      attempts={attempts.map((attempt) => ({
        id: attempt.allocationId,
        title: `${attempt.runId}${attempt.reason ? ` (${exitPhrase(attempt.reason)})` : ""}`,
      }))}
    />
  );
}
