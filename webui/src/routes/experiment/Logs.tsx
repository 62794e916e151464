import type { TabProps } from "../Experiment";

export default function Logs({ experiment }: TabProps) {
  return <p>Logs {experiment.id}</p>;
}
