import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { createMemoryRouter, RouterProvider } from "react-router";
import { vi } from "vitest";
import { ToastProvider } from "@/components/base/Toasts";
import { ActionRegistry, Actions } from "@/keyboard/actions";
import { useKeyboard } from "@/keyboard/useKeyboard";

/** No pauses between keys, and no check of pointer events at each click, since there are no styles here. */
export const user = userEvent.setup({ delay: null, pointerEventsCheck: 0 });

function Keyboard({ children }: { children: ReactNode }) {
  useKeyboard();
  return children;
}

/** Renders something inside the providers of main.tsx, keys included. `address()` returns the present address. */
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

/** Replaces the clock of the test. Testing Library would advance only jest's clock. */
export function stopClock(at: string | number = "2026-11-21T12:00:00Z"): void {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
    now: new Date(at),
  });
  vi.stubGlobal("jest", { advanceTimersByTime: (ms: number) => vi.advanceTimersByTime(ms) });
}

/** Advances the stopped clock, and delivers all answers that arrive meanwhile. */
export async function pass(ms = 0): Promise<void> {
  await act(() => vi.advanceTimersByTimeAsync(ms));
  // An answer is read in steps, rendered, and may be followed by another request.
  for (let round = 0; round < 6; round += 1) await act(() => vi.advanceTimersByTimeAsync(1));
}
