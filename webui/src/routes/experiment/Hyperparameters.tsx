import type { TabProps } from "../Experiment";

export default function Hyperparameters({ experiment }: TabProps) {
  return <p>Hyperparameters {experiment.id}</p>;
}
