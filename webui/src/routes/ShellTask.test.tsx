import { act, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Route, Routes } from "react-router";
import { sessionEnded } from "@/api/sessionEnded";
import { SessionGate } from "@/app/session";
import type { ShellTask } from "@/services/shells";
import { drawn, user } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { fakeWebSockets } from "@/testing/fakeWebSocket";
import { CREATED, sessionOf } from "@/testing/samples";
import { Component } from "./ShellTask";

const ME = sessionOf().user.id;
const STREAMS = "POST /detent/tasks/t1/streams";
const KILL = "POST /api/v1/shells/t1/kill";

function shellOf(change: Partial<ShellTask> = {}): ShellTask {
  return {
    id: "t1",
    description: "Shell (quiet-owl)",
    state: "STATE_RUNNING",
    startTime: CREATED,
    endTime: null,
    username: "ana",
    displayName: "ana",
    userId: ME,
    resourcePool: "default",
    priority: 42,
    slots: 1,
    jobId: "j",
    workspaceId: 1,
    container: null,
    exitStatus: null,
    exitCode: null,
    privateKey: "",
    publicKey: "",
    addresses: [],
    agentUserGroup: {},
    idleTimeout: 1800,
    idleSince: CREATED,
    ...change,
  };
}

async function page(shell: ShellTask) {
  fakeStreams();
  fakeWebSockets();
  const master = fakeMaster({
    [STREAMS]: { streamId: "s", key: "k", sessionId: "one", agentId: "a" },
    [KILL]: { shell },
    "GET /detent/session": sessionOf(),
    "GET /api/v1/shells/t1": { shell, config: {} },
  });
  drawn(
    <SessionGate>
      <Routes>
        <Route path="/cluster/shells/:taskId" element={<Component />} />
      </Routes>
    </SessionGate>,
    "/cluster/shells/t1",
  );
  await screen.findByRole("heading", { name: "Shell (quiet-owl)" });
  return master;
}

describe("the page of a shell", () => {
  beforeEach(() => {
    vi.stubGlobal(
      "ResizeObserver",
      class {
        observe() {}
        disconnect() {}
      },
    );
  });
  afterEach(() => {
    act(() => sessionEnded.tell());
    Reflect.deleteProperty(document, "createElement");
  });

  it("opens a terminal in the task, and says when it ends", async () => {
    const master = await page(shellOf());
    expect(screen.getByText(/ends 30 min 00 s after the last connection/)).toBeVisible();
    await user.click(screen.getByRole("button", { name: "Open a shell" }));
    await vi.waitFor(() => expect(master.of(STREAMS)).toHaveLength(1));
    await vi.waitFor(() => expect(screen.getByText("Connected")).toBeVisible());
  });

  it("kills the task after a question", async () => {
    const master = await page(shellOf());
    await user.click(screen.getByRole("button", { name: "Kill…" }));
    await user.click(screen.getByRole("button", { name: "Kill" }));
    await vi.waitFor(() => expect(master.of(KILL)).toHaveLength(1));
  });

  it("offers neither to other users", async () => {
    await page(shellOf({ userId: ME + 1, username: "bob" }));
    expect(screen.getByText("Only bob and administrators can open this shell.")).toBeVisible();
    expect(screen.queryByRole("button")).toBeNull();
  });

  it("says why it ended", async () => {
    await page(shellOf({ state: "STATE_TERMINATED", exitStatus: "idle for 30 minutes" }));
    expect(screen.getByText(/idle for 30 minutes/)).toBeVisible();
    expect(screen.queryByRole("button", { name: "Kill…" })).toBeNull();
  });
});
