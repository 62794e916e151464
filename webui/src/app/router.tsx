import { createBrowserRouter, Navigate, type RouteObject, useParams } from "react-router";
import { Home } from "@/routes/Home";
import { NotFound } from "@/routes/NotFound";
import { SignInLink } from "@/routes/SignInLink";
import { baseName } from "./base";
import { Layout } from "./Layout";
import { RouteFailure } from "./RouteFailure";
import { SessionGate } from "./session";

function OldExperiment() {
  const { projectId } = useParams();
  return <Navigate replace to={projectId ? `/?project=${projectId}` : "/"} />;
}

/** One file per address. All but the list come when they are first opened. */
export const routes: RouteObject[] = [
  { path: "/sign-in", element: <SignInLink /> },
  {
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
          { path: "/", element: <Home /> },
          { path: "/experiments", element: <Navigate replace to="/" /> },
          { path: "/experiments/:experimentId/trials/:trialId/*", lazy: () => import("@/routes/Trial") },
          { path: "/experiments/:experimentId/*", lazy: () => import("@/routes/Experiment") },
          { path: "/trials/:trialId/*", lazy: () => import("@/routes/Trial") },
          { path: "/compare", lazy: () => import("@/routes/Compare") },
          { path: "/cluster", lazy: () => import("@/routes/Cluster") },
          { path: "/checkpoints", lazy: () => import("@/routes/Checkpoints") },
          { path: "/users", lazy: () => import("@/routes/Users") },
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

export function makeRouter() {
  return createBrowserRouter(routes, { basename: baseName });
}
