-- compatible: processes of earlier versions neither read nor write the new columns, and take the notifications for changes of a session.
-- What is right or wrong with the stream of a session, as judged with its last report; see domain/relay/signal.ts.
alter table relay_health add column if not exists phone_code text;
alter table relay_health add column if not exists phone_since timestamptz;
alter table relay_health add column if not exists player_code text;
alter table relay_health add column if not exists player_since timestamptz;
alter table relay_health add column if not exists usual_links smallint;
alter table relay_health add column if not exists stalled_players smallint;

create or replace function notify_relay_signal_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('relay_session_changed', user_id || ' ' || id || ' signal')
    from relay_sessions where id = new.session_id;
  return null;
end $$;
create or replace trigger relay_health_notify_signal after update on relay_health for each row
  when (old.is_publishing is not distinct from new.is_publishing and (old.phone_code is distinct from new.phone_code
    or old.player_code is distinct from new.player_code or old.suspect_since is distinct from new.suspect_since))
  execute function notify_relay_signal_changed();
