-- compatible: the schema after migration 0045, which a database with that migration has already.
-- Tables are grouped by noun. Columns, constraints and indexes have the order of their creation.

-- Accounts and sign-ins.

create table if not exists users (
  id                         uuid        primary key default gen_random_uuid(),
  email                      text check (email = btrim(email) and length(email) >= 3 and length(email) <= 254),
  email_verified_at          timestamptz,
  password_hash              text,
  -- In plain text: what the first versions wrote. 0047 deletes the three columns of such tokens.
  stream_token               text unique check (stream_token ~ '^[A-Za-z0-9]{8}$'),
  plan_tier                  text        not null default 'free' check (plan_tier = any (array['free', 'paid'])),
  plan_status                text        not null default 'none',
  addons                     integer     not null default 0 check (addons >= 0 and addons <= 3),
  -- When a plan given for a time ends; null when it has no end.
  plan_until                 timestamptz,
  payment_grace_ends_at      timestamptz,
  -- Raised by each change of the plan or of its inbox: a writer names the version that it has read.
  entitlement_version        integer     not null default 0,
  relay_access_enabled       boolean     not null default true,
  disabled_at                timestamptz,
  created_at                 timestamptz not null default now(),
  -- The billing period of the plan, which is the Time Bank's cycle.
  period_start               timestamptz,
  period_end                 timestamptz,
  -- When the newest relays beyond the limit end, after add-ons were taken away.
  surplus_ends_at            timestamptz,
  -- When the subscription workflow acts next. A job wakes workflows that are late.
  entitlement_due_at         timestamptz,
  -- When the owner of the address created, reclaimed or reset the account. Null while the address is at most verified,
  -- since another person may have created the account.
  owner_proved_at            timestamptz,
  -- Shown to its owner again, so it is encrypted (platform/sealing.ts), with a keyed hash that finds and compares it.
  stream_token_sealed        text,
  stream_token_hash          bytea check (length(stream_token_hash) = 32),
  -- When events of the account's inbox were removed or replaced, until the workflow has written an entitlement without
  -- them.
  inbox_changed_at           timestamptz,
  -- Add-ons that are billed while the account has no plan, and plans that are billed at the same time. Written with the
  -- entitlement, so that the metrics count few rows.
  addons_without_plan        integer     not null default 0,
  billed_plans               integer     not null default 0,
  -- Wakes that jobs have sent to the workflow since it last wrote an entitlement, and when the next one may follow.
  wake_attempts              integer     not null default 0,
  woken_at                   timestamptz,
  next_wake_at               timestamptz,
  -- When the account may be erased; null unless its owner has scheduled the deletion.
  deletion_due_at            timestamptz,
  -- When subscriptions are next cancelled at their provider and the account is erased, with backoff.
  deletion_attempt_at        timestamptz,
  deletion_attempts          integer     not null default 0,
  -- The end of the plan that its owner was notified of: another end is notified again.
  plan_ending_notified_for   timestamptz,
  -- When the account was informed that mails about payments are on by default. Null for accounts from before that.
  billing_mails_announced_at timestamptz default now(),
  constraint users_deletion_check check ((deletion_due_at is null) = (deletion_attempt_at is null)),
  constraint users_period_check check (period_end > period_start),
  constraint users_plan_status_check check (plan_status = any (array['none', 'active', 'past_due', 'cancelled'])),
  constraint users_stream_token_stored_once check ((stream_token is null) <> (stream_token_sealed is null) and (stream_token_sealed is null) = (stream_token_hash is null))
);

create index if not exists users_addons_without_plan on users (id) include (addons_without_plan) where addons_without_plan > 0;
create index if not exists users_deletion_attempt on users (deletion_attempt_at) where deletion_due_at is not null;
create index if not exists users_disabled on users (id) where disabled_at is not null;
-- One account per address without regard to case.
create unique index if not exists users_email on users (lower(email));
create index if not exists users_entitlement_due on users (entitlement_due_at) where entitlement_due_at is not null;
create index if not exists users_inbox_changed on users (inbox_changed_at) where inbox_changed_at is not null;
-- Accounts by plan, counted from the index alone.
create index if not exists users_plan on users (plan_tier, plan_status);
create index if not exists users_plan_ending on users (plan_until) where plan_until is not null;
-- Partial, so that the column is no key that rows of other tables could refer to: changing it then blocks fewer
-- transactions.
create unique index if not exists users_stream_token_hash on users (stream_token_hash) where stream_token_hash is not null;
create index if not exists users_two_plans on users (id) where billed_plans > 1;
create index if not exists users_unannounced on users (id) where billing_mails_announced_at is null and email_verified_at is not null;
create statistics if not exists users_plan_combinations (mcv) on plan_tier, plan_status from users;

create table if not exists auth_sessions (
  id           uuid        primary key default gen_random_uuid(),
  user_id      uuid        not null references users(id) on delete cascade,
  -- `web`, or the name that the plugin gave itself.
  client       text        not null check (length(client) >= 1 and length(client) <= 64),
  ip           text        not null,
  user_agent   text        not null default '',
  created_at   timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  revoked_at   timestamptz,
  revoked_for  text,
  kind         text        not null default 'plugin' check (kind = any (array['web', 'plugin'])),
  constraint auth_sessions_check check ((revoked_at is null) = (revoked_for is null)),
  constraint auth_sessions_revoked_for_check check (revoked_for = any (array['logout', 'revoked', 'token_reuse', 'password_reset', 'password_changed', 'account_disabled', 'account_deletion', 'merged']))
);

