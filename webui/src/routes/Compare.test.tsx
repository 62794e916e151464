import { screen, waitFor, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { strokeOf } from "@/components/charts/palette";
import { drawn, user } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { rowOf } from "@/testing/samples";
import { Component as Compare } from "./Compare";

const RATES = [0.1, 0.3, 0.2];

/**
 * Renders a comparison of experiments with one trial each, one for each rate. The address selects the tab without
 * curves, which need a canvas.
 */
function compare(at: string, rates = RATES) {
  const rows = rates.map((_, index) => rowOf(index + 1, { searcherMetric: "loss", smallerIsBetter: true }));
  const master = fakeMaster({
    "POST /detent/experiments/search": ({ body }) => {
      const { filter } = body as { filter: string };
      const children = (JSON.parse(filter) as { filterGroup: { children: { columnName: string; value: unknown }[] } })
        .filterGroup.children;
      const found = rows.filter(
        ({ id, name }) =>
          children.length === 0 ||
          children.some(({ columnName, value }) => (columnName === "id" ? id === value : name.includes(String(value)))),
      );
      return { total: found.length, offset: 0, experiments: found, unknownColumns: [] };
    },
    "POST /detent/trials/summaries": ({ body }) => ({
      trials: (body as { trialIds: number[] }).trialIds.map((trialId) => ({
        trialId,
        experimentId: trialId,
        experimentName: `run ${trialId}`,
        searcherMetric: "loss",
        smallerIsBetter: true,
        hparams: { rate: rates[trialId - 1], width: 8 },
        state: "STATE_COMPLETED",
        metrics: [{ group: "validation", name: "loss", last: trialId, min: trialId / 10, max: 9, mean: 1, count: 3 }],
      })),
    }),
    ...Object.fromEntries(
      rates.map((_, index) => [
        `GET /detent/experiments/${index + 1}/metric-names`,
        { metrics: [{ group: "validation", name: "loss", type: "number", count: 3 }], searcherMetric: "loss" },
      ]),
    ),
  });
  return { master, ...drawn(<Compare />, at) };
}

const table = async () => within(await screen.findByRole("region", { name: "Summary" }));
const lines = () =>
  [...document.querySelectorAll("tr[data-run]")].map((line) => [...line.children].map((cell) => cell.textContent));

it("begins with a row for each run: its best and last values, and the hyperparameters that differ", async () => {
  compare("/?experiments=1,2,3&tab=hyperparameters");
  const summary = await table();
  await summary.findByRole("button", { name: "loss best" });
  expect(summary.getAllByRole("columnheader").map((each) => each.textContent)).toEqual([
    "Run",
    "loss best",
    "loss last",
    "rate",
    "State",
  ]);
  await waitFor(() =>
    expect(lines().map((cells) => cells.slice(0, 4))).toEqual([
      ["1 run 1", "0.1", "1", "0.1"],
      ["2 run 2", "0.2", "2", "0.3"],
      ["3 run 3", "0.3", "3", "0.2"],
    ]),
  );
});

it("draws all rows of many runs", async () => {
  const rates = Array.from({ length: 80 }, (_, index) => index / 100);
  compare(`/?tab=hyperparameters&experiments=${rates.map((_, index) => index + 1).join(",")}`, rates);
  await (await table()).findByRole("button", { name: "loss best" });
  await waitFor(() => expect(lines()).toHaveLength(80));
  expect(lines().at(-1)!.slice(0, 4)).toEqual(["80 run 80", "8", "80", "0.79"]);
});

it("sorts the rows by a column, each with the same colour as before", async () => {
  compare("/?experiments=1,2,3&tab=hyperparameters");
  const summary = await table();
  const head = () => summary.getByRole("columnheader", { name: "rate" });
  await user.click(await summary.findByRole("button", { name: "rate" }));
  expect(head()).toHaveAttribute("aria-sort", "ascending");
  expect(lines().map(([name]) => name)).toEqual(["1 run 1", "3 run 3", "2 run 2"]);
  await user.click(summary.getByRole("button", { name: "rate" }));
  expect(head()).toHaveAttribute("aria-sort", "descending");
  expect(lines().map(([name]) => name)).toEqual(["2 run 2", "3 run 3", "1 run 1"]);
  const colors = [...document.querySelectorAll("tr[data-run] svg line")].map((line) => line.getAttribute("stroke"));
  expect(colors).toEqual([2, 3, 1].map((trialId) => strokeOf(trialId).color));
});

it("shows which part of the metrics is displayed, and lets the columns be chosen", async () => {
  const { address } = compare("/?experiments=1,2&tab=hyperparameters&col=validation.loss");
  const summary = await table();
  await summary.findByRole("button", { name: "loss best" });
  expect(screen.getByText("Shows 0 of 1 hyperparameters.")).toBeInTheDocument();
  expect(summary.queryByRole("button", { name: "rate" })).toBeNull();
  await user.click(screen.getByRole("button", { name: "Columns of the summary" }));
  expect(await screen.findByRole("checkbox", { name: "loss" })).toBeDisabled();
  await user.click(screen.getByRole("checkbox", { name: "rate" }));
  expect(summary.getByRole("button", { name: "rate" })).toBeInTheDocument();
  expect(address()).toBe("/?experiments=1%2C2&tab=hyperparameters&col=validation.loss&col=hp.rate");
  expect(screen.queryByText(/^Shows/)).toBeNull();
});

it("stores its tab in the address", async () => {
  const { address } = compare("/?experiments=1,2&tab=hyperparameters");
  expect(await screen.findByRole("button", { name: "Hyperparameters" })).toHaveAttribute("aria-pressed", "true");
  expect(screen.getByRole("region", { name: "Difference of hyperparameters" })).toBeInTheDocument();
  await user.click(screen.getByRole("button", { name: "Configuration" }));
  expect(address()).toBe("/?experiments=1%2C2&tab=config");
});

it("adds a run that is found by its id or name, and removes one", async () => {
  const { address } = compare("/?experiments=1,2&tab=hyperparameters");
  await table();
  await user.click(screen.getByRole("button", { name: "Add run" }));
  await user.type(screen.getByRole("searchbox", { name: "Find a run by ID or name" }), "3{Enter}");
  await user.click(await screen.findByRole("button", { name: /run 3/ }));
  expect(address()).toBe("/?experiments=1%2C2%2C3&tab=hyperparameters");
  expect(await screen.findByRole("heading", { name: "Compare 3 runs" })).toBeInTheDocument();
  await user.click(screen.getByRole("button", { name: "Remove run 1, trial 1, from the comparison" }));
  expect(await screen.findByRole("heading", { name: "Compare 2 runs" })).toBeInTheDocument();
});
