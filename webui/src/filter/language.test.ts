// @vitest-environment node
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Filter, parseFilter } from "./language";
import { asTyped, FilterProblem } from "./tokens";
import { wireFilter } from "./wire";

const field = (column: string, operator: string, value: unknown) => ({ kind: "field", column, operator, value });

describe("the filter language", () => {
  it.each([
    ["digits", field("name", "contains", "digits")],
    ["state = running", field("state", "=", "RUNNING")],
    ["hp.lr<=1e-3", field("hp.lr", "<=", 0.001)],
    ['name = "a b"', field("name", "=", "a b")],
    ["tag ~ base", field("tags", "contains", "base")],
    ["validation.loss.min is empty", field("validation.loss.min", "isEmpty", null)],
    ["parent is not empty", field("forkedFrom", "notEmpty", null)],
    ["hp.nesterov = true", field("hp.nesterov", "=", true)],
    ['hp.name = "7"', field("hp.name", "=", "7")],
    ["name = 7", field("name", "=", "7")],
    ["__proto__.x.last > 1", field("__proto__.x.last", ">", 1)],
  ])("reads %s", (source, expected) => expect(parseFilter(source)).toEqual(expected));

  it("binds `and` closer than `or`, and reads adjacent conditions as `and`", () => {
    expect(parseFilter("a b or c")).toEqual({
      kind: "group",
      conjunction: "or",
      children: [
        {
          kind: "group",
          conjunction: "and",
          children: [field("name", "contains", "a"), field("name", "contains", "b")],
        },
        field("name", "contains", "c"),
      ],
    });
  });

  it("reads ages as dates", () => {
    expect(parseFilter("started > 2d", Date.parse("2026-11-21T00:00:00Z"))).toEqual(
      field("startTime", ">", "2026-11-19T00:00:00.000Z"),
    );
  });

  it.each([
    ["name =", 6],
    ["(a or b", 0],
    ["a)", 1],
    ['name = "x', 7],
    ["a and", 5],
    ["started > soon", 10],
    ["x is full", 5],
    ["= 3", 0],
    ["started > 2dayz", 11],
    ["duration > 5hh", 12],
  ])("names the place of the error in %s", (source, at) => {
    try {
      parseFilter(source);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(FilterProblem);
      expect((error as FilterProblem).at).toBe(at);
    }
  });

  it("reads units of times and sizes, and suggests the nearest for an unknown one", () => {
    expect(parseFilter("duration > 1.5h")).toEqual(field("duration", ">", 5400));
    expect(parseFilter("checkpointSize > 2GB")).toEqual(field("checkpointSize", ">", 2e9));
    expect(() => parseFilter("started > 2dayz")).toThrow("unknown unit “dayz”; did you mean “day”?");
    expect(() => parseFilter("checkpointSize > 2GiB")).toThrow("unknown unit “GiB”; did you mean “GB”?");
  });

  it("raises no other error, whatever is typed", () => {
    fc.assert(
      fc.property(fc.string(), (source) => {
        try {
          parseFilter(source);
        } catch (error) {
          expect(error).toBeInstanceOf(FilterProblem);
        }
      }),
    );
  });

  it("reads back every value that a click inserts", () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const read = parseFilter(`name = ${asTyped(value)}`) as Filter & { value: unknown };
        expect(read.value).toBe(value);
      }),
    );
  });

  it("is sent in the form of the older page", () => {
    expect(JSON.parse(wireFilter(parseFilter("hp.lr > 1 or x"), false))).toEqual({
      filterGroup: {
        kind: "group",
        conjunction: "or",
        children: [
          {
            kind: "field",
            columnName: "hp.lr",
            location: "LOCATION_TYPE_HYPERPARAMETERS",
            operator: ">",
            type: "COLUMN_TYPE_NUMBER",
            value: 1,
          },
          {
            kind: "field",
            columnName: "name",
            location: "LOCATION_TYPE_EXPERIMENT",
            operator: "contains",
            type: "COLUMN_TYPE_TEXT",
            value: "x",
          },
        ],
      },
      showArchived: false,
    });
  });
});

it("reads the names that the page displays", () => {
  expect(parseFilter("val/loss < 1 lr<0.001")).toEqual({
    kind: "group",
    conjunction: "and",
    children: [
      { kind: "field", column: "val/loss", operator: "<", value: 1 },
      { kind: "field", column: "lr", operator: "<", value: 0.001 },
    ],
  });
});
