import type { TabProps } from "../Experiment";

export default function Metrics({ experiment }: TabProps) {
  return <p>Metrics {experiment.id}</p>;
}
