import type { QueryClient } from "@tanstack/react-query";
import { fetchRows, type Finding, type Row, type RowsAnswer } from "@/services/columns";
import type { Change } from "./changes";
import type { Throttle } from "./throttle";

const ROWS = ["experiments", "rows"] as const;
const STATES_MS = 150;
const FIGURES_MS = 3_000;
const WHOLE_MS = 1_000;
/** Maximum number of rows in one answer of the master. */
const MAX_IDS = 500;

type Kind = "state" | "figures";
type RowsKey = readonly [...typeof ROWS, Finding, readonly string[], number];

/** Columns whose values never change, or that reports do not change. A list in another order is requested again. */
const FIXED = ["id", "startTime", "user", "searcherType", "searcherMetric", "forkedFrom", "resourcePool"];
const STEADY: Record<Kind, ReadonlySet<string>> = {
  state: new Set(FIXED),
  figures: new Set([...FIXED, "name", "description", "tags", "state", "endTime", "archived"]),
};

/** Refetches the rows that changed, and a whole list only if its members or their order may have changed. */
export class RowUpdates {
  private readonly changed: Record<Kind, Set<number>> = { state: new Set(), figures: new Set() };
  /** One request at a time, so that an older answer never replaces a newer one. */
  private work: Promise<void> = Promise.resolve();

  constructor(
    private readonly queries: QueryClient,
    private readonly throttle: Throttle,
  ) {}

  add(changes: readonly Change[]): void {
    for (const { kind, id } of changes) {
      if (kind === "experiment") this.changed.state.add(Number(id));
      if (kind === "metrics") this.changed.figures.add(Number(id));
    }
    this.plan("state", STATES_MS);
    this.plan("figures", FIGURES_MS);
  }

  private plan(kind: Kind, every: number): void {
    if (this.changed[kind].size === 0) return;
    this.throttle.run(`rows: ${kind}`, every, () => {
      const ids = [...this.changed[kind]];
      this.changed[kind].clear();
      if (document.hidden) void this.queries.invalidateQueries({ queryKey: ROWS, refetchType: "none" });
      else this.work = this.work.then(() => this.renew(kind, ids));
    });
  }

  private async renew(kind: Kind, ids: readonly number[]): Promise<void> {
    void this.queries.invalidateQueries({ queryKey: ROWS, type: "inactive", refetchType: "none" });
    const shown = this.queries.getQueryCache().findAll({ queryKey: ROWS, type: "active" });
    if (shown.length === 0) return;
    const [, , finding, columns] = shown[0]!.queryKey as RowsKey;
    const isOne = new Set(shown.map(({ queryKey }) => JSON.stringify(queryKey.slice(2, 4)))).size === 1;
    const answers = shown.map(({ state }) => state.data as RowsAnswer | undefined);
    const known = new Set(answers.flatMap((answer) => answer?.experiments.map(({ id }) => id) ?? []));
    const asked = kind === "state" ? ids : ids.filter((id) => known.has(id));
    const isAsking = shown.some(({ state }) => state.fetchStatus !== "idle");
    if (!isOne || isAsking || asked.length > MAX_IDS || mayMove(kind, finding)) return this.renewAll(kind);
    if (asked.length === 0) return;
    try {
      const { experiments, total } = await fetchRows(finding, columns, asked);
      const rows = new Map(experiments.map((row) => [row.id, row]));
      const isGone = asked.some((id) => known.has(id) && !rows.has(id));
      const isNew = filterColumns(finding).length > 0 && experiments.some(({ id }) => !known.has(id));
      const isOther = shown.some(({ state }, at) => state.data !== answers[at] || answers[at]?.total !== total);
      if (isGone || isNew || isOther) this.renewAll(kind);
      else
        for (const { queryKey } of shown) this.queries.setQueryData<RowsAnswer>(queryKey, (now) => merged(now, rows));
    } catch {
      // The list itself shows that the master does not answer.
      this.renewAll(kind);
    }
  }

  private renewAll(kind: Kind): void {
    const every = kind === "state" ? WHOLE_MS : FIGURES_MS;
    this.throttle.run(`rows: all for ${kind}`, every, () => {
      const refetchType = document.hidden ? "none" : "active";
      void this.queries.invalidateQueries({ queryKey: ROWS, refetchType });
    });
  }
}

function merged(answer: RowsAnswer | undefined, rows: ReadonlyMap<number, Row>): RowsAnswer | undefined {
  if (!answer?.experiments.some(({ id }) => rows.has(id))) return answer;
  return { ...answer, experiments: answer.experiments.map((row) => rows.get(row.id) ?? row) };
}

/** Returns true if such a change may move a row without removing it from the list. */
function mayMove(kind: Kind, finding: Finding): boolean {
  const sorted = finding.sort ? finding.sort.split(",").map((part) => part.slice(0, part.lastIndexOf("="))) : [];
  // A row that is not shown yet may begin to match by its metrics.
  const columns = kind === "figures" ? [...sorted, ...filterColumns(finding)] : sorted;
  return columns.some((column) => !STEADY[kind].has(column));
}

function filterColumns({ filter }: Finding): string[] {
  const columns: string[] = [];
  JSON.parse(filter || "null", (key, value: unknown) => {
    if (key === "columnName" && typeof value === "string") columns.push(value);
    return value;
  });
  return columns;
}
