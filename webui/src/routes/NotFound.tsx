import { Link } from "react-router";
import { EmptyState } from "@/components/base/EmptyState";

export function NotFound() {
  return (
    <main>
      <EmptyState title="No such page">
        The address is mistyped, or from an older page. <Link to="/">To the experiments</Link>
      </EmptyState>
    </main>
  );
}
