import { act, fireEvent, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster, Refusal } from "@/testing/fakeMaster";
import { experimentOf, statusOf } from "@/testing/samples";
import { Component as Experiment } from "./Experiment";
// Otherwise it is fetched on its first render, for which the stopped clock does not wait.
import "./experiment/Notes";

const STATUS = "GET /detent/experiments/7/status";
const DETAIL = "GET /api/v1/experiments/7";

async function page() {
  const master = fakeMaster({ [STATUS]: statusOf(), [DETAIL]: { experiment: experimentOf({ notes: "first" }) } });
  const shown = drawn(<Experiment />, "/experiments/7/notes", "/experiments/:experimentId/*");
  await pass();
  const again = async () => {
    await act(() => shown.queries.invalidateQueries());
    await pass();
  };
  return { master, again };
}

const notes = () => screen.getByLabelText("Notes", { selector: "textarea" });
const type = (value: string) => fireEvent.change(notes(), { target: { value } });

describe("an experiment's page", () => {
  beforeEach(() => stopClock());

  it("stays, with typed text, while the master does not answer", async () => {
    const { master, again } = await page();
    type("a long thought");
    master.answers[STATUS] = new Refusal(503, "busy");
    master.answers[DETAIL] = new Refusal(401, "sign in first");
    await again();
    expect(notes()).toHaveValue("a long thought");
  });

  it("reports that the experiment is missing after its deletion", async () => {
    const { master, again } = await page();
    master.answers[STATUS] = new Refusal(404, "no experiment 7");
    await again();
    expect(screen.getByText("Experiment 7 was not found")).toBeVisible();
  });

  it("shows notes that another user saved, but never over text that is being typed", async () => {
    const { master, again } = await page();
    master.answers[DETAIL] = { experiment: experimentOf({ notes: "second" }) };
    await again();
    expect(notes()).toHaveValue("second");
    type("second, and mine");
    master.answers[DETAIL] = { experiment: experimentOf({ notes: "third" }) };
    await again();
    expect(notes()).toHaveValue("second, and mine");
    expect(screen.getByText("not saved yet")).toBeVisible();
  });
});
