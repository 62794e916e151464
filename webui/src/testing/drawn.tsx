import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { createMemoryRouter, RouterProvider } from "react-router";
import { vi } from "vitest";
import { ToastProvider } from "@/components/base/Toasts";
import { ActionRegistry, Actions } from "@/keyboard/actions";
import { useKeyboard } from "@/keyboard/useKeyboard";

/** Without pauses between keys, and without asking at each press whether a style forbids it: there are no styles here. */
export const user = userEvent.setup({ delay: null, pointerEventsCheck: 0 });

function Keyboard({ children }: { children: ReactNode }) {
  useKeyboard();
  return children;
}

/** Draws something with all that main.tsx puts around the page, keys included. `address()` is where one is then. */
export function drawn(children: ReactNode, at = "/", path = "*") {
  const queries = new QueryClient({
    defaultOptions: { queries: { staleTime: Infinity, retry: false, refetchOnWindowFocus: false } },
  });
  const registry = new ActionRegistry();
  const element = <Keyboard>{children}</Keyboard>;
  const router = createMemoryRouter([{ path, element }], { initialEntries: [at] });
  const view = render(
    <QueryClientProvider client={queries}>
      <Actions value={registry}>
        <ToastProvider>
          <RouterProvider router={router} />
        </ToastProvider>
      </Actions>
    </QueryClientProvider>,
  );
  return { ...view, queries, registry, address: () => router.state.location.pathname + router.state.location.search };
}

/** From here on a test's own clock; Testing Library would move jest's alone. */
export function stopClock(at: string | number = "2026-11-21T12:00:00Z"): void {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
    now: new Date(at),
  });
  vi.stubGlobal("jest", { advanceTimersByTime: (ms: number) => vi.advanceTimersByTime(ms) });
}

/** Lets so much time pass on the stopped clock, with all answers that come meanwhile. */
export async function pass(ms = 0): Promise<void> {
  await act(() => vi.advanceTimersByTimeAsync(ms));
  // An answer is read in steps, drawn, and may be followed by another question.
  for (let round = 0; round < 6; round += 1) await act(() => vi.advanceTimersByTimeAsync(1));
}