create index if not exists auth_sessions_ended on auth_sessions (revoked_at) where revoked_at is not null;
create index if not exists auth_sessions_unused on auth_sessions (last_used_at) where revoked_at is null;
create index if not exists auth_sessions_user on auth_sessions (user_id, created_at);

-- One lineage of refresh tokens per auth session. A token is live while it has neither been replaced nor superseded.
create table if not exists refresh_tokens (
  token_hash      bytea       primary key check (length(token_hash) = 32),
  auth_session_id uuid        not null references auth_sessions(id) on delete cascade,
  created_at      timestamptz not null default now(),
  expires_at      timestamptz not null,
  -- Set when a refresh exchanged this token for its successor.
  replaced_at     timestamptz,
  successor_hash  bytea,
  -- Set when its predecessor was exchanged once more because the reply that carried this token was lost.
  superseded_at   timestamptz,
  constraint refresh_tokens_check check ((replaced_at is null) = (successor_hash is null))
);

create index if not exists refresh_tokens_expiry on refresh_tokens (expires_at);
create index if not exists refresh_tokens_session on refresh_tokens (auth_session_id);

create table if not exists login_attempts (
  id              uuid        primary key default gen_random_uuid(),
  poll_token_hash bytea       not null check (length(poll_token_hash) = 32),
  user_code       text        not null,
  client_name     text        not null check (length(client_name) >= 1 and length(client_name) <= 64),
  ip              text        not null,
  user_agent      text        not null default '',
  status          text        not null default 'pending',
  -- The account that approved it, to which it signs in.
  user_id         uuid references users(id) on delete cascade,
  created_at      timestamptz not null default now(),
  expires_at      timestamptz not null,
  decided_at      timestamptz,
  last_polled_at  timestamptz,
  constraint login_attempts_check check ((status = any (array['approved', 'consumed'])) <= (user_id is not null)),
  constraint login_attempts_status_check check (status = any (array['pending', 'approved', 'denied', 'consumed']))
);

create index if not exists login_attempts_approved on login_attempts (user_id) where status = 'approved';
create index if not exists login_attempts_expiry on login_attempts (expires_at);
create index if not exists login_attempts_user on login_attempts (user_id) where user_id is not null;

-- Failed sign-ins of users and operators by minute: the entries of the audit count those of a whole day.
create table if not exists sign_in_failures (
  minute   timestamptz primary key,
  failures integer     not null
);

-- The links in mails. Only their SHA-256 is kept.
create table if not exists mail_tokens (
  token_hash     bytea       primary key check (length(token_hash) = 32),
  user_id        uuid        not null references users(id) on delete cascade,
  purpose        text        not null check (purpose = any (array['verify_email', 'reset_password', 'change_email'])),
  -- Where it was sent: it proves that address and no other.
  email          text        not null,
  created_at     timestamptz not null default now(),
  expires_at     timestamptz not null,
  -- Used links stay until they expire, so that a page can state that an address is already verified.
  used_at        timestamptz,
  -- Of `change_email`: the account's address when the link was requested, null for none. `email` is the new address.
  previous_email text
);

create index if not exists mail_tokens_expiry on mail_tokens (expires_at);
create index if not exists mail_tokens_user on mail_tokens (user_id, purpose);

create table if not exists user_oauth_accounts (
  id                      uuid        primary key default gen_random_uuid(),
  user_id                 uuid        not null references users(id) on delete cascade,
  provider                text        not null check (provider = any (array['twitch', 'google', 'discord'])),
  provider_user_id        text        not null,
  -- Sealed with OAUTH_ENCRYPTION_KEY (platform/sealing.ts), bound to this user, provider and field.
  access_token_sealed     text,
  refresh_token_sealed    text,
  token_expires_at        timestamptz,
  scopes                  text[]      not null default '{}',
  -- When the scopes of the chat were granted; null again when the provider refuses our tokens.
  chat_connected_at       timestamptz,
  -- When the provider last confirmed the tokens.
  tokens_checked_at       timestamptz not null default now(),
  linked_at               timestamptz not null default now(),
  -- The address that the provider has verified; null for none.
  provider_verified_email text,
  constraint user_oauth_accounts_provider_provider_user_id_key unique (provider, provider_user_id),
  constraint user_oauth_accounts_user_id_provider_key unique (user_id, provider),
  constraint user_oauth_accounts_provider_user_id_check check (length(provider_user_id) >= 1 and length(provider_user_id) <= 255),
  constraint user_oauth_accounts_tokens_for_chat check (chat_connected_at is not null or access_token_sealed is null and refresh_token_sealed is null)
);

create index if not exists user_oauth_accounts_chat on user_oauth_accounts (tokens_checked_at) where chat_connected_at is not null;

-- Sign-ins whose verified address another account has: that account's owner must prove to be it.
create table if not exists merge_requests (
  id               uuid        primary key default gen_random_uuid(),
  user_id          uuid        not null references users(id) on delete cascade,
  -- The address of both when the request was made.
  email            text        not null,
  provider         text        not null check (provider = any (array['twitch', 'google', 'discord'])),
  provider_user_id text        not null check (length(provider_user_id) >= 1 and length(provider_user_id) <= 255),
  merge_token_hash bytea       not null check (length(merge_token_hash) = 32),
  -- The provider with which the account's owner has proved to be it.
  proved_by        text check (proved_by = any (array['twitch', 'google', 'discord'])),
  failed_attempts  integer     not null default 0,
  created_at       timestamptz not null default now(),
  expires_at       timestamptz not null,
  confirmed_at     timestamptz
);

