-- compatible: processes of earlier versions leave the new column null and do not use the new table, and no region has
-- stable addresses before its setting.
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

-- The address that is being written to the name server, whether it has it or not.
alter table relay_names add column if not exists writing_v4 text;
create index if not exists relay_names_writing on relay_names (writing_v4) where writing_v4 is not null;
