-- What the processes say of themselves. Workers have no listener, so this is how /health and /metrics know of them.

create table if not exists workers (
  id         uuid primary key,
  started_at timestamptz not null default now(),
  beat_at    timestamptz not null default now(),
  -- Its counters as prom-client exports them; added up over all workers.
  metrics    jsonb not null default '[]'
);

-- Since when health reports could be taken without a break: while nobody could report, nobody was silent.
create table if not exists reporting (
  only_row boolean primary key default true check (only_row),
  since    timestamptz not null default now(),
  seen_at  timestamptz not null default now()
);

insert into reporting default values on conflict do nothing;

create table if not exists jobs (
  name                   text primary key,
  due_at                 timestamptz not null default now(),
  -- Held by one worker at a time; a worker that dies loses it when this passes.
  leased_until           timestamptz not null default '-infinity',
  leased_by              uuid,
  runs                   bigint not null default 0,
  failures               bigint not null default 0,
  duration_seconds_total double precision not null default 0,
  last_duration_seconds  double precision,
  last_started_at        timestamptz,
  last_success_at        timestamptz,
  last_error             text
);
