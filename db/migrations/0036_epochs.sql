-- The epochs of this database: each begins when a worker sees a new value of SVC_EPOCH, or an empty table, as after a restore. For
-- a day from then on, instances that the database does not know may carry streams that began after its backup.
create table if not exists epochs (
  -- The value of SVC_EPOCH.
  name     text primary key,
  -- What relays are answered. Random, so that two databases with the same name differ.
  id       uuid not null default gen_random_uuid(),
  began_at timestamptz not null default now()
);
