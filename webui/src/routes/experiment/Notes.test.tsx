import { fireEvent, screen } from "@testing-library/react";
import { Link, Route, Routes } from "react-router";
import { expect, it } from "vitest";
import { SessionGate } from "@/app/session";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { fakeStreams } from "@/testing/fakeStream";
import { experimentOf, sessionOf } from "@/testing/samples";
import Notes from "./Notes";

const PATCH = "PATCH /api/v1/experiments/7";

it("unsaved notes survive a change of tab until they are saved", async () => {
  stopClock();
  fakeStreams();
  const master = fakeMaster({ [PATCH]: {}, "GET /detent/session": sessionOf() });
  drawn(
    <SessionGate>
      <Link to="/notes">Notes tab</Link> <Link to="/logs">Logs tab</Link>
      <Routes>
        <Route path="notes" element={<Notes experiment={experimentOf({ notes: "stored" })} />} />
        <Route path="*" element={null} />
      </Routes>
    </SessionGate>,
    "/notes",
  );
  await pass();
  const field = () => screen.getByRole("textbox", { name: "Notes" });
  const open = async (tab: string) => {
    await user.click(screen.getByRole("link", { name: tab }));
    await pass();
  };
  expect(field()).toHaveValue("stored");
  fireEvent.change(field(), { target: { value: "typed" } });
  await open("Logs tab");
  expect(screen.queryByRole("textbox")).toBeNull();
  await pass(3_600_000);
  await open("Notes tab");
  expect(field()).toHaveValue("typed");
  expect(screen.getByText("not saved yet")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Save" }));
  await pass();
  expect(master.of(PATCH).map(({ body }) => body)).toEqual([{ notes: "typed" }]);
  expect(screen.queryByText("not saved yet")).toBeNull();
});
