-- compatible: processes of earlier versions do not use the new table and leave the new columns at their defaults. Their
-- relays get the stream token, and sessions that they start show it in the player's address.
-- Keys that admit players only. `own`: made by the owner; `connection`: in the addresses that the service shows, one for
-- each connection; `app`: in the addresses that a connected app gets, one for each app.
create table if not exists play_keys (
  id            uuid primary key default gen_random_uuid(),
  user_id       uuid not null references users (id) on delete cascade,
  kind          text not null check (kind in ('own', 'connection', 'app')),
  name          text not null check (length(name) between 1 and 64),
  connection_id text,
  app_id        text,
  key_sealed    text not null,
  key_hash      bytea not null unique check (length(key_hash) = 32),
  created_at    timestamptz not null default now(),
  last_used_at  timestamptz,
  check ((kind = 'app') = (app_id is not null)),
  check (kind <> 'connection' or connection_id is not null)
);
create index if not exists play_keys_user on play_keys (user_id);
create unique index if not exists play_keys_of_connection on play_keys (user_id, connection_id) where kind = 'connection';
create unique index if not exists play_keys_of_app on play_keys (user_id, app_id) where kind = 'app';

-- Whether the stream token does not admit players.
alter table users add column if not exists play_with_keys_only boolean not null default false;

-- Microseconds since 1970: when the keys that the relay of a session admits changed last; 0 when they have not since its
-- start. A relay with another number gets them with its next report.
alter table relay_sessions add column if not exists admission_revision bigint not null default 0;

-- A transaction that changes keys has locked the account, as a start has, so no session misses a change.
create or replace function change_relay_admission(changed_user_id uuid) returns void language sql as $$
  update relay_sessions set admission_revision = greatest(admission_revision + 1,
    floor(extract(epoch from clock_timestamp()) * 1000000)::bigint)
  where user_id = changed_user_id and state <> 'stopped'
$$;

create or replace function change_admission_by_key() returns trigger language plpgsql as $$
begin
  perform change_relay_admission(coalesce(new.user_id, old.user_id));
  return null;
end $$;
create or replace trigger play_keys_change_admission after insert or delete on play_keys
  for each row execute function change_admission_by_key();

create or replace function change_admission_by_account() returns trigger language plpgsql as $$
begin
  perform change_relay_admission(new.id);
  return null;
end $$;
create or replace trigger users_change_admission after update on users
  for each row when (old.play_with_keys_only <> new.play_with_keys_only
    or old.stream_token_hash is distinct from new.stream_token_hash)
  execute function change_admission_by_account();

create or replace trigger relay_sessions_notify_admission after update on relay_sessions
  for each row when (old.admission_revision <> new.admission_revision) execute function notify_relay_session_changed();
