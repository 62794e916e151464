// @vitest-environment node
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { staleBy } from "./changes";
import { clockDifference, heardTime, serverNow } from "./serverClock";
import { Throttle } from "./throttle";

describe("what a change makes stale", () => {
  it("of an experiment is all of it, at once, and what depends on all experiments", () => {
    const [own, ...lists] = staleBy({ kind: "experiment", id: 7 });
    expect(own!.key).toEqual(["experiment", "7"]);
    expect(own!.every).toBeLessThanOrEqual(200);
    expect(lists.map(({ key }) => key[1])).toEqual(["groups", "ids", "allowed", "names"]);
    for (const { every } of lists) expect(every).toBeLessThanOrEqual(1_000);
  });

  it("of figures is not the state", () => {
    expect(staleBy({ kind: "metrics", id: "7" }).map(({ key }) => key[0])).not.toContain("experiment");
  });

  it("of a kind that nobody knows is nothing", () => expect(staleBy({ kind: "weather", id: "" })).toEqual([]));
});

describe("a throttle", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("works at once, and once more for all that came meanwhile", () => {
    const throttle = new Throttle();
    const work = vi.fn();
    for (let count = 0; count < 5; count += 1) throttle.run("a", 1000, work);
    expect(work).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(1000);
    expect(work).toHaveBeenCalledTimes(2);
    vi.advanceTimersByTime(5000);
    expect(work).toHaveBeenCalledTimes(2);
  });

  it("keeps names apart, and forgets what waits when it is stopped", () => {
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
  it("is what times are told by, however wrong this machine's is", () => {
    heardTime(1_000_000, 4_600_000);
    expect(serverNow(4_601_000)).toBe(1_001_000);
    expect(clockDifference()).toBe(-3_600_000);
    heardTime(NaN);
    expect(clockDifference()).toBe(-3_600_000);
  });
});
