import { act, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster, type FakeMaster } from "@/testing/fakeMaster";
import type { StorageAnswer } from "@/services/storage";
import { StorageNote } from "./StorageNote";

const LINE = "GET /detent/storage";

function answerOf(
  status: StorageAnswer["storage"][number]["status"],
  change: Partial<StorageAnswer> = {},
  path = "/srv/detent",
): StorageAnswer {
  const storage = [{ name: "data", status, freeBytes: 12_000_000, totalBytes: 50_000_000_000, path }];
  return { isWritable: status === "up" || status === "low", failingSince: null, storage, ...change };
}

describe("the note about a full disk", () => {
  let master: FakeMaster;

  beforeEach(() => stopClock());

  it("names the free space and the path, and disappears when there is space again", async () => {
    master = fakeMaster({ [LINE]: answerOf("full") });
    drawn(<StorageNote />);
    await pass();
    expect(screen.getByRole("alert")).toHaveTextContent(
      /The master's disk is full \(12.0 MB free of 50.0 GB on \/srv\/detent\)\. Trials wait/,
    );
    master.answers[LINE] = answerOf("low");
    await act(() => pass(5_000));
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("shows no path to users who may not know it", async () => {
    fakeMaster({ [LINE]: answerOf("full", {}, "") });
    drawn(<StorageNote />);
    await pass();
    expect(screen.getByRole("alert")).toHaveTextContent("(12.0 MB free of 50.0 GB). Trials wait");
  });

  it("distinguishes a full checkpoint storage from a full master", async () => {
    const storage = [
      ...answerOf("up").storage,
      { name: "checkpoints-1", status: "full" as const, freeBytes: 0, totalBytes: 8_000_000_000, path: "/mnt/ckpt" },
    ];
    fakeMaster({ [LINE]: answerOf("up", { storage }) });
    drawn(<StorageNote />);
    await pass();
    expect(screen.getByRole("alert")).toHaveTextContent(
      /The disk of the checkpoint storage is full \(.* on \/mnt\/ckpt\)/,
    );
  });

  it("does not describe a failing disk as full", async () => {
    fakeMaster({ [LINE]: answerOf("failing") });
    drawn(<StorageNote />);
    await pass();
    expect(screen.getByRole("alert")).toHaveTextContent(/The master cannot write to its disk/);
  });

  it("is absent while there is space", async () => {
    fakeMaster({ [LINE]: answerOf("low") });
    drawn(<StorageNote />);
    await pass();
    expect(screen.queryByRole("alert")).toBeNull();
  });
});
