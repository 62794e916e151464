import { act, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { pass, stopClock } from "@/testing/drawn";
import { type Asked, held } from "@/testing/fakeMaster";
import { answer, cursor, filterOf, home, keys, lines, ROWS, SEARCH, verb } from "@/testing/homePage";
import { rowOf } from "@/testing/samples";

describe("the keys of the list", () => {
  beforeEach(() => stopClock());

  it("move, select, act on the selection or else on the line, and clear it", async () => {
    const { master } = await home();
    await keys("jjjk");
    expect(cursor()).toBe("8");
    await keys("p");
    await keys("xjx");
    expect(screen.getByText("2 selected")).toBeVisible();
    await keys("a");
    await keys("{Escape}");
    expect(screen.queryByText(/selected$/)).toBeNull();
    expect(master.of(verb("pause"))[0]?.body).toMatchObject({ experimentIds: [8], expectedCount: 1 });
    expect(master.of(verb("activate"))[0]?.body).toMatchObject({ experimentIds: [8, 7], expectedCount: 2 });
  });

  it("stay on the list at both ends", async () => {
    await home();
    await keys("kk");
    expect(cursor()).toBe("9");
    await keys("j".repeat(20));
    expect(cursor()).toBe("1");
  });

  it("focus the filter, where letters are typed", async () => {
    const { master } = await home();
    await keys("j/px");
    expect(screen.getByRole("combobox", { name: "Filter the experiments" })).toHaveValue("px");
    expect(master.of(verb("pause"))).toEqual([]);
  });

  it("keep the experiment of the cursor when others are added above it", async () => {
    const { master, queries } = await home();
    await keys("jj");
    const grown = [rowOf(11), rowOf(10), ...ROWS];
    master.answers[SEARCH] = answer(grown);
    await act(() => queries.invalidateQueries());
    await pass();
    expect(lines().slice(0, 3)).toEqual(["run 11", "run 10", "run 9"]);
    expect(cursor()).toBe("8");
    await keys("p");
    expect(master.of(verb("pause")).map(({ body }) => body)).toMatchObject([{ experimentIds: [8] }]);
    master.answers[SEARCH] = answer(grown.filter((row) => row.id !== 8));
    await act(() => queries.invalidateQueries());
    await pass();
    await keys("p");
    expect(cursor()).toBe("7");
    expect(master.of(verb("pause")).at(-1)?.body).toMatchObject({ experimentIds: [7] });
  });

  it("act on the result of the filter that was just typed, not on the previous list", async () => {
    const { master } = await home();
    const slow = held<object>();
    master.answers[SEARCH] = (asked: Asked) =>
      filterOf(asked).filterGroup.children.length > 0 ? slow.promise : answer(ROWS);
    await keys("jj/loss{Escape}jxjp");
    expect(cursor()).not.toBe("8");
    slow.give(answer([rowOf(4), rowOf(2)]));
    await pass();
    expect(master.of(verb("pause")).map(({ body }) => body)).toEqual([
      { experimentIds: [4], projectId: 0, expectedCount: 1 },
    ]);
    expect(cursor()).toBe("2");
  });

  it("are dropped if the list arrives too late", async () => {
    const { master } = await home();
    const slow = held<object>();
    master.answers[SEARCH] = (asked: Asked) =>
      filterOf(asked).filterGroup.children.length > 0 ? slow.promise : answer(ROWS);
    await keys("/loss{Escape}jp");
    await pass(5_100);
    slow.give(answer([rowOf(4)]));
    await pass();
    expect(lines()).toEqual(["run 4"]);
    await keys("j");
    expect(cursor()).toBe("4");
    expect(master.of(verb("pause"))).toEqual([]);
  });

  it("open the line", async () => {
    const { address } = await home();
    await keys("jj{Enter}");
    expect(address()).toBe("/experiments/8");
  });
});
