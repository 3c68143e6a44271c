-- compatible: processes of earlier versions do not use the new table, and take its notifications for changes of a session.
-- What the stream of a session does. The number counts in the session. The last three columns name the event of a relay
-- that a row stands for; they are null in rows that the service itself wrote.
create table if not exists stream_events (
  session_id            uuid not null references relay_sessions (id) on delete cascade,
  number                integer not null,
  kind                  text not null check (kind in ('stream_started', 'stream_weak', 'stream_recovered', 'stream_lost', 'stream_ended')),
  at                    timestamptz not null,
  bitrate_kbps          integer not null,
  instance_id           text,
  process_started_at_ms bigint,
  seq                   integer,
  primary key (session_id, number),
  unique (session_id, instance_id, process_started_at_ms, seq)
);

create or replace function notify_stream_event() returns trigger language plpgsql as $$
begin
  perform pg_notify('relay_session_changed', user_id || ' ' || id || ' stream_event')
    from relay_sessions where id = new.session_id;
  return null;
end $$;
create or replace trigger stream_events_notify after insert on stream_events for each row
  execute function notify_stream_event();
