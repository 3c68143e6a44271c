-- compatible: processes of earlier versions neither read the new column and table nor store the new kinds. The trigger
-- adds to what they write.
alter table notification_settings drop constraint if exists notification_settings_kind_check;
alter table notification_settings add constraint notification_settings_kind_check check (kind = any (array[
  'relay_contact_lost', 'relay_replaced', 'relay_ending_soon', 'relay_ended', 'stream_lost', 'stream_recovered', 'stream_weak',
  'payment_failed', 'plan_ending', 'relays_surplus', 'usage_80', 'usage_95', 'usage_100'])) not valid;
alter table notification_settings validate constraint notification_settings_kind_check;

-- For how long a stream has to be lost or weak before its account is notified.
alter table users add column if not exists stream_delay_seconds integer not null default 30
  check (stream_delay_seconds between 0 and 600);

-- Sessions whose stream events may have to be notified, and when to look at them. No event up to `seen_number` is notified
-- any more. `lost_at`: when the loss began that was notified and has not ended.
create table if not exists stream_notices (
  session_id  uuid primary key references relay_sessions (id) on delete cascade,
  seen_number integer not null,
  lost_at     timestamptz,
  due_at      timestamptz not null
);
create index if not exists stream_notices_due on stream_notices (due_at);

-- Writes nothing for accounts that have none of the kinds on.
create or replace function schedule_stream_notice() returns trigger language plpgsql as $$
begin
  insert into stream_notices as n (session_id, seen_number, due_at)
  select s.id, new.number - 1,
    case when new.kind in ('stream_lost', 'stream_weak') then new.at + make_interval(secs => u.stream_delay_seconds) else now() end
  from relay_sessions s join users u on u.id = s.user_id
  where s.id = new.session_id and exists (
    select from notification_settings c where c.user_id = s.user_id and c.enabled
      and c.kind in ('stream_lost', 'stream_recovered', 'stream_weak'))
  on conflict (session_id) do update set due_at = least(n.due_at, excluded.due_at);
  return null;
end $$;
create or replace trigger stream_events_schedule_notice after insert on stream_events for each row
  when (new.kind <> 'stream_started') execute function schedule_stream_notice();
