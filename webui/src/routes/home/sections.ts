import { failureOf } from "@/api/problem";
import { useQueries, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import type { Filter } from "@/filter/language";
import { wireFilter } from "@/filter/wire";
import { stateLook } from "@/format/states";
import { type Finding, groupsQuery, PAGE, type Row, rowsQuery } from "@/services/columns";
import { BUILT_IN } from "./columns";
import { type ListState, sortText } from "./listState";

/** A part of the list with its own query: the whole list, or one group. */
export interface Section {
  key: string;
  title: string | null;
  finding: Finding;
  count: number;
}

/** One line on the screen. */
export type Line =
  { kind: "group"; section: Section; open: boolean } | { kind: "row"; section: Section; index: number };

export interface ListShape {
  sections: Section[];
  /** Number of lines on the screen, group titles included. */
  length: number;
  lineAt: (line: number) => Line | null;
}

/** Returns the content of each line on the screen, with some groups closed. Pure. */
export function shapeOf(sections: readonly Section[], closed: ReadonlySet<string>): ListShape {
  const starts: number[] = [];
  let length = 0;
  for (const section of sections) {
    starts.push(length);
    length += (section.title === null ? 0 : 1) + (closed.has(section.key) ? 0 : section.count);
  }
  const lineAt = (line: number): Line | null => {
    if (line < 0 || line >= length) return null;
    let low = 0;
    let high = sections.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (starts[middle]! <= line) low = middle;
      else high = middle - 1;
    }
    const section = sections[low]!;
    const inside = line - starts[low]!;
    if (section.title === null) return { kind: "row", section, index: inside };
    return inside === 0
      ? { kind: "group", section, open: !closed.has(section.key) }
      : { kind: "row", section, index: inside - 1 };
  };
  return { sections: [...sections], length, lineAt };
}

function askedOf(columns: readonly string[]): string[] {
  return columns.filter((column) => !Object.hasOwn(BUILT_IN, column) || BUILT_IN[column]!.computed);
}

function findingOf(filter: Filter | null, sort: ListState["sort"], showArchived: boolean): Finding {
  return { filter: wireFilter(filter, showArchived), sort: sortText(sort), showArchived };
}

/** Returns the first query of a list without groups. */
export function firstRows(state: ListState, filter: Filter | null) {
  return rowsQuery(findingOf(filter, state.sort, state.showArchived), askedOf(state.columns), 0);
}

export function useSections(state: ListState, filter: Filter | null) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const asked = useMemo(() => askedOf(state.columns), [state.columns]);
  const whole = useMemo(
    () => findingOf(filter, state.sort, state.showArchived),
    [filter, state.sort, state.showArchived],
  );
  // Grouped lists need the total too: an experiment with two labels is in two groups.
  const first = useQuery(rowsQuery(whole, asked, 0));
  const groups = useQuery({ ...groupsQuery(whole, state.group), enabled: state.group !== "" });
  const sections = useMemo<Section[]>(() => {
    if (state.group === "") return [{ key: "", title: null, finding: whole, count: first.data?.total ?? 0 }];
    return (groups.data ?? []).map(({ value, count }) => {
      const operator = value === null ? ("isEmpty" as const) : ("=" as const);
      const own: Filter = { kind: "field", column: state.group, operator, value };
      const both: Filter = filter === null ? own : { kind: "group", conjunction: "and", children: [filter, own] };
      const name = state.group === "tags" ? "label" : state.group;
      const title =
        value === null || value === ""
          ? `no ${name}`
          : state.group === "state"
            ? stateLook(String(value)).word
            : `${name} ${value}`;
      return {
        key: `${typeof value}:${value}`,
        title,
        count,
        finding: { ...whole, filter: wireFilter(both, state.showArchived) },
      };
    });
  }, [state.group, state.showArchived, whole, first.data?.total, groups.data, filter]);
  const parts = state.group === "" ? [first] : [first, groups];
  const failure = parts.find(({ error }) => error)?.error ?? null;
  const hasNothing = failureOf(...parts) !== null;
  const isPending = parts.some((part) => part.isPending);
  const isPlaceholderData = parts.some((part) => part.isPlaceholderData);
  const isAnswered = parts.every(({ isSuccess }) => isSuccess) && !isPlaceholderData;
  const total = first.data?.total ?? 0;
  const [answered, setAnswered] = useState<{ sections: Section[]; asked: string[]; total: number }>({
    sections: [],
    asked: [],
    total: 0,
  });
  if (isAnswered && (sections !== answered.sections || asked !== answered.asked || total !== answered.total))
    setAnswered({ sections, asked, total });
  // The list stays while the next answer is loading, and if the master refuses a filter.
  const shown = isAnswered ? { sections, asked, total } : answered;
  const shape = useMemo(() => shapeOf(shown.sections, closed), [shown.sections, closed]);
  const toggle = (key: string) =>
    setClosed((now) => (now.has(key) ? new Set([...now].filter((each) => each !== key)) : new Set([...now, key])));
  const isCurrent = !isPending && !isPlaceholderData;
  return { whole, asked: shown.asked, shape, toggle, failure, hasNothing, isPending, isCurrent, total: shown.total };
}

/** Returns the visible rows, page by page; undefined while a row is loading. */
export function useRows(
  shape: ListShape,
  asked: readonly string[],
  from: number,
  to: number,
  isScrolling: boolean,
): Map<number, Row> {
  const wanted = useMemo(() => {
    const pages = new Map<string, { section: Section; page: number }>();
    for (let line = from; line <= to; line += 1) {
      const found = shape.lineAt(line);
      if (found?.kind !== "row") continue;
      const page = Math.floor(found.index / PAGE);
      pages.set(`${found.section.key}/${page}`, { section: found.section, page });
    }
    return [...pages.entries()];
  }, [shape, from, to]);
  const rested = useRested(wanted);
  const isAsked = (key: string) => !isScrolling || rested.has(key);
  const answers = useQueries({
    queries: wanted.map(([key, { section, page }]) => ({
      ...rowsQuery(section.finding, asked, page),
      enabled: isAsked(key),
    })),
    combine: answersOf,
  });
  return useMemo(() => {
    const rows = new Map<number, Row>();
    const byPage = new Map(wanted.map(([key], index) => [key, answers[index]]));
    for (let line = from; line <= to; line += 1) {
      const found = shape.lineAt(line);
      if (found?.kind !== "row") continue;
      const page = byPage.get(`${found.section.key}/${Math.floor(found.index / PAGE)}`);
      const row =
        page?.offset === Math.floor(found.index / PAGE) * PAGE ? page.experiments[found.index % PAGE] : undefined;
      if (row) rows.set(line, row);
    }
    return rows;
  }, [answers, wanted, shape, from, to]);
}

const REST_MS = 80;

/**
 * Returns the pages that have been visible for a moment. Pages that are scrolled past are skipped, since a hundred
 * requests for them would precede the last.
 */
function useRested(wanted: readonly [string, unknown][]): ReadonlySet<string> {
  const now = wanted.map(([key]) => key).join("\n");
  const [rested, setRested] = useState(now);
  useEffect(() => {
    const timer = setTimeout(() => setRested(now), REST_MS);
    return () => clearTimeout(timer);
  }, [now]);
  return useMemo(() => new Set(rested.split("\n")), [rested]);
}

/** Returns the same list as before if no answer changed, so that nothing is rendered again. */
function answersOf<T>(results: readonly { data: T }[]): T[] {
  return results.map(({ data }) => data);
}
