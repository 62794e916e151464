import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/base/Button";
import { CopyText } from "@/components/base/CopyText";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { configQuery } from "@/services/experiments";
import type { TabProps } from "./tabProps";
import { escapeControl } from "@/format/escapeControl";
import sourceStyles from "@/components/code/source.module.css";
import layout from "@/styles/layout.module.css";

const ORIGINS: Record<string, string> = { file: "file", cluster: "cluster", default: "default" };

/** The effective configuration with the origin of each value, and the submitted text. */
export default function Config({ experiment }: TabProps) {
  const { data, error } = useQuery(configQuery(experiment.id));
  const [only, setOnly] = useState<"all" | "file">("all");
  if (error && !data) return <Failure error={error} />;
  if (!data) return <Loading what="the configuration" />;
  const origins = new Map(data.origins.map((origin) => [origin.line, origin]));
  return (
    <section className={layout.field} aria-label="Configuration">
      <div className={layout.row}>
        <Button aria-pressed={only === "all"} onClick={() => setOnly("all")}>
          Effective
        </Button>
        <Button aria-pressed={only === "file"} onClick={() => setOnly("file")}>
          Submitted
        </Button>
        <CopyText text={`det experiment fork ${experiment.id} --config KEY=VALUE`} />
      </div>
      {only === "file" ? (
        <pre className={clsx(sourceStyles.source, layout.card)}>{escapeControl(data.submitted)}</pre>
      ) : (
        <div
          className={clsx(sourceStyles.source, layout.card, layout.scrollX)}
          role="table"
          aria-label="Configuration by lines"
          tabIndex={0}
        >
          {data.text
            .replace(/\n$/, "")
            .split("\n")
            .map((line, index) => {
              const origin = origins.get(index + 1);
              return (
                <div key={index} className={sourceStyles.line} role="row">
                  <span className={sourceStyles.number} role="cell">
                    {index + 1}
                  </span>
                  <code role="cell">{escapeControl(line)}</code>
                  <span
                    className={clsx(sourceStyles.origin, origin?.origin === "file" && sourceStyles.file)}
                    role="cell"
                  >
                    {origin
                      ? `${ORIGINS[origin.origin] ?? origin.origin}${origin.at === null ? "" : ` line ${origin.at}`}`
                      : ""}
                  </span>
                </div>
              );
            })}
        </div>
      )}
    </section>
  );
}
