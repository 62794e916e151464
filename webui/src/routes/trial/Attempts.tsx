import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { StateBadge } from "@/components/StateBadge";
import { ExactTime } from "@/components/TimeText";
import { duration } from "@/format/duration";
import { exitPhrase } from "@/format/exitReasons";
import { escapeControl } from "@/format/escapeControl";
import { useNow } from "@/hooks/useNow";
import { wandbRunQuery } from "@/services/logs";
import { type Attempt, attemptsQuery } from "@/services/trials";
import type { TrialTabProps } from "./tabProps";
import failureStyles from "@/components/base/Failure.module.css";
import sourceStyles from "@/components/code/source.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const CONTAINER_ENDS: Record<string, string> = { killed: "ended by the master", system: "system failure" };

/** The attempts of the trial: their agents, their ends, and the first failed rank with its message. */
export default function Attempts({ trial }: TrialTabProps) {
  const { data, error } = useQuery(attemptsQuery(trial.experimentId, trial.id));
  const { data: wandbRun } = useQuery(wandbRunQuery(trial.id));
  if (error && !data) return <Failure error={error} />;
  if (!data) return <Loading what="the attempts" />;
  if (data.length === 0)
    return <EmptyState title="Not started yet" command={`det experiment activate ${trial.experimentId}`} />;
  return (
    <section className={layout.field} aria-label="Attempts">
      {wandbRun && (
        <a href={wandbRun} target="_blank" rel="noreferrer">
          W&amp;B run
        </a>
      )}
      {[...data].reverse().map((attempt) => (
        <One
          key={attempt.allocationId}
          attempt={attempt}
          base={`/experiments/${trial.experimentId}/trials/${trial.id}`}
        />
      ))}
    </section>
  );
}

/** The badge of an attempt that has ended, by the reason; others are failures. */
const ENDS: Readonly<Record<string, string>> = {
  completed: "COMPLETED",
  searcher_stopped: "COMPLETED",
  preempted: "PAUSED",
  killed: "CANCELED",
  user_canceled: "CANCELED",
};

function One({ attempt, base }: { attempt: Attempt; base: string }) {
  const now = useNow();
  const start = attempt.startedAt ? Date.parse(attempt.startedAt) : null;
  const end = attempt.endedAt ? Date.parse(attempt.endedAt) : now;
  const inContainers = attempt.containers.some(({ runtime }) => runtime !== "" && runtime !== "process");
  const failed = attempt.containers.flatMap((container) => container.ranks.map((rank) => ({ rank, container })));
  return (
    <article className={layout.card}>
      <div className={layout.row}>
        <h2>Attempt {attempt.runId}</h2>
        <StateBadge state={attempt.endedAt ? (ENDS[attempt.reason ?? ""] ?? "ERROR") : attempt.state} />
        {attempt.reason && attempt.reason !== "errored" && <span>{exitPhrase(attempt.reason)}</span>}
        {attempt.code !== null && attempt.code !== 0 && (
          <span className={typography.tag}>exit code {attempt.code}</span>
        )}
        {start !== null && (
          <span className={typography.soft}>
            <ExactTime at={attempt.startedAt} /> for {duration(end - start)}
          </span>
        )}
        <Link to={`${base}/logs?attempt=${encodeURIComponent(attempt.allocationId)}`}>its log</Link>
      </div>
      {attempt.failure ? (
        <p className={failureStyles.failure}>{escapeControl(attempt.failure)}</p>
      ) : (
        attempt.message && <p>{escapeControl(attempt.message)}</p>
      )}
      <table className={clsx(layout.table, layout.cardTable)}>
        <thead>
          <tr>
            <th>Rank</th>
            <th>Agent</th>
            <th>Slots</th>
            {inContainers && <th>Image</th>}
            <th>End</th>
          </tr>
        </thead>
        <tbody>
          {attempt.containers.map((container) => (
            <tr key={container.containerId}>
              <td data-label="Rank">{container.rank}</td>
              <td data-label="Agent">
                {container.agentId}{" "}
                <span className={typography.soft}>
                  {container.origin ? `${escapeControl(container.origin)} on ${escapeControl(container.host)}` : ""}{" "}
                  {container.address}
                </span>
              </td>
              <td data-label="Slots">{container.slots.join(", ") || "none"}</td>
              {inContainers && (
                <td data-label="Image">
                  {container.image || "default image"} <span className={typography.soft}>{container.runtime}</span>
                </td>
              )}
              <td data-label="End">
                {CONTAINER_ENDS[container.exit] ?? container.exit.replaceAll("_", " ")}{" "}
                {container.code !== null && `code ${container.code}`}{" "}
                {container.signal !== null && `signal ${container.signal}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {failed.map(({ rank }) => (
        <div key={rank.rank} className={failureStyles.failure}>
          <strong>
            Rank {rank.rank} on {rank.host} failed{rank.cause && `: ${rank.cause}`}
          </strong>
          <pre className={sourceStyles.source}>{rank.lastLines.map(escapeControl).join("\n")}</pre>
        </div>
      ))}
    </article>
  );
}
