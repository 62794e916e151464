import { fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, it } from "vitest";
import { pass, stopClock } from "@/testing/drawn";
import { FilterBar } from "./FilterBar";

it("the filter keeps what is typed while what was typed before is on its way into the address", async () => {
  stopClock();
  function SlowAddress() {
    const [query, setQuery] = useState("");
    return (
      <>
        <FilterBar query={query} problem={null} refusal="" onChange={(next) => setTimeout(() => setQuery(next), 100)} inputRef={null} />
        <button onClick={() => setQuery("from a saved view")}>{query}</button>
      </>
    );
  }
  render(<SlowAddress />);
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
