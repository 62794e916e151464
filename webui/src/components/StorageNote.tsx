import { useQuery } from "@tanstack/react-query";
import { escapeControl } from "@/format/escapeControl";
import { bytes } from "@/format/number";
import styles from "./StorageNote.module.css";
import { storageQuery, type StorageAnswer } from "@/services/storage";

type Storage = StorageAnswer["storage"][number];

/** Banner on every page while a disk of the master is full. */
export function StorageNote() {
  const { data } = useQuery(storageQuery);
  if (data === undefined) return null;
  const full = data.storage.filter((each) => each.status === "full" || each.status === "failing");
  const [first] = full;
  if (first === undefined) return null;
  const isMaster = !data.isWritable;
  const master = first.status === "failing" ? "The master cannot write to its disk" : "The master's disk is full";
  return (
    <div className={styles.note} role="alert">
      <span>
        <strong>{isMaster ? master : "The disk of the checkpoint storage is full"}</strong> (
        {full.map(space).join("; ")}).{" "}
        {isMaster
          ? "Trials wait and continue when the disk can be written again. Until then, nothing can be created or changed."
          : "Trials wait before they store a checkpoint, and continue when there is space again."}
      </span>
    </div>
  );
}

function space(storage: Storage): string {
  const where = storage.path ? ` on ${escapeControl(storage.path)}` : "";
  return `${bytes(storage.freeBytes)} free of ${bytes(storage.totalBytes)}${where}`;
}
