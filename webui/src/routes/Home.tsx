import { clsx } from "clsx";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { masterUrl } from "@/browser/base";
import { isOutage, messageOf, Problem } from "@/api/problem";
import { Button } from "@/components/base/Button";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { useSay } from "@/components/base/Toasts";
import { asTyped } from "@/filter/tokens";
import { grouped } from "@/format/number";
import { useMedia } from "@/hooks/useMedia";
import { usePageTitle } from "@/hooks/usePageTitle";
import { idsQuery } from "@/services/columns";
import { BulkBar } from "./home/BulkBar";
import { ColumnPicker } from "./home/ColumnPicker";
import { FilterBar } from "./home/FilterBar";
import { GroupMenu } from "./home/GroupMenu";
import { useCursor } from "./home/cursor";
import { rememberList } from "./home/lastList";
import { DEFAULT_COLUMNS, PHONE_COLUMNS, pressed, readFilter, useListState, writeState } from "./home/listState";
import { type RowAt, RunGrid } from "./home/RunGrid";
import { SavedViews } from "./home/SavedViews";
import { useSections } from "./home/sections";
import { useSelection } from "./home/selection";
import { useBulk } from "./home/useBulk";
import { useListKeys } from "./home/useListKeys";
import homeStyles from "./home/Home.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

/** All experiments, single runs and searches in one list. */
export function Home() {
  usePageTitle("Experiments");
  const navigate = useNavigate();
  const [asState, change] = useListState();
  useEffect(() => rememberList(writeState(asState).toString()), [asState]);
  const isPhone = useMedia("(max-width: 720px)");
  // A phone shows fewer default columns. Columns that a user chose are shown all the same.
  const state = useMemo(
    () =>
      isPhone && asState.columns.join() === DEFAULT_COLUMNS.join() ? { ...asState, columns: PHONE_COLUMNS } : asState,
    [isPhone, asState],
  );
  const read = useMemo(() => readFilter(state.query), [state.query]);
  const lastGood = useRef(read.filter);
  if (!read.problem) lastGood.current = read.filter;
  const { whole, asked, shape, toggle, failure, hasNothing, isPending, isCurrent, total } = useSections(
    state,
    read.problem ? lastGood.current : read.filter,
  );
  const selection = useSelection();
  const { data: found } = useQuery({ ...idsQuery(whole), enabled: selection.ids.size > 0 });
  const hidden = useMemo(
    () => (found ? [...selection.ids].filter((id) => !found.has(id)) : []),
    [found, selection.ids],
  );
  const isAll = found !== undefined && found.size > 0 && selection.ids.size - hidden.length === found.size;
  const selected = isAll ? "all" : selection.ids.size > hidden.length ? "some" : "none";
  const bulk = useBulk();
  const [cursor, setCursor] = useCursor(state.query);
  const rowAt = useRef<RowAt>(() => undefined);
  const filterInput = useRef<HTMLInputElement>(null);
  // Set while a text is being written to the address.
  const [leftFor, setLeftFor] = useState<string | null>(null);
  if (leftFor !== null && leftFor !== state.query) setLeftFor(null);
  const setQuery = useCallback(
    (query: string) => {
      setLeftFor(query === state.query ? null : state.query);
      change({ query });
    },
    [change, state.query],
  );
  const addFilter = useCallback(
    (column: string, value: string) => {
      const part = `${column} = ${asTyped(value)}`;
      change(
        {
          query: state.query
            ? /\bor\b/i.test(state.query)
              ? `(${state.query}) and ${part}`
              : `${state.query} and ${part}`
            : part,
        },
        false,
      );
    },
    [change, state.query],
  );
  const say = useSay();
  const queries = useQueryClient();
  const selectAll = async () => {
    try {
      selection.set([...(await queries.fetchQuery({ ...idsQuery(whole), staleTime: 0 }))]);
    } catch (error) {
      say({ text: messageOf(error), kind: "failed" });
    }
  };
  const open = useCallback(
    (id: number, inNewTab = false) =>
      inNewTab ? void window.open(masterUrl(`/experiments/${id}`)) : void navigate(`/experiments/${id}`),
    [navigate],
  );
  const onRows = useListKeys({
    shape,
    isCurrent: isCurrent && leftFor === null,
    cursor,
    setCursor,
    rowAt,
    selection,
    bulk,
    filterInput,
    open,
    compare: (ids) => ids.length > 1 && ids.length <= 100 && void navigate(`/compare?experiments=${ids.join(",")}`),
  });
  const refusal = failure instanceof Problem && failure.status === 400 ? messageOf(failure) : "";
  const failed = failure !== null && refusal === "" && (hasNothing || !isOutage(failure));
  return (
    <main className={homeStyles.page}>
      <div className={layout.pageHead}>
        <h1 className={typography.visuallyHidden}>Experiments</h1>
        <FilterBar
          query={state.query}
          problem={read.problem}
          refusal={refusal}
          onChange={setQuery}
          inputRef={filterInput}
        />
        <GroupMenu group={state.group} onChange={(group) => change({ group }, false)} />
        <ColumnPicker columns={state.columns} onChange={(columns) => change({ columns })} />
        <SavedViews />
        <Button aria-pressed={state.showArchived} onClick={() => change({ showArchived: !state.showArchived }, false)}>
          Archived
        </Button>
      </div>
      {failed && <Failure error={failure} />}
      {isPending ? (
        <Loading what="the experiments" />
      ) : total === 0 ? (
        !failed && <Nothing filtered={state.query !== ""} clear={() => change({ query: "" })} />
      ) : (
        <RunGrid
          state={state}
          shape={shape}
          asked={asked}
          selection={selection}
          selected={selected}
          onSelectAll={() => (isAll ? selection.drop([...found]) : void selectAll())}
          open={open}
          cursor={cursor}
          setCursor={setCursor}
          onSort={(column, add) => change({ sort: pressed(state.sort, column, add) })}
          onGroup={toggle}
          addFilter={addFilter}
          rowAt={rowAt}
          onRows={onRows}
        />
      )}
      {(selection.ids.size > 0 || total > 0) && (
        <div className={homeStyles.foot}>
          {selection.ids.size > 0 ? (
            <BulkBar
              selection={selection}
              hidden={hidden}
              total={total}
              selectAll={() => void selectAll()}
              bulk={bulk}
            />
          ) : (
            <p className={clsx(typography.small, typography.soft)} role="status">
              {total === 1 ? "1 experiment" : `${grouped(total)} experiments`}
            </p>
          )}
        </div>
      )}
    </main>
  );
}

function Nothing({ filtered, clear }: { filtered: boolean; clear: () => void }) {
  if (filtered) {
    return (
      <EmptyState title="Nothing matches this filter">
        <Button onClick={clear}>Show all</Button>
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No experiments yet" command="det experiment create examples/digits/const.yaml examples/digits">
      Create one from a terminal. It appears here without a reload.
    </EmptyState>
  );
}
