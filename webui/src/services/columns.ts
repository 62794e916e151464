import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";
import { wireFilter } from "@/filter/wire";

type Schemas = components["schemas"];
export type Row = Schemas["Row"];
export type Column = Schemas["Column"];
export type RowsAnswer = Schemas["SearchAnswer"];
export type BulkResult = Schemas["BulkResult"];
export type BulkVerb = "activate" | "pause" | "cancel" | "kill" | "archive" | "unarchive" | "delete";

/** A query for experiments: the filter in the form of the master, and the order. */
export interface Finding {
  filter: string;
  sort: string;
  showArchived: boolean;
}

export const PAGE = 100;

export const rowsQuery = (finding: Finding, columns: readonly string[], page: number) =>
  queryOptions({
    queryKey: ["experiments", "rows", finding, columns, page],
    queryFn: ({ signal }) =>
      got(
        api.POST("/detent/experiments/search", {
          body: { ...finding, columns: [...columns], offset: page * PAGE, limit: PAGE },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });

/** Returns the given rows that match; the total counts all matches. */
export async function fetchRows(
  finding: Finding,
  columns: readonly string[],
  ids: readonly number[],
): Promise<RowsAnswer> {
  const body = { ...finding, columns: [...columns], ids: [...ids], offset: 0, limit: ids.length };
  return got(api.POST("/detent/experiments/search", { body }));
}

export const groupsQuery = (finding: Finding, by: string) =>
  queryOptions({
    queryKey: ["experiments", "groups", finding, by],
    queryFn: async () => {
      const { filter, showArchived } = finding;
      return (await got(api.POST("/detent/experiments/search/groups", { body: { filter, showArchived, by } }))).groups;
    },
    placeholderData: keepPreviousData,
  });

/** The ids of all matches, so that the selection is a list whose size the user saw. */
export const idsQuery = (finding: Finding) =>
  queryOptions({
    queryKey: ["experiments", "ids", finding],
    queryFn: async () => new Set((await got(api.POST("/detent/experiments/search/ids", { body: finding }))).ids),
  });

/** The actions that can be applied to these experiments now, by the table that the master's commands use. */
export const allowedActionsQuery = (ids: readonly number[]) =>
  queryOptions({
    queryKey: ["experiments", "allowed", ids],
    queryFn: async () => {
      const body = { experimentIds: [...ids] };
      return (await got(api.POST("/detent/experiments/allowed-actions", { body }))).groups;
    },
    placeholderData: keepPreviousData,
  });

/** Maximum number of names in a dialog. */
export const MAX_NAMES = 20;

/** The names of the first experiments of a selection, by id. */
export const namesQuery = (ids: readonly number[]) =>
  queryOptions({
    queryKey: ["experiments", "names", ids.slice(0, MAX_NAMES)],
    queryFn: async () => {
      const children = ids
        .slice(0, MAX_NAMES)
        .map((id) => ({ kind: "field" as const, column: "id", operator: "=" as const, value: id }));
      const filter = wireFilter({ kind: "group", conjunction: "or", children }, true);
      const { experiments } = await got(
        api.POST("/detent/experiments/search", {
          body: { filter, sort: "", showArchived: true, columns: [], offset: 0, limit: MAX_NAMES },
        }),
      );
      return new Map(experiments.map(({ id, name }) => [id, name]));
    },
  });

export type ColumnKind = Column["kind"];

export const columnsQuery = (query: string, limit = 60, kind?: ColumnKind) =>
  queryOptions({
    queryKey: ["columns", "list", query, limit, kind],
    queryFn: () => got(api.GET("/detent/columns", { params: { query: { query, limit, kind } } })),
    placeholderData: keepPreviousData,
  });

export const columnValuesQuery = (column: string, query: string) =>
  queryOptions({
    queryKey: ["columns", "values", column, query],
    queryFn: async () =>
      (await got(api.GET("/detent/columns/values", { params: { query: { column, query, limit: 20 } } }))).values,
    enabled: column !== "",
  });

/** Sends explicit ids and the number that the user saw. The master refuses the whole request if they differ. */
export async function bulk(verb: BulkVerb, ids: readonly number[], expectedCount: number): Promise<BulkResult[]> {
  const options = {
    params: { path: { project_id: 0 } },
    body: { experimentIds: [...ids], projectId: 0, expectedCount },
  };
  switch (verb) {
    case "activate":
      return (await got(api.POST("/api/v1/projects/{project_id}/experiments/activate", options))).results;
    case "pause":
      return (await got(api.POST("/api/v1/projects/{project_id}/experiments/pause", options))).results;
    case "cancel":
      return (await got(api.POST("/api/v1/projects/{project_id}/experiments/cancel", options))).results;
    case "kill":
      return (await got(api.POST("/api/v1/projects/{project_id}/experiments/kill", options))).results;
    case "archive":
      return (await got(api.POST("/api/v1/projects/{project_id}/experiments/archive", options))).results;
    case "unarchive":
      return (await got(api.POST("/api/v1/projects/{project_id}/experiments/unarchive", options))).results;
    case "delete":
      return (await got(api.DELETE("/api/v1/projects/{project_id}/experiments/delete", options))).results;
  }
}

export async function bulkLabel(
  ids: readonly number[],
  expectedCount: number,
  add: readonly string[],
  remove: readonly string[],
): Promise<BulkResult[]> {
  const body = { experimentIds: [...ids], expectedCount, add: [...add], remove: [...remove] };
  return (await got(api.POST("/detent/experiments/labels", { body }))).results;
}
