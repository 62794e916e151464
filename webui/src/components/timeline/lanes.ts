import type { Timeline } from "@/services/experiments";

export interface Piece {
  kind: string;
  /** Fractions of the whole width. */
  left: number;
  width: number;
  from: number;
  to: number;
  reason: string;
  runId: number;
  isOpen: boolean;
}

export interface Mark {
  kind: string;
  left: number;
  time: number;
  text: string;
  steps: number | null;
}

export interface Lane {
  trialId: number;
  pieces: Piece[];
  marks: Mark[];
}

export interface Lanes {
  from: number;
  to: number;
  lanes: Lane[];
}

/** Returns one lane per trial, scaled to the time from the first segment to the last or to the present. Pure. */
export function lanesOf(timeline: Timeline, now: number): Lanes {
  const starts = timeline.segments.map((segment) => Date.parse(segment.from));
  const ends = timeline.segments.map((segment) => (segment.to === null ? now : Date.parse(segment.to)));
  const from = Math.min(now, ...starts);
  const last = timeline.segments.filter((segment) => segment.kind !== "ended");
  const isOver = last.length > 0 && last.every((segment) => segment.to !== null);
  const to = Math.max(
    from + 1,
    isOver ? Math.max(...last.map((segment) => Date.parse(segment.to!))) : now,
    ...(isOver ? [] : ends),
  );
  const place = (time: number) => Math.min(1, Math.max(0, (time - from) / (to - from)));
  const byTrial = new Map<number, Lane>();
  const lane = (trialId: number): Lane => {
    const found = byTrial.get(trialId) ?? { trialId, pieces: [], marks: [] };
    byTrial.set(trialId, found);
    return found;
  };
  timeline.segments.forEach((segment, index) => {
    if (segment.kind === "ended") return;
    const start = starts[index]!;
    const end = Math.min(ends[index]!, to);
    const left = place(start);
    lane(segment.trialId).pieces.push({
      kind: segment.kind,
      left,
      width: place(end) - left,
      from: start,
      to: end,
      reason: segment.reason,
      runId: segment.runId,
      isOpen: segment.to === null,
    });
  });
  for (const mark of timeline.marks) {
    const time = Date.parse(mark.time);
    lane(mark.trialId).marks.push({ kind: mark.kind, left: place(time), time, text: mark.text, steps: mark.steps });
  }
  return { from, to, lanes: [...byTrial.values()].sort((a, b) => a.trialId - b.trialId) };
}
