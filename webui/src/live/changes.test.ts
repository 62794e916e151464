// @vitest-environment node
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { staleBy } from "./changes";
import { clockDifference, heardTime, serverNow } from "./serverClock";
import { Throttle } from "./throttle";

describe("the queries that a change makes stale", () => {
  it("for an experiment are all of its own at once, and those that depend on all experiments", () => {
    const [own, ...lists] = staleBy({ kind: "experiment", id: 7 });
    expect(own!.key).toEqual(["experiment", "7"]);
    expect(own!.every).toBeLessThanOrEqual(200);
    expect(lists.map(({ key }) => key[1])).toEqual(["groups", "ids", "allowed", "names"]);
    for (const { every } of lists) expect(every).toBeLessThanOrEqual(1_000);
  });

  it("for metrics exclude the state", () => {
    expect(staleBy({ kind: "metrics", id: "7" }).map(({ key }) => key[0])).not.toContain("experiment");
  });

  it("for an unknown kind are none", () => expect(staleBy({ kind: "weather", id: "" })).toEqual([]));
});

describe("a throttle", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("runs at once, and once more for all calls that follow within the interval", () => {
    const throttle = new Throttle();
    const work = vi.fn();
    for (let count = 0; count < 5; count += 1) throttle.run("a", 1000, work);
    expect(work).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(1000);
    expect(work).toHaveBeenCalledTimes(2);
    vi.advanceTimersByTime(5000);
    expect(work).toHaveBeenCalledTimes(2);
  });

  it("keeps names apart, and drops pending calls when it is stopped", () => {
    const throttle = new Throttle();
    const work = vi.fn();
    throttle.run("a", 1000, work);
    throttle.run("b", 1000, work);
    throttle.run("b", 1000, work);
    throttle.stop();
    vi.advanceTimersByTime(5000);
    expect(work).toHaveBeenCalledTimes(2);
  });
});

describe("the master's clock", () => {
  it("determines displayed durations, however wrong this machine's clock is", () => {
    heardTime(1_000_000, 4_600_000);
    expect(serverNow(4_601_000)).toBe(1_001_000);
    expect(clockDifference()).toBe(-3_600_000);
    heardTime(NaN);
    expect(clockDifference()).toBe(-3_600_000);
  });
});
