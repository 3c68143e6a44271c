-- A worker asks for the API through the address that relays report to (docs/decisions/0057).
create table if not exists api_probe (
  only_row      boolean primary key default true check (only_row),
  reached_at    timestamptz,
  failing_since timestamptz
);
insert into api_probe default values on conflict do nothing;

-- Since when the path of a region's reports has been open without a break. Silence counts only while it is.
create table if not exists report_paths (
  region  text primary key,
  since   timestamptz not null default now(),
  seen_at timestamptz not null default now()
);
