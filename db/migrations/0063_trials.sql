-- compatible: processes of earlier versions leave the new column null and do not use the new tables.
-- A keyed hash of the address, once a mail of our own has proved that its owner reads it. A provider's word does not set it.
alter table users add column if not exists trial_address_hash bytea check (length(trial_address_hash) = 32);

-- Accounts that have begun their trial. Its relay time is in the Time Bank.
create table if not exists trials (
  user_id      uuid        primary key references users (id) on delete cascade,
  address_hash bytea       not null check (length(address_hash) = 32),
  started_at   timestamptz not null default now()
);

-- When trials began in a network, which is named by a keyed hash: those of the last day.
create table if not exists trial_networks (
  network_hash bytea         primary key check (length(network_hash) = 32),
  starts       timestamptz[] not null,
  last_at      timestamptz   not null
);
create index if not exists trial_networks_last on trial_networks (last_at);

-- Addresses of erased accounts that had begun their trial.
create table if not exists erased_trials (
  address_hash bytea       primary key check (length(address_hash) = 32),
  erased_at    timestamptz not null default now()
);
create index if not exists erased_trials_erased on erased_trials (erased_at);

alter table relay_sessions drop constraint if exists relay_sessions_detail_check;
alter table relay_sessions add constraint relay_sessions_detail_check check (detail = any (array[
  'capacity', 'quota', 'configuration', 'relay_gone', 'relay_silent', 'relay_replaced', 'relay_unstable', 'trial_ended']))
  not valid;
alter table relay_sessions validate constraint relay_sessions_detail_check;
