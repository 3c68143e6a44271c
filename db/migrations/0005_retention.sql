-- What finds the rows that may be forgotten (db/retention.ts), and those that go with them.

create index if not exists auth_sessions_unused on auth_sessions (last_used_at) where revoked_at is null;
create index if not exists audit_entries_age on audit_entries (at);

-- A sign-in or a merge that is forgotten takes its round trips along.
create index if not exists oauth_states_session on oauth_states (auth_session_id) where auth_session_id is not null;
create index if not exists oauth_states_merge on oauth_states (merge_request_id) where merge_request_id is not null;

-- Ending all access to an account asks for these by their account.
create index if not exists oauth_states_user on oauth_states (user_id) where user_id is not null;
create index if not exists login_attempts_approved on login_attempts (user_id) where status = 'approved';
