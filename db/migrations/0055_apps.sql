-- compatible: processes of earlier versions do not use the new tables and leave the new column null.
-- Apps that accounts have approved, one row for each approval of an app.
create table if not exists app_grants (
  id           uuid        primary key default gen_random_uuid(),
  user_id      uuid        not null references users (id) on delete cascade,
  client_id    text        not null,
  scopes       text[]      not null,
  -- Of the browser that approved it.
  ip           text        not null,
  user_agent   text        not null,
  -- How often its refresh token was replaced, and when that happened last.
  generation   integer     not null default 0,
  rotated_at   timestamptz,
  created_at   timestamptz not null default now(),
  -- When the app collected its first tokens.
  connected_at timestamptz,
  last_used_at timestamptz not null default now(),
  expires_at   timestamptz not null,
  ended_at     timestamptz,
  ended_for    text,
  check ((ended_at is null) = (ended_for is null))
);
create index if not exists app_grants_user on app_grants (user_id);
create index if not exists app_grants_ended on app_grants (ended_at) where ended_at is not null;
create index if not exists app_grants_expired on app_grants (expires_at);

-- Authorization codes and refresh tokens of grants, by their SHA-256.
create table if not exists app_tokens (
  token_hash  bytea       primary key check (length(token_hash) = 32),
  grant_id    uuid        not null references app_grants (id) on delete cascade,
  kind        text        not null check (kind in ('code', 'refresh')),
  generation  integer     not null,
  -- Without the token.
  payload     jsonb       not null,
  created_at  timestamptz not null default now(),
  consumed_at timestamptz,
  expires_at  timestamptz not null
);
create index if not exists app_tokens_grant on app_tokens (grant_id);
create index if not exists app_tokens_consumed on app_tokens (consumed_at) where consumed_at is not null;
create index if not exists app_tokens_expired on app_tokens (expires_at);

-- Authorization requests that wait for their user, by the SHA-256 of their id.
create table if not exists app_requests (
  id_hash        bytea       primary key check (length(id_hash) = 32),
  client_id      text        not null,
  scopes         text[]      not null,
  -- Contains the state of the client.
  payload_sealed text        not null,
  ip             text        not null,
  user_agent     text        not null,
  user_id        uuid        references users (id) on delete cascade,
  decision       text        check (decision in ('approved', 'denied')),
  decided_at     timestamptz,
  created_at     timestamptz not null default now(),
  expires_at     timestamptz not null,
  check ((user_id is null) = (decision is null))
);
create index if not exists app_requests_user on app_requests (user_id) where user_id is not null;
create index if not exists app_requests_expired on app_requests (expires_at);

-- The client id of the app that started the session; null when its user did.
alter table relay_sessions add column if not exists started_by_app text;
