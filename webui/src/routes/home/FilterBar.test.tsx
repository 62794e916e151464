import { fireEvent, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, it } from "vitest";
import { drawn, pass, stopClock } from "@/testing/drawn";
import { fakeMaster } from "@/testing/fakeMaster";
import { FilterBar } from "./FilterBar";

it("the filter keeps typed text while earlier text is being written to the address", async () => {
  stopClock();
  function SlowAddress() {
    const [query, setQuery] = useState("");
    return (
      <>
        <FilterBar
          query={query}
          problem={null}
          refusal=""
          onChange={(next) => setTimeout(() => setQuery(next), 100)}
          inputRef={null}
        />
        <button onClick={() => setQuery("from a saved view")}>{query}</button>
      </>
    );
  }
  fakeMaster({ "GET /detent/columns": { columns: [], total: 0 } });
  drawn(<SlowAddress />);
  const field = screen.getByRole("combobox");
  const type = (value: string) => fireEvent.change(field, { target: { value } });
  type("dig");
  await pass(250);
  expect(field).toHaveValue("dig");
  type("digits");
  await pass(110);
  expect(field).toHaveValue("digits");
  await pass(500);
  expect(screen.getByRole("button")).toHaveTextContent("digits");
  fireEvent.click(screen.getByRole("button"));
  expect(field).toHaveValue("from a saved view");
});

it("the filter completes columns, states as they are displayed, and values", async () => {
  stopClock();
  fakeMaster({
    "GET /detent/columns": { columns: [{ column: "hp.lr" }, { column: "hp.layer count" }], total: 2 },
    "GET /detent/columns/values": { values: ["ana", "anna b"] },
  });
  drawn(<FilterBar query="" problem={null} refusal="" onChange={() => undefined} inputRef={null} />);
  const completed = async (value: string) => {
    fireEvent.change(screen.getByRole("combobox"), { target: { value } });
    await pass(50);
    return [...document.querySelectorAll("option")].map((option) => option.value);
  };
  expect(await completed("name ~ x and hp.l")).toEqual(["name ~ x and hp.lr", 'name ~ x and "hp.layer count"']);
  expect(await completed("state = f")).toEqual(["state = failed"]);
  expect(await completed("user = an")).toEqual(["user = ana", 'user = "anna b"']);
  expect(await completed("user = ana ")).toEqual([]);
});
