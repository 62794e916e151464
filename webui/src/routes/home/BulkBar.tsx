import { clsx } from "clsx";
import { type FormEvent, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { Button } from "@/components/base/Button";
import { Menu } from "@/components/base/Menu";
import { Popover } from "@/components/base/Popover";
import { Confirmation } from "@/components/Confirmation";
import { DeleteExperiments } from "@/components/DeleteExperiments";
import { ExperimentNames } from "@/components/ExperimentNames";
import type { Selection } from "./selection";
import type { useBulk } from "./useBulk";
import { useFootRoom } from "./useFootRoom";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./BulkBar.module.css";

interface Props {
  selection: Selection;
  /** Selected experiments that the list does not find any more. */
  hidden: readonly number[];
  total: number;
  selectAll: () => void;
  bulk: ReturnType<typeof useBulk>;
}

/** What can be done to what is selected; always says how many that is. */
export function BulkBar({ selection, hidden, total, selectAll, bulk }: Props) {
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const [killing, setKilling] = useState(false);
  const [label, setLabel] = useState("");
  const ids = [...selection.ids];
  const count = ids.length;
  const bar = useRef<HTMLDivElement>(null);
  useFootRoom(bar);
  const addLabel = (event: FormEvent) => {
    event.preventDefault();
    if (label.trim()) bulk.label({ ids, add: [label.trim()], remove: [] });
    setLabel("");
  };
  const removeLabel = () => {
    if (label.trim()) bulk.label({ ids, add: [], remove: [label.trim()] });
    setLabel("");
  };
  return (
    <div ref={bar} className={clsx(layout.row, styles.bulk)} role="toolbar" aria-label="Selected experiments">
      <strong>{count} selected</strong>
      {hidden.length > 0 && (
        <span className={clsx(layout.row, typography.warning)} role="status">
          {hidden.length === 1 ? "1 selected is not shown" : `${hidden.length} selected are not shown`}
          <Button kind="quiet" onClick={() => selection.drop(hidden)}>
            Deselect
          </Button>
        </span>
      )}
      {count - hidden.length < total && <Button kind="quiet" onClick={selectAll}>{`Select all ${total}`}</Button>}
      <Button onClick={() => bulk.act("pause", ids)}>Pause</Button>
      <Button onClick={() => bulk.act("activate", ids)}>Activate</Button>
      <Button kind="danger" onClick={() => setKilling(true)}>
        Kill…
      </Button>
      <Button
        why={count < 2 ? "Select two or more" : count > 100 ? "At most 100 can be compared" : undefined}
        onClick={() => void navigate(`/compare?experiments=${ids.join(",")}`)}
      >
        Compare
      </Button>
      <Popover label="Label" trigger="Label">
        <form className={layout.row} onSubmit={addLabel}>
          <input
            value={label}
            onChange={(event) => setLabel(event.target.value)}
            placeholder="Label"
            aria-label="Label"
          />
          <Button type="submit">Add</Button>
          <Button onClick={removeLabel}>Remove</Button>
        </form>
      </Popover>
      <Menu
        label="More for the selected"
        items={[
          { title: "Stop", note: "saves a checkpoint first", run: () => bulk.act("cancel", ids) },
          { title: "Archive", run: () => bulk.act("archive", ids) },
          { title: "Unarchive", run: () => bulk.act("unarchive", ids) },
          { title: "Delete…", run: () => setDeleting(true), danger: true },
        ]}
      >
        More <Icon name="down" />
      </Menu>
      <Button kind="quiet" onClick={selection.clear}>
        Clear
      </Button>
      <Confirmation
        open={killing}
        onClose={() => setKilling(false)}
        title={`Kill ${count === 1 ? "1 experiment" : `${count} experiments`}?`}
        action="Kill"
        run={() => bulk.act("kill", ids)}
        alternative={{ title: "Stop instead", run: () => bulk.act("cancel", ids) }}
      >
        <ExperimentNames ids={ids} />
        <p>
          Kill ends them at once, without a checkpoint: each running trial loses its work since its last checkpoint.
          Stop saves a checkpoint first, then ends them.
        </p>
      </Confirmation>
      <DeleteExperiments
        open={deleting}
        onClose={() => setDeleting(false)}
        ids={ids}
        run={() => bulk.act("delete", ids, selection.drop)}
      />
    </div>
  );
}
