import { escapeControl } from "@/format/escapeControl";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, Navigate, Route, Routes, useLocation, useNavigate, useParams } from "react-router";
import { isOutage, Problem } from "@/api/problem";
import { type Lazy, lazy, useFetched } from "@/components/base/lazy";
import { ActionGroup } from "@/components/base/ActionGroup";
import { Button } from "@/components/base/Button";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { TabLinks } from "@/components/base/TabLinks";
import { FailureNote } from "@/components/FailureNote";
import { OpenPorts } from "@/components/OpenPorts";
import { StateBadge } from "@/components/StateBadge";
import { declaredPorts } from "@/format/declaredPorts";
import { duration } from "@/format/duration";
import { figure } from "@/format/number";
import { withoutState } from "@/format/states";
import { useSession } from "@/hooks/useSession";
import { useNow } from "@/hooks/useNow";
import { usePageTitle } from "@/hooks/usePageTitle";
import { useActions } from "@/keyboard/actions";
import { experimentQuery, readOnlyReason, statusQuery } from "@/services/experiments";
import { trialDetailQuery, trialQuery, type Trial } from "@/services/trials";
import { useSteering } from "./experiment/steering";
import { listAddress } from "./home/lastList";
import { NotFound } from "./NotFound";
import type { TrialTabProps } from "./trial/tabProps";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const ForkDialog = lazy(
  () => import("./experiment/ForkDialog"),
  () => null,
);

/** Tabs by the last segment of the address. */
export const parts = new Map<string, Lazy<TrialTabProps>>([
  ["curves", lazy(() => import("./trial/Curves"))],
  ["attempts", lazy(() => import("./trial/Attempts"))],
  ["hyperparameters", lazy(() => import("./trial/Hyperparameters"))],
  ["profile", lazy(() => import("./trial/Profile"))],
  ["logs", lazy(() => import("./trial/Logs"))],
  ["shell", lazy(() => import("./trial/Shell"))],
]);

/** States with a container that can be entered. */
const INSIDE = /^STATE_(RUNNING|PAUSING|STOPPING)/;

const TABS = [
  { to: "curves", title: "Curves" },
  { to: "hyperparameters", title: "Hyperparameters" },
  { to: "attempts", title: "Attempts" },
  { to: "profile", title: "System profile" },
  { to: "logs", title: "Logs" },
];

const SHELL = { to: "shell", title: "Shell" };

export function Component() {
  const { trialId = "", "*": tab = "" } = useParams();
  const id = Number(trialId);
  useFetched(parts, tab || "curves");
  return Number.isInteger(id) && id > 0 ? <Found key={id} id={id} /> : <NotFound />;
}

/** The first answer names the trial's experiment, whose changes then apply to the trial as well. */
function Found({ id }: { id: number }) {
  const { data, error, refetch } = useQuery(trialQuery(id));
  if (error && !data) {
    return (
      <main>
        <Failure error={error} gone={`Trial ${id} was not found`} retry={() => void refetch()} />
      </main>
    );
  }
  if (!data) return <Loading what={`trial ${id}`} />;
  return <TrialPage first={data} />;
}

