import { expect, it } from "vitest";
import { exitPhrase } from "./exitReasons";

it("exit reasons are displayed as plain phrases", () => {
  expect(["impossible", "user_canceled", "agent_lost", "of_another_version"].map(exitPhrase)).toEqual([
    "cannot be scheduled",
    "canceled by a user",
    "agent lost",
    "of another version",
  ]);
});
