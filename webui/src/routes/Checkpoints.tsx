import { CheckpointTable } from "@/components/CheckpointTable";
import { usePageTitle } from "@/hooks/usePageTitle";

export function Component() {
  usePageTitle("Checkpoints");
  return (
    <main>
      <h1>Checkpoints</h1>
      <CheckpointTable />
    </main>
  );
}
