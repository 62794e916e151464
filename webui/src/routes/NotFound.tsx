import { Link } from "react-router";
import { EmptyState } from "@/components/base/EmptyState";

export function NotFound() {
  return (
    <main>
      <EmptyState title="Page not found">
        The address is mistyped, or from an older page. <Link to="/">Go to experiments</Link>
      </EmptyState>
    </main>
  );
}