create index if not exists merge_requests_expiry on merge_requests (expires_at);
create index if not exists merge_requests_user on merge_requests (user_id);

create table if not exists oauth_authorization_requests (
  state_hash       bytea       primary key check (length(state_hash) = 32),
  binding_hash     bytea       not null check (length(binding_hash) = 32),
  provider         text        not null check (provider = any (array['twitch', 'google', 'discord'])),
  intent           text        not null check (intent = any (array['sign_in', 'link', 'merge'])),
  scopes           text        not null check (scopes = any (array['identity', 'chat'])),
  user_id          uuid references users(id) on delete cascade,
  auth_session_id  uuid references auth_sessions(id) on delete cascade,
  merge_request_id uuid references merge_requests(id) on delete cascade,
  created_at       timestamptz not null default now(),
  expires_at       timestamptz not null,
  consumed_at      timestamptz,
  constraint oauth_authorization_requests_check check ((intent = 'link') = (user_id is not null and auth_session_id is not null)),
  constraint oauth_authorization_requests_check1 check ((intent = 'merge') = (merge_request_id is not null))
);

create index if not exists oauth_authorization_requests_expiry on oauth_authorization_requests (expires_at);
create index if not exists oauth_authorization_requests_merge on oauth_authorization_requests (merge_request_id) where merge_request_id is not null;
create index if not exists oauth_authorization_requests_session on oauth_authorization_requests (auth_session_id) where auth_session_id is not null;
create index if not exists oauth_authorization_requests_user on oauth_authorization_requests (user_id) where user_id is not null;

-- Tokens of unlinked identities with a chat. A job revokes them at the provider; they are deleted then, or after a day.
create table if not exists provider_token_revocations (
  id               uuid        primary key default gen_random_uuid(),
  provider         text        not null check (provider = any (array['twitch', 'google', 'discord'])),
  provider_user_id text        not null,
  -- The account and the column that it comes from: it is still sealed for that place.
  user_id          uuid        not null,
  field            text        not null check (field = any (array['access_token', 'refresh_token'])),
  token_sealed     text        not null,
  attempts         integer     not null default 0,
  next_attempt_at  timestamptz not null default now(),
  created_at       timestamptz not null default now()
);

create index if not exists provider_token_revocations_due on provider_token_revocations (next_attempt_at);
create index if not exists provider_token_revocations_identity on provider_token_revocations (provider, provider_user_id);

-- Sessions of operators in the console. The operator password is exchanged for a token, of which only the hash is
-- stored.
create table if not exists operator_sessions (
  id            uuid        primary key default gen_random_uuid(),
  token_hash    bytea       not null unique check (length(token_hash) = 32),
  -- A keyed hash of the password that opened the session: another password ends all sessions.
  password_hash bytea       not null check (length(password_hash) = 32),
  created_at    timestamptz not null default now(),
  last_used_at  timestamptz not null default now(),
  expires_at    timestamptz not null
);

create index if not exists operator_sessions_expiry on operator_sessions (expires_at);

-- Networks (IPv4 address, IPv6 /64) from which the operator password was right.
create table if not exists operator_networks (
  network      text        primary key,
  last_used_at timestamptz not null default now()
);

create index if not exists operator_networks_age on operator_networks (last_used_at);

-- The audit: what users and operators did that matters for the security of an account.
create table if not exists audit_entries (
  id             bigint      primary key generated always as identity,
  at             timestamptz not null default now(),
  initiator      text        not null,
  action         text        not null,
  user_id        uuid references users(id) on delete cascade,
  ip             text,
  client         text,
  detail         jsonb       not null default '{}'::jsonb,
  client_kind    text check (client_kind = any (array['web', 'plugin'])),
  -- How many attempts the entry stands for; null for an entry of a single action.
  attempts       integer check (attempts > 0),
  last_at        timestamptz,
  -- Action, day and account. The attempts of a group share a fixed number of entries, one for each slot.
  attempt_group  text,
  attempt_slot   integer,
  -- The network of all attempts; null for several.
  attempt_source text,
  constraint audit_entries_attempt_parts check ((attempts is null) = (attempt_group is null) and (attempts is null) = (attempt_slot is null) and (attempts is null) = (last_at is null))
);

-- The console's filters of the audit.
create index if not exists audit_entries_action on audit_entries (action, id desc);
create index if not exists audit_entries_age on audit_entries (at);
create unique index if not exists audit_entries_attempts on audit_entries (attempt_group, attempt_slot) where attempt_group is not null;
create index if not exists audit_entries_initiator on audit_entries (initiator, id desc);
create index if not exists audit_entries_user on audit_entries (user_id, id desc);
-- The activity of an account merges its audit entries with its relay sessions by time.
create index if not exists audit_entries_user_at on audit_entries (user_id, at desc, id desc);

-- Late billing events of erased accounts are ignored and not parked. Contains no personal data.
create table if not exists erased_accounts (
  user_id   uuid        primary key,
  erased_at timestamptz not null default now()
);

create index if not exists erased_accounts_age on erased_accounts (erased_at);

-- Relays.

-- The five legal transitions with the reasons for each. domain/relay/session.ts has the same table; a test compares
-- them.
create table if not exists relay_legal_transitions (
  from_state text not null,
  to_state   text not null,
  reason     text not null,
  constraint relay_legal_transitions_pkey primary key (from_state, to_state, reason)
);

