from determined_workflows.rlhf.program import main

if __name__ == "__main__":
    raise SystemExit(main())
