-- What signs in, apart from the name that it gives itself; attempts of strangers as bounded audit entries; where operators come from.

alter table auth_sessions add column if not exists kind text check (kind in ('web', 'plugin'));
-- Until now no plugin could be named so.
update auth_sessions set kind = case when client = 'web' then 'web' else 'plugin' end where kind is null;
-- A process of the version before names no kind: what it signs in must not pass for a browser.
alter table auth_sessions alter column kind set default 'plugin', alter column kind set not null;

alter table audit_entries
  add column if not exists client_kind    text check (client_kind in ('web', 'plugin')),
  -- How many attempts the entry stands for; null for an entry of a single act.
  add column if not exists attempts       integer check (attempts > 0),
  add column if not exists last_at        timestamptz,
  -- Action, day and account: attempts of one group share a fixed number of entries, one a slot.
  add column if not exists attempt_group  text,
  add column if not exists attempt_slot   integer,
  -- The network that all of them came from; null once there were several.
  add column if not exists attempt_source text;
update audit_entries set client_kind = case when client = 'web' then 'web' else 'plugin' end
  where client is not null and client_kind is null;
alter table audit_entries drop constraint if exists audit_entries_attempt_parts;
alter table audit_entries add constraint audit_entries_attempt_parts check (
  (attempts is null) = (attempt_group is null) and (attempts is null) = (attempt_slot is null) and (attempts is null) = (last_at is null));

create unique index if not exists audit_entries_attempts on audit_entries (attempt_group, attempt_slot)
  where attempt_group is not null;

-- Networks (IPv4 address, IPv6 /64) that the operator password was right from.
create table if not exists operator_networks (
  network      text primary key,
  last_used_at timestamptz not null default now()
);

create index if not exists operator_networks_age on operator_networks (last_used_at);
