import { screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { drawn, user } from "@/testing/drawn";
import { CopyText } from "./CopyText";

afterEach(() => {
  // Files share one document: modules of the next one are loaded before its first test, and may read the navigator.
  vi.unstubAllGlobals();
  Reflect.deleteProperty(document, "execCommand");
});

function withClipboard(clipboard: object | undefined) {
  vi.stubGlobal("navigator", Object.create(navigator, { clipboard: { value: clipboard } }));
}

/** Replaces execCommand. Returns the list of the copied texts. */
function olderWay(works: boolean) {
  const copied: string[] = [];
  document.execCommand = () => {
    const field = document.activeElement;
    if (field instanceof HTMLTextAreaElement) copied.push(field.value);
    return works;
  };
  return copied;
}

it("a line is copied over https", async () => {
  const writeText = vi.fn(() => Promise.resolve());
  withClipboard({ writeText });
  drawn(<CopyText text="det up" />);
  await user.click(screen.getByRole("button", { name: "Copy: det up" }));
  expect(writeText).toHaveBeenCalledWith("det up");
  expect(await screen.findByText("Copied")).toBeVisible();
});

it("a line is copied over plain http, where there is no clipboard; the focus stays", async () => {
  withClipboard(undefined);
  const copied = olderWay(true);
  drawn(<CopyText text="det up" />);
  await user.click(screen.getByRole("button", { name: "Copy: det up" }));
  expect(await screen.findByText("Copied")).toBeVisible();
  expect(copied).toEqual(["det up"]);
  expect(screen.getByRole("button", { name: "Copy: det up" })).toHaveFocus();
  expect(document.querySelector("textarea")).toBeNull();
});

it("a line that the browser does not copy is not reported as copied", async () => {
  withClipboard(undefined);
  const copied = olderWay(false);
  drawn(<CopyText text="det up" />);
  await user.click(screen.getByRole("button", { name: "Copy: det up" }));
  await vi.waitFor(() => expect(copied).toEqual(["det up"]));
  expect(screen.queryByText("Copied")).toBeNull();
});
