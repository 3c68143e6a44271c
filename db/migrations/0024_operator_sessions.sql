-- Sessions of operators in the console. The operator password is exchanged for a token, of which only the hash is stored.
create table if not exists operator_sessions (
  id              uuid        primary key default gen_random_uuid(),
  token_hash      bytea       not null unique check (length(token_hash) = 32),
  -- A keyed hash of the password that opened the session: another password ends all sessions.
  password_hash   bytea       not null check (length(password_hash) = 32),
  created_at      timestamptz not null default now(),
  last_used_at    timestamptz not null default now(),
  expires_at      timestamptz not null
);
create index if not exists operator_sessions_expiry on operator_sessions (expires_at);

-- The console's filters of the audit.
create index if not exists audit_entries_action on audit_entries (action, id desc);
create index if not exists audit_entries_initiator on audit_entries (initiator, id desc);

-- What happened in the last hour, for the console's charts.
create index if not exists relay_sessions_stopped on relay_sessions (stopped_at) where state = 'stopped';

-- Failed sign-ins of users and operators by minute: the entries of the audit count those of a whole day.
create table if not exists sign_in_failures (
  minute   timestamptz primary key,
  failures integer     not null
);
