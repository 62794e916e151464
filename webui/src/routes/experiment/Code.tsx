import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Failure } from "@/components/base/Failure";
import { Button } from "@/components/base/Button";
import { EmptyState } from "@/components/base/EmptyState";
import { Loading } from "@/components/base/Loading";
import { DiffView } from "@/components/code/DiffView";
import { type FileNode, FileTree } from "@/components/code/FileTree";
import { SourceText } from "@/components/code/SourceText";
import { bytes } from "@/format/number";
import { fileQuery, fileTreeQuery } from "@/services/experiments";
import { CodeState } from "./CodeState";
import type { TabProps } from "./tabProps";
import { escapeControl } from "@/format/escapeControl";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./Code.module.css";

/** The context of the experiment: the state of its repository, its files, and the differences from the parent's. */
export default function Code({ experiment }: TabProps) {
  const { data: tree, error } = useQuery(fileTreeQuery(experiment.id));
  if (error && !tree) return <Failure error={error} />;
  if (!tree) return <Loading what="the files" />;
  if (tree.length === 0) {
    return <EmptyState title="No files" command="det experiment create config.yaml context/" />;
  }
  return (
    <section className={layout.field} aria-label="Code">
      <CodeState id={experiment.id} />
      <Files experiment={experiment} tree={tree} />
    </section>
  );
}

function Files({ experiment, tree }: TabProps & { tree: readonly FileNode[] }) {
  const [path, setPath] = useState("");
  const [compare, setCompare] = useState(false);
  const parent = experiment.forkedFrom ?? null;
  return (
    <div className={styles.layout}>
      <nav className={clsx(layout.card, styles.tree)} aria-label="Files">
        <FileTree nodes={tree} chosen={path} onChoose={setPath} />
      </nav>
      <div className={layout.field}>
        {path === "" ? (
          <EmptyState title="Choose a file" />
        ) : (
          <>
            <div className={layout.row}>
              <code className={layout.grow}>{escapeControl(path)}</code>
              {parent !== null && (
                <Button aria-pressed={compare} onClick={() => setCompare(!compare)}>
                  Difference to {parent}
                </Button>
              )}
            </div>
            {compare && parent !== null ? (
              <Difference before={parent} after={experiment.id} path={path} />
            ) : (
              <File id={experiment.id} path={path} />
            )}
          </>
        )}
      </div>
    </div>
  );
}

function File({ id, path }: { id: number; path: string }) {
  const { data, error } = useQuery(fileQuery(id, path));
  if (error && !data) return <Failure error={error} gone="Not in this context" />;
  if (!data) return <Loading what={path} />;
  if (data.binary) return <EmptyState title={`Not text: ${bytes(data.size)}`} />;
  return (
    <>
      {data.truncated && <p className={typography.warning}>Only the first part of {bytes(data.size)} is shown.</p>}
      <SourceText text={data.text} label={path} />
    </>
  );
}

function Difference({ before, after, path }: { before: number; after: number; path: string }) {
  const old = useQuery({ ...fileQuery(before, path), retry: false });
  const now = useQuery(fileQuery(after, path));
  if (now.error && !now.data) return <Failure error={now.error} />;
  if (!now.data || old.isPending) return <Loading what="both files" />;
  if (!old.data) return <p className={typography.hint}>Experiment {before} has no such file: all of it is new.</p>;
  return <DiffView before={old.data.text} after={now.data.text} label={`${path}: experiment ${before} to ${after}`} />;
}
