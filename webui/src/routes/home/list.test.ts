import { describe, expect, it } from "vitest";
import { DEFAULT_SORT, pressed, readFilter, readState, writeState } from "./listState";
import { pinnedAt } from "./pinned";
import { type Section, shapeOf } from "./sections";

const finding = { filter: "", sort: "", showArchived: false };
const section = (key: string, title: string | null, count: number): Section => ({ key, title, count, finding });

describe("the list's address", () => {
  it("is empty for the defaults", () => expect(writeState(readState(new URLSearchParams())).toString()).toBe(""));

  it("contains everything else", () => {
    const address = "q=state+%3D+running&sort=hp.lr%3Dasc%2Cid%3Ddesc&col=id&col=hp.a%2Cb&group=user&archived=1";
    const state = readState(new URLSearchParams(address));
    expect(state.columns).toEqual(["id", "hp.a,b"]);
    expect(state.sort).toEqual([
      { column: "hp.lr", descending: false },
      { column: "id", descending: true },
    ]);
    expect(readState(writeState(state))).toEqual(state);
  });

  it("lists a column once, however often it is named", () =>
    expect(readState(new URLSearchParams("col=id&col=id")).columns).toEqual(["id"]));
});

describe("columns that stay in sight", () => {
  const widths = (...ids: string[]) => ids.map((id) => ({ id, width: 100 }));

  it("are those that identify a row, as long as they come first", () => {
    expect(pinnedAt(widths("id", "name", "state"), 40)).toEqual([40, 140, undefined]);
    expect(pinnedAt(widths("name", "state", "id"), 40)).toEqual([40, undefined, undefined]);
    expect(pinnedAt(widths("state", "name"), 40)).toEqual([undefined, undefined]);
  });
});

describe("a click on a column's name", () => {
  it("sorts ascending, descending, and not at all", () => {
    const up = pressed(DEFAULT_SORT, "name", false);
    const down = pressed(up, "name", false);
    expect([up, down, pressed(down, "name", false)]).toEqual([
      [{ column: "name", descending: false }],
      [{ column: "name", descending: true }],
      DEFAULT_SORT,
    ]);
  });
  it("with Shift adds to the other columns", () => {
    expect(pressed([{ column: "user", descending: false }], "name", true)).toHaveLength(2);
  });
});

describe("what cannot be read", () => {
  it("is an error with its place, not a filter", () => expect(readFilter("name =").problem?.at).toBe(6));
});

describe("lines of the screen", () => {
  const shape = shapeOf(
    [section("a", "user a", 2), section("b", "user b", 0), section("c", "user c", 3)],
    new Set(["c"]),
  );
  it("are titles and rows", () => {
    expect(shape.length).toBe(5);
    expect(
      Array.from({ length: 6 }, (_, line) => shape.lineAt(line)).map((line) =>
        line === null ? null : line.kind === "group" ? line.section.key : line.index,
      ),
    ).toEqual(["a", 0, 1, "b", "c", null]);
  });
  it("without groups are rows alone", () =>
    expect(shapeOf([section("", null, 3)], new Set()).lineAt(2)).toMatchObject({ kind: "row", index: 2 }));
});
