import { CheckpointTable } from "@/components/CheckpointTable";
import type { TabProps } from "./tabProps";

export default function Checkpoints({ experiment }: TabProps) {
  return <CheckpointTable experimentId={experiment.id} />;
}
