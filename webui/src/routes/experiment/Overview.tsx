import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { useSession } from "@/hooks/useSession";
import { Link } from "react-router";
import { lazy } from "@/components/base/lazy";
import { CopyText } from "@/components/base/CopyText";
import { ExactTime } from "@/components/TimeText";
import { FailureNote } from "@/components/FailureNote";
import { StateBadge } from "@/components/StateBadge";
import { TimeLine } from "@/components/timeline/TimeLine";
import { duration } from "@/format/duration";
import { bytes, figure } from "@/format/number";
import { runTimes } from "@/format/runTimes";
import { escapeControl } from "@/format/escapeControl";
import { useNow } from "@/hooks/useNow";
import { type Experiment, type ExperimentStatus, timelineQuery } from "@/services/experiments";
import { isLive, withoutState } from "@/format/states";
import { LastLines } from "./overview/LastLines";
import { Results } from "./overview/Results";
import { WhyItWaits } from "./overview/WhyItWaits";
import type { TabProps } from "./tabProps";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

/** Lazy, since it needs the code of the charts. */
const SearcherCurve = lazy<TabProps>(
  () => import("./overview/SearcherCurve"),
  () => <section className={layout.card} aria-busy="true" />,
);

/** Overview: results and hyperparameters, last log lines, time line, details. */
export function Overview({ experiment, status }: { experiment: Experiment; status: ExperimentStatus }) {
  const { data: timeline } = useQuery(timelineQuery(experiment.id));
  const { payers } = useSession();
  const pool = experiment.resourcePool ?? "";
  const waiting = status.trials.filter((trial) => trial.waiting);
  const failed = status.failure && status.trials.find((trial) => trial.trialId === status.failure?.trialId);
  // A search is represented by its best trial.
  const standing = experiment.bestTrialId ?? status.trials[0]?.trialId ?? null;
  const logged = status.failure?.trialId ?? status.trials.find(({ state }) => isLive(state))?.trialId ?? standing;
  return (
    <>
      {status.failure && failed && <FailureNote experimentId={experiment.id} trial={failed} failure={status.failure} />}
      {waiting.length > 0 && (
        <p className={typography.warning} role="status">
          Trial {waiting[0]!.trialId} {waiting[0]!.buildTaskId ? "waits for its environment" : "is waiting"}:{" "}
          {escapeControl(waiting[0]!.waiting!)}
          {waiting.length > 1 && ` (and ${waiting.length - 1} more)`}
          {waiting[0]!.buildTaskId && ` · whole log: det task logs ${waiting[0]!.buildTaskId}`}
        </p>
      )}
      {waiting.length > 0 && <WhyItWaits experimentId={experiment.id} />}
      <div className={layout.cards}>
        <SearcherCurve experiment={experiment} />
        {standing !== null && <Results experiment={experiment} trialId={standing} />}
      </div>
      {logged !== null && <LastLines experimentId={experiment.id} trialId={logged} />}
      <section className={layout.card} aria-label="Timeline">
        <h2>Timeline</h2>
        {timeline && <TimeLine timeline={timeline} />}
      </section>
      <div className={layout.cards}>
        <section className={layout.card} aria-label="About">
          <h2>About</h2>
          <dl className={typography.facts}>
            <dt>Best {experiment.searcherMetric}</dt>
            <dd className={typography.number}>
              {experiment.bestTrialSearcherMetric === null || experiment.bestTrialSearcherMetric === undefined ? (
                <span className={typography.soft}>no validation yet</span>
              ) : (
                <>
                  {figure(experiment.bestTrialSearcherMetric)}{" "}
                  <Link to={`/experiments/${experiment.id}/trials/${experiment.bestTrialId}`}>
                    trial {experiment.bestTrialId}
                  </Link>
                </>
              )}
            </dd>
            <dt>Searcher</dt>
            <dd>{experiment.searcherType}</dd>
            <dt>User</dt>
            <dd>{escapeControl(experiment.username)}</dd>
            <dt>Submitted</dt>
            <dd>
              <ExactTime at={status.submittedAt} />
            </dd>
            <Times status={status} />
            {experiment.endTime && (
              <>
                <dt>Ended</dt>
                <dd>
                  <ExactTime at={experiment.endTime} />
                </dd>
              </>
            )}
            <dt>Pool</dt>
            <dd>
              {pool}
              {payers[pool] && `, charged to ${escapeControl(payers[pool]!)}`}
            </dd>
            <dt>Checkpoints</dt>
            <dd>
              {experiment.checkpointCount}, {bytes(Number(experiment.checkpointSize))}
            </dd>
            {experiment.description && (
              <>
                <dt>Description</dt>
                <dd>{escapeControl(experiment.description)}</dd>
              </>
            )}
          </dl>
          <CopyText text={`det experiment describe ${experiment.id}`} />
        </section>
        <section className={layout.card} aria-label="Trials">
          <h2>Trials</h2>
          <div className={layout.scrollX}>
            <table className={clsx(layout.table, layout.cardTable)}>
              <thead>
                <tr>
                  <th>Trial</th>
                  <th>State</th>
                  <th className={layout.numberCell}>Steps</th>
                  <th className={layout.numberCell}>Restarts</th>
                  <th>Activity</th>
                </tr>
              </thead>
              <tbody>
                {status.trials.slice(0, 12).map((trial) => (
                  <tr key={trial.trialId}>
                    <td data-label="Trial">
                      <Link to={`/experiments/${experiment.id}/trials/${trial.trialId}`}>trial {trial.trialId}</Link>
                    </td>
                    <td data-label="State">
                      <StateBadge state={trial.state} />
                    </td>
                    <td data-label="Steps" className={layout.numberCell}>
                      {trial.steps}
                    </td>
                    <td data-label="Restarts" className={layout.numberCell}>
                      {trial.restarts}
                    </td>
                    <td data-label="Activity" className={typography.soft}>
                      {escapeControl(withoutState(trial.text, trial.state))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {experiment.numTrials > 12 && (
            <Link to={`/experiments/${experiment.id}/trials`}>All {experiment.numTrials} trials</Link>
          )}
        </section>
      </div>
    </>
  );
}

/** How long it waited for slots and how long it ran. For the rest of its life it was paused. */
function Times({ status }: { status: ExperimentStatus }) {
  const { waited, ran } = runTimes(status, status.state, useNow());
  return (
    <>
      <dt>Waited</dt>
      <dd className={typography.number}>{duration(waited)}</dd>
      <dt>Ran</dt>
      <dd className={typography.number}>{duration(ran)}</dd>
    </>
  );
}
