// @vitest-environment node
import { describe, expect, it } from "vitest";
import type { Timeline } from "@/services/experiments";
import { lanesOf } from "./lanes";

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const segment = (kind: Timeline["segments"][number]["kind"], from: number, to: number | null) => ({
  trialId: 1,
  runId: 1,
  kind,
  from: at(from),
  to: to === null ? null : at(to),
  reason: "",
});

describe("lanes", () => {
  it("extend to the present while a trial runs", () => {
    const { lanes, to } = lanesOf(
      { now: at(20), segments: [segment("queued", 0, 10), segment("running", 10, null)], marks: [] },
      20_000,
    );
    expect(to).toBe(20_000);
    expect(lanes[0]!.pieces.map(({ left, width }) => [left, width])).toEqual([
      [0, 0.5],
      [0.5, 0.5],
    ]);
  });
  it("end with the last work of an ended trial", () => {
    const { to, lanes } = lanesOf(
      { now: at(100), segments: [segment("running", 0, 10), segment("ended", 10, null)], marks: [] },
      100_000,
    );
    expect(to).toBe(10_000);
    expect(lanes[0]!.pieces).toHaveLength(1);
  });
  it("are empty without trials", () =>
    expect(lanesOf({ now: at(1), segments: [], marks: [] }, 1000).lanes).toEqual([]));
});
