import { screen } from "@testing-library/react";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { type Action, useActions } from "./actions";
import { HelpDialog } from "./HelpDialog";

const action = (keys: string, run: () => void, more: Partial<Action> = {}): Action => ({
  id: `${keys} of ${more.group ?? "Page"}`,
  title: `What ${keys} does`,
  keys,
  group: "Page",
  run,
  ...more,
});

function Offers({ actions }: { actions: Action[] }) {
  useActions(actions);
  return null;
}

function offered(...sets: Action[][]) {
  return drawn(
    <>
      {sets.map((actions, index) => (
        <Offers key={index} actions={actions} />
      ))}
      <input aria-label="Field" />
      <button type="button">Button</button>
    </>,
  );
}

describe("keys", () => {
  it("in sequence are one action, and are single keys again after a second", async () => {
    stopClock();
    const [go, alone] = [vi.fn(), vi.fn()];
    offered([action("g e", go), action("e", alone)]);
    await user.keyboard("ge");
    expect([go, alone].map((each) => each.mock.calls.length)).toEqual([1, 0]);
    await user.keyboard("g");
    await pass(1_000);
    await user.keyboard("e");
    expect([go, alone].map((each) => each.mock.calls.length)).toEqual([1, 1]);
  });

  it("go only into the focused field; Escape leaves it", async () => {
    const [pause, back] = [vi.fn(), vi.fn()];
    offered([action("p", pause), action("Escape", back)]);
    await user.click(screen.getByLabelText("Field"));
    await user.keyboard("p{Escape}");
    expect(screen.getByLabelText("Field")).toHaveValue("p");
    expect(screen.getByLabelText("Field")).not.toHaveFocus();
    expect([pause, back].map((each) => each.mock.calls.length)).toEqual([0, 0]);
    await user.keyboard("p{Escape}");
    expect([pause, back].map((each) => each.mock.calls.length)).toEqual([1, 1]);
  });

  it("that press a focused button are left to the button", async () => {
    const open = vi.fn();
    offered([action("Enter", open)]);
    screen.getByRole("button", { name: "Button" }).focus();
    await user.keyboard("{Enter}");
    expect(open).not.toHaveBeenCalled();
  });

  it("have no effect on the page under a dialog, which lists them by groups", async () => {
    const [pause, close] = [vi.fn(), vi.fn()];
    drawn(
      <>
        <Offers
          actions={[
            action("p", pause),
            action("g e", pause, { group: "Go to" }),
            { id: "x", title: "Without keys", group: "Page", run: pause },
          ]}
        />
        <HelpDialog open onClose={close} />
      </>,
    );
    await user.keyboard("p");
    expect(pause).not.toHaveBeenCalled();
    expect((await screen.findAllByRole("heading", { level: 3 })).map((each) => each.textContent)).toEqual([
      "Page",
      "Go to",
    ]);
    expect(screen.getByText("What g e does").nextElementSibling).toHaveTextContent("ge");
    expect(screen.queryByText("Without keys")).toBeNull();
    await user.keyboard("{Escape}");
    expect(close).toHaveBeenCalled();
  });

  it("belong to the component rendered last, run its newest closure, and are released when it unmounts", async () => {
    const [below, above] = [vi.fn(), vi.fn()];
    function Page() {
      const [value, setValue] = useState(1);
      return (
        <>
          <Offers actions={[action("p", () => below(value))]} />
          {value < 3 && <Offers actions={[action("p", () => above(value))]} />}
          <button type="button" onClick={() => setValue(value + 1)}>
            Next
          </button>
        </>
      );
    }
    drawn(<Page />);
    for (let round = 0; round < 3; round += 1) {
      await user.keyboard("p");
      await user.click(screen.getByRole("button", { name: "Next" }));
    }
    expect(above.mock.calls).toEqual([[1], [2]]);
    expect(below.mock.calls).toEqual([[3]]);
  });

  it("of a disabled action have no effect, also if an earlier component uses them", async () => {
    const [below, above] = [vi.fn(), vi.fn()];
    offered([action("p", below)], [action("p", above, { group: "Above", disabled: "it has ended" })]);
    await user.keyboard("p");
    expect([below, above].map((each) => each.mock.calls.length)).toEqual([0, 0]);
  });
});
