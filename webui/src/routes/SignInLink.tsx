import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { messageOf } from "@/api/problem";
import { Loading } from "@/components/base/Loading";
import { signIn } from "@/services/session";
import { SignInForm } from "./SignInForm";
import layout from "@/styles/layout.module.css";

/** `/sign-in#TOKEN`: the link of `det up`. The token is in the fragment, which browsers send to no server. */
export function SignInLink() {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const used = useRef(false);
  const [token] = useState(() => window.location.hash.slice(1));
  const done = () => {
    void queries.resetQueries();
    void navigate("/", { replace: true });
  };
  const { mutate, error } = useMutation({ mutationFn: signIn, networkMode: "always", onSuccess: done });
  useEffect(() => {
    if (!token || used.current) return;
    used.current = true;
    // Removed from the address bar and the history before anything else happens.
    window.history.replaceState(null, "", window.location.pathname);
    mutate({ token });
  }, [token, mutate]);
  if (token && !error) return <Loading what="your session" />;
  return (
    <main className={layout.lonely}>
      <h1>Detent</h1>
      <SignInForm onDone={done} note={error ? messageOf(error) : "Sign in to continue."} />
    </main>
  );
}
