// @vitest-environment node
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { forkText } from "./forkText";

const GRID = `# what we try
name: digits
searcher:
  name: grid # all of them
  metric: loss
  max_concurrent_trials: 4
hyperparameters:
  lr: {type: categorical, vals: [0.1, 1]}
`;

describe("a fork's text", () => {
  it("is the parent's own with its comments, under a new name", () => {
    const text = forkText(GRID, 7);
    expect(text).toContain("# what we try");
    expect(parse(text)).toMatchObject({ name: "Fork of digits", searcher: { name: "grid", max_concurrent_trials: 4 } });
  });
  it("of a trial has its values as constants and starts from its checkpoint", () => {
    expect(parse(forkText(GRID, 7, { id: 9, hparams: { lr: 0.1 }, hasCheckpoint: true }))).toEqual({
      name: "Fork of trial 9",
      searcher: { name: "single", metric: "loss", source_trial_id: 9 },
      hyperparameters: { lr: 0.1 },
    });
  });
  it("of an unreadable configuration is the submitted text", () => expect(forkText("{", 7)).toBe("{"));
});
