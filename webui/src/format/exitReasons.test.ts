import { expect, it } from "vitest";
import { exitPhrase } from "./exitReasons";

it("words exit reasons as people say them", () => {
  expect(["impossible", "user_canceled", "agent_lost", "of_another_version"].map(exitPhrase)).toEqual([
    "cannot be scheduled",
    "canceled by a user",
    "agent lost",
    "of another version",
  ]);
});
