-- One request at a time changes a subscription of the sandbox, unless it names the version that it is meant for.
alter table sandbox_subscriptions add column if not exists claimed_until timestamptz;
