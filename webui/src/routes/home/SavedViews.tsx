import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { messageOf } from "@/api/problem";
import { Button } from "@/components/base/Button";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { Popover } from "@/components/base/Popover";
import { useSay } from "@/components/base/Toasts";
import { escapeControl } from "@/format/escapeControl";
import { useApiMutation } from "@/hooks/useApiMutation";
import { savedViewsQuery, saveViews } from "@/services/userSettings";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

export function SavedViews() {
  return (
    <Popover label="Saved views" trigger="Views">
      <Views />
    </Popover>
  );
}

/** Saved lists of the user. They are stored at the master, so they are available on every machine. */
function Views() {
  const navigate = useNavigate();
  const say = useSay();
  const [params] = useSearchParams();
  const [name, setName] = useState("");
  const { data: views, error } = useQuery(savedViewsQuery);
  const { mutate: save, isPending } = useApiMutation({
    mutationFn: saveViews,
    onError: (error) => say({ text: `The views were not saved: ${messageOf(error)}`, kind: "failed" }),
    invalidates: [savedViewsQuery.queryKey],
  });
  const add = (event: FormEvent) => {
    event.preventDefault();
    if (!name.trim() || !views || isPending) return;
    save([...views.filter((view) => view.name !== name.trim()), { name: name.trim(), search: params.toString() }]);
    setName("");
  };
  // A save replaces all of them, so it must wait until they are loaded, and loaded again after another one.
  if (!views) return error ? <Failure error={error} /> : <Loading what="the views" />;
  return (
    <>
      {views.length === 0 && (
        <p className={typography.hint}>Save the current filter, order, columns and groups under a name.</p>
      )}
      <ul>
        {views.map((view) => (
          <li key={view.name} className={layout.row}>
            <Button kind="quiet" className={layout.grow} onClick={() => void navigate({ search: view.search })}>
              {escapeControl(view.name)}
            </Button>
            <Button
              kind="quiet"
              aria-label={`Delete view ${escapeControl(view.name)}`}
              disabled={isPending}
              onClick={() => save(views.filter((each) => each !== view))}
            >
              <Icon name="close" />
            </Button>
          </li>
        ))}
      </ul>
      <form className={layout.row} onSubmit={add}>
        <input
          className={layout.grow}
          value={name}
          onChange={(event) => setName(event.target.value)}
          placeholder="Name of this view"
          aria-label="Name of this view"
          maxLength={80}
        />
        <Button type="submit">Save</Button>
      </form>
    </>
  );
}
