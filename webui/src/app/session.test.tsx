import { act, fireEvent, screen } from "@testing-library/react";
import { useState } from "react";
import { beforeEach, describe, expect, it } from "vitest";
import { Dialog } from "@/components/base/Dialog";
import Notes from "@/routes/experiment/Notes";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { fakeMaster, Refusal } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { experimentOf, sessionOf } from "@/testing/samples";
import { SessionGate } from "./session";

const SAVE = "PATCH /api/v1/experiments/7";

async function page() {
  const master = fakeMaster({ "GET /detent/session": sessionOf(), [SAVE]: {}, "POST /detent/sign-in": {} });
  const streams = fakeStreams();
  drawn(
    <SessionGate>
      <Notes experiment={experimentOf()} />
    </SessionGate>,
  );
  await pass();
  fireEvent.change(screen.getByLabelText("Notes", { selector: "textarea" }), { target: { value: "a long thought" } });
  return { master, streams };
}

function Opener() {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button onClick={() => setOpen(true)}>Fork</button>
      <Dialog open={open} onClose={() => setOpen(false)} title="A fork">
        what is forked
      </Dialog>
    </>
  );
}

async function signIn(name = "ana") {
  fireEvent.change(screen.getByLabelText("User"), { target: { value: name } });
  fireEvent.change(screen.getByLabelText("Password"), { target: { value: "secret" } });
  await user.click(screen.getByRole("button", { name: "Sign in" }));
  await pass();
}

const typed = () => screen.getByLabelText("Notes", { selector: "textarea" });

describe("a session that ends between two clicks", () => {
  beforeEach(() => stopClock());

  it("shows the sign-in over the page; typed text stays and can be saved afterwards", async () => {
    const { master, streams } = await page();
    master.answers[SAVE] = new Refusal(401, "sign in first");
    await user.click(screen.getByRole("button", { name: "Save" }));
    await pass();
    expect(screen.getByRole("dialog", { name: "Your session has ended" })).toBeVisible();
    expect(typed()).toHaveValue("a long thought");
    master.answers[SAVE] = {};
    await signIn();
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(typed()).toHaveValue("a long thought");
    await user.click(screen.getByRole("button", { name: "Save" }));
    await pass();
    expect(master.of(SAVE).at(-1)?.body).toEqual({ notes: "a long thought" });
    // The old stream belonged to the old session.
    expect(streams.opened.map((stream) => stream.closed)).toEqual([true, false]);
  });

  it("shows the sign-in also if only the stream reports the end", async () => {
    const { streams } = await page();
    act(() => streams.newest().say("bye", { reason: "signed-out" }));
    await pass();
    expect(screen.getByRole("dialog", { name: "Your session has ended" })).toBeVisible();
    expect(typed()).toHaveValue("a long thought");
  });

  it("shows the sign-in if the stream cannot be opened again", async () => {
    const { master, streams } = await page();
    master.answers["GET /detent/session"] = new Refusal(401, "sign in first");
    act(() => streams.newest().say("error", {}));
    await pass();
    expect(screen.getByRole("dialog", { name: "Your session has ended" })).toBeVisible();
  });

  it("covers a dialog that is about to open, which opens after the sign-in", async () => {
    const master = fakeMaster({ "GET /detent/session": sessionOf(), "POST /detent/sign-in": {} });
    const streams = fakeStreams();
    drawn(
      <SessionGate>
        <Opener />
      </SessionGate>,
    );
    await pass();
    act(() => {
      screen.getByRole("button", { name: "Fork" }).click();
      streams.newest().say("bye", { reason: "signed-out" });
    });
    await pass();
    expect(screen.getByRole("dialog")).toHaveAccessibleName("Your session has ended");
    master.answers["POST /detent/sign-in"] = {};
    await signIn();
    expect(screen.getByRole("dialog")).toHaveAccessibleName("A fork");
  });

  it("reports that the action was not carried out", async () => {
    const { master } = await page();
    master.answers[SAVE] = new Refusal(401, "sign in first");
    master.answers["POST /detent/sign-in"] = new Refusal(401, "wrong user or password");
    await user.click(screen.getByRole("button", { name: "Save" }));
    await pass();
    await signIn();
    expect(screen.getByRole("alert")).toHaveTextContent("wrong user or password");
  });
});

describe("a user who is not signed in", () => {
  beforeEach(() => stopClock());

  it("sees only the sign-in, which an unreachable master does not trigger", async () => {
    const master = fakeMaster({ "GET /detent/session": new Refusal(401, "sign in first") });
    fakeStreams();
    drawn(<SessionGate>inside</SessionGate>);
    await pass();
    expect(screen.getByLabelText("Password")).toBeVisible();
    expect(screen.queryByText("inside")).toBeNull();
    master.answers["GET /detent/session"] = sessionOf();
    master.answers["POST /detent/sign-in"] = {};
    await signIn();
    expect(screen.getByText("inside")).toBeVisible();
  });
});
