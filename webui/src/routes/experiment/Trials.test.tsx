import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { experimentOf, trialOf } from "@/testing/samples";
import Trials from "./Trials";

it("trials sort in both directions by any column; missing values are last", async () => {
  stopClock();
  fakeMaster({
    "GET /api/v1/experiments/7/trials": {
      trials: [
        trialOf(1, { searcherMetricValue: 0.5, hparams: { lr: 1e-2, act: "relu" } }),
        trialOf(2, { searcherMetricValue: null, hparams: { act: "gelu" } }),
        trialOf(3, { searcherMetricValue: "NaN", hparams: { lr: 1e-10, act: "tanh" } }),
        trialOf(4, { searcherMetricValue: "-Infinity", hparams: { lr: 9e-3, act: "gelu" } }),
        trialOf(5, { searcherMetricValue: 0.25, hparams: { lr: 5 } }),
      ],
    },
  });
  const { address } = drawn(<Trials experiment={experimentOf({ bestTrialId: 5 })} />);
  await pass();
  const order = () =>
    screen.getAllByRole("checkbox").map((box) => Number(box.getAttribute("aria-label")?.slice("Select trial ".length)));
  const sort = async (title: string) => {
    await user.click(screen.getByRole("button", { name: new RegExp(`^${title}`) }));
    return order();
  };
  expect(order()).toEqual([1, 2, 3, 4, 5]);
  expect(await sort("loss")).toEqual([4, 5, 1, 2, 3]);
  expect(await sort("loss")).toEqual([1, 5, 4, 2, 3]);
  expect(await sort("lr")).toEqual([3, 4, 1, 5, 2]);
  expect(await sort("lr")).toEqual([5, 1, 4, 3, 2]);
  expect(await sort("act")).toEqual([2, 4, 1, 3, 5]);
  await user.click(screen.getByLabelText("Select trial 4"));
  expect(screen.getByRole("button", { name: "Compare 1" })).toHaveAttribute("title", "Select two or more");
  await user.click(screen.getByLabelText("Select trial 2"));
  await user.click(screen.getByRole("button", { name: "Compare 2" }));
  expect(address()).toBe("/compare?trials=4,2");
});

it.each([
  [true, [2, 1, 3]],
  [false, [1, 2, 3]],
])(
  "trials of a search begin with the best one, and with the hyperparameters that differ: smaller is better %s",
  async (smaller, best) => {
    fakeMaster({
      "GET /api/v1/experiments/7/trials": {
        trials: [
          trialOf(1, { searcherMetricValue: 0.5, hparams: { depth: 3, lr: 0.1 } }),
          trialOf(2, { searcherMetricValue: 0.25, hparams: { depth: 3, lr: 0.2 } }),
          trialOf(3, { searcherMetricValue: null, hparams: { depth: 3, lr: 0.3 } }),
        ],
      },
    });
    const config = { searcher: { name: "grid", smaller_is_better: smaller } };
    drawn(<Trials experiment={experimentOf({ numTrials: 3, bestTrialId: best[0]!, config })} />);
    await screen.findByLabelText("Select trial 1");
    const boxes = screen.getAllByRole("checkbox").map((box) => box.getAttribute("aria-label"));
    expect(boxes).toEqual(best.map((id) => `Select trial ${id}`));
    const titles = screen.getAllByRole("columnheader").map((head) => head.textContent);
    expect(titles.indexOf("lr")).toBeLessThan(titles.indexOf("Steps"));
    expect(titles.indexOf("depth")).toBeGreaterThan(titles.indexOf("Restarts"));
  },
);
