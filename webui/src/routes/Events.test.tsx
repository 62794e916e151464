import { fireEvent, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { ListedEvent } from "@/services/events";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { type Asked, fakeMaster } from "@/testing/fakeMaster";
import { CREATED } from "@/testing/samples";
import { Component as Events } from "./Events";

const EVENTS = "GET /detent/events";
const eventOf = (id: number, text: string): ListedEvent => ({
  id,
  time: CREATED,
  actor: "ana",
  kind: "moved",
  targetType: "experiment",
  targetId: String(id),
  payload: {},
  text,
});

/** Renders pages of `size` events, newest first. */
async function events(all: ListedEvent[], size: number, at = "/events") {
  const master = fakeMaster({
    [EVENTS]: ({ query }: Asked) => {
      const before = Number(query.get("before") ?? Infinity);
      const search = query.get("search") ?? "";
      const rest = all.filter(({ id, text }) => id < before && text.includes(search));
      return { events: rest.slice(0, size), next: rest.length > size ? rest[size - 1]!.id : null };
    },
    "GET /api/v1/users": { users: [{ id: 1, username: "ana" }] },
  });
  const shown = drawn(<Events />, at);
  await pass();
  return { master, ...shown };
}

const ALL = Array.from({ length: 30 }, (_, index) => eventOf(30 - index, index === 25 ? "kim paused it" : "step"));
const sentences = () =>
  screen.queryAllByRole("row").flatMap((row) => /kim paused it|step/.exec(row.textContent)?.[0] ?? []);

describe("events", () => {
  beforeEach(() => stopClock());

  it("are filtered by menus of people, kinds and targets", async () => {
    const { master, address } = await events(ALL, 10);
    fireEvent.change(screen.getByLabelText("Who"), { target: { value: "ana" } });
    fireEvent.change(screen.getByLabelText("What"), { target: { value: "reported" } });
    fireEvent.change(screen.getByLabelText("Target"), { target: { value: "checkpoint" } });
    await pass();
    expect(address()).toBe("/events?actor=ana&kind=reported&targetType=checkpoint");
    const { query } = master.of(EVENTS).at(-1)!;
    expect([query.get("actor"), query.get("kind"), query.get("targetType")]).toEqual(["ana", "reported", "checkpoint"]);
  });

  it("with a kind in the address that no menu lists keep that kind", async () => {
    await events(ALL, 10, "/events?kind=slot_3_disabled");
    expect(screen.getByLabelText("What")).toHaveValue("slot_3_disabled");
  });

  it("are searched by the master, among all of its events", async () => {
    const { master } = await events(ALL, 10);
    expect(sentences()).toHaveLength(10);
    fireEvent.change(screen.getByLabelText("Find events"), { target: { value: "kim paused" } });
    await pass(400);
    await pass(100);
    expect(sentences()).toEqual(["kim paused it"]);
    expect(screen.getByText("1 match")).toBeVisible();
    expect(master.of(EVENTS).map(({ query }) => query.get("search"))).toEqual([null, "kim paused"]);
  });

  it("of a search are fetched page after page while the master finds few", async () => {
    const { master } = await events(ALL, 10, "/events?text=step");
    await pass(100);
    await pass(100);
    expect(sentences()).toHaveLength(29);
    expect(screen.getByText("29 matches")).toBeVisible();
    expect(master.of(EVENTS)).toHaveLength(3);
  });
});
