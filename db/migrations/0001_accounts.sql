-- Who may sign in, what they may do, and which sign-ins are alive.

create table if not exists users (
  id                   uuid primary key default gen_random_uuid(),
  email                text not null check (email = btrim(email) and length(email) between 3 and 254),
  email_verified_at    timestamptz,
  password_hash        text,
  -- Let into relays at the stream id layer. Permanent (specification, "Stream token").
  stream_token         text not null unique check (stream_token ~ '^[A-Za-z0-9]{8}$'),
  plan_tier            text not null default 'free' check (plan_tier in ('free', 'paid')),
  plan_status          text not null default 'none' check (plan_status in ('none', 'active', 'past_due', 'cancelled')),
  addons               integer not null default 0 check (addons between 0 and 3),
  -- When a plan given for a time ends; null when it has no end.
  plan_until           timestamptz,
  payment_grace_ends_at timestamptz,
  -- Guards the plan against writers that act on an older view of it.
  entitlement_version  integer not null default 0,
  relay_access_enabled boolean not null default true,
  disabled_at          timestamptz,
  created_at           timestamptz not null default now()
);

-- One account per address without regard to case.
create unique index if not exists users_email on users (lower(email));
create index if not exists users_plan_until on users (plan_until) where plan_until is not null;

create table if not exists auth_sessions (
  id           uuid primary key default gen_random_uuid(),
  user_id      uuid not null references users (id) on delete cascade,
  -- What signed in: "web", or the plugin's own name for itself.
  client       text not null check (length(client) between 1 and 64),
  ip           text not null,
  user_agent   text not null default '',
  created_at   timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  revoked_at   timestamptz,
  revoked_for  text check (revoked_for in ('logout', 'revoked', 'token_reuse', 'password_reset', 'account_disabled', 'merged')),
  check ((revoked_at is null) = (revoked_for is null))
);

create index if not exists auth_sessions_user on auth_sessions (user_id, created_at);

-- One lineage of refresh tokens per auth session. A token is live while it has neither been replaced nor superseded.
create table if not exists refresh_tokens (
  token_hash      bytea primary key check (length(token_hash) = 32),
  auth_session_id uuid not null references auth_sessions (id) on delete cascade,
  created_at      timestamptz not null default now(),
  expires_at      timestamptz not null,
  -- Set when a refresh exchanged this token for its successor.
  replaced_at     timestamptz,
  successor_hash  bytea,
  -- Set when its predecessor was exchanged once more because the reply that carried this token was lost.
  superseded_at   timestamptz,
  check ((replaced_at is null) = (successor_hash is null))
);

create index if not exists refresh_tokens_session on refresh_tokens (auth_session_id);
create index if not exists refresh_tokens_expiry on refresh_tokens (expires_at);

create table if not exists login_attempts (
  id              uuid primary key default gen_random_uuid(),
  poll_token_hash bytea not null check (length(poll_token_hash) = 32),
  user_code       text not null,
  client_name     text not null check (length(client_name) between 1 and 64),
  ip              text not null,
  user_agent      text not null default '',
  status          text not null default 'pending' check (status in ('pending', 'approved', 'denied', 'consumed')),
  -- The account that approved it, and so the one that it signs in.
  user_id         uuid references users (id) on delete cascade,
  created_at      timestamptz not null default now(),
  expires_at      timestamptz not null,
  decided_at      timestamptz,
  last_polled_at  timestamptz,
  check ((status in ('approved', 'consumed')) <= (user_id is not null))
);

create index if not exists login_attempts_expiry on login_attempts (expires_at);

-- What people and operators did that matters for trust in an account.
create table if not exists audit_entries (
  id      bigint generated always as identity primary key,
  at      timestamptz not null default now(),
  -- "user", "operator" or "system".
  actor   text not null,
  action  text not null,
  user_id uuid references users (id) on delete cascade,
  ip      text,
  client  text,
  detail  jsonb not null default '{}'
);

create index if not exists audit_entries_user on audit_entries (user_id, id desc);

-- Requests counted in windows of a minute, shared by all replicas.
create table if not exists rate_limit_windows (
  key        text primary key,
  opened_at  timestamptz not null,
  requests   integer not null
) with (fillfactor = 70);
