-- Relay time of deleted sessions by day (UTC) and connection. It outlives them: db/session-retention.ts.
create table if not exists usage_days (
  user_id       uuid    not null references users(id) on delete cascade,
  day           date    not null,
  connection_id text    not null,
  seconds       numeric not null check (seconds > 0),
  primary key (user_id, day, connection_id)
);

-- The rules of db/retention.ts find their rows by an index.
create index if not exists instances_gone on instances (gone_at) where gone_at is not null;
create index if not exists billing_events_unowned on billing_events (received_at)
  where user_id is null and status in ('applied', 'ignored', 'dismissed', 'dead');
