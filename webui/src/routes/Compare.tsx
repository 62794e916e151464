import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { Button } from "@/components/base/Button";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { MetricBoard } from "@/components/board/MetricBoard";
import { usePageTitle } from "@/hooks/usePageTitle";
import { experimentQuery } from "@/services/experiments";
import { experimentMetricNamesQuery } from "@/services/trials";
import { AddRun } from "./compare/AddRun";
import { chosenRuns, DISPLAY_LIMIT } from "./compare/chosen";
import { DifferenceTable } from "./compare/DifferenceTable";
import { mergedNames, namingExperiments } from "./compare/metricNames";
import { type Compared, comparedRuns } from "./compare/runs";
import { SummaryColumns } from "./compare/SummaryColumns";
import { SummaryTable } from "./compare/SummaryTable";
import { useCompared } from "./compare/useCompared";
import { useSummary } from "./compare/useSummary";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

/** The page that compares two to a hundred runs: curves, hyperparameters, configurations. */
export function Component() {
  usePageTitle("Compare");
  const [params, setParams] = useSearchParams();
  const { experiments, trials } = useMemo(() => chosenRuns(params), [params]);
  const { compared, missing, error, isPending } = useCompared(experiments, trials);
  const add = (id: number) =>
    setParams((now) => {
      const next = new URLSearchParams(now);
      next.set("experiments", [...experiments, id].join(","));
      return next;
    });
  const drop = useCallback(
    (run: Compared) =>
      setParams((now) => {
        const next = new URLSearchParams(now);
        next.set(
          "experiments",
          experiments.filter((id) => id !== run.experimentId || run.chosenAs === "trial").join(","),
        );
        next.set("trials", trials.filter((id) => id !== run.trialId).join(","));
        return next;
      }),
    [experiments, trials, setParams],
  );
  const adding = <AddRun chosen={experiments} add={add} />;
  if (experiments.length + trials.length === 0) {
    return (
      <main>
        <Head title="Compare">{adding}</Head>
        <EmptyState title="No runs selected">
          Select two or more in <Link to="/">the list</Link> with x, and press c.
        </EmptyState>
      </main>
    );
  }
  return (
    <main>
      <Head title={isPending ? "Compare" : `Compare ${compared.length} ${compared.length === 1 ? "run" : "runs"}`}>
        {adding}
      </Head>
      {!isPending && missing > 0 && (
        <p className={typography.warning}>{missing} of them were deleted or have no trial yet.</p>
      )}
      {compared.length > DISPLAY_LIMIT && (
        <p className={typography.warning}>Only the first {DISPLAY_LIMIT} are shown.</p>
      )}
      {error !== null ? (
        <Failure error={error} />
      ) : isPending ? (
        <Loading what="the runs" />
      ) : (
        <Board compared={compared.slice(0, DISPLAY_LIMIT)} drop={drop} />
      )}
    </main>
  );
}

function Head({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className={layout.pageHead}>
      <h1 className={layout.grow}>{title}</h1>
      {children}
    </div>
  );
}

const TABS = [
  { name: "curves", title: "Curves" },
  { name: "hyperparameters", title: "Hyperparameters" },
  { name: "config", title: "Configuration" },
] as const;

function useTab() {
  const [params, setParams] = useSearchParams();
  const tab = TABS.find(({ name }) => name === params.get("tab"))?.name ?? "curves";
  const open = (name: string) =>
    setParams(
      (now) => {
        const next = new URLSearchParams(now);
        if (name === "curves") next.delete("tab");
        else next.set("tab", name);
        return next;
      },
      { replace: true, preventScrollReset: true },
    );
  return { tab, open };
}

function Board({ compared, drop }: { compared: readonly Compared[]; drop: (run: Compared) => void }) {
  const { tab, open } = useTab();
  const [isBanded, setBanded] = useState(false);
  const runs = useMemo(() => comparedRuns(compared), [compared]);
  const asked = useMemo(() => namingExperiments(compared), [compared]);
  const queries = useQueryClient();
  // The queries start while the table is being rendered.
  for (const query of asked.map((id) => experimentMetricNamesQuery(id)))
    if (!queries.getQueryState(query.queryKey)) void queries.prefetchQuery(query);
  const { names, isPending } = useQueries({
    queries: asked.map((id) => experimentMetricNamesQuery(id)),
    combine: namesOf,
  });
  const known = useMemo(() => mergedNames(names), [names]);
  const isLoading = isPending && known.length === 0;
  const searcherMetric = names[0]?.searcherMetric ?? "";
  const summary = useSummary(compared, known, searcherMetric);
  const canBand = new Set(runs.map((run) => run.group)).size < runs.length;
  const hyperparameters = useMemo(() => compared.map((run) => run.hparams), [compared]);
  return (
    <>
      <SummaryTable
        compared={compared}
        runs={runs}
        columns={summary.columns}
        isLoading={isLoading || summary.isLoading}
        choice={<SummaryColumns choices={summary.choices} shown={summary.shown} onChange={summary.choose} />}
        isBanded={canBand && isBanded && tab === "curves"}
        drop={drop}
      />
      <div className={layout.row} role="group" aria-label="Comparison view">
        {TABS.map(({ name, title }) => (
          <Button key={name} aria-pressed={tab === name} onClick={() => open(name)}>
            {title}
          </Button>
        ))}
      </div>
      {tab === "curves" && isLoading && <Loading what="the metrics" />}
      {tab === "curves" && !isLoading && (
        <MetricBoard
          experimentId="many"
          runs={runs}
          names={known}
          searcherMetric={searcherMetric}
          bands={canBand ? { isOn: isBanded, set: setBanded } : undefined}
        />
      )}
      {tab === "hyperparameters" && (
        <DifferenceTable runs={compared} values={hyperparameters} drop={drop} what="hyperparameters" />
      )}
      {tab === "config" && <Configurations compared={compared} drop={drop} />}
    </>
  );
}

function Configurations({ compared, drop }: { compared: readonly Compared[]; drop: (run: Compared) => void }) {
  const first = useQuery(experimentQuery(compared[0]?.experimentId ?? 0));
  const all = useQueries({ queries: compared.map((run) => experimentQuery(run.experimentId)), combine: dataOf });
  const values = useMemo(() => all.map((data) => data?.config ?? {}), [all]);
  if (first.isPending) return <Loading what="the configurations" />;
  return <DifferenceTable runs={compared} values={values} drop={drop} what="the configuration" />;
}

/** Returns the same list as before if no answer changed. */
function dataOf<T>(results: readonly { data: T }[]): T[] {
  return results.map(({ data }) => data);
}

function namesOf<T>(results: readonly { data: T; isPending: boolean }[]): { names: T[]; isPending: boolean } {
  return { names: dataOf(results), isPending: results.some((each) => each.isPending) };
}
