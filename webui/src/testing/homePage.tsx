/** The list of experiments with a fake master of nine experiments, and actions of a user. */
import { fireEvent, screen } from "@testing-library/react";
import { Home } from "@/routes/Home";
import type { Row } from "@/services/columns";
import { drawn, pass, user } from "./drawn";
import { type Asked, fakeMaster } from "./fakeMaster";
import { rowOf } from "./samples";

export const SEARCH = "POST /detent/experiments/search";
export const IDS = "POST /detent/experiments/search/ids";
export const GROUPS = "POST /detent/experiments/search/groups";
export const ALLOWED = "POST /detent/experiments/allowed-actions";
export const verb = (name: string) => `POST /api/v1/projects/0/experiments/${name}`;
export const DELETE = "DELETE /api/v1/projects/0/experiments/delete";

interface BulkBody {
  experimentIds: number[];
}

export const allDone = ({ body }: Asked) => ({
  results: (body as BulkBody).experimentIds.map((id) => ({ id, error: "" })),
});

/** Allows every action on each experiment. */
const allAllowed = ({ body }: Asked) => ({
  groups: [
    {
      actions: ["pause", "activate", "cancel", "kill", "archive", "unarchive", "delete"],
      ids: (body as BulkBody).experimentIds,
    },
  ],
});

/** Experiments nine to one, with labels on the first two. */
export const ROWS: Row[] = Array.from({ length: 9 }, (_, index) =>
  rowOf(9 - index, { labels: index < 2 ? ["base line"] : [] }),
);
export const answer = (rows: Row[]) => ({ total: rows.length, offset: 0, experiments: rows, unknownColumns: [] });

/** An address with two columns, which render faster than nine. */
export const LIST = "/?col=name&col=tags";

export async function home(query = "") {
  const master = fakeMaster({
    [SEARCH]: answer(ROWS),
    [IDS]: { ids: ROWS.map((row) => row.id), total: ROWS.length },
    [ALLOWED]: allAllowed,
    "GET /detent/columns": { columns: [], total: 0 },
    "GET /api/v1/users/setting": { settings: [] },
    ...Object.fromEntries(["pause", "activate", "archive", "unarchive"].map((name) => [verb(name), allDone])),
    [DELETE]: allDone,
  });
  const shown = drawn(<Home />, LIST + query);
  await pass();
  return { master, ...shown };
}

export const select = (...ids: number[]) => {
  for (const id of ids) fireEvent.click(screen.getByLabelText(`Select experiment ${id}`));
};
export const press = async (name: string) => {
  await pass();
  await user.click(screen.getByText(name, { selector: "button, [role=menuitem] *" }));
  await pass();
};
export const keys = async (text: string) => {
  await user.keyboard(text);
  await pass();
};
export const lines = () =>
  screen.queryAllByRole("row").flatMap((row) => /run \d+/.exec(row.textContent ?? "")?.[0] ?? []);
export const cursor = () => /run (\d+)/.exec(document.querySelector("[data-cursor]")?.textContent ?? "")?.[1];
export const filterOf = ({ body }: Asked) =>
  JSON.parse((body as { filter: string }).filter) as {
    filterGroup: { children: { columnName: string; operator: string; value: unknown }[] };
  };
