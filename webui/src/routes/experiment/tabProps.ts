import type { Experiment } from "@/services/experiments";

/** The properties of every tab of an experiment. */
export interface TabProps {
  experiment: Experiment;
}
