// @vitest-environment node
import { expect, it } from "vitest";
import { runTimes } from "./runTimes";

const NOON = "2026-11-21T12:00:00Z";
const times = { waitedSeconds: 60, ranSeconds: 30, now: NOON };

it.each([
  ["STATE_QUEUED", { waited: 70_000, ran: 30_000 }],
  ["STATE_RUNNING", { waited: 60_000, ran: 40_000 }],
  ["STATE_PAUSING", { waited: 60_000, ran: 40_000 }],
  ["STATE_PAUSED", { waited: 60_000, ran: 30_000 }],
  ["STATE_COMPLETED", { waited: 60_000, ran: 30_000 }],
])("ten seconds later, %s", (state, expected) =>
  expect(runTimes(times, state, Date.parse(NOON) + 10_000)).toEqual(expected),
);