insert into relay_legal_transitions (from_state, to_state, reason) values
  ('provisioning', 'active', 'relay_ready'),
  ('provisioning', 'stopped', 'force_disconnected'),
  ('provisioning', 'stopped', 'provision_failed'),
  ('provisioning', 'stopped', 'provision_timeout'),
  ('provisioning', 'stopped', 'stop_requested'),
  ('active', 'grace', 'force_disconnected'),
  ('active', 'grace', 'health_lost'),
  ('active', 'grace', 'stop_requested'),
  ('grace', 'active', 'health_restored'),
  ('grace', 'active', 'start_requested'),
  ('grace', 'stopped', 'force_disconnected'),
  ('grace', 'stopped', 'grace_elapsed'),
  ('grace', 'stopped', 'stop_requested')
on conflict do nothing;

create table if not exists relay_sessions (
  id                      uuid        primary key default gen_random_uuid(),
  user_id                 uuid        not null references users(id) on delete cascade,
  connection_id           text        not null check (connection_id ~ '^[A-Za-z0-9._-]{1,64}$'),
  region                  text        not null,
  state                   text        not null default 'provisioning',
  reason                  text        not null default 'start_requested',
  -- Counts the transitions. A writer names the version that it has read.
  version                 integer     not null default 0,
  -- The latest accepted command, numbered within the session. It replaces earlier ones.
  command                 text        not null default 'run',
  command_seq             integer     not null default 1,
  command_initiator       text        not null,
  commanded_at            timestamptz not null default now(),
  -- The number of the last command that the workflow has confirmed.
  command_delivered_seq   integer     not null default 0,
  instance_id             text,
  relay_host              text,
  srtla_port              integer,
  publish_port            integer,
  play_port               integer,
  stats_port              integer,
  -- In plain text: what the first versions wrote. 0047 deletes the columns.
  pair_token              text,
  relay_ws_token          text,
  created_at              timestamptz not null default now(),
  active_at               timestamptz,
  grace_started_at        timestamptz,
  grace_ends_at           timestamptz,
  stopped_at              timestamptz,
  pair_token_sealed       text,
  pair_token_hash         bytea check (length(pair_token_hash) = 32),
  relay_ws_token_sealed   text,
  relay_ws_token_hash     bytea check (length(relay_ws_token_hash) = 32),
  -- When the job delivers the command again that the workflow has not confirmed; later after each failed attempt.
  deliver_at              timestamptz not null default now(),
  delivery_attempts       integer     not null default 0,
  -- Until when the jobs send no further signal to the workflow; later after each one in a row.
  signal_at               timestamptz,
  signal_attempts         integer     not null default 0,
  -- The transition that an operator requests: {"id", "ip"}. A request that is no longer here has no effect.
  operator_request        jsonb,
  instance_bound_at       timestamptz,
  -- Since when complete listings of the provider lack the bound instance.
  instance_missing_since  timestamptz,
  -- Why provisioning failed, where the provider stated it.
  detail                  text check (detail = any (array['capacity', 'quota', 'configuration'])),
  -- When the owner was notified that the session may soon be stopped because of its age.
  ending_soon_notified_at timestamptz,
  constraint relay_sessions_check check ((state = 'stopped') = (stopped_at is not null)),
  constraint relay_sessions_check1 check ((state = 'grace') = (grace_ends_at is not null)),
  constraint relay_sessions_command_check check (command = any (array['run', 'stop', 'stop_now', 'disconnect'])),
  constraint relay_sessions_pair_token_stored_once check ((pair_token is null or pair_token_sealed is null) and (pair_token_sealed is null) = (pair_token_hash is null)),
  constraint relay_sessions_relay_ws_token_stored_once check ((relay_ws_token is null or relay_ws_token_sealed is null) and (relay_ws_token_sealed is null) = (relay_ws_token_hash is null)),
  constraint relay_sessions_state_check check (state = any (array['provisioning', 'active', 'grace', 'stopped'])),
  constraint relay_sessions_stopped_without_tokens check (state <> 'stopped' or pair_token is null and pair_token_sealed is null and relay_ws_token is null and relay_ws_token_sealed is null)
) with (fillfactor = 80);

-- The history of a user: ended sessions, the newest first.
create index if not exists relay_sessions_ended on relay_sessions (user_id, stopped_at desc, id desc) where state = 'stopped';
create index if not exists relay_sessions_live on relay_sessions (region, state) where state <> 'stopped';
create index if not exists relay_sessions_newest on relay_sessions (created_at desc, id desc);
create unique index if not exists relay_sessions_one_live on relay_sessions (user_id, connection_id) where state <> 'stopped' and command <> 'disconnect';
create unique index if not exists relay_sessions_pair_token_hash on relay_sessions (pair_token_hash) where pair_token_hash is not null;
-- Operators page through the sessions of one region, newest first, and through disabled accounts. Reports and commands
-- change none of these columns, so their updates stay heap-only.
create index if not exists relay_sessions_region on relay_sessions (region, created_at desc, id desc);
create unique index if not exists relay_sessions_relay_ws_token_hash on relay_sessions (relay_ws_token_hash) where relay_ws_token_hash is not null;
-- What happened in the last hour, for the console's charts.
create index if not exists relay_sessions_stopped on relay_sessions (stopped_at) where state = 'stopped';
create index if not exists relay_sessions_undelivered on relay_sessions (deliver_at) where command_delivered_seq < command_seq and state <> 'stopped';
create index if not exists relay_sessions_user on relay_sessions (user_id, created_at desc);
create index if not exists relay_sessions_user_live on relay_sessions (user_id) where state <> 'stopped';

