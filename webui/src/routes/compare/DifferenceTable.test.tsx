import { screen } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import { drawn, user } from "@/testing/drawn";
import { DifferenceTable } from "./DifferenceTable";
import { type Compared, comparedRuns, seedGroup } from "./runs";

const run = (trialId: number, hparams: Record<string, unknown> = {}, change: Partial<Compared> = {}): Compared => ({
  trialId,
  experimentId: trialId,
  name: `run ${trialId}`,
  state: "STATE_COMPLETED",
  chosenAs: "experiment",
  hparams,
  searcher: { metric: "loss", smallerIsBetter: true },
  ...change,
});

function table(...values: Record<string, unknown>[]) {
  const runs = values.map((value, index) => run(index + 1, value));
  const drop = vi.fn();
  const { container } = drawn(<DifferenceTable runs={runs} values={values} what="hyperparameters" drop={drop} />);
  const lines = () =>
    [...container.querySelectorAll("tbody tr")].map((line) => [...line.children].map((cell) => cell.textContent));
  return { drop, lines, runs };
}

describe("the differences between runs", () => {
  it("are shown with nested names as paths and a sign for missing values; equal values on demand", async () => {
    const { lines } = table(
      { lr: 0.1, net: { width: 8, act: "relu" }, same: true },
      { lr: 0.2, net: { width: 8 }, same: true },
    );
    expect(lines()).toEqual([
      ["lr", "0.1", "0.2"],
      ["net.act", "relu", "none"],
    ]);
    await user.click(screen.getByRole("button", { name: "Show equal values" }));
    expect(lines().map(([name]) => name)).toEqual(["lrdiffers", "net.width", "net.actdiffers", "same"]);
  });

  it.each([
    ["beyond the digits that are shown", 1234567890, 1234567891],
    ["as a fraction of a fraction", 0.1234567, 0.1234568],
    ["in kind alone", "1", 1],
    ["from nothing at all", null, ""],
  ])("include and show a difference %s", (_, one, other) => {
    const { lines } = table({ seed: one }, { seed: other });
    expect(lines()).toHaveLength(1);
    expect(new Set(lines()[0]!.slice(1)).size).toBe(2);
  });

  it("include names that have a meaning in JavaScript objects", () => {
    const { lines } = table(JSON.parse('{"__proto__": 1, "constructor": 2}') as Record<string, unknown>, {
      constructor: 3,
    });
    expect(lines()).toEqual([
      ["__proto__", "1", "none"],
      ["constructor", "2", "3"],
    ]);
  });

  it("may be empty; a run can be left out", async () => {
    const { drop, runs } = table({ a: 1 }, { a: 1 });
    expect(screen.getByText("No differences in hyperparameters.")).toBeVisible();
    await user.click(screen.getByRole("button", { name: /run 2, trial 2/ }));
    expect(drop).toHaveBeenCalledWith(runs[1]);
  });
});

describe("runs of different seeds", () => {
  it("are one group, whatever the order of their names; other values are another group", () => {
    const groups = [
      run(1, { lr: 0.1, seed: 1, net: { width: 8 } }),
      run(2, { net: { width: 8, random_seed: 4 }, seed: 2, lr: 0.1 }),
      run(3, { lr: 0.2, seed: 1, net: { width: 8 } }),
      run(4, { lr: 0.1, net: { width: 8 }, seedling: 1 }),
    ].map(seedGroup);
    expect(new Set(groups).size).toBe(3);
    expect(groups[0]).toBe(groups[1]);
  });

  it("without any other value are distinguished by their names", () => {
    expect(seedGroup(run(1, { seed: 1 }))).not.toBe(seedGroup(run(2, { seed: 2 })));
  });

  it("are labelled by the chosen hyperparameters", () => {
    expect(comparedRuns([run(1), run(2, {}, { chosenAs: "trial" })]).map(({ label }) => label)).toEqual([
      "1 run 1",
      "trial 2 of run 2",
    ]);
  });
});
