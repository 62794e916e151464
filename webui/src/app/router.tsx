import type { QueryClient } from "@tanstack/react-query";
import { createBrowserRouter, Navigate, type RouteObject, useParams } from "react-router";
import { Home } from "@/routes/Home";
import { NotFound } from "@/routes/NotFound";
import { SignInLink } from "@/routes/SignInLink";
import { baseName } from "./base";
import { Layout } from "./Layout";
import { makeLoaders } from "./loaders";
import { RouteFailure } from "./RouteFailure";
import { SessionGate } from "./session";

function OldExperiment() {
  const { projectId } = useParams();
  return <Navigate replace to={projectId ? `/?project=${projectId}` : "/"} />;
}

/** One file per address. All but the list come when they are first opened. */
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
              lazy: () => import("@/routes/Trial"),
            },
            { path: "/experiments/:experimentId/*", ...loaders.experiment, lazy: () => import("@/routes/Experiment") },
            { path: "/trials/:trialId/*", ...loaders.trial, lazy: () => import("@/routes/Trial") },
            { path: "/compare", lazy: () => import("@/routes/Compare") },
            { path: "/cluster", ...loaders.cluster, lazy: () => import("@/routes/Cluster") },
            { path: "/checkpoints", ...loaders.checkpoints, lazy: () => import("@/routes/Checkpoints") },
            { path: "/users", ...loaders.users, lazy: () => import("@/routes/Users") },
            { path: "/events", lazy: () => import("@/routes/Events") },
            { path: "/settings", lazy: () => import("@/routes/Settings") },
            // Addresses of the older page that people have in their notes.
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