create table if not exists relay_transitions (
  session_id uuid        not null references relay_sessions(id) on delete cascade,
  version    integer     not null,
  from_state text        not null,
  to_state   text        not null,
  reason     text        not null,
  initiator  text        not null,
  at         timestamptz not null default now(),
  constraint relay_transitions_pkey primary key (session_id, version),
  constraint relay_transitions_from_state_to_state_reason_fkey foreign key (from_state, to_state, reason) references relay_legal_transitions(from_state, to_state, reason)
);

create index if not exists relay_transitions_kind on relay_transitions (from_state, to_state, reason);

-- The last report of each session's relay. Not in the session's row, since it changes every few seconds.
create table if not exists relay_health (
  session_id            uuid             primary key references relay_sessions(id) on delete cascade,
  instance_id           text             not null,
  last_report_at        timestamptz      not null default now(),
  -- Since when no stream comes in; null while one does, or when the relay does not state it.
  idle_since            timestamptz,
  -- When the relay last stated whether it receives a stream; null before. The next six columns are from that report.
  ingest_at             timestamptz,
  is_publishing         boolean,
  bitrate_kbps          integer,
  links                 smallint,
  players               smallint,
  rtt_ms                real,
  loss_pct              real,
  engine                text check (engine = any (array['srt-live-transmit', 'sls', 'none'])),
  -- Since when is_publishing has its present value.
  publishing_since      timestamptz,
  -- The counter of the relay's process, which restarts at 0 with a new process.
  bytes_total           bigint,
  bytes_received        bigint           not null default 0,
  peak_bitrate_kbps     integer          not null default 0,
  seconds_publishing    double precision not null default 0,
  -- The highest bitrate of each of up to 60 slots of 10 seconds, the newest last; null for a slot without a report.
  recent_bitrate_kbps   integer[],
  -- The newest slot: seconds since 1970, divided by 10.
  recent_slot           integer,
  -- When the relay's process started, in milliseconds since 1970 by its clock. Distinguishes a new process from an
  -- older report.
  process_started_at_ms bigint,
  -- The time with data of the relay's process, in milliseconds, as the process measures it. Null while it is one of a
  -- former version, whose time the service judges from pairs of reports.
  publishing_ms         bigint
) with (fillfactor = 50);

create table if not exists idempotency_keys (
  user_id      uuid        not null references users(id) on delete cascade,
  key          uuid        not null,
  -- SHA-256 of the request: a key cannot be used for two requests.
  request_hash bytea       not null,
  session_id   uuid        not null references relay_sessions(id) on delete cascade,
  accepted_at  timestamptz not null default now(),
  constraint idempotency_keys_pkey primary key (user_id, key)
);

create index if not exists idempotency_keys_age on idempotency_keys (accepted_at);
create index if not exists idempotency_keys_session on idempotency_keys (session_id);

create table if not exists usage_intervals (
  id         bigint      primary key generated always as identity,
  session_id uuid        not null references relay_sessions(id) on delete cascade,
  user_id    uuid        not null references users(id) on delete cascade,
  started_at timestamptz not null,
  ended_at   timestamptz,
  constraint usage_intervals_check check (ended_at >= started_at)
);

-- A job finds the accounts that used relay time recently, every minute.
create index if not exists usage_intervals_ended on usage_intervals (ended_at);
create unique index if not exists usage_intervals_open on usage_intervals (session_id) where ended_at is null;
create index if not exists usage_intervals_session on usage_intervals (session_id);
-- The relay time of a cycle is read from the intervals that ended in it, from the index alone.
create index if not exists usage_intervals_user_ended on usage_intervals (user_id, ended_at) include (started_at);

-- Relay time of deleted sessions by day (UTC) and connection. It outlives them: db/relay/session-retention.ts.
create table if not exists usage_days (
  user_id       uuid    not null references users(id) on delete cascade,
  day           date    not null,
  connection_id text    not null,
  seconds       numeric not null check (seconds > 0::numeric),
  constraint usage_days_pkey primary key (user_id, day, connection_id)
);

-- The fleet.

-- Each has a row before its provider is called, so no lost reply leaves an unknown instance.
create table if not exists instances (
  instance_id         text        primary key,
  session_id          uuid,
  region              text        not null,
  created_at          timestamptz not null default now(),
  gone_at             timestamptz,
  -- The first of the comparisons in a row in which no live session owned it.
  unowned_since       timestamptz,
  provider            text,
  -- The provider's own id, for example `i-0123456789abcdef0`; null until the provider has answered, or where it has
  -- none.
  provider_id         text,
  -- What it runs. Another text than its region's means an old image.
  image               text,
  -- The number of the zone in its region.
  zone                smallint    not null default 0,
  -- Created without a session. It has one since `assigned_at`.
  is_warm             boolean     not null default false,
  assigned_at         timestamptz,
  create_attempted_at timestamptz,
  -- When its provider confirmed it, with address and ports.
  launched_at         timestamptz,
  host                text,
  srtla_port          integer,
  publish_port        integer,
  play_port           integer,
  stats_port          integer,
  -- The last report that it sent without a session.
  last_report_at      timestamptz,
  -- When it was decided to destroy it. It gets no session any more.
  retired_at          timestamptz
);

create index if not exists instances_existing on instances (region) where gone_at is null;
-- For the rules of db/operations/retention.ts.
create index if not exists instances_gone on instances (gone_at) where gone_at is not null;
-- Operators page through instances, newest first.
create index if not exists instances_newest on instances (created_at desc, instance_id desc);
create index if not exists instances_of_session on instances (session_id) where gone_at is null;
-- Warm instances that may get a session.
create index if not exists instances_unbound on instances (region) where is_warm and session_id is null and retired_at is null and gone_at is null;
-- Starts count the instances of their region that have no owner. From `instances_existing` they would read every
-- instance of the region: 1.5 ms with 10,000 of them.
create index if not exists instances_unowned on instances (region) where gone_at is null and unowned_since is not null;

