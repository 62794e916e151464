import { act, render, screen } from "@testing-library/react";
import { useRef } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { useOnScreen } from "./useOnScreen";

let tell: (isIntersecting: boolean) => void;

class FakeObserver {
  constructor(callback: (entries: { isIntersecting: boolean }[]) => void) {
    tell = (isIntersecting) => callback([{ isIntersecting }]);
  }
  observe() {}
  disconnect() {}
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function Box() {
  const box = useRef<HTMLDivElement>(null);
  return <div ref={box}>{useOnScreen(box) ? "seen" : "not seen"}</div>;
}

function showAt(top: number) {
  vi.stubGlobal("IntersectionObserver", FakeObserver);
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockReturnValue({ top, bottom: top + 100 } as DOMRect);
  render(<Box />);
}

it("an element on the screen is seen before its observer tells of it", () => {
  showAt(300);
  expect(screen.getByText("seen")).toBeTruthy();
});

it("an element far below is seen once its observer tells of it", () => {
  showAt(5000);
  expect(screen.getByText("not seen")).toBeTruthy();
  act(() => tell(false));
  expect(screen.getByText("not seen")).toBeTruthy();
  act(() => tell(true));
  expect(screen.getByText("seen")).toBeTruthy();
});
