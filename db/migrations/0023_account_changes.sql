-- Changes of an account by its owner: a new email address, a new password, and the deletion after a grace period.

alter table mail_tokens
  -- Used links stay until they expire, so that a page can state that an address is already verified.
  add column if not exists used_at timestamptz,
  -- Of `change_email`: the account's address when the link was requested, null for none. `email` is the new address.
  add column if not exists previous_email text;
alter table mail_tokens drop constraint if exists mail_tokens_purpose_check;
alter table mail_tokens add constraint mail_tokens_purpose_check
  check (purpose in ('verify_email', 'reset_password', 'change_email'));

alter table auth_sessions drop constraint if exists auth_sessions_revoked_for_check;
alter table auth_sessions add constraint auth_sessions_revoked_for_check check (revoked_for in
  ('logout', 'revoked', 'token_reuse', 'password_reset', 'password_changed', 'account_disabled', 'account_deletion', 'merged'));

alter table users
  -- When the account may be erased; null unless its owner has scheduled the deletion.
  add column if not exists deletion_due_at timestamptz,
  -- When subscriptions are next cancelled at their provider and the account is erased, with backoff.
  add column if not exists deletion_attempt_at timestamptz,
  add column if not exists deletion_attempts integer not null default 0;
alter table users drop constraint if exists users_deletion_check;
alter table users add constraint users_deletion_check check ((deletion_due_at is null) = (deletion_attempt_at is null));
create index if not exists users_deletion_attempt on users (deletion_attempt_at) where deletion_due_at is not null;

-- Late billing events of erased accounts are ignored instead of parked. Contains no personal data.
create table if not exists erased_accounts (
  user_id   uuid primary key,
  erased_at timestamptz not null default now()
);
create index if not exists erased_accounts_age on erased_accounts (erased_at);

-- The activity of an account merges its audit entries with its relay sessions by time.
create index if not exists audit_entries_user_at on audit_entries (user_id, at desc, id desc);
