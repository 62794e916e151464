import { act, fireEvent, screen, within } from "@testing-library/react";
import { EditorView } from "@codemirror/view";
import { beforeEach, describe, expect, it } from "vitest";
import type { ConfigDiagnostic } from "@/services/experiments";
import { drawn, pass, stopClock, user } from "@/testing/drawn";
import { type Asked, fakeMaster, held, Refusal } from "@/testing/fakeMaster";
import ForkDialog from "./ForkDialog";

const CHECK = "POST /detent/config/check";
const CREATE = "POST /api/v1/experiments";

const remark = (change: Partial<ConfigDiagnostic> = {}): ConfigDiagnostic => ({
  severity: "error",
  code: "type",
  message: "a number was expected",
  path: "lr",
  line: 3,
  column: 7,
  hint: "write 0.1",
  ...change,
});
const configOf = ({ body }: Asked) => (body as { config: string }).config;

async function fork() {
  const master = fakeMaster({
    "GET /detent/experiments/7/config": { text: "", submitted: "# ours\nname: digits\nlr: 0.1\n", origins: [] },
    [CHECK]: (asked) => ({ ok: true, diagnostics: configOf(asked).includes("lr: many") ? [remark()] : [] }),
    [CREATE]: { experiment: { id: 8 } },
  });
  const shown = drawn(<ForkDialog parentId={7} onClose={() => undefined} />, "/experiments/7");
  await pass(400);
  return { master, ...shown };
}

const editor = () => EditorView.findFromDOM(document.querySelector<HTMLElement>(".cm-editor")!)!;
const text = () => editor().state.doc.toString();

async function type(from: string, to: string) {
  const at = text().indexOf(from);
  act(() => editor().dispatch({ changes: { from: at, to: at + from.length, insert: to } }));
  await pass(400);
}

const button = (name: string) => screen.getByRole("button", { name });
const remarks = () =>
  within(screen.getByRole("list", { name: "Problems" }))
    .queryAllByRole("listitem")
    .map((each) => each.textContent);

describe("a fork", () => {
  beforeEach(() => stopClock());

  it("starts with the parent's text and sends the edited text, started or paused", async () => {
    const { master, address } = await fork();
    expect(text()).toBe("# ours\nname: Fork of digits\nlr: 0.1\n");
    await type("0.1", "0.2");
    await user.click(button("Create paused"));
    await pass();
    expect(master.of(CREATE)[0]?.body).toEqual({
      parentId: 7,
      config: "# ours\nname: Fork of digits\nlr: 0.2\n",
      activate: false,
    });
    expect(address()).toBe("/experiments/8");
  });

  it("with errors lists them with their places and cannot be created until they are fixed", async () => {
    const { master } = await fork();
    await type("0.1", "many");
    expect(remarks()).toEqual(["line 3:7 error [type] a number was expected — write 0.1"]);
    for (const name of ["Create paused", "Create and start"]) {
      expect(button(name)).toHaveAttribute("aria-disabled", "true");
      expect(button(name)).toHaveAttribute("title", "the error above");
      fireEvent.click(button(name));
    }
    await pass();
    expect(master.of(CREATE)).toEqual([]);
    await type("many", "0.3");
    expect(remarks()).toEqual([]);
    await user.click(button("Create and start"));
    await pass();
    expect(master.of(CREATE)[0]?.body).toMatchObject({ activate: true });
  });

  it("with only warnings can be created", async () => {
    const { master } = await fork();
    master.answers[CHECK] = { ok: true, diagnostics: [remark({ severity: "warning" })] };
    await type("0.1", "0.2");
    expect(remarks()).toHaveLength(1);
    await user.click(button("Create paused"));
    await pass();
    expect(master.of(CREATE)).toHaveLength(1);
  });

  it("is judged by the check of its newest text, whichever answer arrives last", async () => {
    const { master } = await fork();
    const slow = held<object>();
    master.answers[CHECK] = (asked) =>
      configOf(asked).includes("many") ? slow.promise : { ok: true, diagnostics: [] };
    await type("0.1", "many");
    await type("many", "0.3");
    slow.give({ ok: false, diagnostics: [remark()] });
    await pass();
    expect(remarks()).toEqual([]);
    expect(button("Create paused")).not.toHaveAttribute("aria-disabled");
  });

  it("that is refused shows the reason, and the text stays", async () => {
    const { master, address } = await fork();
    master.answers[CREATE] = new Refusal(400, "line 3: there are no slots for that", { diagnostics: [remark()] });
    await type("0.1", "0.9");
    await user.click(button("Create and start"));
    await pass();
    expect(screen.getByRole("alert")).toHaveTextContent("line 3: there are no slots for that");
    expect(text()).toContain("lr: 0.9");
    expect(address()).toBe("/experiments/7");
    expect(button("Create and start")).not.toHaveAttribute("aria-disabled");
  });
});
