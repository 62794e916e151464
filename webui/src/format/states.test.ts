// @vitest-environment node
import { describe, expect, it } from "vitest";
import { withoutState } from "./states";

describe("a status text beside its state", () => {
  it("does not repeat the state", () => {
    expect(withoutState("failed: trial 4: out of memory", "STATE_ERROR")).toBe("trial 4: out of memory");
    expect(withoutState("completed", "STATE_COMPLETED")).toBe("");
    expect(withoutState("out of restarts", "STATE_ERROR")).toBe("out of restarts");
    expect(withoutState("failed again", "STATE_ERROR")).toBe("failed again");
  });

  it("does not repeat text that is shown below", () => {
    const below = "ValueError: bad shape";
    expect(withoutState(`failed: ${below}`, "STATE_ERROR", below)).toBe("");
    expect(withoutState(`out of restarts after 2 attempts: ${below}`, "STATE_ERROR", below)).toBe(
      "out of restarts after 2 attempts",
    );
    expect(withoutState("queued: needs 2 slots", "STATE_QUEUED", "needs 2 slots")).toBe("");
    expect(withoutState("running", "STATE_RUNNING", null)).toBe("");
  });
});
