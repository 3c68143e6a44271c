-- compatible: processes of earlier versions do not use the new table, and no region has stable addresses before its setting.
-- The stable addresses that are reserved at the providers: what each leads to, as it was last seen, and the session that
-- keeps it beyond its first instance.
create table if not exists relay_addresses (
  region          text        not null,
  address_id      text        not null,
  host            text        not null,
  can_move        boolean     not null,
  instance_id     text,
  session_id      uuid references relay_sessions (id) on delete set null,
  next_attempt_at timestamptz not null default now(),
  attempts        integer     not null default 0,
  failing_since   timestamptz,
  error           text,
  created_at      timestamptz not null default now(),
  primary key (region, address_id)
);
create index if not exists relay_addresses_session on relay_addresses (session_id) where session_id is not null;
create index if not exists relay_addresses_instance on relay_addresses (instance_id);
