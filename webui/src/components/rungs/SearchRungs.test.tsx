import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { drawn } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { CREATED } from "@/testing/samples";
import { resultsOf } from "./rungs";
import { SearchRungs } from "./SearchRungs";

function decision(trialId: number, kind: string, rung: number | null, metric: number | null, reason: string) {
  const numbers = { bracket: rung && 1, rank: rung && 1, count: rung && 1, kept: rung && 1, trained: rung && 4 };
  return { time: CREATED, trialId, kind, rung, metric, reason, ...numbers };
}

const DECISIONS = [
  decision(1, "created", null, null, "created: trial 1 of 2"),
  decision(1, "kept", 1, 0.2, "kept at rung 1: 1st of 1, 1 kept"),
  decision(2, "stopped", 1, 0.5, "stopped at rung 1: 2nd of 2, 1 kept"),
  decision(1, "stopped", 2, 0.1, "finished the last rung, 2: 1st of 1"),
];

it("draws a point for each result and shows how many trials continue", async () => {
  fakeMaster({
    "GET /detent/experiments/7/search": {
      searcher: "async_halving",
      metric: "loss",
      smallerIsBetter: true,
      unit: "batches",
      brackets: [{ number: 1, units: [4, 16], results: [2, 1], trials: 2 }],
      decisions: DECISIONS,
    },
  });
  drawn(<SearchRungs experimentId={7} />);
  const drawing = await screen.findByRole("group", { name: "loss of bracket 1, 3 results at rungs" });
  const titles = [...drawing.querySelectorAll("title")].map((each) => each.textContent);
  expect(titles, "those that train on are drawn last, above the others").toEqual([
    "trial 2: stopped at rung 1: 2nd of 2, 1 kept",
    "trial 1: finished the last rung, 2: 1st of 1",
    "trial 1: kept at rung 1: 1st of 1, 1 kept",
  ]);
  const rows = screen.getAllByRole("row").map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent));
  expect(rows.slice(1)).toEqual([
    ["4 batches", "2", "1"],
    ["16 batches", "1", "finished"],
  ]);
  const [newest] = within(screen.getByRole("list")).getAllByRole("listitem");
  expect(newest).toHaveTextContent("Trial 1: finished the last rung, 2: 1st of 1");
});

it("connects a trial's results and leaves out other brackets", () => {
  expect(resultsOf(DECISIONS, 1).map((each) => each.before)).toEqual([null, null, 0.2]);
  expect(resultsOf(DECISIONS, 2)).toEqual([]);
});
