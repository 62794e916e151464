import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "react-router";
import { messageOf } from "@/api/problem";
import { useSession } from "@/app/session";
import { Button } from "@/components/base/Button";
import { Dialog } from "@/components/base/Dialog";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { useSay } from "@/components/base/Toasts";
import { TimeText } from "@/components/TimeText";
import { escapeControl } from "@/format/escapeControl";
import { usePageTitle } from "@/hooks/usePageTitle";
import { addUser, changeUser, type User, usersQuery } from "@/services/users";

/** Who may sign in. */
export function Component() {
  usePageTitle("Users");
  const session = useSession();
  const queries = useQueryClient();
  const say = useSay();
  const { data, error } = useQuery(usersQuery);
  const [adding, setAdding] = useState(false);
  const [passwordOf, setPasswordOf] = useState<User | null>(null);
  const run = async (work: () => Promise<void>, said: string): Promise<boolean> => {
    try {
      await work();
      say({ text: said });
      return true;
    } catch (failure) {
      say({ text: messageOf(failure), kind: "failed" });
      return false;
    } finally {
      await queries.invalidateQueries({ queryKey: usersQuery.queryKey });
    }
  };
  const why = session.user.admin ? undefined : "this needs an admin";
  return (
    <main>
      <div className="page-head">
        <h1 className="grow">Users</h1>
        <Button kind="primary" why={why} onClick={() => setAdding(true)}>
          Add a user
        </Button>
      </div>
      {error ? (
        <Failure error={error} />
      ) : !data ? (
        <Loading what="the users" />
      ) : (
        <div className="scroll-x">
          <table className="plain-table">
            <thead>
              <tr>
                <th>User</th>
                <th>May</th>
                <th>State</th>
                <th>Signed in last</th>
                <th>
                  <span className="visually-hidden">What can be done</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((user) => (
                <tr key={user.id}>
                  <td>
                    <Link to={`/?q=${encodeURIComponent(`user = "${user.username}"`)}`}>
                      {escapeControl(user.username)}
                    </Link>{" "}
                    <span className="soft">{escapeControl(user.displayName ?? "")}</span>
                  </td>
                  <td>{user.admin ? "everything (admin)" : "run experiments"}</td>
                  <td>{user.active ? "✓ active" : "■ switched off"}</td>
                  <td>
                    <TimeText at={user.lastAuthAt ?? null} />
                  </td>
                  <td className="row">
                    <Button
                      why={why ?? (user.id === session.user.id ? "not oneself" : undefined)}
                      onClick={() =>
                        void run(
                          () => changeUser(user.id, { active: !user.active }),
                          `${user.username} is ${user.active ? "switched off" : "active"}`,
                        )
                      }
                    >
                      {user.active ? "Switch off" : "Switch on"}
                    </Button>
                    <Button
                      why={why ?? (user.id === session.user.id ? "not oneself" : undefined)}
                      onClick={() =>
                        void run(
                          () => changeUser(user.id, { admin: !user.admin }),
                          `${user.username} ${user.admin ? "is no admin now" : "is an admin"}`,
                        )
                      }
                    >
                      {user.admin ? "Take admin" : "Make admin"}
                    </Button>
                    <Button why={user.id === session.user.id ? undefined : why} onClick={() => setPasswordOf(user)}>
                      Password
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {adding && (
        <UserForm
          title="Add a user"
          withName
          onClose={() => setAdding(false)}
          onSubmit={async (name, password, admin) =>
            (await run(() => addUser(name, password, admin), `${name} may sign in now`)) && setAdding(false)
          }
        />
      )}
      {passwordOf && (
        <UserForm
          title={`New password for ${passwordOf.username}`}
          onClose={() => setPasswordOf(null)}
          onSubmit={async (_, password) =>
            (await run(() => changeUser(passwordOf.id, { password }), "The password is changed")) && setPasswordOf(null)
          }
        />
      )}
    </main>
  );
}

interface FormProps {
  title: string;
  withName?: boolean;
  onClose: () => void;
  onSubmit: (name: string, password: string, admin: boolean) => Promise<unknown>;
}

function UserForm({ title, withName = false, onClose, onSubmit }: FormProps) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [admin, setAdmin] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void onSubmit(name, password, admin);
  };
  return (
    <Dialog open onClose={onClose} title={title}>
      <form className="sign-in" onSubmit={submit}>
        {withName && (
          <label>
            Name
            <input
              required
              autoFocus
              value={name}
              onChange={(event) => setName(event.target.value)}
              autoComplete="off"
            />
          </label>
        )}
        <label>
          Password
          <input
            type="password"
            required
            value={password}
            onChange={(event) => setPassword(event.target.value)}
            autoComplete="new-password"
          />
        </label>
        {withName && (
          <label className="row">
            <input type="checkbox" checked={admin} onChange={(event) => setAdmin(event.target.checked)} /> Admin
          </label>
        )}
        <div className="dialog-foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit">
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
