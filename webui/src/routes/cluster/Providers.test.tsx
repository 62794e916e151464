import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { OverviewPool } from "@/services/cluster";
import { Providers } from "./Providers";

const POOL: OverviewPool = {
  name: "gpu",
  provider: "command",
  minAgents: 0,
  maxAgents: 4,
  starting: 0,
  running: 1,
  ending: 0,
  problem: "",
  account: "",
  waiting: "",
  startEstimate: null,
};

it("names the provider of a pool, its bounds and its present activity", () => {
  const busy = { ...POOL, starting: 2, ending: 1, problem: "the launch command failed (exit 3): no quota left" };
  render(<Providers pools={[busy, { ...POOL, name: "static", provider: "" }]} />);
  expect(screen.getByRole("listitem")).toHaveTextContent(
    "Pool gpu: command provider, 0 to 4 agents; 1 running, 2 starting, 1 ending",
  );
  expect(screen.getByRole("alert")).toHaveTextContent("the launch command failed (exit 3): no quota left");
});

it("names the account that is charged for the jobs of a pool on Slurm", () => {
  render(<Providers pools={[{ ...POOL, provider: "slurm", account: "ana (Slurm account vision)" }]} />);
  expect(screen.getByRole("listitem")).toHaveTextContent(
    "; its agents run as, and are charged to, ana (Slurm account vision)",
  );
});

it("shows why the next machine waits in Slurm's queue, and until when", () => {
  const waiting = "Slurm job 550 waits for resources (Resources)";
  render(<Providers pools={[{ ...POOL, starting: 1, waiting, startEstimate: "2026-11-27T12:30:00Z" }]} />);
  expect(screen.getByText(/Slurm job 550 waits for resources/)).toHaveTextContent(/; start estimated for .*2026/);
});

it("shows nothing if no pool has a provider", () => {
  render(<Providers pools={[{ ...POOL, provider: "" }]} />);
  expect(screen.queryByRole("list")).toBeNull();
});
