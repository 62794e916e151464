import { fireEvent, screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { LogLine } from "@/services/logs";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { type Asked, fakeMaster, held } from "@/testing/fakeMaster";
import { lineOf } from "@/testing/samples";
import { LogText } from "./LogText";
import { LogViewer } from "./LogViewer";

const LOGS = "GET /detent/trials/9/logs";
const ERROR = "GET /detent/trials/9/logs/first-error";

/** Two thousand lines of which one, early on, is an error; as the master hands them out. */
const LINES = Array.from({ length: 2000 }, (_, index) =>
  lineOf(
    index + 1,
    index === 299 ? "Traceback: it broke" : `step ${index + 1}`,
    index === 299 ? { level: "ERROR" } : {},
  ),
);

function pageOf(all: LogLine[], query: URLSearchParams) {
  const levels = query.getAll("levels");
  const lines = all.filter((line) => levels.length === 0 || levels.includes(line.level));
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
    "GET /detent/trials/9/logs/extent": {
      count: lines.length,
      firstId: 1,
      lastId: lines.length,
      errors: lines.filter((line) => line.level === "ERROR").length,
    },
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
  it("is text, whatever it would like to be", () => {
    const nasty = `<img src=x onerror=alert(1)> \u001b[31m<b>red</b>\u001b[0m\u0007\u202e`;
    const { container } = drawn(<LogText text={nasty} search="" />);
    expect(container.querySelector("img, b, script")).toBeNull();
    expect(container.querySelector("code")).toHaveTextContent("<img src=x onerror=alert(1)> <b>red</b>␇\ufffd");
    expect(screen.getByText("<b>red</b>")).toHaveClass("red");
  });

  it("marks what is searched for as the master finds it: capitals or not, and no pattern", () => {
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
    expect(line).toHaveAttribute("aria-current", "true");
  });

  it("shows the first error also where a filter and a search would hide it, and takes both away for good", async () => {
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

  it("has its filters in the address, and asks with them", async () => {
    const { master, address } = await log();
    await press("error");
    await find("broke");
    await press(".*");
    expect(new URLSearchParams(address().slice(2)).toString()).toBe("level=ERROR&find=broke&regex=1");
    const { query } = master.of(LOGS).at(-1)!;
    expect([query.getAll("levels"), query.get("search"), query.get("regex")]).toEqual([["ERROR"], "broke", "true"]);
    expect(texts()).toEqual(["Traceback: it broke"]);
  });

  it("offers the whole of a line that was cut, as text", async () => {
    const { master } = await log("/", [lineOf(1, "the beginning", { length: 12_000 })]);
    master.answers["GET /detent/logs/lines/1"] = { line: lineOf(1, "the beginning <b>and\u0007 all</b> of the rest") };
    expect(screen.getByText("12,000 characters")).toBeVisible();
    await user.click(screen.getByText("the beginning"));
    await pass();
    expect(within(screen.getByRole("dialog")).getByText("the beginning <b>and␇ all</b> of the rest")).toBeVisible();
  });
});

describe("a search that finds nothing for long", () => {
  beforeEach(() => stopClock());
  const vain = (scannedTo: number | null) => ({
    lines: [],
    atStart: scannedTo === null,
    atEnd: false,
    firstId: null,
    lastId: null,
    scannedTo,
  });

  it("goes on from where it was, says how far it is, and can be stopped", async () => {
    const { master } = await log();
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
    // What was there before the search is not what it found.
    expect(texts()).toEqual([]);
    expect(screen.queryByText("No line matches")).toBeNull();
    expect(screen.getByText(/stopped/)).toHaveTextContent("1,000");
  });

  it("goes on towards the end where it began at a line", async () => {
    const asked: (string | null)[][] = [];
    await log("/?line=300&find=needle", LINES, ({ query }) => {
      asked.push([query.get("around"), query.get("before"), query.get("after")]);
      return vain(asked.length < 3 ? 300 + asked.length * 100 : null);
    });
    expect(asked).toEqual([
      ["300", null, null],
      [null, null, "400"],
      [null, null, "500"],
    ]);
  });
});
