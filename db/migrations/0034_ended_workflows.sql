-- Workflows whose tasks failed again and again, and that a worker ended for it. The first run tells the first time from the second:
-- a worker that dies while it ends a run finds the same run here. Rows are deleted a day after the last time.
create table if not exists ended_workflows (
  workflow_id   text primary key,
  workflow_type text not null,
  first_run_id  text not null,
  last_run_id   text not null,
  last_ended_at timestamptz not null default now()
);

create index if not exists ended_workflows_by_end on ended_workflows (last_ended_at);
