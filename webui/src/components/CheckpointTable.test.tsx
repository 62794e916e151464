import { act, screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { SessionGate } from "@/app/session";
import type { ListedCheckpoint } from "@/services/checkpoints";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { fakeMaster, Refusal } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { CREATED, experimentOf, sessionOf } from "@/testing/samples";
import { CheckpointTable } from "./CheckpointTable";

const LIST = "GET /detent/checkpoints";
const DELETE = "DELETE /api/v1/checkpoints";
const CHECKPOINT: ListedCheckpoint = {
  uuid: "0000-1",
  trialId: 3,
  experimentId: 7,
  experimentName: "digits",
  steps: 100,
  time: CREATED,
  state: "STATE_COMPLETED",
  size: 2_000_000,
  files: 2,
  isBest: true,
  isLatest: false,
  validation: 0.5,
  deleteError: null,
};

async function table({ owner = "ana", checkpoint = CHECKPOINT, displayState = "STATE_DELETED" } = {}) {
  fakeStreams();
  const master = fakeMaster({
    "GET /detent/session": sessionOf(),
    [LIST]: { checkpoints: [checkpoint], next: null },
    "GET /api/v1/checkpoints/0000-1": {
      checkpoint: {
        uuid: "0000-1",
        displayState,
        resources: { "state/": "0", "state/model.pt": "1999900", "data.json": "100" },
      },
    },
    "GET /api/v1/experiments/7": { experiment: experimentOf({ username: owner }) },
    [DELETE]: {},
  });
  const shown = drawn(
    <SessionGate>
      <CheckpointTable />
    </SessionGate>,
  );
  await pass();
  return { master, ...shown };
}

const press = async (name: string) => {
  await user.click(screen.getByRole("button", { name }));
  await pass();
};

describe("a checkpoint", () => {
  beforeEach(() => stopClock());

  it("lists its files with their sizes, and can be downloaded", async () => {
    await table();
    await press("2 files of checkpoint 0000-1");
    const dialog = within(screen.getByRole("dialog"));
    expect(dialog.getAllByRole("row").map((row) => row.textContent)).toEqual([
      "FileSize",
      "data.json100 B",
      "state/model.pt2.00 MB",
    ]);
    const link = dialog.getByRole("link", { name: "Download" });
    expect(link).toHaveAttribute("href", "/checkpoints/0000-1");
    expect(link).toHaveAttribute("download");
  });

  it("is deleted by its owner after a confirmation that names the loss", async () => {
    const { master } = await table();
    await press("2 files of checkpoint 0000-1");
    await press("Delete…");
    expect(master.of(DELETE)).toEqual([]);
    const dialog = screen.getByRole("dialog", { name: "Delete this checkpoint?" });
    expect(dialog).toHaveTextContent("It is the best checkpoint of its experiment.");
    const lists = master.of(LIST).length;
    await press("Delete");
    expect(master.of(DELETE).map(({ body }) => body)).toEqual([{ checkpointUuids: ["0000-1"] }]);
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(screen.getByText("Deleted checkpoint 0000-1")).toBeVisible();
    expect(master.of(LIST).length).toBeGreaterThan(lists);
  });

  it("that a task is still deleting is not reported as deleted", async () => {
    await table({ displayState: "STATE_DELETING" });
    await press("2 files of checkpoint 0000-1");
    await press("Delete…");
    await press("Delete");
    expect(screen.getByText("A task is deleting checkpoint 0000-1")).toBeVisible();
    expect(screen.queryByText("Deleted checkpoint 0000-1")).toBeNull();
  });

  it("cannot be deleted by other users, who see the reason", async () => {
    const { master } = await table({ owner: "kim" });
    await press("2 files of checkpoint 0000-1");
    expect(screen.getByRole("button", { name: "Delete…" })).toHaveAttribute(
      "title",
      "Only kim or an admin can delete it",
    );
    await press("Delete…");
    expect(screen.getByRole("dialog", { name: "Files of checkpoint 0000-1" })).toBeVisible();
    expect(master.of(DELETE)).toEqual([]);
  });

  it("that was deleted has no download", async () => {
    await table({ checkpoint: { ...CHECKPOINT, state: "STATE_DELETED" } });
    await press("2 files of checkpoint 0000-1");
    expect(screen.queryByRole("link", { name: "Download" })).toBeNull();
    expect(screen.getByRole("button", { name: "Delete…" })).toHaveAttribute("title", "It has no files any more");
  });

  it("whose files could not be removed shows the reason, and can be deleted again", async () => {
    const deleteError = "its files could not be removed (Permission denied)";
    const { master } = await table({ checkpoint: { ...CHECKPOINT, state: "STATE_DELETE_FAILED", deleteError } });
    expect(screen.getByText("delete failed")).toBeVisible();
    await press("2 files of checkpoint 0000-1");
    expect(screen.getByRole("note")).toHaveTextContent(`It could not be deleted: ${deleteError}.`);
    expect(screen.queryByRole("link", { name: "Download" })).toBeNull();
    await press("Delete…");
    await press("Delete");
    expect(master.of(DELETE).map(({ body }) => body)).toEqual([{ checkpointUuids: ["0000-1"] }]);
  });

  it("stays on the page while the master does not answer", async () => {
    const { master, queries } = await table();
    master.answers[LIST] = new Refusal(503, "busy");
    await act(() => queries.invalidateQueries());
    await pass();
    expect(screen.getByText("0000-1")).toBeVisible();
  });

  it("names each value on a phone, where a row is a card", async () => {
    await table();
    const labels = [...document.querySelectorAll("td")].map((cell) => cell.dataset.label);
    expect(labels).toEqual(screen.getAllByRole("columnheader").map((head) => head.textContent));
    expect(screen.getByRole("table")).toHaveClass("cardTable");
  });
});

it("the table shows existing checkpoints first and folds deleted ones", async () => {
  fakeMaster({
    [LIST]: {
      checkpoints: [
        { ...CHECKPOINT, uuid: "gone", state: "STATE_DELETED" },
        { ...CHECKPOINT, uuid: "there" },
      ],
      next: null,
    },
  });
  drawn(<CheckpointTable />);
  const fold = (await screen.findByText("1 deleted")).closest("details")!;
  expect(fold).not.toHaveAttribute("open");
  expect(within(fold).getByText("gone")).toBeInTheDocument();
  const there = screen.getByText("there");
  expect(fold).not.toContainElement(there);
  expect(there.compareDocumentPosition(fold)).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
});
