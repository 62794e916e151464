import { act, fireEvent, screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { LogLine } from "@/services/logs";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { type Asked, fakeMaster, held } from "@/testing/fakeMaster";
import { lineOf } from "@/testing/samples";
import { setPreferences } from "@/browser/preferences";
import { LogText } from "./LogText";
import { LogViewer } from "./LogViewer";

const LOGS = "GET /detent/trials/9/logs";
const ERROR = "GET /detent/trials/9/logs/first-error";

/** Two thousand lines with one early error, as the master returns them. */
const LINES = Array.from({ length: 2000 }, (_, index) =>
  lineOf(
    index + 1,
    index === 299 ? "Traceback: it broke" : `step ${index + 1}`,
    index === 299 ? { level: "ERROR" } : {},
  ),
);

function pageOf(all: LogLine[], query: URLSearchParams) {
  const levels = query.getAll("levels");
  const search = query.get("search") ?? "";
  const lines = all.filter(
    (line) => (levels.length === 0 || levels.includes(line.level)) && line.text.includes(search),
  );
  const number = (name: string) => (query.has(name) ? Number(query.get(name)) : null);
  const [before, after, around] = [number("before"), number("after"), number("around")];
  let shown = lines.slice(-500);
  if (before !== null) shown = lines.filter((line) => line.id < before).slice(-500);
  if (after !== null) shown = lines.filter((line) => line.id > after).slice(0, 500);
  if (around !== null)
    shown = [
      ...lines.filter((line) => line.id < around).slice(-250),
      ...lines.filter((line) => line.id >= around).slice(0, 250),
    ];
  return {
    lines: shown,
    atStart: shown[0] === lines[0],
    atEnd: shown.at(-1) === lines.at(-1),
    firstId: shown[0]?.id ?? null,
    lastId: shown.at(-1)?.id ?? null,
    scannedTo: null,
  };
}

async function log(at = "/", lines = LINES, answer: (asked: Asked) => unknown = ({ query }) => pageOf(lines, query)) {
  const master = fakeMaster({
    [LOGS]: answer,
    [ERROR]: { line: lines.find((line) => line.level === "ERROR") ?? null },
    "GET /detent/trials/9/logs/extent": ({ query }: Asked) => ({
      count: lines.length,
      firstId: lines[0]?.id ?? null,
      lastId: lines.at(-1)?.id ?? null,
      errors: lines.filter((line) => line.level === "ERROR").length,
      number: query.has("line") ? lines.filter((line) => line.id <= Number(query.get("line"))).length : null,
    }),
  });
  const shown = drawn(<LogViewer trialId={9} taskId="7.9" ranks={[0]} attempts={[]} isLive={false} />, at);
  await pass();
  return { master, ...shown };
}

const texts = () => [...document.querySelectorAll("[data-testid=log-line] > code")].map((each) => each.textContent);
const press = async (name: string) => {
  await user.click(screen.getByRole("button", { name }));
  await pass(100);
};
const find = async (text: string) => {
  fireEvent.change(screen.getByLabelText("Find in the log"), { target: { value: text } });
  await pass(400);
};

describe("a line of a log", () => {
  it("is displayed as text, whatever it contains", () => {
    const nasty = `<img src=x onerror=alert(1)> \u001b[31m<b>red</b>\u001b[0m\u0007\u202e`;
    const { container } = drawn(<LogText text={nasty} search="" />);
    expect(container.querySelector("img, b, script")).toBeNull();
    expect(container.querySelector("code")).toHaveTextContent("<img src=x onerror=alert(1)> <b>red</b>␇\ufffd");
    expect(screen.getByText("<b>red</b>")).toHaveClass("red");
  });

  it("highlights matches like the master, ignoring case and without patterns", () => {
    const { container } = drawn(<LogText text="Loss (a+) was LOSS (A+)" search="loss (a+)" />);
    expect([...container.querySelectorAll("mark")].map((mark) => mark.textContent)).toEqual(["Loss (a+)", "LOSS (A+)"]);
    expect(container).toHaveTextContent("Loss (a+) was LOSS (A+)");
  });
});

describe("the log of a trial", () => {
  beforeEach(() => stopClock());

  it("opens at its end", async () => {
    await log();
    expect(texts()).toContain("step 2000");
    expect(texts()).not.toContain("step 1000");
  });

  it("shows the first error and marks it", async () => {
    await log();
    await press("First error");
    const line = screen.getByText("Traceback: it broke").closest("[data-testid=log-line]");
    expect(line).toHaveAttribute("aria-current", "true");
  });

  it("shows the first error also if a filter and a search would hide it, and clears both", async () => {
    const { address } = await log("/?level=DEBUG&find=nothing");
    await press("First error");
    await pass(1_000);
    expect(screen.getByText("Traceback: it broke").closest("[data-testid=log-line]")).toHaveAttribute(
      "aria-current",
      "true",
    );
    expect(screen.getByLabelText("Find in the log")).toHaveValue("");
    expect(address()).toBe("/");
  });

  it("stores its filters in the address, and sends them", async () => {
    const { master, address } = await log();
    await press("ERROR");
    await find("broke");
    await press("Only matches");
    await press(".*");
    expect(new URLSearchParams(address().slice(2)).toString()).toBe("level=ERROR&find=broke&regex=1&only=1");
    const { query } = master.of(LOGS).at(-1)!;
    expect([query.getAll("levels"), query.get("search"), query.get("regex")]).toEqual([["ERROR"], "broke", "true"]);
    expect(texts()).toEqual(["Traceback: it broke"]);
  });

  it("offers the whole text of a truncated line", async () => {
    const { master } = await log("/", [lineOf(1, "the beginning", { length: 12_000 })]);
    master.answers["GET /detent/logs/lines/1"] = { line: lineOf(1, "the beginning <b>and\u0007 all</b> of the rest") };
    expect(screen.getByText("12,000 characters")).toBeVisible();
    await user.click(screen.getByText("the beginning"));
    await pass();
    expect(within(screen.getByRole("dialog")).getByText("the beginning <b>and␇ all</b> of the rest")).toBeVisible();
  });
});

describe("lines of a log", () => {
  beforeEach(() => stopClock());

  it("of an error are marked together, and the exception is scrolled into view", async () => {
    const broken = ["Traceback (most recent call last):", '  File "train.py"', "ValueError: no labels"];
    const lines = LINES.map((line) =>
      line.id < 300 || line.id > 302 ? line : lineOf(line.id, broken[line.id - 300]!),
    );
    lines[299] = lineOf(300, broken[0]!, { level: "ERROR" });
    await log("/", lines);
    await press("First error");
    expect([...document.querySelectorAll("[data-block] > code")].map((each) => each.textContent)).toEqual(broken);
    expect(document.querySelector("[aria-current] > code")).toHaveTextContent("ValueError: no labels");
    await press("End");
    expect(document.querySelector("[data-block]")).toBeNull();
  });

  it("have their numbers in the whole log, wherever the view is", async () => {
    await log(
      "/",
      LINES.map((line) => ({ ...line, id: line.id * 10 })),
    );
    const numberOf = (text: string) =>
      screen.getByText(text).closest("[data-testid=log-line]")?.querySelector("[data-testid=line-number]")?.textContent;
    expect(numberOf("step 2000")).toBe("2000");
    await press("Start");
    expect(numberOf("step 1")).toBe("1");
    await press("ERROR");
    expect(document.querySelector("[data-testid=line-number]")).toBeNull();
  });

  it("show their level in full", async () => {
    await log("/", [lineOf(1, "odd", { level: "WARNING" }), lineOf(2, "bad", { level: "CRITICAL" })]);
    expect(screen.getByText("WARNING", { selector: "span" })).toBeVisible();
    expect(screen.getByText("CRITICAL", { selector: "span" })).toBeVisible();
    expect(screen.getByRole("button", { name: "WARNING" })).toBeVisible();
  });

  it("wrap on demand, also the next time", async () => {
    await log();
    const isBroken = () => document.querySelector(".wrapped") !== null;
    expect(isBroken()).toBe(false);
    await press("Wrap lines");
    expect(isBroken()).toBe(true);
    expect(JSON.parse(localStorage.getItem("detent.preferences") ?? "{}")).toMatchObject({ wrapLogs: true });
    setPreferences({ wrapLogs: false });
  });
});

describe("a search", () => {
  beforeEach(() => stopClock());
  const current = () => document.querySelector("[aria-current] > code")?.textContent;

  it("counts the matching lines, moves between them, and shows their context", async () => {
    const { address } = await log();
    await find("step 99");
    await pass(100);
    // 99, and 990 to 999.
    expect(screen.getByText("1 of 11")).toBeVisible();
    expect(current()).toBe("step 99");
    expect(texts()).toContain("step 98");
    await press("Next match");
    expect(current()).toBe("step 990");
    expect(texts()).toContain("step 989");
    await user.type(screen.getByLabelText("Find in the log"), "{Enter}");
    await pass(100);
    expect(screen.getByText("3 of 11")).toBeVisible();
    expect(current()).toBe("step 991");
    await user.type(screen.getByLabelText("Find in the log"), "{Shift>}{Enter}{Enter}{Enter}{/Shift}");
    await pass(100);
    expect(screen.getByText("11 of 11")).toBeVisible();
    await press("Only matches");
    expect(texts()).toEqual(["step 99", ...Array.from({ length: 10 }, (_, index) => `step ${990 + index}`)]);
    expect(address()).toBe("/?find=step+99&only=1");
  });

  it("without matches keeps the log and reports that", async () => {
    await log();
    await find("needle");
    await pass(100);
    expect(screen.getByText("No match")).toBeVisible();
    expect(texts()).toContain("step 2000");
    expect(screen.getByRole("button", { name: "Next match" })).toHaveAttribute("title", "No line matches");
  });

  it("searches new lines once, and does not search others again", async () => {
    const { master, queries } = await log();
    await find("step 2000");
    await pass(100);
    expect(screen.getByText("1 of 1")).toBeVisible();
    const grown = [...LINES, lineOf(2001, "again step 2000")];
    master.answers[LOGS] = ({ query }: Asked) => pageOf(grown, query);
    master.answers["GET /detent/trials/9/logs/extent"] = {
      count: 2001,
      firstId: 1,
      lastId: 2001,
      errors: 1,
      number: 1,
    };
    const before = master.of(LOGS).length;
    await act(() => queries.invalidateQueries({ queryKey: ["logs"] }));
    await pass(100);
    expect(screen.getByText("1 of 2")).toBeVisible();
    const searched = master.of(LOGS).slice(before);
    expect(searched.filter(({ query }) => query.has("search")).map(({ query }) => query.get("after"))).toEqual([
      "2000",
    ]);
  });

  it("can be stopped, and its count is then partial", async () => {
    const { master } = await log();
    const last = held<object>();
    master.answers[LOGS] = ({ query }: Asked) => {
      if (!query.has("search")) return pageOf(LINES, query);
      if (query.get("after") !== "0") return last.promise;
      return { lines: [LINES[9]], atStart: false, atEnd: false, firstId: 10, lastId: 10, scannedTo: 1000 };
    };
    await find("step");
    await pass(100);
    expect(screen.getByText("1 of 1+")).toBeVisible();
    await press("Stop");
    last.give(pageOf(LINES, new URLSearchParams("after=1000")));
    await pass(100);
    expect(screen.getByText("1 of 1+")).toBeVisible();
    expect(screen.queryByRole("button", { name: "Stop" })).toBeNull();
  });
});

describe("a search that shows only matches and finds none for long", () => {
  beforeEach(() => stopClock());
  const vain = (scannedTo: number | null) => ({
    lines: [],
    atStart: scannedTo === null,
    atEnd: false,
    firstId: null,
    lastId: null,
    scannedTo,
  });

  it("continues from where it was, shows its progress, and can be stopped", async () => {
    const { master } = await log("/?only=1");
    const answers = [vain(1500), vain(1000)];
    const last = held<object>();
    master.answers[LOGS] = () => answers.shift() ?? last.promise;
    await find("needle");
    expect(
      master
        .of(LOGS)
        .slice(-3)
        .map(({ query }) => query.get("before")),
    ).toEqual([null, "1500", "1000"]);
    expect(screen.getByText(/Searched up to line 1,000/)).toBeVisible();
    const before = master.of(LOGS).length;
    await press("Stop");
    last.give(vain(500));
    await pass(1_000);
    expect(master.of(LOGS)).toHaveLength(before);
    expect(screen.queryByText(/Searched up to/)).toBeNull();
    // Lines from before the search are not its results.
    expect(texts()).toEqual([]);
    expect(screen.queryByText("No line matches")).toBeNull();
    expect(screen.getByText(/stopped/)).toHaveTextContent("1,000");
  });

  it("continues towards the end if it began at a line, and then among older lines", async () => {
    const asked: (string | null)[][] = [];
    await log("/?line=300&find=needle&only=1", LINES, ({ query }) => {
      asked.push([query.get("around"), query.get("before"), query.get("after")]);
      return vain(asked.length < 3 ? 300 + asked.length * 100 : null);
    });
    expect(asked).toEqual([
      ["300", null, null],
      [null, null, "400"],
      [null, null, "500"],
      [null, "300", null],
    ]);
  });

  it("continues among older lines if nothing newer is left", async () => {
    const asked: (string | null)[][] = [];
    await log("/?line=300&find=needle&only=1", LINES, ({ query }) => {
      asked.push([query.get("around"), query.get("before"), query.get("after")]);
      return { ...vain(asked.length < 3 ? 300 - asked.length * 100 : null), atEnd: query.has("around") };
    });
    expect(asked).toEqual([
      ["300", null, null],
      [null, "200", null],
      [null, "100", null],
    ]);
  });
});
