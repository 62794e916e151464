import { clsx } from "clsx";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link } from "react-router";
import { usePreferences, zone } from "@/browser/preferences";
import { Button } from "@/components/base/Button";
import { strokeOf } from "@/components/charts/palette";
import { exact } from "@/format/dateTime";
import { exitPhrase } from "@/format/exitReasons";
import { duration } from "@/format/duration";
import { useLatest } from "@/hooks/useLatest";
import { useNow } from "@/hooks/useNow";
import { holdsQuery, type OverviewAgent, type SlotHold } from "@/services/cluster";
import { SPANS, useSpan } from "./span";
import { escapeControl } from "@/format/escapeControl";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./Gantt.module.css";

interface Bar {
  hold: SlotHold;
  left: number;
  width: number;
  from: number;
  to: number;
}

/** Returns the holds of one slot as fractions of the width. Pure. */
export function barsOf(
  holds: readonly SlotHold[],
  agentId: string,
  slotId: number,
  from: number,
  to: number,
  now: number,
): Bar[] {
  return holds
    .filter((hold) => hold.agentId === agentId && hold.slotId === slotId)
    .map((hold) => {
      const start = Math.max(from, Date.parse(hold.from));
      const end = Math.min(to, hold.to === null ? now : Date.parse(hold.to));
      return {
        hold,
        from: Date.parse(hold.from),
        to: hold.to === null ? now : Date.parse(hold.to),
        left: (start - from) / (to - from),
        width: (end - start) / (to - from),
      };
    })
    .filter((bar) => bar.width > 0);
}

/** The tasks that held each slot over time. */
export function Gantt({ agents }: { agents: readonly OverviewAgent[] }) {
  const now = useNow();
  const timeZone = zone(usePreferences());
  const [seconds, setSeconds] = useState<number>(SPANS[1].seconds);
  const span = useSpan(seconds, now);
  const asked = useQuery({ ...holdsQuery(span.from, span.to), placeholderData: keepPreviousData });
  const data = useLatest(asked.data);
  const from = now - seconds * 1000;
  const rows = useMemo(
    () => agents.flatMap((agent) => agent.slots.map((slot) => ({ agentId: agent.id, slotId: slot.id }))),
    [agents],
  );
  return (
    <section className={layout.card} aria-label="Slots over time">
      <div className={layout.row}>
        <h2 className={layout.grow}>Slots over time</h2>
        {SPANS.map((each) => (
          <Button key={each.seconds} aria-pressed={each.seconds === seconds} onClick={() => setSeconds(each.seconds)}>
            {each.title}
          </Button>
        ))}
      </div>
      <div className={styles.gantt}>
        {rows.map(({ agentId, slotId }) => (
          <div key={`${agentId}/${slotId}`} className={styles.row}>
            <span className={clsx(typography.small, styles.name)} title={agentId}>
              {agentId} {slotId}
            </span>
            <div className={styles.lane}>
              {barsOf(data?.holds ?? [], agentId, slotId, from, now, now).map((bar) => (
                <HoldBar key={`${bar.hold.taskId}/${bar.hold.from}`} bar={bar} timeZone={timeZone} />
              ))}
            </div>
          </div>
        ))}
      </div>
      <div className={clsx(styles.scale, typography.small, typography.soft)}>
        <span>{exact(from, timeZone)}</span>
        <span>now</span>
      </div>
    </section>
  );
}

interface HoldBarProps {
  bar: Bar;
  timeZone: string | undefined;
}

/** One hold: a link to its trial, or the name of another task. */
function HoldBar({ bar, timeZone }: HoldBarProps) {
  const { hold } = bar;
  const color = hold.trialId === null ? "var(--ink-soft)" : strokeOf(hold.trialId).color;
  const name = hold.trialId === null ? hold.name : `${hold.name} (${hold.trialId})`;
  const what = hold.trialId === null ? hold.name : `${hold.name}, trial ${hold.trialId}`;
  const reason = hold.exitReason ? `, ${exitPhrase(hold.exitReason)}` : "";
  const shared = {
    className: styles.bar,
    style: {
      left: `${bar.left * 100}%`,
      width: `max(3px, ${bar.width * 100}%)`,
      borderColor: color,
      backgroundColor: `color-mix(in srgb, ${color} 30%, var(--surface))`,
    },
    title: `${what}: ${exact(bar.from, timeZone)} for ${duration(bar.to - bar.from)}${reason}`,
  };
  const text =
    bar.width > 0.06 ? (
      escapeControl(name)
    ) : (
      <span className={typography.visuallyHidden}>{escapeControl(hold.name)}</span>
    );
  return hold.trialId === null ? (
    <span {...shared}>{text}</span>
  ) : (
    <Link {...shared} to={`/experiments/${hold.experimentId}/trials/${hold.trialId}`}>
      {text}
    </Link>
  );
}
