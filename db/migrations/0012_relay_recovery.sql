-- What a relay session needs to be carried on after outages of ours, of its instance, or of its workflow.

alter table relay_sessions
  -- When the job sends the command again that its workflow is not known to have; later after each failed try.
  add column if not exists deliver_at timestamptz not null default now(),
  add column if not exists delivery_attempts integer not null default 0,
  -- Until when the jobs send its workflow no further signal; later after each one in a row.
  add column if not exists signal_at timestamptz,
  add column if not exists signal_attempts integer not null default 0,
  -- The transition that an operator asks for at present: {"id", "ip"}. A request that is no longer here moves nothing.
  add column if not exists operator_request jsonb,
  add column if not exists instance_bound_at timestamptz,
  -- Since when complete listings of the provider lack the bound instance.
  add column if not exists instance_missing_since timestamptz;

update relay_sessions set instance_bound_at = created_at where instance_id is not null and instance_bound_at is null;
-- A stopped session has nothing left to be delivered.
update relay_sessions set command_delivered_seq = command_seq where state = 'stopped' and command_delivered_seq < command_seq;

drop index if exists relay_sessions_undelivered;
create index if not exists relay_sessions_undelivered on relay_sessions (deliver_at)
  where command_delivered_seq < command_seq and state <> 'stopped';

-- A session that was ordered to disconnect never comes back, so a new one may start beside it.
drop index if exists relay_sessions_one_live;
create unique index if not exists relay_sessions_one_live on relay_sessions (user_id, connection_id)
  where state <> 'stopped' and command <> 'disconnect';
create index if not exists relay_sessions_user_live on relay_sessions (user_id) where state <> 'stopped';

-- Since when the processes of a role have been there without a break: what happens during a break counts against no relay.
create table if not exists presence (
  role    text primary key check (role in ('api', 'worker')),
  since   timestamptz not null default now(),
  seen_at timestamptz not null default now()
);
insert into presence (role) values ('api'), ('worker') on conflict do nothing;
drop table if exists reporting;

alter table workers
  -- How far the worker's clock is ahead of the other one, in seconds; null until it was measured.
  add column if not exists postgres_skew_seconds double precision,
  add column if not exists temporal_skew_seconds double precision;

-- Its work is done by restart_workflows now.
delete from jobs where name = 'revive_actors';
