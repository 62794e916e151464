import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { usePreferences, zone } from "@/browser/preferences";
import { Button } from "@/components/base/Button";
import { exact } from "@/format/dateTime";
import { useLatest } from "@/hooks/useLatest";
import { useNow } from "@/hooks/useNow";
import { usageQuery } from "@/services/cluster";
import { SPANS, useSpan } from "./span";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./Usage.module.css";

const BUCKETS = 60;

/** The used share of the cluster, as bars and as a sum. */
export function Usage() {
  const now = useNow();
  const timeZone = zone(usePreferences());
  const [seconds, setSeconds] = useState<number>(SPANS[1].seconds);
  const span = useSpan(seconds, now);
  const asked = useQuery({ ...usageQuery(span.from, span.to, BUCKETS), placeholderData: keepPreviousData });
  const data = useLatest(asked.data);
  // The queried range ends slightly in the future, where nothing is known yet.
  const buckets = (data?.buckets ?? []).filter((bucket) => bucket.seconds > 0);
  const most = Math.max(1, data?.slots ?? 1);
  const busy = buckets.reduce((sum, bucket) => sum + bucket.busySlotSeconds, 0);
  return (
    <section className={layout.card} aria-label="Use of slots">
      <div className={layout.row}>
        <h2 className={layout.grow}>Use of slots</h2>
        <span className={typography.number}>{(busy / 3600).toFixed(2)} slot hours</span>
        {SPANS.map((each) => (
          <Button key={each.seconds} aria-pressed={each.seconds === seconds} onClick={() => setSeconds(each.seconds)}>
            {each.title}
          </Button>
        ))}
      </div>
      <div
        className={styles.usage}
        role="img"
        aria-label={`Slots in use over the last ${SPANS.find((each) => each.seconds === seconds)?.title}: ${(busy / 3600).toFixed(2)} slot hours`}
      >
        {buckets.map((bucket) => {
          const used = bucket.busySlotSeconds / bucket.seconds;
          return (
            <span
              key={bucket.start}
              className={styles.slot}
              title={`${exact(Date.parse(bucket.start), timeZone)}: ${used.toFixed(2)} of ${most} slots`}
            >
              <span className={styles.bar} style={{ height: `${Math.min(100, (used / most) * 100)}%` }} />
            </span>
          );
        })}
      </div>
    </section>
  );
}