-- Regions that are or were drained. A region without a row never was.
create table if not exists regions (
  region     text        primary key,
  -- Since when it takes no new sessions.
  drained_at timestamptz
);

-- The program of relays of each of the last builds, under the name that the user data of its workers has. An api serves
-- all of them, so instances that a worker of another version creates find theirs. A program has about 90 kB.
create table if not exists relay_programs (
  file_name    text        primary key,
  code         bytea       not null,
  last_used_at timestamptz not null default now(),
  constraint relay_programs_code_size check (octet_length(code) >= 1 and octet_length(code) <= 4194304)
);

-- A worker asks for the API through the address that relays report to (docs/decisions/0057).
create table if not exists api_probe (
  only_row      boolean     primary key default true check (only_row),
  reached_at    timestamptz,
  failing_since timestamptz
);

insert into api_probe default values on conflict do nothing;

-- Since when the path of a region's reports has been open without a break. Silence counts only while it is.
create table if not exists report_paths (
  region  text        primary key,
  since   timestamptz not null default now(),
  seen_at timestamptz not null default now()
);

-- The last check of each region's provider: whether its credentials and settings work.
create table if not exists provider_checks (
  region        text        primary key,
  checked_at    timestamptz not null default now(),
  -- Since when all checks fail; null after a success.
  failing_since timestamptz,
  -- The provider's answer, without secrets; null after a success.
  error         text
);

-- The epochs of this database: each begins when a worker sees a new value of SVC_EPOCH, or an empty table, as after a
-- restore. For a day from then on, instances that the database does not know may carry streams that began after its
-- backup.
create table if not exists epochs (
  -- The value of SVC_EPOCH.
  name     text        primary key,
  -- The id that relays get. Random, so that two databases with the same name differ.
  id       uuid        not null default gen_random_uuid(),
  began_at timestamptz not null default now()
);

-- Billing.

-- The billing inbox. An event is stored before the webhook is answered, once for each key, with its bytes, which can be
-- read again.
create table if not exists billing_events (
  id              uuid        primary key default gen_random_uuid(),
  -- The order of acceptance.
  seq             bigint      not null generated always as identity unique,
  provider        text        not null check (provider = any (array['sandbox', 'lemonsqueezy', 'stripe', 'operator'])),
  event_key       text        not null check (length(event_key) >= 1 and length(event_key) <= 300),
  type            text        not null check (length(type) <= 200),
  action          text,
  -- The account that the provider states, and the subscription, which decides when it states none.
  user_ref        text,
  subscription_id text,
  user_id         uuid references users(id) on delete set null,
  -- The normalised form (domain/billing/event.ts), which the workflow applies; null when there is nothing to apply.
  event           jsonb,
  body            bytea,
  status          text        not null,
  error           text,
  occurred_at     timestamptz,
  received_at     timestamptz not null default clock_timestamp(),
  applied_at      timestamptz,
  -- Where user_ref comes from: the subscription at that time, or an invoice, which has the subscription's account from
  -- when the invoice was created.
  user_ref_source text        not null default 'subscription',
  -- Of an unresolved event: the number of requests to its provider, and when the next one is due.
  attempts        integer     not null default 0 check (attempts >= 0),
  next_attempt_at timestamptz,
  -- When the event last became applied or ignored. Its body is deleted some time later.
  settled_at      timestamptz,
  constraint billing_events_provider_event_key_key unique (provider, event_key),
  constraint billing_events_action_check check (action = any (array['activate', 'update_addon', 'payment_recovery', 'payment_failed', 'cancelled', 'downgrade', 'refund', 'grant', 'withdraw'])),
  constraint billing_events_check check ((status <> all (array['pending', 'applied'])) or event is not null and action is not null),
  constraint billing_events_status_check check (status = any (array['unresolved', 'pending', 'applied', 'ignored', 'parked', 'dead', 'dismissed'])),
  constraint billing_events_unresolved_check check (status <> 'unresolved' or next_attempt_at is not null),
  constraint billing_events_user_ref_source_check check (user_ref_source = any (array['subscription', 'invoice']))
);

create index if not exists billing_events_bodies on billing_events (settled_at) where body is not null and (status = any (array['applied', 'ignored']));
create index if not exists billing_events_dead on billing_events (seq) where status = 'dead';
create index if not exists billing_events_dismissed on billing_events (seq) where status = 'dismissed';
create index if not exists billing_events_newest on billing_events (seq desc);
create index if not exists billing_events_parked on billing_events (received_at) where status = 'parked';
create index if not exists billing_events_pending on billing_events (user_id, seq) where status = 'pending';
create index if not exists billing_events_subscription on billing_events (provider, subscription_id) where subscription_id is not null;
create index if not exists billing_events_unowned on billing_events (received_at) where user_id is null and (status = any (array['applied', 'ignored', 'dismissed', 'dead']));
create index if not exists billing_events_unresolved on billing_events (next_attempt_at) where status = 'unresolved';
create index if not exists billing_events_unresolved_user on billing_events (user_id) where status = 'unresolved' and user_id is not null;
create index if not exists billing_events_user on billing_events (user_id, seq);

-- The provider's customer of each subscription, for later checkouts and for the portal.
create table if not exists billing_customers (
  provider        text not null check (provider = any (array['sandbox', 'lemonsqueezy', 'stripe'])),
  subscription_id text not null,
  customer_id     text not null check (length(customer_id) >= 1 and length(customer_id) <= 200),
  constraint billing_customers_pkey primary key (provider, subscription_id)
);

