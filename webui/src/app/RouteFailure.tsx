import { isRouteErrorResponse, useRouteError } from "react-router";
import { messageOf } from "@/api/problem";
import { Button } from "@/components/base/Button";
import failureStyles from "@/components/base/Failure.module.css";

/** Shown when a part of the page throws while rendering. The rest stays usable. */
export function RouteFailure() {
  const error = useRouteError();
  const text = isRouteErrorResponse(error) ? error.statusText : messageOf(error);
  return (
    <main className={failureStyles.failure} role="alert">
      <h1>This part of the page failed</h1>
      <p>{text}</p>
      <Button kind="primary" onClick={() => window.location.reload()}>
        Reload
      </Button>
    </main>
  );
}
