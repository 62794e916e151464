import { useQuery } from "@tanstack/react-query";
import { screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { api, got } from "@/api/client";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { type Answer, fakeMaster, held, Refusal } from "@/testing/fakeMaster";
import { useApiMutation } from "./useApiMutation";

const READ = "GET /api/v1/users";
const WRITE = "POST /detent/sign-out";

function Page() {
  useQuery({ queryKey: ["users"], queryFn: () => got(api.GET("/api/v1/users")) });
  const { mutate, isPending } = useApiMutation({
    mutationFn: () => got(api.POST("/detent/sign-out")),
    invalidates: [["users"]],
  });
  return (
    <button aria-busy={isPending} onClick={() => mutate()}>
      Do it
    </button>
  );
}

async function press(answer: Answer, before: () => void = () => undefined) {
  const master = fakeMaster({ [READ]: { users: [] }, [WRITE]: answer });
  drawn(<Page />);
  await pass();
  before();
  await user.click(screen.getByRole("button", { name: "Do it" }));
  return master;
}

describe("a mutation", () => {
  beforeEach(() => stopClock());

  it("refetches the queries that it invalidates, and is pending until they have arrived", async () => {
    const master = await press({});
    const answer = held<object>();
    master.answers[READ] = () => answer.promise;
    await pass();
    expect(master.of(READ)).toHaveLength(2);
    expect(screen.getByRole("button", { name: "Do it" })).toHaveAttribute("aria-busy", "true");
    answer.give({ users: [] });
    await pass();
    expect(screen.getByRole("button", { name: "Do it" })).toHaveAttribute("aria-busy", "false");
  });

  it("shows its failure, and refetches after it", async () => {
    const master = await press(new Refusal(409, "it ended meanwhile"));
    await pass();
    expect(screen.getByText("it ended meanwhile")).toBeVisible();
    expect(master.of(READ)).toHaveLength(2);
  });

  it("is sent also by a browser that reports itself offline", async () => {
    try {
      const master = await press({}, () => window.dispatchEvent(new Event("offline")));
      await pass();
      expect(master.of(WRITE)).toHaveLength(1);
    } finally {
      window.dispatchEvent(new Event("online"));
    }
  });
});
