import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "react-router";
import { useSession } from "@/hooks/useSession";
import { Button } from "@/components/base/Button";
import { Dialog } from "@/components/base/Dialog";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { useSay } from "@/components/base/Toasts";
import { TimeText } from "@/components/TimeText";
import { escapeControl } from "@/format/escapeControl";
import { useApiMutation } from "@/hooks/useApiMutation";
import { usePageTitle } from "@/hooks/usePageTitle";
import { addUser, changeUser, type User, type UserChange, usersQuery } from "@/services/users";
import { Icon } from "@/components/base/Icon";
import dialogStyles from "@/components/base/Dialog.module.css";
import signInFormStyles from "./SignInForm.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

interface Edit {
  user: User;
  change: UserChange;
  /** Message after the change. */
  done: string;
}

/** Lists the users; an admin adds and changes them. */
export function Component() {
  usePageTitle("Users");
  const session = useSession();
  const say = useSay();
  const { data, error, refetch } = useQuery(usersQuery);
  const [adding, setAdding] = useState(false);
  const [passwordOf, setPasswordOf] = useState<User | null>(null);
  const add = useApiMutation({
    mutationFn: addUser,
    onSuccess: (_, { username }) => {
      say({ text: `${username} can sign in now` });
      setAdding(false);
    },
    invalidates: [usersQuery.queryKey],
  });
  const edit = useApiMutation({
    mutationFn: ({ user, change }: Edit) => changeUser(user.id, change),
    onSuccess: (_, { done }) => {
      say({ text: done });
      setPasswordOf(null);
    },
    invalidates: [usersQuery.queryKey],
  });
  const why = session.user.admin ? undefined : "Only an admin can do this";
  return (
    <main>
      <div className={layout.pageHead}>
        <h1 className={layout.grow}>Users</h1>
        <Button kind="primary" why={why} onClick={() => setAdding(true)}>
          Add a user
        </Button>
      </div>
      {error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading what="the users" />
      ) : (
        <div className={layout.scrollX}>
          <table className={clsx(layout.table, layout.cardTable)}>
            <thead>
              <tr>
                <th>User</th>
                <th>Role</th>
                <th>State</th>
                <th>Last sign-in</th>
                <th>
                  <span className={typography.visuallyHidden}>Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((user) => (
                <tr key={user.id}>
                  <td data-label="User">
                    <Link to={`/?q=${encodeURIComponent(`user = "${user.username}"`)}`}>
                      {escapeControl(user.username)}
                    </Link>{" "}
                    {user.displayName && <span className={typography.soft}>{escapeControl(user.displayName)}</span>}
                  </td>
                  <td data-label="Role">{user.admin ? "Admin" : "User"}</td>
                  <td data-label="State">
                    <Icon name={user.active ? "check" : "square"} /> {user.active ? "active" : "deactivated"}
                  </td>
                  <td data-label="Last sign-in">
                    <TimeText at={user.lastAuthAt ?? null} />
                  </td>
                  <td className={layout.row}>
                    <Button
                      why={why ?? (user.id === session.user.id ? "You cannot change your own account" : undefined)}
                      onClick={() =>
                        edit.mutate({
                          user,
                          change: { active: !user.active },
                          done: `${user.username} is ${user.active ? "deactivated" : "active"}`,
                        })
                      }
                    >
                      {user.active ? "Deactivate" : "Activate"}
                    </Button>
                    <Button
                      why={why ?? (user.id === session.user.id ? "You cannot change your own account" : undefined)}
                      onClick={() =>
                        edit.mutate({
                          user,
                          change: { admin: !user.admin },
                          done: `${user.username} is ${user.admin ? "no longer an admin" : "an admin now"}`,
                        })
                      }
                    >
                      {user.admin ? "Revoke admin" : "Make admin"}
                    </Button>
                    <Button why={user.id === session.user.id ? undefined : why} onClick={() => setPasswordOf(user)}>
                      Change password
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
          busy={add.isPending}
          onSubmit={(username, password, admin) => add.mutate({ username, password, admin })}
        />
      )}
      {passwordOf && (
        <UserForm
          title={`New password for ${passwordOf.username}`}
          onClose={() => setPasswordOf(null)}
          busy={edit.isPending}
          onSubmit={(_, password) =>
            edit.mutate({
              user: passwordOf,
              change: { password },
              done: `The password of ${passwordOf.username} is changed`,
            })
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
  busy: boolean;
  onSubmit: (name: string, password: string, admin: boolean) => void;
}

function UserForm({ title, withName = false, busy, onClose, onSubmit }: FormProps) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [admin, setAdmin] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit(name, password, admin);
  };
  return (
    <Dialog open onClose={onClose} title={title}>
      <form className={signInFormStyles.form} onSubmit={submit}>
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
          <label className={layout.row}>
            <input type="checkbox" checked={admin} onChange={(event) => setAdmin(event.target.checked)} /> Admin
          </label>
        )}
        <div className={dialogStyles.foot}>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
