import { TrialLog } from "@/components/logs/TrialLog";
import type { TrialTabProps } from "../Trial";

export default function Logs({ trial }: TrialTabProps) {
  return <TrialLog trial={trial} />;
}
