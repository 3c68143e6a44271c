-- Other ways to sign in than a password, and the mails that prove an address.

-- An account that signs in through a provider has an address only when the provider vouches for it.
alter table users alter column email drop not null;

create table if not exists user_oauth_accounts (
  id                    uuid primary key default gen_random_uuid(),
  user_id               uuid not null references users on delete cascade,
  provider              text not null check (provider in ('twitch', 'google', 'discord')),
  provider_user_id      text not null check (length(provider_user_id) between 1 and 255),
  -- Sealed with OAUTH_ENCRYPTION_KEY (platform/sealing.ts), bound to this user, provider and field.
  access_token_sealed   text,
  refresh_token_sealed  text,
  token_expires_at      timestamptz,
  scopes                text[] not null default '{}',
  -- When the scopes of chat were granted; null again when the provider no longer takes our tokens.
  chat_connected_at     timestamptz,
  -- When the provider last confirmed the tokens.
  tokens_checked_at     timestamptz not null default now(),
  linked_at             timestamptz not null default now(),
  unique (provider, provider_user_id),
  unique (user_id, provider)
);

create index if not exists user_oauth_accounts_chat on user_oauth_accounts (tokens_checked_at) where chat_connected_at is not null;

-- A sign-in whose verified address belongs to an account already: its owner has to prove that, or nothing happens.
create table if not exists merge_requests (
  id                    uuid primary key default gen_random_uuid(),
  user_id               uuid not null references users on delete cascade,
  -- The address on both sides when it began.
  email                 text not null,
  provider              text not null check (provider in ('twitch', 'google', 'discord')),
  provider_user_id      text not null check (length(provider_user_id) between 1 and 255),
  access_token_sealed   text,
  refresh_token_sealed  text,
  token_expires_at      timestamptz,
  scopes                text[] not null default '{}',
  merge_token_hash      bytea not null check (length(merge_token_hash) = 32),
  -- The provider through which the account's owner has proved to be it.
  proved_by             text check (proved_by in ('twitch', 'google', 'discord')),
  failed_tries          integer not null default 0,
  created_at            timestamptz not null default now(),
  expires_at            timestamptz not null,
  confirmed_at          timestamptz
);

create index if not exists merge_requests_expiry on merge_requests (expires_at);
create index if not exists merge_requests_user on merge_requests (user_id);

-- One round trip of a browser to a provider and back.
create table if not exists oauth_states (
  state_hash        bytea primary key check (length(state_hash) = 32),
  -- Of the secret that only the browser which began it holds.
  binding_hash      bytea not null check (length(binding_hash) = 32),
  provider          text not null check (provider in ('twitch', 'google', 'discord')),
  intent            text not null check (intent in ('sign_in', 'link', 'merge')),
  scopes            text not null check (scopes in ('identity', 'chat')),
  user_id           uuid references users on delete cascade,
  auth_session_id   uuid references auth_sessions on delete cascade,
  merge_request_id  uuid references merge_requests on delete cascade,
  created_at        timestamptz not null default now(),
  expires_at        timestamptz not null,
  consumed_at       timestamptz,
  check ((intent = 'link') = (user_id is not null and auth_session_id is not null)),
  check ((intent = 'merge') = (merge_request_id is not null))
);

create index if not exists oauth_states_expiry on oauth_states (expires_at);

-- The links in mails. Only their SHA-256 is kept.
create table if not exists mail_tokens (
  token_hash  bytea primary key check (length(token_hash) = 32),
  user_id     uuid not null references users on delete cascade,
  purpose     text not null check (purpose in ('verify_email', 'reset_password')),
  -- Where it was sent: it proves that address and no other.
  email       text not null,
  created_at  timestamptz not null default now(),
  expires_at  timestamptz not null
);

create index if not exists mail_tokens_user on mail_tokens (user_id, purpose);
create index if not exists mail_tokens_expiry on mail_tokens (expires_at);
create index if not exists auth_sessions_ended on auth_sessions (revoked_at) where revoked_at is not null;
