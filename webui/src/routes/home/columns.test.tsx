import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { rowOf } from "@/testing/samples";
import { BUILT_IN } from "./columns";

it("the state of a run has a mark if a trial of it is silent, and names the trial", () => {
  const note = "trial 9 has reported nothing for 45 min";
  const state = (change: Parameters<typeof rowOf>[1]) =>
    render(<>{BUILT_IN.state!.draw(rowOf(1, { state: "STATE_RUNNING", ...change }), () => undefined)}</>);
  state({ note });
  expect(screen.getByRole("img", { name: note })).toBeVisible();
  expect(screen.getByTitle(note)).toHaveTextContent("running");
  state({});
  expect(screen.getAllByRole("img")).toHaveLength(1);
});
