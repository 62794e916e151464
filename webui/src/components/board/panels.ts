import { groupBy } from "@/format/groupBy";
import type { MetricId } from "@/services/trials";

export interface PanelOf {
  name: string;
  metrics: MetricId[];
}

/** One panel a name, with the groups that report it; the searcher's first, then what training and validation share. */
export function panelsOf(names: readonly (MetricId & { type?: string })[], searcherMetric: string): PanelOf[] {
  const drawable = names.filter(({ type }) => type === undefined || type === "number");
  const training = new Set(drawable.filter(({ group }) => group === "training").map(({ name }) => name));
  // `validation_loss` is the validation's `loss` where training reports a `loss`.
  const shared = ({ group, name }: MetricId) => {
    const bare = name.replace(/^(validation|val|eval|test)[_/]/, "");
    return group === "validation" && training.has(bare) ? bare : name;
  };
  const byName = groupBy(drawable, (metric) =>
    metric.group === "training" || metric.group === "validation" ? shared(metric) : `${metric.group}/${metric.name}`,
  );
  const panels = [...byName].map(([name, metrics]) => ({
    name,
    metrics: metrics.map(({ group, name: own }) => ({ group, name: own })),
  }));
  // What counts steps is reported beside the figures and says nothing of them.
  const counts = new Set(["batches", "epochs", "epoch", "records", "steps"]);
  const rank = (panel: PanelOf) => (counts.has(panel.name) ? 5 : place(panel));
  const place = (panel: PanelOf) =>
    panel.metrics.some(({ name }) => name === searcherMetric)
      ? 0
      : panel.metrics.length > 1
        ? 1
        : panel.metrics[0]!.group === "validation"
          ? 2
          : panel.metrics[0]!.group === "training"
            ? 3
            : 4;
  return panels.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}
