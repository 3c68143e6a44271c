-- compatible: adds tables and an index.
-- Incidents of the service. A row without `confirmed_at` is a suspicion, which nothing shows.
create table if not exists incidents (
  id           uuid primary key default gen_random_uuid(),
  region       text,
  part         text not null check (part in ('api', 'site', 'sign_in', 'billing', 'control', 'relays', 'starts')),
  kind         text not null check (kind in ('part_outage', 'starts_failing', 'region_closed', 'reported')),
  began_at     timestamptz not null,
  confirmed_at timestamptz,
  fine_since   timestamptz,
  ended_at     timestamptz,
  note         text check (length(note) between 1 and 1000),
  noted_at     timestamptz,
  constraint incidents_end check (ended_at is null or (ended_at >= began_at and confirmed_at is not null)),
  constraint incidents_note check ((note is null) = (noted_at is null))
);
create unique index if not exists incidents_open on incidents (coalesce(region, ''), part, kind) where ended_at is null;
create index if not exists incidents_ended on incidents (ended_at) where ended_at is not null;

-- Since when the service measures its parts, and when it last did.
create table if not exists incident_watch (
  only_row    boolean primary key default true check (only_row),
  began_at    timestamptz not null default now(),
  measured_at timestamptz
);
insert into incident_watch default values on conflict do nothing;

-- The relays that failed in the last minutes are counted again and again.
create index if not exists relay_replacements_failed on relay_replacements (failed_at);
