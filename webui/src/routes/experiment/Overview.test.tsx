import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { CREATED, experimentOf, statusOf } from "@/testing/samples";
import { Overview } from "./Overview";

it("tells when an experiment was submitted, how long it waited and how long it ran", async () => {
  stopClock();
  fakeMaster({ "GET /detent/experiments/7/timeline": { now: CREATED, segments: [], marks: [] } });
  const status = statusOf({
    state: "STATE_PAUSED",
    submittedAt: "2026-11-21T09:00:00Z",
    waitedSeconds: 600,
    ranSeconds: 3600,
  });
  drawn(<Overview experiment={experimentOf()} status={status} />);
  await pass();
  const about = within(screen.getByRole("region", { name: "About" }));
  const fact = (name: string) => about.getByText(name).nextElementSibling?.textContent;
  expect(fact("Submitted")).toContain("2026-11-21");
  expect(fact("Waited")).toBe("10 min 00 s");
  expect(fact("Ran")).toBe("1 h 00 min");
});
