import { cleanup, fireEvent, screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { type Asked, held, Refusal } from "@/testing/fakeMaster";
import {
  ALLOWED,
  allDone,
  answer,
  DELETE,
  filterOf,
  GROUPS,
  home,
  IDS,
  LIST,
  lines,
  press,
  ROWS,
  SEARCH,
  select,
  verb,
} from "@/testing/homePage";
import { rowOf } from "@/testing/samples";
import { Home } from "./Home";

describe("an action on the selection", () => {
  beforeEach(() => stopClock());

  it("is sent with exactly the selected ids and their count", async () => {
    const { master } = await home();
    select(8, 3, 5, 3);
    expect(screen.getByText("2 selected")).toBeVisible();
    await press("Pause");
    expect(master.of(verb("pause")).map(({ body }) => body)).toEqual([
      { experimentIds: [8, 5], projectId: 0, expectedCount: 2 },
    ]);
    expect(screen.getByText("Pausing 2 experiments")).toBeVisible();
  });

  describe("is offered only if it can be applied", () => {
    const offered = () =>
      within(screen.getByRole("toolbar", { name: "Selected experiments" }))
        .getAllByRole("button")
        .map((button) => button.textContent.trim())
        .filter((title) => /^(Pause|Activate|Kill|Compare|More)/.test(title));

    it("omits Pause, Activate and Kill for ended experiments", async () => {
      const { master } = await home();
      master.answers[ALLOWED] = { groups: [{ actions: ["archive", "delete", "fork", "continue"], ids: [8, 5] }] };
      select(8, 5);
      await pass();
      expect(master.of(ALLOWED).at(-1)?.body).toEqual({ experimentIds: [8, 5] });
      expect(offered()).toEqual(["Compare", "More"]);
      await press("More");
      expect(screen.getAllByRole("menuitem").map((item) => item.textContent)).toEqual(["Archive", "Delete…"]);
      await user.keyboard("{Escape}");
      select(5);
      await pass();
      expect(offered()).toEqual(["More"]);
    });

    it("shows the number of experiments to which it applies, and is sent for those alone", async () => {
      const { master } = await home();
      master.answers[verb("kill")] = allDone;
      master.answers[ALLOWED] = {
        groups: [
          { actions: ["pause", "cancel", "kill", "fork"], ids: [8, 3] },
          { actions: ["archive", "delete", "fork", "continue"], ids: [5] },
        ],
      };
      select(8, 5, 3);
      await pass();
      expect(offered()).toEqual(["Pause (2)", "Kill (2)…", "Compare", "More"]);
      await press("Pause (2)");
      await press("Kill (2)…");
      await user.click(within(screen.getByRole("dialog", { name: "Kill 2 experiments?" })).getByText("Kill"));
      await pass();
      for (const name of ["pause", "kill"])
        expect(master.of(verb(name)).map(({ body }) => body)).toEqual([
          { experimentIds: [8, 3], projectId: 0, expectedCount: 2 },
        ]);
    });

    it("is sent for all of them if the master cannot tell which", async () => {
      const { master } = await home();
      master.answers[ALLOWED] = new Refusal(404, "there is no such route");
      select(8, 5);
      await pass(10_000);
      expect(offered()).toEqual(["Pause", "Activate", "Kill…", "Compare", "More"]);
    });
  });

  it.each([
    [412, "2 experiments were expected, 1 is there", "Nothing was done: 2 experiments were expected, 1 is there"],
    [504, "the answer did not come in time", "It is not known what was done: the answer did not come in time"],
  ])("is reported as failed if it is answered with %d, and the selection stays", async (status, reason, report) => {
    const { master } = await home();
    master.answers[DELETE] = new Refusal(status, reason);
    select(8, 5);
    await press("More");
    await press("Delete…");
    fireEvent.change(screen.getByRole("textbox", { name: /Type/ }), { target: { value: "delete 2 experiments" } });
    await press("Delete");
    expect(screen.getByText(report)).toBeVisible();
    expect(screen.getByText("2 selected")).toBeVisible();
    expect(screen.queryByRole("button", { name: "Undo" })).toBeNull();
  });

  it("of archiving is reverted by Undo for exactly the archived experiments", async () => {
    const { master } = await home();
    master.answers[verb("archive")] = {
      results: [8, 5, 3].map((id) => ({
        id,
        error: id === 5 ? "experiment 5 is running" : id === 3 ? "no such user" : "",
      })),
    };
    select(8, 5, 3);
    await press("More");
    await press("Archive");
    expect(screen.getByText("Experiment 5 is running")).toBeVisible();
    expect(screen.getByText("Experiment 3: no such user")).toBeVisible();
    await press("Undo");
    expect(master.of(verb("unarchive")).map(({ body }) => body)).toEqual([
      { experimentIds: [8], projectId: 0, expectedCount: 1 },
    ]);
  });

  it("of deletion is sent only after its phrase was typed", async () => {
    const { master } = await home();
    select(8, 5);
    await press("More");
    await press("Delete…");
    const names = within(screen.getByRole("list", { name: "Experiments" })).getAllByRole("listitem");
    expect(names.map((each) => each.textContent)).toEqual(["8 run 8", "5 run 5"]);
    const typed = screen.getByRole("textbox", { name: /Type/ });
    fireEvent.change(typed, { target: { value: "delete 1 experiment" } });
    await press("Delete");
    await user.type(typed, "{Enter}");
    expect(master.of(DELETE)).toEqual([]);
    fireEvent.change(typed, { target: { value: "delete 2 experiments" } });
    await press("Delete");
    expect(master.of(DELETE).map(({ body }) => body)).toEqual([
      { experimentIds: [8, 5], projectId: 0, expectedCount: 2 },
    ]);
    expect(screen.queryByText("2 selected")).toBeNull();
  });

  it("of killing is sent only after a confirmation that names it", async () => {
    const { master } = await home();
    master.answers[verb("kill")] = allDone;
    select(8, 5);
    await press("Kill…");
    expect(master.of(verb("kill"))).toEqual([]);
    const dialog = within(screen.getByRole("dialog", { name: "Kill 2 experiments?" }));
    expect(dialog.getAllByRole("listitem").map((each) => each.textContent)).toEqual(["8 run 8", "5 run 5"]);
    await user.click(dialog.getByRole("button", { name: "Kill" }));
    await pass();
    expect(master.of(verb("kill")).map(({ body }) => body)).toEqual([
      { experimentIds: [8, 5], projectId: 0, expectedCount: 2 },
    ]);
  });

  it("may apply to all matches, which then become a list of ids", async () => {
    const { master } = await home("&q=loss");
    select(8);
    await press("Select all 9");
    expect(filterOf(master.of(IDS)[0]!).filterGroup.children).toMatchObject([
      { columnName: "name", operator: "contains", value: "loss" },
    ]);
    // Another experiment arrives while the user reads "9 selected".
    master.answers[IDS] = { ids: [10, 9, 8, 7, 6, 5, 4, 3, 2, 1], total: 10 };
    await press("Activate");
    expect(master.of(verb("activate"))[0]?.body).toEqual({
      experimentIds: [9, 8, 7, 6, 5, 4, 3, 2, 1],
      projectId: 0,
      expectedCount: 9,
    });
  });

  it("keeps the selection if the ids cannot be loaded, and reports that", async () => {
    const { master } = await home();
    master.answers[IDS] = new Refusal(503, "the master is busy");
    select(8);
    await press("Select all 9");
    expect(screen.getByText("the master is busy")).toBeVisible();
    expect(screen.getByText("1 selected")).toBeVisible();
  });
});

describe("the filter", () => {
  beforeEach(() => stopClock());
  const type = async (text: string) => {
    fireEvent.change(screen.getByRole("combobox", { name: "Filter the experiments" }), { target: { value: text } });
    await pass(300);
  };

  it("that cannot be read shows the place of the error, and the list stays", async () => {
    const { master } = await home();
    const before = master.of(SEARCH).length;
    await type("hp.lr < ");
    expect(screen.getByRole("alert")).toHaveTextContent("a value is missing after “<” (position 9)");
    expect(lines()).toHaveLength(9);
    expect(master.of(SEARCH)).toHaveLength(before);
  });

  it("that the master refuses shows the reason, and the list stays", async () => {
    const { master, address } = await home();
    master.answers[SEARCH] = (asked: Asked) =>
      filterOf(asked).filterGroup.children.length > 0 ? new Refusal(400, "no column hp.lrr; hp.lr?") : answer(ROWS);
    await type("hp.lrr < 1");
    expect(screen.getByRole("alert")).toHaveTextContent("no column hp.lrr; hp.lr?");
    expect(lines()).toHaveLength(9);
    expect(address()).toContain("hp.lrr");
  });

  it("gets a condition for exactly the label that is clicked", async () => {
    const { master, address } = await home("&q=state+%3D+completed+or+hp.lr+%3D+1");
    await user.click(screen.getAllByTitle("Show only label base line")[0]!);
    await pass();
    expect(new URLSearchParams(address().slice(2)).get("q")).toBe(
      '(state = completed or hp.lr = 1) and label = "base line"',
    );
    expect(filterOf(master.of(SEARCH).at(-1)!).filterGroup.children.at(-1)).toMatchObject({
      columnName: "tags",
      operator: "=",
      value: "base line",
    });
  });
});

describe("groups", () => {
  it("have a title with their count and their own rows, and can be closed", async () => {
    stopClock();
    const { master } = await home();
    master.answers[GROUPS] = {
      groups: [
        { value: "base line", count: 2 },
        { value: null, count: 1 },
      ],
    };
    master.answers[SEARCH] = (asked: Asked) =>
      answer(filterOf(asked).filterGroup.children[0]?.operator === "isEmpty" ? [rowOf(4)] : [rowOf(9), rowOf(8)]);
    fireEvent.change(screen.getByLabelText("Group"), { target: { value: "tags" } });
    await pass();
    const titles = () =>
      within(screen.getByRole("grid"))
        .getAllByRole("button", { expanded: true })
        .map((each) => each.textContent.trim());
    expect(titles()).toEqual(["label base line 2", "no label 1"]);
    expect(lines()).toEqual(["run 9", "run 8", "run 4"]);
    expect(master.of(SEARCH).map((asked) => filterOf(asked).filterGroup.children[0]?.operator)).toContain("=");
    await user.click(screen.getByRole("button", { name: /base line/ }));
    await pass();
    expect(lines()).toEqual(["run 4"]);
  });
});

describe("an experiment with two labels", () => {
  beforeEach(() => stopClock());

  it("is in two groups and counted once", async () => {
    const { master } = await home();
    master.answers[SEARCH] = answer([rowOf(9)]);
    master.answers[GROUPS] = {
      groups: [
        { value: "a", count: 9 },
        { value: "b", count: 1 },
      ],
    };
    fireEvent.change(screen.getByLabelText("Group"), { target: { value: "tags" } });
    await pass();
    expect(screen.getByText("9 experiments")).toBeVisible();
    fireEvent.click(screen.getAllByLabelText("Select experiment 9")[0]!);
    expect(screen.getByText("Select all 9")).toBeVisible();
  });
});

describe("a selected experiment that the filter hides", () => {
  beforeEach(() => stopClock());

  it("is reported as not shown, and can be deselected", async () => {
    const { master } = await home();
    select(8, 5, 3);
    await pass();
    expect(screen.queryByText(/not shown/)).toBeNull();
    master.answers[SEARCH] = answer([rowOf(8)]);
    master.answers[IDS] = { ids: [8], total: 1 };
    fireEvent.change(screen.getByRole("combobox", { name: "Filter the experiments" }), { target: { value: "eight" } });
    await pass(300);
    expect(screen.getByText("3 selected")).toBeVisible();
    expect(screen.getByText("2 selected are not shown")).toBeVisible();
    await press("Deselect");
    expect(screen.getByText("1 selected")).toBeVisible();
    await press("Pause");
    expect(master.of(verb("pause")).map(({ body }) => body)).toMatchObject([{ experimentIds: [8], expectedCount: 1 }]);
  });
});

describe("the table", () => {
  beforeEach(() => stopClock());

  it("shows for each experiment the submission, and how long it waited and ran", async () => {
    const times = { waitedSeconds: 600, ranSeconds: 3600, now: "2026-11-21T12:00:00Z" };
    const { master } = await home("&col=startTime&col=waited&col=ran");
    expect(master.of(SEARCH)[0]?.body).toMatchObject({ columns: ["waited", "ran"] });
    cleanup();
    master.answers[SEARCH] = answer([rowOf(1, { times })]);
    drawn(<Home />, `${LIST}&col=startTime&col=waited&col=ran`);
    await pass();
    expect(screen.getAllByRole("columnheader").map((head) => head.textContent)).toEqual([
      "",
      "Name",
      "Labels",
      "Submitted",
      "Waited",
      "Ran",
    ]);
    expect(screen.getByText("10 min 00 s")).toBeVisible();
    expect(screen.getByText("1 h 00 min")).toBeVisible();
  });

  it("stays while the answer to a new filter is loading", async () => {
    const { master } = await home();
    const slow = held<object>();
    master.answers[SEARCH] = (asked: Asked) =>
      filterOf(asked).filterGroup.children.length > 0 ? slow.promise : answer(ROWS);
    fireEvent.change(screen.getByRole("combobox", { name: "Filter the experiments" }), { target: { value: "loss" } });
    await pass(400);
    expect(lines()).toHaveLength(9);
    slow.give(answer([rowOf(4)]));
    await pass();
    expect(lines()).toEqual(["run 4"]);
  });
});
