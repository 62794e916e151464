import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { drawn } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { experimentOf, trialOf } from "@/testing/samples";
import Hyperparameters from "./Hyperparameters";

/** Renders a search over a logarithmic rate and two optimizers with `count` trials. */
async function search(count: number) {
  const hparams = (index: number) => ({ rate: 0.001 + index / 10_000, optimizer: "sgd" });
  const trials = Array.from({ length: count }, (_, index) => trialOf(index + 1, { hparams: hparams(index) }));
  fakeMaster({
    "GET /api/v1/experiments/7/trials": { trials },
    "GET /detent/experiments/7/metric-names": {
      metrics: [{ group: "validation", name: "loss", type: "number", count }],
      searcherMetric: "loss",
    },
    "POST /detent/trials/summaries": {
      trials: trials.map(({ id }, index) => ({
        trialId: id,
        experimentId: 7,
        hparams: hparams(index),
        state: "STATE_COMPLETED",
        metrics: [{ group: "validation", name: "loss", last: id, min: id, max: id, mean: id, count: 1 }],
      })),
    },
  });
  const config = { hyperparameters: { rate: { type: "log", minval: -4, maxval: -1, base: 10 } } };
  drawn(<Hyperparameters experiment={experimentOf({ config })} />);
  await screen.findByRole("region", { name: "Parallel coordinates" });
}

it("warns if fewer than twenty trials have a value", async () => {
  await search(19);
  expect(screen.getByText(/^Only 19 trials have a value/)).toBeVisible();
});

it("does not warn with twenty trials", async () => {
  await search(20);
  expect(screen.queryByText(/have a value/)).toBeNull();
});

it("draws a logarithmic hyperparameter from bound to bound of its search space, with powers as ticks", async () => {
  await search(19);
  const drawing = screen.getByRole("img", { name: "Hyperparameters of 19 trials against loss" });
  const ticks = [...drawing.querySelectorAll("g")][0]!.querySelectorAll("text");
  expect([...ticks].slice(1).map((tick) => tick.textContent)).toEqual(["0.0001", "0.001", "0.01", "0.1"]);
});
