-- Operators page through the sessions of one region, newest first, and through disabled accounts. Reports and commands change none
-- of these columns, so their updates stay heap-only.
create index if not exists relay_sessions_region on relay_sessions (region, created_at desc, id desc);
create index if not exists users_disabled on users (id) where disabled_at is not null;

-- Plan and status depend on each other: without these statistics Postgres expects many accounts with a combination that none has,
-- and reads all accounts in the order of their ids to find a page of them. An index in that order would be seven times as large
-- as `users_plan`, from which all accounts are counted.
create statistics if not exists users_plan_combinations (mcv) on plan_tier, plan_status from users;
analyze users;
