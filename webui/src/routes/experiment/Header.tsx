import { escapeControl } from "@/format/escapeControl";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { lazy } from "@/components/base/lazy";
import { ActionGroup } from "@/components/base/ActionGroup";
import { Button } from "@/components/base/Button";
import { Menu } from "@/components/base/Menu";
import { ProgressBar } from "@/components/ProgressBar";
import { StateBadge } from "@/components/StateBadge";
import { DeleteExperiments } from "@/components/DeleteExperiments";
import { duration } from "@/format/duration";
import { hasEnded, isLive, withoutState } from "@/format/states";
import { useNow } from "@/hooks/useNow";
import { useActions } from "@/keyboard/actions";
import { type Experiment, type ExperimentStatus, progressQuery, readOnlyReason } from "@/services/experiments";
import { EditableName } from "./EditableName";
import { KillDialog } from "./KillDialog";
import { Labels } from "./Labels";
import { type Steering, useSteering } from "./steering";
import { listAddress } from "../home/lastList";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const ForkDialog = lazy(
  () => import("./ForkDialog"),
  () => null,
);

interface Props {
  experiment: Experiment;
  status: ExperimentStatus;
}

const STEERING: readonly {
  verb: Steering & ("pause" | "activate" | "cancel" | "kill");
  title: string;
  note?: string;
  keys?: string;
  kind: "plain" | "primary" | "danger";
}[] = [
  { verb: "pause", title: "Pause", keys: "p", kind: "primary" },
  { verb: "activate", title: "Activate", keys: "a", kind: "primary" },
  { verb: "cancel", title: "Stop", note: "Saves a checkpoint, then ends the experiment", kind: "plain" },
  { verb: "kill", title: "Kill", note: "Ends the experiment at once, without a checkpoint", kind: "danger" },
];

/** The state of the experiment, and its actions. */
export function Header({ experiment, status }: Props) {
  const { id } = experiment;
  const navigate = useNavigate();
  const { busy, steer } = useSteering(id, () => void navigate(listAddress()));
  const [forking, setForking] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const [killing, setKilling] = useState(false);
  const press = (verb: (typeof STEERING)[number]["verb"]) => (verb === "kill" ? setKilling(true) : steer(verb));
  const why = (verb: keyof ExperimentStatus["can"]) =>
    status.can[verb] ? undefined : (status.why[verb] ?? "not possible in this state");
  const readOnly = readOnlyReason(status);
  useActions([
    ...STEERING.map(({ verb, title, keys }) => ({
      id: verb,
      title,
      keys,
      group: "Experiment",
      disabled: why(verb),
      run: () => press(verb),
    })),
    { id: "continue", title: "Continue", group: "Experiment", disabled: why("continue"), run: () => steer("continue") },
    { id: "fork", title: "Fork", keys: "f", group: "Experiment", disabled: why("fork"), run: () => setForking(true) },
    { id: "logs", title: "Logs", keys: "l", group: "Experiment", run: () => void navigate(`/experiments/${id}/logs`) },
    {
      id: "metrics",
      title: "Metrics",
      keys: "m",
      group: "Experiment",
      run: () => void navigate(`/experiments/${id}/metrics`),
    },
    {
      id: "overview",
      title: "Overview",
      keys: "o",
      group: "Experiment",
      run: () => void navigate(`/experiments/${id}/overview`),
    },
    {
      id: "back",
      title: "Back to the list",
      keys: "Escape",
      group: "Experiment",
      run: () => void navigate(listAddress()),
    },
  ]);
  return (
    <header className={layout.field}>
      <p className={typography.crumbs}>
        <Link to={listAddress()}>Experiments</Link> / {id}
        {experiment.forkedFrom !== null && experiment.forkedFrom !== undefined && (
          <>
            {" "}
            forked from <Link to={`/experiments/${experiment.forkedFrom}`}>{experiment.forkedFrom}</Link>
          </>
        )}
      </p>
      <div className={layout.pageHead}>
        <EditableName id={id} name={experiment.name} />
        <span className={layout.grow} />
        {readOnly !== null && (
          <span className={typography.soft}>{readOnly.charAt(0).toUpperCase() + escapeControl(readOnly.slice(1))}</span>
        )}
        <ActionGroup className={layout.row} label="Experiment actions">
          {STEERING.filter(({ verb }) => status.can[verb]).map(({ verb, title, note, kind }) => (
            <Button key={verb} kind={kind} title={note} busy={busy === verb} onClick={() => press(verb)}>
              {title}
            </Button>
          ))}
          {status.can.continue && (
            <Button
              title="Resumes its unfinished trials from their newest checkpoints"
              busy={busy === "continue"}
              onClick={() => steer("continue")}
            >
              Continue
            </Button>
          )}
          {status.can.fork && <Button onClick={() => setForking(true)}>Fork</Button>}
          <Menu
            label="More for this experiment"
            items={[
              ...(status.can.unarchive ? [{ title: "Unarchive", run: () => steer("unarchive") }] : []),
              ...(status.can.archive ? [{ title: "Archive", run: () => steer("archive") }] : []),
              ...(experiment.forkedFrom
                ? [
                    {
                      title: "Compare with parent",
                      run: () => void navigate(`/compare?experiments=${experiment.forkedFrom},${id}`),
                    },
                  ]
                : []),
              { title: "Compare with others", run: () => void navigate(`/compare?experiments=${id}`) },
              ...(status.can.delete ? [{ title: "Delete…", run: () => setDeleting(true), danger: true }] : []),
            ]}
          >
            More <Icon name="down" />
          </Menu>
        </ActionGroup>
      </div>
      <div className={layout.row}>
        <Now status={status} />
        {!hasEnded(status.state) && <Progress id={id} status={status} />}
        <Labels id={id} labels={experiment.labels} />
      </div>
      {forking && <ForkDialog parentId={id} onClose={() => setForking(false)} />}
      {killing && (
        <KillDialog
          id={id}
          status={status}
          onClose={() => setKilling(false)}
          kill={() => steer("kill")}
          stop={() => steer("cancel")}
        />
      )}
      <DeleteExperiments open={deleting} onClose={() => setDeleting(false)} ids={[id]} run={() => steer("delete")} />
    </header>
  );
}

/** The state, its reason and its duration: "pausing", "waiting for checkpoint, 12 s". */
function Now({ status }: { status: ExperimentStatus }) {
  const now = useNow();
  const text = withoutState(status.text, status.state);
  return (
    <span className={layout.row} role="status" aria-live="polite">
      <StateBadge state={status.state} />
      {status.archived && <span className={typography.tag}>archived</span>}
      <span className={typography.soft}>
        {text === "" ? "for" : `${escapeControl(text)},`}{" "}
        <span aria-hidden="true">{duration(Math.max(0, now - Date.parse(status.since)))}</span>
      </span>
    </span>
  );
}

function Progress({ id, status }: { id: number; status: ExperimentStatus }) {
  const live = isLive(status.state);
  const { data } = useQuery({ ...progressQuery(id), enabled: live, placeholderData: status });
  const shown = live && data ? data : status;
  return (
    <span className={layout.row}>
      <ProgressBar fraction={shown.progress} label="Progress" />
      {shown.etaSeconds !== null && (
        <span className={typography.soft}>about {duration(shown.etaSeconds * 1000)} left</span>
      )}
    </span>
  );
}
