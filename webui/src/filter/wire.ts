import type { Condition, Filter } from "./language";

/** Returns the filter in the form of the older web page, which the master reads. */
export function wireFilter(filter: Filter | null, showArchived: boolean): string {
  const group =
    filter === null
      ? { kind: "group", conjunction: "and", children: [] }
      : filter.kind === "group"
        ? wireGroup(filter)
        : { kind: "group", conjunction: "and", children: [wireField(filter)] };
  return JSON.stringify({ filterGroup: group, showArchived });
}

function wireGroup(filter: Filter): unknown {
  if (filter.kind === "field") return wireField(filter);
  return { kind: "group", conjunction: filter.conjunction, children: filter.children.map(wireGroup) };
}

function wireField(condition: Condition): unknown {
  return {
    kind: "field",
    columnName: condition.column,
    location: location(condition.column),
    operator: condition.operator,
    type: type(condition),
    value: condition.value,
  };
}

function location(column: string): string {
  if (column.startsWith("hp.")) return "LOCATION_TYPE_HYPERPARAMETERS";
  if (column.startsWith("validation.")) return "LOCATION_TYPE_VALIDATIONS";
  if (column.startsWith("training.")) return "LOCATION_TYPE_TRAINING";
  if (column.startsWith("config.") || !column.includes(".")) return "LOCATION_TYPE_EXPERIMENT";
  return "LOCATION_TYPE_CUSTOM_METRIC";
}

function type(condition: Condition): string {
  if (condition.column === "startTime" || condition.column === "endTime") return "COLUMN_TYPE_DATE";
  return typeof condition.value === "number" ? "COLUMN_TYPE_NUMBER" : "COLUMN_TYPE_TEXT";
}
