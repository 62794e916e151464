import { screen } from "@testing-library/react";
import { StrictMode } from "react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { type Answer, fakeMaster, Refusal } from "@/testing/fakeMaster";
import { SignInLink } from "./SignInLink";

const SIGN_IN = "POST /detent/sign-in";

async function follow(answer: Answer) {
  window.history.replaceState(null, "", "/sign-in#tok-123");
  const master = fakeMaster({ [SIGN_IN]: answer });
  const shown = drawn(
    <StrictMode>
      <SignInLink />
    </StrictMode>,
    "/sign-in",
  );
  await pass();
  return { master, ...shown };
}

describe("the link that det up prints", () => {
  beforeEach(() => stopClock());
  afterEach(() => window.history.replaceState(null, "", "/"));

  it("is used once, is removed from the address at once, and leads to the list", async () => {
    let hash = "not asked";
    const { master, address } = await follow(() => {
      hash = window.location.hash;
      return {};
    });
    expect(master.of(SIGN_IN).map(({ body }) => body)).toEqual([{ token: "tok-123" }]);
    expect(hash).toBe("");
    expect(window.location.href).not.toContain("tok-123");
    expect(address()).toBe("/");
  });

  it("that was used before is refused in the master's words, with another way to sign in", async () => {
    await follow(new Refusal(401, "this link was used already"));
    expect(screen.getByText("this link was used already")).toBeVisible();
    expect(screen.getByLabelText("Password")).toBeVisible();
    expect(window.location.hash).toBe("");
  });
});
