import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { Failure } from "@/components/base/Failure";
import { escapeControl } from "@/format/escapeControl";
import { searchQuery } from "@/services/experiments";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import { RungChart } from "./RungChart";

const DISPLAY_LIMIT = 20;

/**
 * The brackets of a search that stops trials early, and its newest decisions. Renders nothing for a search without
 * rungs.
 */
export function SearchRungs({ experimentId }: { experimentId: number }) {
  const search = useQuery(searchQuery(experimentId));
  if (search.error && !search.data) return <Failure error={search.error} />;
  if (!search.data || search.data.brackets.length === 0) return null;
  const { brackets, decisions, metric, unit } = search.data;
  return (
    <section className={layout.card} aria-label="Rungs">
      <h2>Rungs</h2>
      {brackets.map((bracket) => (
        <section key={bracket.number} aria-label={`Bracket ${bracket.number}`}>
          {brackets.length > 1 && <h3>Bracket {bracket.number}</h3>}
          <RungChart {...{ experimentId, bracket, decisions, metric, unit }} />
        </section>
      ))}
      <h3>Newest decisions</h3>
      {decisions.length > DISPLAY_LIMIT && (
        <p className={typography.hint}>
          The newest {DISPLAY_LIMIT} of {decisions.length}.
        </p>
      )}
      <ul>
        {decisions
          .slice(-DISPLAY_LIMIT)
          .reverse()
          .map((each) => (
            <li key={`${each.trialId} ${each.kind} ${each.rung}`}>
              <Link to={`/experiments/${experimentId}/trials/${each.trialId}`}>Trial {each.trialId}</Link>:{" "}
              {escapeControl(each.reason)}
            </li>
          ))}
      </ul>
    </section>
  );
}
