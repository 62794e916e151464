import { useState } from "react";
import { useSession } from "@/hooks/useSession";
import { Button } from "@/components/base/Button";
import { CheckpointTable } from "@/components/CheckpointTable";
import { OutputsTable } from "@/components/OutputsTable";
import { PolicyDialog } from "./PolicyDialog";
import type { TabProps } from "./tabProps";
import layout from "@/styles/layout.module.css";

/** The checkpoints and outputs of an experiment and, for its owner and admins, its checkpoint policy. */
export default function Checkpoints({ experiment }: TabProps) {
  const { user } = useSession();
  const [editing, setEditing] = useState(false);
  const mayChange = user.admin || experiment.username === user.username;
  const why = experiment.archived
    ? "It is archived; unarchive it first"
    : mayChange
      ? undefined
      : `Only ${experiment.username} or an admin can change it`;
  return (
    <div className={layout.field}>
      <div className={layout.row}>
        <span className={layout.grow} />
        <Button why={why} onClick={() => setEditing(true)}>
          Checkpoint policy…
        </Button>
      </div>
      <CheckpointTable experimentId={experiment.id} />
      {hasOutputs(experiment.config) && <OutputsTable experimentId={experiment.id} />}
      {editing && <PolicyDialog experiment={experiment} onClose={() => setEditing(false)} />}
    </div>
  );
}

function hasOutputs({ outputs }: TabProps["experiment"]["config"]): boolean {
  return Array.isArray(outputs) && outputs.length > 0;
}
