-- Deleting a row checks each table that references it. Without an index on the referencing columns that check reads the
-- whole table, once per deleted row: deleting 100,000 sessions ran into the statement timeout.

create index if not exists usage_intervals_session on usage_intervals (session_id);
create index if not exists idempotency_keys_session on idempotency_keys (session_id);
create index if not exists login_attempts_user on login_attempts (user_id) where user_id is not null;
create index if not exists relay_transitions_move on relay_transitions (from_state, to_state, reason);

-- Operators page through instances, newest first.
create index if not exists instances_newest on instances (created_at desc, instance_id desc);
