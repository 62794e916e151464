import { clsx } from "clsx";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { bytes } from "@/format/number";
import { escapeControl } from "@/format/escapeControl";
import { checkpointUrl, outputsQuery } from "@/services/checkpoints";
import { Failure } from "./base/Failure";
import { Loading } from "./base/Loading";
import { OlderOnes } from "./base/OlderOnes";
import { TimeText } from "./TimeText";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

/** Files that the scripts of trials wrote into the folders of `outputs`, one row for each trial. */
export function OutputsTable({ experimentId }: { experimentId: number }) {
  const list = useInfiniteQuery(outputsQuery(experimentId));
  const { data, error } = list;
  if (error && !data) return <Failure error={error} retry={() => void list.refetch()} />;
  if (!data) return <Loading what="the outputs" />;
  const all = data.pages.flatMap((page) => page.outputs);
  return (
    <section aria-label="Outputs">
      <h2>Outputs</h2>
      {all.length === 0 ? (
        <p className={typography.hint}>None yet. They are stored at the end of each attempt of a trial.</p>
      ) : (
        <div className={layout.scrollX}>
          <table className={clsx(layout.table, layout.cardTable)}>
            <thead>
              <tr>
                <th>Trial</th>
                <th>Folders</th>
                <th className={layout.numberCell}>Size</th>
                <th className={layout.numberCell}>Files</th>
                <th>Saved</th>
                <th>Download</th>
              </tr>
            </thead>
            <tbody>
              {all.map(({ trialId, uuid, folders, size, files, time }) => (
                <tr key={uuid}>
                  <td data-label="Trial">
                    <Link to={`/experiments/${experimentId}/trials/${trialId}`}>{trialId}</Link>
                  </td>
                  <td data-label="Folders">
                    <code>{escapeControl(folders.join(", "))}</code>
                  </td>
                  <td data-label="Size" className={layout.numberCell}>
                    {bytes(size)}
                  </td>
                  <td data-label="Files" className={layout.numberCell}>
                    {files}
                  </td>
                  <td data-label="Saved">
                    <TimeText at={time} />
                  </td>
                  <td data-label="Download">
                    <a href={checkpointUrl(uuid)} download aria-label={`Download the outputs of trial ${trialId}`}>
                      Download
                    </a>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <OlderOnes list={list} />
    </section>
  );
}
