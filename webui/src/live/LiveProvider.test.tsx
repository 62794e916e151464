import { useQuery } from "@tanstack/react-query";
import { act, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { sessionEnded } from "@/api/sessionEnded";
import { statusQuery } from "@/services/experiments";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { statusOf } from "@/testing/samples";
import { LiveProvider } from "./LiveProvider";

const STATUS = "GET /detent/experiments/7/status";

function State() {
  const { data } = useQuery(statusQuery(7));
  return <p>{data?.text}</p>;
}

async function live() {
  const master = fakeMaster({ [STATUS]: statusOf({ text: "queued" }) });
  const streams = fakeStreams();
  drawn(
    <LiveProvider>
      <State />
    </LiveProvider>,
  );
  await pass();
  act(() => streams.newest().hello());
  await pass();
  const asked = () => master.of(STATUS).length;
  return { master, streams, asked, before: asked() };
}

describe("a page with its stream", () => {
  beforeEach(() => stopClock());

  it("refetches as soon as the master reports a change", async () => {
    const { master, streams, asked, before } = await live();
    master.answers[STATUS] = statusOf({ text: "running" });
    act(() => streams.newest().change({ kind: "experiment", id: "7" }));
    await pass();
    expect(asked()).toBe(before + 1);
    expect(screen.getByText("running")).toBeVisible();
  });

  it.each([
    ["figures of it", { kind: "metrics", id: "7" }],
    ["another experiment", { kind: "experiment", id: "70" }],
    ["what nobody knows", { kind: "weather", id: "7" }],
  ])("does not refetch for %s", async (_, change) => {
    const { streams, asked, before } = await live();
    act(() => streams.newest().change(change));
    await pass(20_000);
    expect(asked()).toBe(before);
  });

  it("refetches a few times for many changes at once, and gets the last of them", async () => {
    const { master, streams, asked, before } = await live();
    for (let count = 0; count < 50; count += 1) {
      master.answers[STATUS] = statusOf({ text: `step ${count}` });
      act(() => streams.newest().change({ kind: "experiment", id: "7" }));
      await pass(1);
    }
    await pass(200);
    expect(asked() - before).toBeLessThan(6);
    expect(screen.getByText("step 49")).toBeVisible();
  });

  it("refetches data that was loaded before the stream was open", async () => {
    const master = fakeMaster({ [STATUS]: statusOf({ text: "queued" }) });
    const streams = fakeStreams();
    drawn(
      <LiveProvider>
        <State />
      </LiveProvider>,
    );
    await pass();
    act(() => streams.newest().say("error"));
    master.answers[STATUS] = statusOf({ text: "running" });
    await pass(1_000);
    act(() => streams.newest().hello());
    await pass();
    expect(screen.getByText("running")).toBeVisible();
  });

  it("reports the end of the session when the master does, and does not reconnect by itself", async () => {
    const { streams } = await live();
    const received = vi.fn();
    const leave = sessionEnded.listen(received);
    act(() => streams.newest().say("bye", { reason: "signed-out" }));
    await pass(60_000);
    leave();
    expect(received).toHaveBeenCalledTimes(1);
    expect(streams.opened).toHaveLength(1);
    expect(streams.newest().closed).toBe(true);
  });
});
