import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { messageOf } from "@/api/problem";
import { Button } from "@/components/base/Button";
import { signIn } from "@/services/session";
import typography from "@/styles/typography.module.css";
import styles from "./SignInForm.module.css";

/** Name and password. The link that `det up` prints needs neither. */
export function SignInForm({ onDone, note = "" }: { onDone: () => void; note?: string }) {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const { mutate, error, isPending } = useMutation({ mutationFn: signIn, networkMode: "always", onSuccess: onDone });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    mutate({ username, password });
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      {note && <p>{note}</p>}
      <label>
        User
        <input
          name="username"
          autoComplete="username"
          required
          autoFocus
          value={username}
          onChange={(e) => setUsername(e.target.value)}
        />
      </label>
      <label>
        Password
        <input
          name="password"
          type="password"
          autoComplete="current-password"
          value={password}
          onChange={(e) => setPassword(e.target.value)}
        />
      </label>
      {error && (
        <p className={typography.problem} role="alert">
          {messageOf(error)}
        </p>
      )}
      <Button kind="primary" type="submit" busy={isPending}>
        Sign in
      </Button>
      <p className={typography.hint}>
        On the machine of the cluster, <code>det master open</code> prints a link that signs you in.
      </p>
    </form>
  );
}
