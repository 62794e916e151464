import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { CREATED, trialOf } from "@/testing/samples";
import Attempts from "./Attempts";

function attemptIn(runtime: string, image: string) {
  const container = {
    containerId: "c",
    rank: 0,
    agentId: "node-1",
    origin: "",
    host: "node-1",
    address: "10.0.0.1",
    slots: [0],
    runtime,
    image,
    state: "RUNNING",
    exit: "",
    code: null,
    signal: null,
    ranks: [],
  };
  return {
    runId: 1,
    allocationId: "7.9.1",
    state: "RUNNING",
    startedAt: CREATED,
    endedAt: null,
    reason: "",
    code: null,
    message: "",
    failure: null,
    containers: [container],
  };
}

it.each([
  ["docker", "lab/train:1", "lab/train:1 docker"],
  ["podman", "", "default image podman"],
])("shows the image of a container of %s", async (runtime, image, shown) => {
  stopClock();
  fakeMaster({ "GET /detent/trials/9/attempts": { attempts: [attemptIn(runtime, image)] } });
  drawn(<Attempts trial={trialOf(9)} />);
  await pass();
  expect(screen.getByRole("columnheader", { name: "Image" })).toBeInTheDocument();
  expect(within(screen.getByRole("table")).getByText(runtime)).toBeInTheDocument();
  expect(screen.getByRole("table").textContent).toContain(shown);
});

it("shows no image of a process", async () => {
  stopClock();
  fakeMaster({ "GET /detent/trials/9/attempts": { attempts: [attemptIn("process", "")] } });
  drawn(<Attempts trial={trialOf(9)} />);
  await pass();
  expect(screen.getByText("node-1")).toBeInTheDocument();
  expect(screen.queryByRole("columnheader", { name: "Image" })).toBeNull();
});

it("shows the Slurm job and the node of an attempt", async () => {
  stopClock();
  const attempt = attemptIn("process", "");
  const container = { ...attempt.containers[0]!, origin: "Slurm job 550", host: "node3" };
  fakeMaster({ "GET /detent/trials/9/attempts": { attempts: [{ ...attempt, containers: [container] }] } });
  drawn(<Attempts trial={trialOf(9)} />);
  await pass();
  expect(screen.getByRole("table")).toHaveTextContent("Slurm job 550 on node3");
});

it("links to the run of Weights & Biases that the log names", async () => {
  stopClock();
  const text = "wandb: View run \u001b[33mlively\u001b[0m at: \u001b[34mhttps://wandb.ai/lab/runs/trial-9\u001b[0m";
  fakeMaster({
    "GET /detent/trials/9/attempts": { attempts: [attemptIn("process", "")] },
    "GET /detent/trials/9/logs": { lines: [{ text: "View runtime" }, { text }] },
  });
  drawn(<Attempts trial={trialOf(9)} />);
  await pass();
  expect(screen.getByRole("link", { name: "W&B run" })).toHaveAttribute("href", "https://wandb.ai/lab/runs/trial-9");
});
