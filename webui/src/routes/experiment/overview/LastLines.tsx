import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { usePreferences, zone } from "@/browser/preferences";
import { LogText } from "@/components/logs/LogText";
import { clock } from "@/format/dateTime";
import { fetchLogPage, NO_FILTER } from "@/services/logs";
import { trialsQuery } from "@/services/experiments";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./LastLines.module.css";

const LINES = 10;

/** The end of a trial's log. */
export function LastLines({ experimentId, trialId }: { experimentId: number; trialId: number }) {
  const timeZone = zone(usePreferences());
  const { data: trials } = useQuery(trialsQuery(experimentId));
  // The stream names logs by their task.
  const taskId = trials?.find(({ id }) => id === trialId)?.taskId;
  const { data } = useQuery({
    queryKey: ["logs", taskId, "last", trialId],
    queryFn: ({ signal }) => fetchLogPage(trialId, NO_FILTER, {}, LINES, signal),
    enabled: taskId !== undefined,
  });
  return (
    <section className={layout.card} aria-label="Last log lines">
      <div className={layout.row}>
        <h2 className={layout.grow}>Last log lines</h2>
        <Link to={`/experiments/${experimentId}/trials/${trialId}/logs`}>Whole log</Link>
      </div>
      {data?.lines.length === 0 && <p className={typography.hint}>Nothing logged yet.</p>}
      <div className={clsx(styles.lines, !data && styles.awaited)} role="region" aria-label="Log lines" tabIndex={0}>
        {data?.lines.map((line) => (
          <div key={line.id} className={styles.line}>
            <time className={typography.soft}>{clock(Date.parse(line.time), timeZone)}</time>
            <LogText text={line.text} search="" />
          </div>
        ))}
      </div>
    </section>
  );
}
