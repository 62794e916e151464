import { fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isTimeZone, setPreferences } from "@/browser/preferences";
import { SessionGate } from "@/app/session";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { sessionOf } from "@/testing/samples";
import { TimeText } from "@/components/TimeText";
import { Component as Settings } from "./Settings";

const KEY = "detent.preferences";
const usual = { theme: "system", density: "comfortable", timeZone: "local" } as const;

afterEach(() => {
  vi.restoreAllMocks();
  setPreferences(usual);
  localStorage.clear();
});

describe("settings", () => {
  beforeEach(async () => {
    stopClock();
    fakeMaster({ "GET /detent/session": sessionOf({ now: "2026-11-21T13:00:00Z" }) });
    fakeStreams();
    drawn(
      <SessionGate>
        <Settings />
        <TimeText at="2026-11-21T12:00:00Z" />
      </SessionGate>,
    );
    await pass();
  });

  it("report an unknown time zone, and times stay unchanged", () => {
    const zone = screen.getByLabelText(/Time zone/);
    const shown = () => document.querySelector("time")?.title;
    fireEvent.change(zone, { target: { value: "Europe/Paris" } });
    expect(shown()).toBe("2026-11-21 13:00:00 Europe/Paris");
    fireEvent.change(zone, { target: { value: "Mars/Olympus" } });
    expect(zone).toHaveAttribute("aria-invalid", "true");
    expect(screen.getByText(/Unknown time zone/)).toBeVisible();
    expect(shown()).toBe("2026-11-21 13:00:00 Europe/Paris");
    expect(JSON.parse(localStorage.getItem(KEY) ?? "")).toMatchObject({ timeZone: "Europe/Paris" });
  });

  it("change the page at once, and show how wrong this computer's clock is", () => {
    fireEvent.click(screen.getByLabelText("dark"));
    fireEvent.click(screen.getByLabelText("compact"));
    expect(document.documentElement.dataset).toMatchObject({ theme: "dark", density: "compact" });
    expect(screen.getByText(/This computer's clock is 1 h 00 min behind the master's/)).toBeVisible();
  });
});

describe("preferences", () => {
  // Read once, when the page is loaded.
  const loaded = async () => {
    vi.resetModules();
    const { applyPreferences } = await import("@/browser/preferences");
    applyPreferences();
    return document.documentElement.dataset;
  };

  it.each(["not json", "null", "[]", '"dark"', '{"theme":"pink","density":7,"timeZone":"Mars"}'])(
    "with the stored text %s are the defaults",
    async (stored) => {
      localStorage.setItem(KEY, stored);
      expect(await loaded()).toMatchObject({ theme: "light", density: "comfortable" });
    },
  );

  it("keep the valid part of a stored text", async () => {
    localStorage.setItem(KEY, '{"theme":"dark","density":7}');
    expect(await loaded()).toMatchObject({ theme: "dark", density: "comfortable" });
  });

  it("hold until the page is closed in a browser without storage", () => {
    vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new Error("forbidden");
    });
    setPreferences({ theme: "dark" });
    expect(document.documentElement.dataset.theme).toBe("dark");
  });

  it.each([
    ["local", true],
    ["UTC", true],
    ["Europe/Paris", true],
    ["", false],
    ["here", false],
  ])("accept the time zone %s: %s", (name, known) => expect(isTimeZone(name)).toBe(known));
});
