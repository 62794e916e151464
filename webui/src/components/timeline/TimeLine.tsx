import { clsx } from "clsx";
import { usePreferences, zone } from "@/browser/preferences";
import { duration } from "@/format/duration";
import { useNow } from "@/hooks/useNow";
import type { Timeline } from "@/services/experiments";
import { exact } from "@/format/dateTime";
import { type Lane, lanesOf, type Piece } from "./lanes";
import { Icon, type IconName } from "@/components/base/Icon";
import typography from "@/styles/typography.module.css";
import styles from "./TimeLine.module.css";

const WORDS: Record<string, string> = {
  queued: "queued",
  starting: "starting",
  running: "running",
  pausing: "pausing",
  paused: "paused",
  backing_off: "backing off",
  stopping: "stopping",
};
const ICONS: ReadonlyMap<string, IconName> = new Map([
  ["restart", "restart"],
  ["pause", "pause"],
  ["activate", "play"],
]);
const DISPLAY_LIMIT = 20;

/** The timeline of each trial: segments with their reasons, marks for events, and the same as a list. */
export function TimeLine({ timeline }: { timeline: Timeline }) {
  const now = useNow();
  const timeZone = zone(usePreferences());
  const { lanes, from, to } = lanesOf(timeline, now);
  const kinds = [...new Set(lanes.flatMap((lane) => lane.pieces.map((piece) => piece.kind)))];
  return (
    <div className={styles.timeline}>
      {lanes.slice(0, DISPLAY_LIMIT).map((lane) => (
        <LaneRow key={lane.trialId} lane={lane} timeZone={timeZone} />
      ))}
      {lanes.length > DISPLAY_LIMIT && (
        <p className={typography.hint}>{lanes.length - DISPLAY_LIMIT} more trials under Trials.</p>
      )}
      <div className={clsx(styles.scale, typography.small, typography.soft)}>
        <span>{exact(from, timeZone)}</span>
        <span>{duration(to - from)}</span>
        <span>{exact(to, timeZone)}</span>
      </div>
      <ul className={clsx(styles.legend, typography.small)}>
        {kinds.map((kind) => (
          <li key={kind}>
            <span className={clsx(styles.swatch, styles[kind])} aria-hidden="true" /> {WORDS[kind] ?? kind}
          </li>
        ))}
      </ul>
      <details>
        <summary>As a list</summary>
        <ol className={styles.list}>
          {lanes.slice(0, DISPLAY_LIMIT).flatMap((lane) =>
            lane.pieces.map((piece, index) => (
              <li key={`${lane.trialId}/${index}`}>
                <time className={typography.soft}>{exact(piece.from, timeZone)}</time> trial {lane.trialId}, attempt{" "}
                {piece.runId}: <strong>{WORDS[piece.kind] ?? piece.kind}</strong> for {duration(piece.to - piece.from)}
                {piece.reason && `: ${piece.reason}`}
              </li>
            )),
          )}
        </ol>
      </details>
    </div>
  );
}

function LaneRow({ lane, timeZone }: { lane: Lane; timeZone: string | undefined }) {
  return (
    <div className={styles.row}>
      <span className={typography.small}>trial {lane.trialId}</span>
      <div
        className={styles.lane}
        role="img"
        aria-label={`Trial ${lane.trialId}: ${lane.pieces.map((piece) => WORDS[piece.kind] ?? piece.kind).join(", ")}`}
      >
        {lane.pieces.map((piece, index) => (
          <span
            key={index}
            className={clsx(styles.piece, styles[piece.kind])}
            style={{ left: `${piece.left * 100}%`, width: `max(2px, ${piece.width * 100}%)` }}
            title={titleOf(piece, timeZone)}
          >
            {piece.width > 0.09 ? (WORDS[piece.kind] ?? piece.kind) : ""}
          </span>
        ))}
        {lane.marks
          .filter((mark) => mark.kind !== "created" && mark.kind !== "ended")
          .map((mark, index) => (
            <span
              key={index}
              className={clsx(styles.mark, mark.kind === "checkpoint" && styles.checkpoint)}
              style={{ left: `${mark.left * 100}%` }}
              title={`${exact(mark.time, timeZone)} ${mark.text}${mark.steps === null ? "" : ` (step ${mark.steps})`}`}
            >
              <MarkIcon kind={mark.kind} />
            </span>
          ))}
      </div>
    </div>
  );
}

function MarkIcon({ kind }: { kind: string }) {
  const icon = ICONS.get(kind);
  return icon === undefined ? null : <Icon name={icon} />;
}

function titleOf(piece: Piece, timeZone: string | undefined): string {
  const word = WORDS[piece.kind] ?? piece.kind;
  return `${word} for ${duration(piece.to - piece.from)} from ${exact(piece.from, timeZone)}, attempt ${piece.runId}${piece.reason ? `: ${piece.reason}` : ""}`;
}
