import type { QueryClient } from "@tanstack/react-query";
import { createBrowserRouter, Navigate, type RouteObject, useParams } from "react-router";
import { Home } from "@/routes/Home";
import { NotFound } from "@/routes/NotFound";
import { SignInLink } from "@/routes/SignInLink";
import { baseName } from "@/browser/base";
import { lazyPage } from "@/components/base/lazy";
import { Layout } from "./Layout";
import { makeLoaders } from "./loaders";
import { RouteFailure } from "./RouteFailure";
import { SessionGate } from "./session";

function OldExperiment() {
  const { projectId } = useParams();
  return <Navigate replace to={projectId ? `/?project=${projectId}` : "/"} />;
}

/** Routes with one file per address. All pages but the list load on first use. */
export function makeRoutes(queries: QueryClient): RouteObject[] {
  const loaders = makeLoaders(queries);
  return [
    { path: "/sign-in", element: <SignInLink /> },
    {
      ...loaders.session,
      element: (
        <SessionGate>
          <Layout />
        </SessionGate>
      ),
      errorElement: <RouteFailure />,
      hydrateFallbackElement: <></>,
      children: [
        {
          errorElement: <RouteFailure />,
          children: [
            { path: "/", ...loaders.list, element: <Home /> },
            { path: "/experiments", element: <Navigate replace to="/" /> },
            {
              path: "/experiments/:experimentId/trials/:trialId/*",
              ...loaders.trial,
              ...lazyPage(() => import("@/routes/Trial")),
            },
            {
              path: "/experiments/:experimentId/*",
              ...loaders.experiment,
              ...lazyPage(() => import("@/routes/Experiment")),
            },
            { path: "/trials/:trialId/*", ...loaders.trial, ...lazyPage(() => import("@/routes/Trial")) },
            { path: "/compare", ...loaders.compare, ...lazyPage(() => import("@/routes/Compare")) },
            { path: "/cluster", ...loaders.cluster, ...lazyPage(() => import("@/routes/Cluster")) },
            { path: "/cluster/shells/:taskId", ...lazyPage(() => import("@/routes/ShellTask")) },
            { path: "/checkpoints", ...loaders.checkpoints, ...lazyPage(() => import("@/routes/Checkpoints")) },
            { path: "/users", ...loaders.users, ...lazyPage(() => import("@/routes/Users")) },
            { path: "/events", ...lazyPage(() => import("@/routes/Events")) },
            { path: "/settings", ...lazyPage(() => import("@/routes/Settings")) },
            // Addresses of the older page that users may have saved.
            { path: "/dashboard", element: <Navigate replace to="/" /> },
            { path: "/projects/:projectId/*", element: <OldExperiment /> },
            { path: "/workspaces/*", element: <Navigate replace to="/" /> },
            { path: "/clusters", element: <Navigate replace to="/cluster" /> },
            { path: "*", element: <NotFound /> },
          ],
        },
      ],
    },
  ];
}

export function makeRouter(queries: QueryClient) {
  return createBrowserRouter(makeRoutes(queries), { basename: baseName });
}
