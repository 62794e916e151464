import type { Trial } from "@/services/trials";

/** The properties of every tab of a trial. */
export interface TrialTabProps {
  trial: Trial;
}
