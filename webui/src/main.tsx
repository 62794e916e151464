import "./styles/index.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router";
import { Problem } from "./api/problem";
import { styleNonce } from "./browser/base";
import { IDLE_DELAY_MS, whenIdle } from "./browser/idleCallback";
import { applyPreferences, followSystemTheme } from "./browser/preferences";
import { preloadChunks } from "./components/base/preloadChunks";
import { makeRouter } from "./app/router";
import { ToastProvider } from "./components/base/Toasts";
import { Actions, ActionRegistry } from "./keyboard/actions";

// Dialogs create a style that stops the page behind them from scrolling.
setNonce(styleNonce);
applyPreferences();
followSystemTheme();

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // The stream reports stale data, so no query is refetched by time.
      staleTime: Infinity,
      gcTime: 5 * 60_000,
      retry: (count, error) => count < 2 && !(error instanceof Problem && error.status >= 400 && error.status < 500),
      refetchOnWindowFocus: false,
    },
  },
});

// Its loaders start the first queries at once.
const router = makeRouter(queries);
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Actions value={new ActionRegistry()}>
        <ToastProvider>
          <RouterProvider router={router} />
        </ToastProvider>
      </Actions>
    </QueryClientProvider>
  </StrictMode>,
);
whenIdle(() => void preloadChunks(), IDLE_DELAY_MS);
