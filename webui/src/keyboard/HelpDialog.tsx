import { useContext, useSyncExternalStore } from "react";
import { Dialog } from "@/components/base/Dialog";
import { groupBy } from "@/format/groupBy";
import { Actions } from "./actions";
import { KeyCaps } from "./KeyCaps";
import styles from "./HelpDialog.module.css";

/** All keyboard actions of this page, by groups. */
export function HelpDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const registry = useContext(Actions);
  const actions = useSyncExternalStore(registry.subscribe, registry.all);
  const groups = groupBy(
    actions.filter((action) => action.keys),
    (action) => action.group,
  );
  return (
    <Dialog open={open} onClose={onClose} title="Keyboard shortcuts" wide>
      <div className={styles.groups}>
        {[...groups].map(([group, members]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl className={styles.list}>
              {members.map((action) => (
                <div key={action.id}>
                  <dt>{action.title}</dt>
                  <dd>
                    <KeyCaps keys={action.keys ?? ""} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
