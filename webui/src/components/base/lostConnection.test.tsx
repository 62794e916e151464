import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { act, render, screen } from "@testing-library/react";
import { createMemoryRouter, Outlet, RouterProvider } from "react-router";
import { beforeEach, describe, expect, it } from "vitest";
import { LiveProvider } from "@/live/LiveProvider";
import { statusQuery } from "@/services/experiments";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { fakeMaster, Refusal } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { statusOf } from "@/testing/samples";
import { lazy, lazyPage } from "./lazy";

const STATUS = "GET /detent/experiments/7/status";
const AWAY = new TypeError("Failed to fetch dynamically imported module: x.js");

/** Returns code that does not load while the master is down. */
function code() {
  const found = { isAway: true, asked: 0 };
  const Component = () => <p>the part</p>;
  const load = async () => {
    found.asked += 1;
    if (found.isAway) throw AWAY;
    return { default: Component, Component };
  };
  return { found, load };
}

describe("a part that was not loaded before the connection was lost", () => {
  beforeEach(() => stopClock());

  it("is fetched when the connection is restored, and the rest of the page stays", async () => {
    const { found, load } = code();
    const Part = lazy(load);
    fakeMaster({ "GET /detent/session": {} });
    const streams = fakeStreams();
    drawn(
      <LiveProvider>
        <h1>around it</h1>
        <Part />
      </LiveProvider>,
    );
    await pass();
    expect(screen.getByText("around it")).toBeVisible();
    expect(screen.getByRole("alert")).toHaveTextContent("This part of the page could not be loaded.");
    act(() => streams.newest().say("error"));
    await pass();
    expect(screen.getByRole("alert")).toHaveTextContent("appears when the master answers again");
    found.isAway = false;
    await pass(1_000);
    act(() => streams.newest().hello(true));
    await pass();
    expect(screen.getByText("the part")).toBeVisible();
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("is fetched by a button as well", async () => {
    const { found, load } = code();
    const Part = lazy(load);
    drawn(<Part />);
    await pass();
    found.isAway = false;
    await user.click(screen.getByRole("button", { name: "Try again" }));
    await pass();
    expect(screen.getByText("the part")).toBeVisible();
  });

  it("is fetched also if it is a whole page", async () => {
    const { found, load } = code();
    fakeMaster({ "GET /detent/session": {} });
    const streams = fakeStreams();
    const router = createMemoryRouter(
      [
        {
          element: (
            <LiveProvider>
              <h1>around it</h1>
              <Outlet />
            </LiveProvider>
          ),
          children: [{ path: "/cluster", ...lazyPage(load) }],
          hydrateFallbackElement: <></>,
        },
      ],
      { initialEntries: ["/cluster"] },
    );
    render(
      <QueryClientProvider client={new QueryClient()}>
        <RouterProvider router={router} />
      </QueryClientProvider>,
    );
    await pass();
    expect(screen.getByText("around it")).toBeVisible();
    act(() => streams.newest().say("error"));
    await pass();
    expect(screen.getByRole("alert")).toHaveTextContent("appears when the master answers again");
    found.isAway = false;
    await pass(1_000);
    act(() => streams.newest().hello(true));
    await pass();
    expect(screen.getByText("the part")).toBeVisible();
  });

  it("requests its data again if the answer failed", async () => {
    function State() {
      const { data, error } = useQuery(statusQuery(7));
      return <p>{error ? "failed" : data?.text}</p>;
    }
    const master = fakeMaster({ [STATUS]: new Refusal(503, "busy") });
    const streams = fakeStreams();
    drawn(
      <LiveProvider>
        <State />
      </LiveProvider>,
    );
    await pass();
    expect(screen.getByText("failed")).toBeVisible();
    master.answers[STATUS] = statusOf({ text: "running" });
    // No event was missed, so nothing else is refetched.
    act(() => streams.newest().hello(true));
    await pass();
    expect(screen.getByText("running")).toBeVisible();
    const before = master.of(STATUS).length;
    act(() => streams.newest().hello(true));
    await pass();
    expect(master.of(STATUS)).toHaveLength(before);
  });
});
