-- Which identities belong to the owner of their account's address; and no token in plain text, nor one that nothing needs.

-- The account's address, as the identity's provider vouched for it; null when it never did.
alter table user_oauth_accounts add column if not exists vouched_email text;

-- For identities that were linked before this column: a provider vouched for the address when linking the identity verified
-- it in the same transaction, or when the identity was linked by a merge, which begins with the provider's word.
update user_oauth_accounts a set vouched_email = u.email
from users u
where u.id = a.user_id and u.email is not null and a.vouched_email is null
  and (a.linked_at = u.email_verified_at or exists (
    select from audit_entries e
    where e.user_id = a.user_id and e.action = 'merge_confirmed' and e.detail->>'provider' = a.provider and e.at = a.linked_at));

alter table users
  -- Since when all that the account holds is known to the owner of its address only: that owner has opened, reclaimed or reset
  -- it. Null while the address is at most verified, since who verified it need not be who opened the account.
  add column if not exists owner_proved_at timestamptz;

-- Accounts that were opened through a provider which vouches for the address.
update users set owner_proved_at = created_at
where owner_proved_at is null and email_verified_at = created_at;

-- The tokens that their owner is shown again: sealed with OAUTH_ENCRYPTION_KEY (platform/sealing.ts), with a keyed hash to find
-- and compare them by. The columns in plain text hold what an older version wrote, until the job reseal_secrets has sealed it.
alter table users
  add column if not exists stream_token_sealed text,
  add column if not exists stream_token_hash bytea check (length(stream_token_hash) = 32),
  alter column stream_token drop not null,
  drop constraint if exists users_stream_token_stored_once,
  add constraint users_stream_token_stored_once check (
    (stream_token is null) <> (stream_token_sealed is null) and (stream_token_sealed is null) = (stream_token_hash is null));

-- Partial, so that the column is no key that rows of other tables could refer to: changing it then blocks fewer transactions.
create unique index if not exists users_stream_token_hash on users (stream_token_hash) where stream_token_hash is not null;

alter table relay_sessions
  add column if not exists pair_token_sealed text,
  add column if not exists pair_token_hash bytea check (length(pair_token_hash) = 32),
  add column if not exists relay_ws_token_sealed text,
  add column if not exists relay_ws_token_hash bytea check (length(relay_ws_token_hash) = 32),
  drop constraint if exists relay_sessions_check2,
  drop constraint if exists relay_sessions_stopped_without_tokens,
  add constraint relay_sessions_stopped_without_tokens check (state <> 'stopped' or (
    pair_token is null and pair_token_sealed is null and relay_ws_token is null and relay_ws_token_sealed is null)),
  drop constraint if exists relay_sessions_pair_token_stored_once,
  add constraint relay_sessions_pair_token_stored_once check (
    (pair_token is null or pair_token_sealed is null) and (pair_token_sealed is null) = (pair_token_hash is null)),
  drop constraint if exists relay_sessions_relay_ws_token_stored_once,
  add constraint relay_sessions_relay_ws_token_stored_once check (
    (relay_ws_token is null or relay_ws_token_sealed is null) and (relay_ws_token_sealed is null) = (relay_ws_token_hash is null));

create unique index if not exists relay_sessions_pair_token_hash on relay_sessions (pair_token_hash)
  where pair_token_hash is not null;
create unique index if not exists relay_sessions_relay_ws_token_hash on relay_sessions (relay_ws_token_hash)
  where relay_ws_token_hash is not null;

-- A provider's tokens are kept for a connected chat and for nothing else.
update user_oauth_accounts set access_token_sealed = null, refresh_token_sealed = null, token_expires_at = null, scopes = '{}'
where chat_connected_at is null and (access_token_sealed is not null or refresh_token_sealed is not null);

alter table user_oauth_accounts
  drop constraint if exists user_oauth_accounts_tokens_for_chat,
  add constraint user_oauth_accounts_tokens_for_chat check (
    chat_connected_at is not null or (access_token_sealed is null and refresh_token_sealed is null));

alter table merge_requests
  drop column if exists access_token_sealed,
  drop column if exists refresh_token_sealed,
  drop column if exists token_expires_at,
  drop column if exists scopes;

-- Tokens of chats whose identity was unlinked: to be revoked at the provider, and forgotten then or after a day.
create table if not exists provider_token_revocations (
  id               uuid primary key default gen_random_uuid(),
  provider         text not null check (provider in ('twitch', 'google', 'discord')),
  provider_user_id text not null,
  -- The account that it was linked to and the column that it comes from: it is still sealed for that place.
  user_id          uuid not null,
  field            text not null check (field in ('access_token', 'refresh_token')),
  token_sealed     text not null,
  tries            integer not null default 0,
  next_try_at      timestamptz not null default now(),
  created_at       timestamptz not null default now()
);

create index if not exists provider_token_revocations_due on provider_token_revocations (next_try_at);
create index if not exists provider_token_revocations_identity on provider_token_revocations (provider, provider_user_id);