-- Each subscription as the workflow last stored it: its account, for events that state none, and what reconciliation
-- compares.
create table if not exists subscriptions (
  provider        text        not null,
  subscription_id text        not null,
  kind            text        not null check (kind = any (array['plan', 'addon'])),
  user_id         uuid        not null references users(id) on delete cascade,
  status          text        not null check (status = any (array['active', 'past_due', 'cancelled', 'ended'])),
  quantity        integer     not null default 1 check (quantity >= 0 and quantity <= 3),
  period_start    timestamptz,
  period_end      timestamptz,
  updated_at      timestamptz not null default now(),
  -- Add-ons that a provider's subscription contains beside the plan. Reconciliation compares them with the provider's
  -- list.
  addons          integer     not null default 0 check (addons >= 0 and addons <= 3),
  constraint subscriptions_pkey primary key (provider, subscription_id, kind)
);

create index if not exists subscriptions_user on subscriptions (user_id);

-- The subscriptions of the sandbox, which is a billing provider.
create table if not exists sandbox_subscriptions (
  id            text        primary key,
  user_id       uuid        not null references users(id) on delete cascade,
  kind          text        not null check (kind = any (array['plan', 'addon'])),
  quantity      integer     not null check (quantity >= 0 and quantity <= 3),
  status        text        not null check (status = any (array['open', 'active', 'past_due', 'cancelled', 'ended'])),
  invoice_id    text,
  period_start  timestamptz,
  period_end    timestamptz,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  -- Until when a request has the sole right to change the subscription.
  claimed_until timestamptz
);

create index if not exists sandbox_subscriptions_open on sandbox_subscriptions (created_at) where status = 'open';
create index if not exists sandbox_subscriptions_user on sandbox_subscriptions (user_id, created_at);

-- Subscriptions of erased accounts that their provider bills. A job cancels them there.
create table if not exists erased_account_subscriptions (
  provider        text        not null,
  subscription_id text        not null,
  -- The id of the erased account.
  account_id      uuid        not null,
  -- How often it was found to be billed. A cancellation settles only what was found before it began.
  requests        integer     not null default 1,
  attempts        integer     not null default 0,
  found_at        timestamptz not null default now(),
  -- Null once it is cancelled.
  next_attempt_at timestamptz default now(),
  -- Without secrets.
  last_error      text,
  constraint erased_account_subscriptions_pkey primary key (provider, subscription_id)
);

create index if not exists erased_account_subscriptions_age on erased_account_subscriptions (found_at) where next_attempt_at is null;
create index if not exists erased_account_subscriptions_due on erased_account_subscriptions (next_attempt_at) where next_attempt_at is not null;

-- The percentages of the cycle's relay time of which the owner was notified, each once in a cycle.
create table if not exists usage_notices (
  user_id     uuid        not null references users(id) on delete cascade,
  cycle_start timestamptz not null,
  percent     integer     not null check (percent = any (array[80, 95, 100])),
  at          timestamptz not null default now(),
  constraint usage_notices_pkey primary key (user_id, cycle_start, percent)
);

create index if not exists usage_notices_age on usage_notices (at);

-- Messages to users.

-- Messages to users, written in the transaction that causes them and sent by the jobs of
-- activities/notifications/outbox-jobs.ts.
create table if not exists outbox_messages (
  id              uuid        primary key default gen_random_uuid(),
  user_id         uuid references users(id) on delete cascade,
  channel         text        not null check (channel = any (array['email', 'webhook', 'discord'])),
  kind            text        not null,
  -- JSON, sealed (platform/sealing.ts). Null after the end, except that the mailbox keeps it.
  content         bytea,
  created_at      timestamptz not null default now(),
  attempts        integer     not null default 0,
  -- Null once the message is sent or given up.
  next_attempt_at timestamptz default now(),
  sent_at         timestamptz,
  failed_at       timestamptz,
  -- Of the last attempt, without secrets.
  last_error      text,
  constraint outbox_messages_end check ((next_attempt_at is null) = (sent_at is not null or failed_at is not null) and (sent_at is null or failed_at is null))
);

create index if not exists outbox_messages_due on outbox_messages (channel, next_attempt_at) where next_attempt_at is not null;
create index if not exists outbox_messages_ended on outbox_messages (created_at) where next_attempt_at is null;
create index if not exists outbox_messages_failed on outbox_messages (failed_at) where failed_at is not null;
create index if not exists outbox_messages_user on outbox_messages (user_id);

create table if not exists notification_endpoints (
  -- Each saved URL gets a new one.
  id              uuid        primary key default gen_random_uuid(),
  user_id         uuid        not null unique references users(id) on delete cascade,
  type            text        not null check (type = any (array['webhook', 'discord'])),
  -- Sealed, since a Discord webhook's URL is its only credential.
  url_sealed      text        not null,
  -- The key that signs webhooks, sealed; null for Discord, which does not verify signatures.
  secret_sealed   text,
  created_at      timestamptz not null default now(),
  -- Since when all attempts fail; null after a success.
  failing_since   timestamptz,
  -- Nothing is sent to a disabled endpoint. Saving it again enables it.
  disabled_at     timestamptz,
  disabled_reason text check (disabled_reason = any (array['gone', 'failing'])),
  constraint notification_endpoints_disabled_check check ((disabled_at is null) = (disabled_reason is null)),
  constraint notification_endpoints_secret_check check ((type = 'webhook') = (secret_sealed is not null))
);

