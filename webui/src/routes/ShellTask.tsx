import { useQuery } from "@tanstack/react-query";
import { useState, useSyncExternalStore } from "react";
import { Link, useParams } from "react-router";
import { Button } from "@/components/base/Button";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { Confirmation } from "@/components/Confirmation";
import { StateBadge } from "@/components/StateBadge";
import { shells } from "@/components/terminal/shells";
import { TerminalView } from "@/components/terminal/TerminalView";
import { TimeText } from "@/components/TimeText";
import { duration } from "@/format/duration";
import { escapeControl } from "@/format/escapeControl";
import { useApiMutation } from "@/hooks/useApiMutation";
import { usePageTitle } from "@/hooks/usePageTitle";
import { useSession } from "@/hooks/useSession";
import { killShell, shellQuery, type ShellTask } from "@/services/shells";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

/** The words of the API for tasks, in those of badges. */
const BADGES: Record<string, string> = { STATE_TERMINATING: "STATE_STOPPING", STATE_TERMINATED: "STATE_COMPLETED" };

/** The page of a shell that is a task of its own: its state, and a terminal in it. */
export function Component() {
  const { taskId = "" } = useParams();
  const { data, error, refetch } = useQuery(shellQuery(taskId));
  usePageTitle("Shell");
  if (error && !data) {
    return (
      <main>
        <Failure error={error} gone={`Shell ${taskId} was not found`} retry={() => void refetch()} />
      </main>
    );
  }
  return data ? <Found task={data} /> : <Loading what="the shell" />;
}

function Found({ task }: { task: ShellTask }) {
  const { user } = useSession();
  const [killing, setKilling] = useState(false);
  const { mutate: kill } = useApiMutation({ mutationFn: killShell, invalidates: [["cluster"]] });
  const isOwn = user.admin || user.id === task.userId;
  const isOver = task.state === "STATE_TERMINATED";
  return (
    <main>
      <div className={layout.pageHead}>
        <h1 className={layout.grow}>{escapeControl(task.description)}</h1>
        <StateBadge state={BADGES[task.state] ?? task.state} />
        {isOwn && !isOver && (
          <Button kind="danger" onClick={() => setKilling(true)}>
            Kill…
          </Button>
        )}
      </div>
      <p className={typography.soft}>
        {escapeControl(task.username)}, {task.slots} {task.slots === 1 ? "slot" : "slots"}, started{" "}
        <TimeText at={task.startTime} />
        {!isOver && task.idleTimeout != null && (
          <>, ends {duration(task.idleTimeout * 1000)} after the last connection</>
        )}
        {isOver && <>: {escapeControl(task.exitStatus ?? "ended")}</>}. <Link to="/cluster#tasks">All tasks</Link>
      </p>
      {isOwn ? (
        <TaskTerminal task={task} isOver={isOver} />
      ) : (
        <p>Only {escapeControl(task.username)} and administrators can open this shell.</p>
      )}
      <Confirmation
        open={killing}
        onClose={() => setKilling(false)}
        title={`Kill ${escapeControl(task.description)}?`}
        action="Kill"
        run={() => kill(task.id)}
      >
        <p>Kill ends its container at once, with all that runs in it.</p>
      </Confirmation>
    </main>
  );
}

function TaskTerminal({ task, isOver }: { task: ShellTask; isOver: boolean }) {
  const shell = useSyncExternalStore(shells.subscribe, () => shells.of(task.id));
  const open = () => shells.open(task.id, 0, escapeControl(task.description));
  if (shell) return <TerminalView shell={shell} inside="container" isTaskOver={isOver} openAgain={open} />;
  const isReady = task.state === "STATE_RUNNING";
  return (
    <section className={layout.card} aria-label="Shell">
      <p>A terminal in the container of this task. It may be open in several places at once.</p>
      <div className={layout.row}>
        <Button
          kind="primary"
          onClick={open}
          why={isReady ? undefined : isOver ? "It has ended" : "It is not running yet"}
        >
          Open a shell
        </Button>
      </div>
    </section>
  );
}
