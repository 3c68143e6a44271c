-- Relay sessions: the read model of the relay session actor, its inbox of commands, and what may never be stored.

-- The five legal moves with the reasons for each (workflows/relay-session-state.ts holds the same table; a test compares them).
create table if not exists relay_moves (
  from_state text not null,
  to_state   text not null,
  reason     text not null,
  primary key (from_state, to_state, reason)
);

insert into relay_moves (from_state, to_state, reason) values
  ('provisioning', 'active',  'relay_ready'),
  ('provisioning', 'stopped', 'provision_failed'),
  ('provisioning', 'stopped', 'provision_timeout'),
  ('provisioning', 'stopped', 'stop_requested'),
  ('provisioning', 'stopped', 'force_disconnected'),
  ('active',       'grace',   'health_lost'),
  ('active',       'grace',   'stop_requested'),
  ('active',       'grace',   'force_disconnected'),
  ('grace',        'active',  'health_restored'),
  ('grace',        'active',  'start_requested'),
  ('grace',        'stopped', 'grace_elapsed'),
  ('grace',        'stopped', 'stop_requested'),
  ('grace',        'stopped', 'force_disconnected')
on conflict do nothing;

create table if not exists relay_sessions (
  id                    uuid primary key default gen_random_uuid(),
  user_id               uuid not null references users (id) on delete cascade,
  connection_id         text not null check (connection_id ~ '^[A-Za-z0-9._-]{1,64}$'),
  region                text not null,
  state                 text not null default 'provisioning' check (state in ('provisioning', 'active', 'grace', 'stopped')),
  reason                text not null default 'start_requested',
  -- Counts the moves: whoever writes a move names the version that it saw.
  version               integer not null default 0,
  -- The inbox: the last command that was accepted, numbered within the session. The latest one counts.
  command               text not null default 'run' check (command in ('run', 'stop', 'stop_now', 'disconnect')),
  command_seq           integer not null default 1,
  command_actor         text not null,
  commanded_at          timestamptz not null default now(),
  -- The number of the last command that the actor is known to have.
  command_delivered_seq integer not null default 0,
  instance_id           text,
  relay_host            text,
  srtla_port            integer,
  publish_port          integer,
  play_port             integer,
  stats_port            integer,
  -- Null once stopped: a stopped session carries no secret.
  pair_token            text,
  relay_ws_token        text,
  created_at            timestamptz not null default now(),
  active_at             timestamptz,
  grace_started_at      timestamptz,
  grace_ends_at         timestamptz,
  stopped_at            timestamptz,
  check ((state = 'stopped') = (stopped_at is not null)),
  check ((state = 'grace') = (grace_ends_at is not null)),
  check (state <> 'stopped' or (pair_token is null and relay_ws_token is null))
) with (fillfactor = 80);

create unique index if not exists relay_sessions_one_live on relay_sessions (user_id, connection_id) where state <> 'stopped';
create index if not exists relay_sessions_live on relay_sessions (region, state) where state <> 'stopped';
create index if not exists relay_sessions_undelivered on relay_sessions (commanded_at) where command_delivered_seq < command_seq;
create index if not exists relay_sessions_user on relay_sessions (user_id, created_at desc);
create index if not exists relay_sessions_newest on relay_sessions (created_at desc, id desc);

create or replace function refuse_illegal_relay_move() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    if new.state <> 'provisioning' then
      raise exception 'a relay session begins provisioning, not %', new.state using errcode = 'check_violation';
    end if;
  elsif new.state <> old.state and not exists (
    select from relay_moves where from_state = old.state and to_state = new.state and reason = new.reason
  ) then
    raise exception 'a relay session can''t move from % to % for %', old.state, new.state, new.reason
      using errcode = 'check_violation';
  elsif new.state = old.state and new.reason <> old.reason then
    raise exception 'a relay session can''t change its reason without a move' using errcode = 'check_violation';
  end if;
  return new;
end $$;

create or replace trigger relay_sessions_moves before insert or update of state, reason on relay_sessions
  for each row execute function refuse_illegal_relay_move();

create table if not exists relay_transitions (
  session_id uuid not null references relay_sessions (id) on delete cascade,
  version    integer not null,
  from_state text not null,
  to_state   text not null,
  reason     text not null,
  -- Who made the move happen: "user", "operator", "relay", "timer", "system".
  actor      text not null,
  at         timestamptz not null default now(),
  primary key (session_id, version),
  foreign key (from_state, to_state, reason) references relay_moves
);

-- The last report of each session's relay, apart from the session since it changes every few seconds.
create table if not exists relay_health (
  session_id     uuid primary key references relay_sessions (id) on delete cascade,
  instance_id    text not null,
  last_report_at timestamptz not null default now(),
  -- Since when no one has been sending through the relay; null while someone does or when it was not said.
  idle_since     timestamptz
) with (fillfactor = 50);

-- What still exists at the providers, or did.
create table if not exists instances (
  instance_id   text primary key,
  session_id    uuid,
  region        text not null,
  created_at    timestamptz not null default now(),
  gone_at       timestamptz,
  -- First of the rounds in a row in which no live session owned it.
  unowned_since timestamptz
);

create index if not exists instances_existing on instances (region) where gone_at is null;

create table if not exists usage_intervals (
  id         bigint generated always as identity primary key,
  session_id uuid not null references relay_sessions (id) on delete cascade,
  user_id    uuid not null references users (id) on delete cascade,
  started_at timestamptz not null,
  ended_at   timestamptz check (ended_at >= started_at)
);

create unique index if not exists usage_intervals_open on usage_intervals (session_id) where ended_at is null;
create index if not exists usage_intervals_user on usage_intervals (user_id, started_at);

create table if not exists idempotency_keys (
  user_id     uuid not null references users (id) on delete cascade,
  key         uuid not null,
  -- SHA-256 over what was asked, so that the same key can't mean two things.
  request_hash bytea not null,
  session_id  uuid not null references relay_sessions (id) on delete cascade,
  accepted_at timestamptz not null default now(),
  primary key (user_id, key)
);

create index if not exists idempotency_keys_age on idempotency_keys (accepted_at);
