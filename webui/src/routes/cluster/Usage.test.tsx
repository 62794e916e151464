import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster, Refusal } from "@/testing/fakeMaster";
import { Usage } from "./Usage";

const USAGE = "GET /detent/cluster/usage";
const bucket = (minute: number, seconds: number, busySlotSeconds: number) => ({
  start: `2026-11-21T12:${String(minute).padStart(2, "0")}:00Z`,
  seconds,
  busySlotSeconds,
});
const bars = () =>
  [...screen.getByRole("img", { name: /Slots in use/ }).querySelectorAll<HTMLElement>("[style]")].map(
    (bar) => bar.style.height,
  );

it("the chart ends with the present use: a bucket counts the time that has passed, and the future is empty", async () => {
  stopClock();
  const buckets = [bucket(0, 60, 120), bucket(1, 20, 40), bucket(2, 0, 0)];
  const master = fakeMaster({ [USAGE]: { from: "", to: "", slots: 2, buckets } });
  drawn(<Usage />);
  await pass();
  expect(bars()).toEqual(["100%", "100%"]);
  // The next query fails, and the drawn data stays.
  master.answers[USAGE] = new Refusal(503, "the master does not answer");
  await pass(120_000);
  expect(master.of(USAGE).length).toBeGreaterThan(1);
  expect(bars()).toEqual(["100%", "100%"]);
});
