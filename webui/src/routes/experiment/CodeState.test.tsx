import { screen, waitFor, within } from "@testing-library/react";
import { expect, it } from "vitest";
import type { ShownCode } from "@/services/experiments";
import { drawn, user } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { CodeState } from "./CodeState";

const LINE = "GET /detent/experiments/7/code";
const CODE: ShownCode = {
  commit: "0123abcd",
  branch: "main",
  remote: "git@example.org:ana/digits.git",
  isDirty: true,
  isCut: false,
  diff: "",
  untracked: ["new.py", "odd\u001b.py"],
};

it("shows commit, branch, remote and untracked files, and fetches the changes when they are opened", async () => {
  const master = fakeMaster({
    [LINE]: ({ query }: { query: URLSearchParams }) => ({
      code: { ...CODE, diff: query.get("diff") === "true" ? "-a = 1\n+a = 2\n" : "" },
    }),
  });
  drawn(<CodeState id={7} />);
  const section = await screen.findByRole("region", { name: "Code state" });
  for (const text of ["0123abcd", "main", "git@example.org:ana/digits.git", /^new\.py, odd.*\.py$/])
    expect(within(section).getByText(text)).toBeVisible();
  expect(section.textContent).not.toContain("\u001b");
  expect(master.of(LINE).map(({ query }) => query.get("diff"))).toEqual(["false"]);
  await user.click(screen.getByText("Uncommitted changes"));
  const changes = await screen.findByRole("region", { name: "Uncommitted changes" });
  expect(within(changes).getByText("+a = 2")).toBeVisible();
});

it("says that there are no changes, and that changes are stored only in part", async () => {
  fakeMaster({ [LINE]: { code: { ...CODE, commit: null, isDirty: false, isCut: true, untracked: [] } } });
  drawn(<CodeState id={7} />);
  expect(await screen.findByText("No uncommitted changes.")).toBeVisible();
  expect(screen.getByText("none yet")).toBeVisible();
  expect(screen.getByText("Only a part of the changes was stored.")).toBeVisible();
  expect(screen.queryByText("Untracked files")).toBeNull();
});

it("shows nothing if no state of the code is stored", async () => {
  const master = fakeMaster({ [LINE]: { code: null } });
  drawn(<CodeState id={7} />);
  await waitFor(() => expect(master.of(LINE)).toHaveLength(1));
  expect(screen.queryByRole("region")).toBeNull();
});
