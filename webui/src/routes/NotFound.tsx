import { Link } from "react-router";
import { EmptyState } from "@/components/base/EmptyState";
import { usePageTitle } from "@/hooks/usePageTitle";

/** Shown for an address that the page does not know. */
export function NotFound() {
  usePageTitle("Not found");
  return (
    <main>
      <EmptyState title="Not found">
        No page has this address. <Link to="/">Go to the experiments</Link>
      </EmptyState>
    </main>
  );
}
