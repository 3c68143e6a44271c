-- compatible: processes of earlier versions do not use the new table, and the rows go with their session and account.
-- Links that show a session to all who have them: one for each session. Only the hash of its token is stored.
create table if not exists share_links (
  session_id uuid        primary key references relay_sessions (id) on delete cascade,
  user_id    uuid        not null references users (id) on delete cascade,
  token_hash bytea       not null unique check (length(token_hash) = 32),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '7 days'
);
create index if not exists share_links_user on share_links (user_id);
create index if not exists share_links_expiry on share_links (expires_at);
