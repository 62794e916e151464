import { groupBy } from "@/format/groupBy";
import type { MetricId } from "@/services/trials";
import { isProfile } from "./profile";

export interface PanelOf {
  name: string;
  metrics: MetricId[];
}

/** Metrics that only count steps. They are not drawn by default. */
const COUNTERS = new Set(["batches", "epochs", "epoch", "records", "steps"]);

export function isCounter(name: string): boolean {
  return COUNTERS.has(name);
}

/** Panels under one heading. */
export interface Section {
  title: string;
  panels: PanelOf[];
  /** True if the section is open by default. */
  isOpen: boolean;
}

const GENERAL = "Metrics";
/** Number of panels that are drawn at first in all open sections. */
const FIRST = 12;

/**
 * Returns panels grouped by the part of their names before the first `/` or `.`; a prefix of a single panel makes no
 * section. Sections are in the order of the panels, with counters last and closed. Sections after the first dozen
 * panels are closed too. Pure.
 */
export function sectionsOf(panels: readonly PanelOf[]): Section[] {
  const prefixOf = ({ name }: PanelOf) => /^([^/.]+)[/.]./.exec(name)?.[1] ?? "";
  const byPrefix = groupBy(
    panels.filter(({ name }) => !isCounter(name)),
    prefixOf,
  );
  const titleOf = (panel: PanelOf) => {
    const prefix = prefixOf(panel);
    if (isCounter(panel.name)) return "Counters";
    return prefix !== "" && byPrefix.get(prefix)!.length > 1 ? prefix : GENERAL;
  };
  let drawn = 0;
  return [...groupBy(panels, titleOf)].map(([title, members]) => {
    const isOpen = title !== "Counters" && drawn < FIRST;
    if (isOpen) drawn += members.length;
    return { title, panels: members, isOpen };
  });
}

/** Returns the panels of a board: those of all metrics except the profiler's. Pure. */
export function boardPanels(names: readonly (MetricId & { type?: string })[], searcherMetric: string): PanelOf[] {
  const model = names.filter(({ group }) => !isProfile(group));
  return panelsOf(model, searcherMetric);
}

/**
 * Returns one panel per name with the groups that report it: the searcher's first, then those of training and
 * validation.
 */
export function panelsOf(names: readonly (MetricId & { type?: string })[], searcherMetric: string): PanelOf[] {
  const drawable = names.filter(({ type }) => type === undefined || type === "number");
  const training = new Set(drawable.filter(({ group }) => group === "training").map(({ name }) => name));
  // `validation_loss` is the validation's `loss` if training reports a `loss`.
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
  const rank = (panel: PanelOf) => (isCounter(panel.name) ? 5 : place(panel));
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
