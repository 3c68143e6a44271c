-- The last check of each region's provider: whether its credentials and settings work.
create table if not exists provider_checks (
  region     text primary key,
  checked_at timestamptz not null default now(),
  -- Since when all checks fail; null after a success.
  failing_since timestamptz,
  -- What the provider answered, without secrets; null after a success.
  error      text
);
