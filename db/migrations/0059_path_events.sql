-- compatible: processes of earlier versions neither read nor write the new tables, nor the new columns, which may be null.
-- What happens on the signal path of a session beside its stream. The number counts in the session. The last three
-- columns name the event of a relay that a row stands for.
create table if not exists path_events (
  session_id            uuid not null references relay_sessions (id) on delete cascade,
  number                integer not null,
  kind                  text not null check (kind in ('links_changed', 'player_joined', 'player_left', 'caller_refused')),
  at                    timestamptz not null,
  links_from            smallint,
  links_to              smallint,
  players               smallint,
  reason                text,
  role                  text check (role in ('publisher', 'player')),
  count                 integer,
  instance_id           text not null,
  process_started_at_ms bigint not null,
  seq                   integer not null,
  primary key (session_id, number),
  unique (session_id, instance_id, process_started_at_ms, seq)
);

-- The commands of a session after the one that started it, which its own row states.
create table if not exists relay_commands (
  session_id    uuid not null references relay_sessions (id) on delete cascade,
  seq           integer not null,
  command       text not null check (command in ('run', 'stop', 'stop_now', 'disconnect')),
  initiator     text not null,
  -- The name of the app or plugin that gave the command; null for all others.
  client        text,
  -- What an operator lets the owner of the session read.
  public_reason text check (length(public_reason) between 1 and 200),
  at            timestamptz not null default clock_timestamp(),
  primary key (session_id, seq)
);

alter table relay_transitions add column if not exists public_reason text;
-- The name of the plugin that started the session. That of an app follows from started_by_app.
alter table relay_sessions add column if not exists started_by_plugin text;
