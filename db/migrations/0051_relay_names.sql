-- compatible: processes of earlier versions leave the new column null and do not use the new table.
-- What the name server was last seen to have for the label of a connection. Kept without a connection until the name is
-- removed.
create table if not exists relay_names (
  label           text        not null primary key,
  shown_v4        text,
  shown_v6        text,
  compared_at     timestamptz,
  next_attempt_at timestamptz not null default now(),
  attempts        integer     not null default 0,
  failing_since   timestamptz,
  error           text,
  unowned_since   timestamptz
);
create index if not exists relay_names_shown on relay_names (shown_v4) where shown_v4 is not null;

-- The name in the addresses of the session; null while the name server does not show its present instance.
alter table relay_sessions add column if not exists relay_name text;

drop trigger if exists relay_sessions_notify_update on relay_sessions;
create trigger relay_sessions_notify_update after update on relay_sessions for each row when (
  old.state is distinct from new.state or old.reason is distinct from new.reason
  or old.instance_id is distinct from new.instance_id or old.relay_host is distinct from new.relay_host
  or old.relay_name is distinct from new.relay_name
  or old.srtla_port is distinct from new.srtla_port or old.publish_port is distinct from new.publish_port
  or old.play_port is distinct from new.play_port or old.stats_port is distinct from new.stats_port
  or old.active_at is distinct from new.active_at or old.grace_ends_at is distinct from new.grace_ends_at
  or old.stopped_at is distinct from new.stopped_at) execute function notify_relay_session_changed();