create table if not exists notification_settings (
  user_id    uuid        not null references users(id) on delete cascade,
  kind       text        not null,
  channel    text        not null check (channel = any (array['email', 'endpoint'])),
  enabled_at timestamptz not null default now(),
  -- A row says whether a kind is on or off on a channel. Without a row the default of the kind counts.
  enabled    boolean     not null default true,
  constraint notification_settings_pkey primary key (user_id, kind, channel),
  constraint notification_settings_kind_check check (kind = any (array['relay_contact_lost', 'relay_ending_soon', 'relay_ended', 'payment_failed', 'plan_ending', 'relays_surplus', 'usage_80', 'usage_95', 'usage_100']))
);

-- Operation.

-- Since when processes of a role have been present without a break. What happens during a break counts against no
-- relay.
create table if not exists presence (
  role    text        primary key check (role = any (array['api', 'worker'])),
  since   timestamptz not null default now(),
  seen_at timestamptz not null default now()
);

insert into presence (role) values ('api'), ('worker') on conflict do nothing;

create table if not exists workers (
  id                    uuid             primary key,
  started_at            timestamptz      not null default now(),
  heartbeat_at          timestamptz      not null default now(),
  -- Its counters as prom-client exports them. They are added up over all workers.
  metrics               jsonb            not null default '[]'::jsonb,
  -- How far the worker's clock is ahead of the other one; null before the first measurement.
  postgres_skew_seconds double precision,
  temporal_skew_seconds double precision
);

create table if not exists jobs (
  name                   text             primary key,
  due_at                 timestamptz      not null default now(),
  -- One worker has the lease at a time. A worker that dies loses it at this time.
  leased_until           timestamptz      not null default '-infinity'::timestamptz,
  leased_by              uuid,
  runs                   bigint           not null default 0,
  failures               bigint           not null default 0,
  duration_seconds_total double precision not null default 0,
  last_duration_seconds  double precision,
  last_started_at        timestamptz,
  last_success_at        timestamptz,
  last_error             text,
  -- How often a job runs, as the worker that leased it last is configured; null before a worker has.
  every_seconds          double precision
);

-- Requests counted in windows of a minute, shared by all replicas.
create table if not exists rate_limit_windows (
  key       text        primary key,
  opened_at timestamptz not null,
  requests  integer     not null
) with (fillfactor = 70);

-- Workflows that a worker ended because their tasks kept failing. The first run distinguishes the first time from the
-- second: a worker that dies while it ends a run finds the same run here. Rows are deleted a day after the last time.
create table if not exists ended_workflows (
  workflow_id   text        primary key,
  workflow_type text        not null,
  first_run_id  text        not null,
  last_run_id   text        not null,
  last_ended_at timestamptz not null default now()
);

create index if not exists ended_workflows_by_end on ended_workflows (last_ended_at);

-- The last check of the certificate of each public address of the service.
create table if not exists certificate_checks (
  endpoint   text        primary key check (endpoint = any (array['api', 'site'])),
  checked_at timestamptz not null default now(),
  -- Of the certificate that was received last; null before the first one.
  expires_at timestamptz,
  -- Why clients refuse the certificate, or why none was received; null after a success.
  error      text
);

-- Functions and triggers.

create or replace function notify_instance_assigned() returns trigger language plpgsql as $$
begin
  perform pg_notify('instance_assigned', new.instance_id);
  return null;
end $$;

create or replace trigger instances_notify_assigned after update of session_id, retired_at on instances for each row when (new.is_warm and (new.session_id is distinct from old.session_id or new.retired_at is distinct from old.retired_at)) execute function notify_instance_assigned();

create or replace function notify_relay_publishing_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('relay_session_changed', user_id || ' ' || id) from relay_sessions where id = new.session_id;
  return null;
end $$;

create or replace trigger relay_health_notify_insert after insert on relay_health for each row when (new.is_publishing is not null) execute function notify_relay_publishing_changed();
create or replace trigger relay_health_notify_update after update on relay_health for each row when (old.is_publishing is distinct from new.is_publishing) execute function notify_relay_publishing_changed();

create or replace function notify_relay_session_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('relay_session_changed', new.user_id || ' ' || new.id);
  return null;
end $$;

create or replace trigger relay_sessions_notify_insert after insert on relay_sessions for each row execute function notify_relay_session_changed();
create or replace trigger relay_sessions_notify_update after update on relay_sessions for each row when (old.state is distinct from new.state or old.reason is distinct from new.reason or old.instance_id is distinct from new.instance_id or old.relay_host is distinct from new.relay_host or old.active_at is distinct from new.active_at or old.grace_ends_at is distinct from new.grace_ends_at or old.stopped_at is distinct from new.stopped_at) execute function notify_relay_session_changed();

create or replace function refuse_illegal_relay_transition() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    if new.state <> 'provisioning' then
      raise exception 'a relay session begins in provisioning, not in %', new.state using errcode = 'check_violation';
    end if;
  elsif new.state <> old.state and not exists (
    select from relay_legal_transitions where from_state = old.state and to_state = new.state and reason = new.reason
  ) then
    raise exception 'the transition of a relay session from % to % for % is not legal', old.state, new.state, new.reason
      using errcode = 'check_violation';
  elsif new.state = old.state and new.reason <> old.reason then
    raise exception 'the reason of a relay session changes only with a transition' using errcode = 'check_violation';
  end if;
  return new;
end $$;

create or replace trigger relay_sessions_transitions before insert or update of state, reason on relay_sessions for each row execute function refuse_illegal_relay_transition();
