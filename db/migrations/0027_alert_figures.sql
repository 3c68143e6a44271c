-- How often a job runs, as the worker that leased it last is configured; null until a worker of this version has started.
alter table jobs add column if not exists every_seconds double precision;

-- The last check of the certificate of each public address of the service.
create table if not exists certificate_checks (
  endpoint   text primary key check (endpoint in ('api', 'site')),
  checked_at timestamptz not null default now(),
  -- Of the certificate that was received last; null before the first one.
  expires_at timestamptz,
  -- Why clients refuse the certificate, or why none was received; null after a success.
  error      text
);
