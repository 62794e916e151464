import { screen } from "@testing-library/react";
import { beforeEach, expect, it } from "vitest";
import { strokeOf } from "@/components/charts/palette";
import type { OverviewAgent, SlotHold } from "@/services/cluster";
import { drawn, stopClock } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { Gantt } from "./Gantt";

beforeEach(() => stopClock("2026-11-21T12:30:00Z"));

it("gives the bar of a trial the colour of its curves, and that of another task none", async () => {
  const hold = { agentId: "a", slotId: "0", to: null, exitReason: null, from: "2026-11-21T12:10:00Z" };
  const holds = [
    { ...hold, taskId: "5.13", name: "digits", experimentId: 5, trialId: 13, to: "2026-11-21T12:20:00Z" },
    { ...hold, taskId: "c", name: "shell", experimentId: null, trialId: null, from: "2026-11-21T12:20:00Z" },
  ] as unknown as SlotHold[];
  fakeMaster({ "GET /detent/cluster/holds": { holds } });
  drawn(<Gantt agents={[{ id: "a", slots: [{ id: "0" }] }] as unknown as OverviewAgent[]} />);
  const bars = [await screen.findByRole("link", { name: /digits/ }), screen.getByTitle(/^shell/)];
  const colors = [strokeOf(13).color, "var(--ink-soft)"].map((color) => {
    const sample = document.createElement("span");
    sample.style.borderColor = color;
    return sample.style.borderColor;
  });
  expect(bars.map((bar) => bar.style.borderColor)).toEqual(colors);
  expect(colors[0]).not.toBe(colors[1]);
});
