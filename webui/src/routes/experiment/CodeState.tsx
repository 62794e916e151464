import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { SourceText } from "@/components/code/SourceText";
import { codeQuery, type ShownCode } from "@/services/experiments";
import { escapeControl } from "@/format/escapeControl";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const MAX_NAMES = 50;

/** Commit, branch, remote and changes of the repository of the experiment's context; nothing if none are stored. */
export function CodeState({ id }: { id: number }) {
  const { data, error } = useQuery(codeQuery(id, false));
  const [isOpen, setOpen] = useState(false);
  if (error && !data) return <Failure error={error} />;
  if (!data) return null;
  return (
    <section className={layout.card} aria-label="Code state">
      <h2>Code state</h2>
      <dl className={typography.facts}>
        <dt>Commit</dt>
        <dd>{data.commit === null ? <span className={typography.soft}>none yet</span> : <code>{data.commit}</code>}</dd>
        <Fact title="Branch" text={data.branch} />
        <Fact title="Remote" text={data.remote} />
        <Untracked untracked={data.untracked} />
      </dl>
      {data.isCut && <p className={typography.warning}>Only a part of the changes was stored.</p>}
      {data.isDirty ? (
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>Uncommitted changes</summary>
          {isOpen && <Changes id={id} />}
        </details>
      ) : (
        <p className={typography.hint}>No uncommitted changes.</p>
      )}
    </section>
  );
}

function Changes({ id }: { id: number }) {
  const { data, error } = useQuery(codeQuery(id, true));
  if (error && !data) return <Failure error={error} />;
  if (!data) return <Loading what="the changes" />;
  return <SourceText text={data.diff} label="Uncommitted changes" />;
}

function Fact({ title, text }: { title: string; text: string | null }) {
  if (text === null) return null;
  return (
    <>
      <dt>{title}</dt>
      <dd>{escapeControl(text)}</dd>
    </>
  );
}

function Untracked({ untracked }: Pick<ShownCode, "untracked">) {
  if (untracked.length === 0) return null;
  const more = untracked.length - MAX_NAMES;
  return (
    <>
      <dt>Untracked files</dt>
      <dd>
        {escapeControl(untracked.slice(0, MAX_NAMES).join(", "))}
        {more > 0 && ` and ${more} more`}
      </dd>
    </>
  );
}
