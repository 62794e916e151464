import { TrialLog } from "@/components/logs/TrialLog";
import type { TrialTabProps } from "./tabProps";

export default function Logs({ trial }: TrialTabProps) {
  return <TrialLog trial={trial} />;
}
