-- Notifies the api processes of changes that the clients of a session see, in the transaction that makes them: any process can
-- then serve any client. The payload is `<user id> <session id>`; the change itself is read from the row.

create or replace function notify_relay_session_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('relay_session_changed', new.user_id || ' ' || new.id);
  return null;
end $$;

create or replace trigger relay_sessions_notify_insert after insert on relay_sessions
  for each row execute function notify_relay_session_changed();

create or replace trigger relay_sessions_notify_update after update on relay_sessions for each row
  when ((old.state, old.reason, old.instance_id, old.relay_host, old.active_at, old.grace_ends_at, old.stopped_at)
    is distinct from (new.state, new.reason, new.instance_id, new.relay_host, new.active_at, new.grace_ends_at, new.stopped_at))
  execute function notify_relay_session_changed();

-- Only when a stream begins or ends, since relays report every few seconds.
create or replace function notify_relay_publishing_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('relay_session_changed', user_id || ' ' || id) from relay_sessions where id = new.session_id;
  return null;
end $$;

create or replace trigger relay_health_notify_insert after insert on relay_health for each row
  when (new.is_publishing is not null) execute function notify_relay_publishing_changed();

create or replace trigger relay_health_notify_update after update on relay_health for each row
  when (old.is_publishing is distinct from new.is_publishing) execute function notify_relay_publishing_changed();
