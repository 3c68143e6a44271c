-- compatible: processes of earlier versions leave the new columns at their defaults and do not use the new tables.
-- A connection of an account: its name, the label of its address, and the ports that its relays take again. A deleted
-- one keeps its label, without the name, until its account is erased.
create table if not exists connections (
  label        text primary key default translate(left(replace(gen_random_uuid()::text, '-', ''), 10), '0123456789', 'ghijklmnop'),
  user_id      uuid not null references users (id) on delete cascade,
  name         text,
  srtla_port   integer,
  publish_port integer,
  play_port    integer,
  stats_port   integer,
  created_at   timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  unique (user_id, name)
);
insert into connections (user_id, name, created_at, last_used_at)
select user_id, connection_id, first_at, last_at from (
  select user_id, connection_id, min(created_at) as first_at, max(created_at) as last_at,
    row_number() over (partition by user_id order by max(created_at) desc) as place
  from relay_sessions group by user_id, connection_id
) used where place <= 50
on conflict (user_id, name) do nothing;

-- The number of the instance that serves the session: 1 for its first one.
alter table relay_sessions add column if not exists binding integer not null default 1;
-- Whether a replacement may be in another region.
alter table relay_sessions add column if not exists may_move boolean not null default false;
alter table instances add column if not exists binding integer not null default 1;

alter table relay_sessions drop constraint if exists relay_sessions_detail_check;
alter table relay_sessions add constraint relay_sessions_detail_check check (detail = any (array[
  'capacity', 'quota', 'configuration', 'relay_gone', 'relay_silent', 'relay_replaced', 'relay_unstable'])) not valid;
alter table relay_sessions validate constraint relay_sessions_detail_check;

-- Whether the relay keeps a report open, when that ended unexpectedly, and when its relay was proved to be gone.
alter table relay_health add column if not exists is_held boolean not null default false;
alter table relay_health add column if not exists suspect_since timestamptz;
alter table relay_health add column if not exists gone_at timestamptz;

-- The instances that were replaced in a session. The binding is that of the replacement.
create table if not exists relay_replacements (
  session_id     uuid not null references relay_sessions (id) on delete cascade,
  binding        integer not null,
  instance_id    text not null,
  replaced_by    text not null,
  cause          text not null check (cause in ('relay_gone', 'relay_silent')),
  failed_at      timestamptz not null,
  last_report_at timestamptz not null,
  bound_at       timestamptz not null default now(),
  restored_at    timestamptz,
  primary key (session_id, binding)
);

alter table notification_settings drop constraint if exists notification_settings_kind_check;
alter table notification_settings add constraint notification_settings_kind_check check (kind = any (array[
  'relay_contact_lost', 'relay_replaced', 'relay_ending_soon', 'relay_ended', 'payment_failed', 'plan_ending', 'relays_surplus',
  'usage_80', 'usage_95', 'usage_100'])) not valid;
alter table notification_settings validate constraint notification_settings_kind_check;
