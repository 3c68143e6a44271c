-- The fleet: an instance has a row before its provider is called, so that no reply that gets lost can leave an unknown instance.

alter table instances
  add column if not exists provider text,
  -- The provider's own id, for example `i-0123456789abcdef0`; null until the provider has answered, or where it has none.
  add column if not exists provider_id text,
  -- What it runs: an instance with another text than its region's runs an old image.
  add column if not exists image text,
  -- The number of the zone in its region.
  add column if not exists zone smallint not null default 0,
  -- Created without a session. It has one since `assigned_at`.
  add column if not exists is_warm boolean not null default false,
  add column if not exists assigned_at timestamptz,
  add column if not exists create_attempted_at timestamptz,
  -- When its provider answered that it exists, with the address and the ports.
  add column if not exists launched_at timestamptz,
  add column if not exists host text,
  add column if not exists srtla_port integer,
  add column if not exists publish_port integer,
  add column if not exists play_port integer,
  add column if not exists stats_port integer,
  -- The last report that it sent without a session.
  add column if not exists last_report_at timestamptz,
  -- It is to be destroyed, and gets no session any more.
  add column if not exists retired_at timestamptz;

-- Warm instances that may get a session.
create index if not exists instances_unbound on instances (region)
  where is_warm and session_id is null and retired_at is null and gone_at is null;
create index if not exists instances_of_session on instances (session_id) where gone_at is null;

-- Regions with a state of their own. A region without a row has none.
create table if not exists regions (
  region     text primary key,
  -- Since when it takes no new sessions.
  drained_at timestamptz
);

alter table relay_sessions
  -- Why provisioning failed, where the provider stated it.
  add column if not exists detail text;
alter table relay_sessions drop constraint if exists relay_sessions_detail_check;
alter table relay_sessions add constraint relay_sessions_detail_check check (detail in ('capacity', 'quota', 'configuration'));

-- Notifies the api processes of an assignment, one of which holds the report of the instance. The payload is the instance id.
create or replace function notify_instance_assigned() returns trigger language plpgsql as $$
begin
  perform pg_notify('instance_assigned', new.instance_id);
  return null;
end $$;

create or replace trigger instances_notify_assigned after update of session_id, retired_at on instances for each row
  when (new.is_warm and (new.session_id, new.retired_at) is distinct from (old.session_id, old.retired_at))
  execute function notify_instance_assigned();
