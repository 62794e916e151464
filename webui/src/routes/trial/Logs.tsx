import type { TrialTabProps } from "../Trial";

export default function Logs({ trial }: TrialTabProps) {
  return <p>Logs {trial.id}</p>;
}