function TrialPage({ first }: { first: Trial }) {
  const { id, experimentId } = first;
  const navigate = useNavigate();
  const location = useLocation();
  const now = useNow();
  const { data: trial = first, error } = useQuery({ ...trialDetailQuery(experimentId, id), placeholderData: first });
  const { data: status } = useQuery(statusQuery(experimentId));
  const { user } = useSession();
  const { busy, steer } = useSteering(experimentId);
  const [forking, setForking] = useState(false);
  usePageTitle(`Trial ${id}`);
  const own = status?.trials.find((each) => each.trialId === id);
  const text = own ? withoutState(own.text, own.state, own.failure?.text ?? own.waiting) : "";
  const runs = INSIDE.test(own?.state ?? trial.state);
  const { data: experiment } = useQuery({ ...experimentQuery(experimentId), enabled: runs });
  const base = `/experiments/${experimentId}/trials/${id}`;
  const why = (verb: "pause" | "activate") =>
    status
      ? status.can[verb]
        ? undefined
        : (status.why[verb] ?? "not possible in this state")
      : "the state is loading";
  const mayEnter = runs && (user.admin || experiment?.userId === user.id);
  // A shell that has ended says why, also when the trial has.
  const tabs = mayEnter || location.pathname === `${base}/shell` ? [...TABS, SHELL] : TABS;
  const readOnly = status ? readOnlyReason(status) : null;
  useActions([
    { id: "pause", title: "Pause", keys: "p", group: "Trial", disabled: why("pause"), run: () => steer("pause") },
    {
      id: "activate",
      title: "Activate",
      keys: "a",
      group: "Trial",
      disabled: why("activate"),
      run: () => steer("activate"),
    },
    { id: "fork", title: "Fork this trial", keys: "f", group: "Trial", run: () => setForking(true) },
    { id: "logs", title: "Logs", keys: "l", group: "Trial", run: () => void navigate(`${base}/logs`) },
    { id: "curves", title: "Curves", keys: "m", group: "Trial", run: () => void navigate(`${base}/curves`) },
    { id: "attempts", title: "Attempts", keys: "t", group: "Trial", run: () => void navigate(`${base}/attempts`) },
    {
      id: "back",
      title: "Back to the experiment",
      keys: "Escape",
      group: "Trial",
      run: () => void navigate(`/experiments/${experimentId}`),
    },
  ]);
  const failed = error && !isOutage(error) && <Failure error={error} gone={`Trial ${id} was deleted`} />;
  // Loaded data stays. Only a deleted trial removes its page.
  if (error instanceof Problem && error.isMissing) return <main>{failed}</main>;
  if (!location.pathname.startsWith(base))
    return <Navigate replace to={{ ...location, pathname: location.pathname.replace(/^\/.*?trials\/\d+/, base) }} />;
  return (
    <main>
      {failed}
      <header className={layout.field}>
        <p className={typography.crumbs}>
          <Link to={listAddress()}>Experiments</Link> / <Link to={`/experiments/${experimentId}`}>{experimentId}</Link>{" "}
          / trial {id}
        </p>
        <div className={layout.pageHead}>
          <h1 className={layout.grow}>Trial {id}</h1>
          {readOnly !== null && (
            <span className={typography.soft}>
              {readOnly.charAt(0).toUpperCase() + escapeControl(readOnly.slice(1))}
            </span>
          )}
          <ActionGroup className={layout.row} label="Experiment actions">
            {status?.can.pause && (
              <Button kind="primary" busy={busy === "pause"} onClick={() => steer("pause")}>
                Pause
              </Button>
            )}
            {status?.can.activate && (
              <Button kind="primary" busy={busy === "activate"} onClick={() => steer("activate")}>
                Activate
              </Button>
            )}
            <Button onClick={() => setForking(true)}>Fork</Button>
            {mayEnter && experiment && <OpenPorts taskId={trial.taskId} ports={declaredPorts(experiment.config)} />}
          </ActionGroup>
        </div>
        <div className={layout.row}>
          <StateBadge state={own?.state ?? trial.state} />
          {own && (
            <span className={typography.soft} role="status">
              {text === "" ? "for" : `${escapeControl(text)},`} {duration(Math.max(0, now - Date.parse(own.since)))}
            </span>
          )}
          <span className={typography.soft}>
            step {trial.totalBatchesProcessed}
            {own && own.attempt > 1 ? `, attempt ${own.attempt} of ${own.maxAttempts}` : ""}
          </span>
          {trial.searcherMetricValue !== null && trial.searcherMetricValue !== undefined && (
            <span>best {figure(trial.searcherMetricValue)}</span>
          )}
        </div>
        {own?.failure && <FailureNote experimentId={experimentId} trial={own} failure={own.failure} />}
        {own?.note && (
          <p className={typography.warning} role="status">
            {own.note.charAt(0).toUpperCase() + escapeControl(own.note.slice(1))}
          </p>
        )}
        {own?.waiting && (
          <p className={typography.warning}>
            {own.buildTaskId ? "Building its environment" : "Waiting"}: {escapeControl(own.waiting)}
            {own.buildTaskId && ` · whole log: det task logs ${own.buildTaskId}`}
          </p>
        )}
      </header>
      <TabLinks label="Trial sections" tabs={tabs.map((tab) => ({ ...tab, to: `${base}/${tab.to}` }))} />
      <Routes>
        <Route index element={<Navigate replace to={`${base}/curves`} />} />
        {[...parts].map(([path, Part]) => (
          <Route key={path} path={path} element={<Part trial={trial} />} />
        ))}
        {/* Tabs of the older page. */}
        <Route path="profiler" element={<Navigate replace to={`${base}/profile`} />} />
        <Route path="*" element={<Navigate replace to={`${base}/curves`} />} />
      </Routes>
      {forking && (
        <ForkDialog
          parentId={experimentId}
          trial={{ id, hparams: trial.hparams, hasCheckpoint: trial.checkpointCount > 0 }}
          onClose={() => setForking(false)}
        />
      )}
    </main>
  );
}
