import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { useLocation } from "react-router";
import { messageOf, Problem } from "@/api/problem";
import { sessionEnded } from "@/api/sessionEnded";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { CurrentSession } from "@/hooks/useSession";
import { LiveProvider } from "@/live/LiveProvider";
import { SignInForm } from "@/routes/SignInForm";
import { sessionQuery } from "@/services/session";
import { Dialog } from "@/components/base/Dialog";
import { DialogsWait } from "@/components/base/dialogsWait";
import layout from "@/styles/layout.module.css";

/** Renders its children for a signed-in user, and the sign-in for anyone else. */
export function SessionGate({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [ended, setEnded] = useState(false);
  const { data, error, isPending, refetch } = useQuery(sessionQuery);
  useEffect(() => sessionEnded.listen(() => setEnded(true)), []);
  const signedIn = () => {
    setEnded(false);
    void queries.invalidateQueries();
  };
  if (isPending) return <Loading what="the page" />;
  if (!data) {
    if (error instanceof Problem && error.isSignedOut) return <SignInPage onDone={signedIn} />;
    return (
      <main className={layout.lonely}>
        <EmptyState title="The master does not answer" command="det up">
          {messageOf(error)}
        </EmptyState>
        <Failure error={error} retry={() => void refetch()} />
      </main>
    );
  }
  return (
    <CurrentSession value={data}>
      {/* Remounted for another user, but not when the session ends: that would discard typed text. */}
      <LiveProvider key={data.user.id} signedIn={!ended}>
        <DialogsWait value={ended}>{children}</DialogsWait>
      </LiveProvider>
      {/* Over the page, not instead of it, so that typed text stays. */}
      <Dialog open={ended} onClose={() => undefined} title="Your session has ended">
        <SignInForm note="Sign in to continue. Your last action was not carried out." onDone={signedIn} />
      </Dialog>
    </CurrentSession>
  );
}

function SignInPage({ onDone }: { onDone: () => void }) {
  const { pathname } = useLocation();
  return (
    <main className={layout.lonely}>
      <h1>Detent</h1>
      <SignInForm onDone={onDone} note={pathname === "/" ? "" : "Sign in to see this page."} />
    </main>
  );
}
