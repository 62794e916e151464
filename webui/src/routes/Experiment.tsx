import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Navigate, Route, Routes, useParams } from "react-router";
import { isOutage, Problem } from "@/api/problem";
import { type Lazy, lazy, useFetched } from "@/components/base/lazy";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { TabLinks } from "@/components/base/TabLinks";
import { usePageTitle } from "@/hooks/usePageTitle";
import { experimentQuery, statusQuery } from "@/services/experiments";
import { Header } from "./experiment/Header";
import { NotFound } from "./NotFound";
import { Overview } from "./experiment/Overview";
import type { TabProps } from "./experiment/tabProps";

/** Tabs by the last segment of the address. */
export const parts = new Map<string, Lazy<TabProps>>([
  ["trials", lazy(() => import("./experiment/Trials"))],
  ["metrics", lazy(() => import("./experiment/Metrics"))],
  ["hyperparameters", lazy(() => import("./experiment/Hyperparameters"))],
  ["logs", lazy(() => import("./experiment/Logs"))],
  ["checkpoints", lazy(() => import("./experiment/Checkpoints"))],
  ["code", lazy(() => import("./experiment/Code"))],
  ["config", lazy(() => import("./experiment/Config"))],
  ["notes", lazy(() => import("./experiment/Notes"))],
]);

const TABS = [
  { to: "overview", title: "Overview" },
  { to: "trials", title: "Trials" },
  { to: "metrics", title: "Metrics" },
  { to: "hyperparameters", title: "Hyperparameters" },
  { to: "logs", title: "Logs" },
  { to: "checkpoints", title: "Checkpoints" },
  { to: "code", title: "Code" },
  { to: "config", title: "Configuration" },
  { to: "notes", title: "Notes" },
];

export function Component() {
  const { experimentId = "", "*": tab = "" } = useParams();
  const id = Number(experimentId);
  useFetched(parts, tab);
  return Number.isInteger(id) && id > 0 ? <ExperimentPage key={id} id={id} /> : <NotFound />;
}

function ExperimentPage({ id }: { id: number }) {
  const queries = useQueryClient();
  const { data: experiment, error } = useQuery(experimentQuery(id));
  const { data: status, error: statusError } = useQuery(statusQuery(id));
  usePageTitle(experiment ? `${experiment.name} (${id})` : `Experiment ${id}`);
  const failure = error ?? statusError;
  const failed = failure && (
    <Failure
      error={failure}
      gone={`Experiment ${id} was not found`}
      retry={() => void queries.refetchQueries({ queryKey: ["experiment", String(id)] })}
    />
  );
  // Loaded data stays with all typed text. Only a deleted experiment removes its page.
  const isGone = failure instanceof Problem && failure.isMissing;
  if (failure && (isGone || !experiment || !status)) return <main>{failed}</main>;
  if (!experiment || !status) return <Loading what={`experiment ${id}`} />;
  const tab = { experiment };
  return (
    <main>
      {/* Only the connection note reports a master that does not answer. */}
      {failure !== null && !isOutage(failure) && failed}
      <Header experiment={experiment} status={status} />
      <TabLinks
        label="Experiment sections"
        tabs={TABS.map((each) => ({ ...each, to: `/experiments/${id}/${each.to}` }))}
      />
      <Routes>
        <Route index element={<Navigate replace to="overview" />} />
        <Route path="overview" element={<Overview experiment={experiment} status={status} />} />
        {[...parts].map(([path, Part]) => (
          <Route key={path} path={path} element={<Part {...tab} />} />
        ))}
        {/* Tabs of the older page. */}
        <Route path="visualization" element={<Navigate replace to="../metrics" />} />
        <Route path="configuration" element={<Navigate replace to="../config" />} />
        <Route path="*" element={<Navigate replace to="overview" />} />
      </Routes>
    </main>
  );
}
