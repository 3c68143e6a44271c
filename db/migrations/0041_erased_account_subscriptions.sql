-- compatible: an older program does not know the table, and only logs such subscriptions.
-- Subscriptions of erased accounts that their provider bills. A job cancels them there.
create table if not exists erased_account_subscriptions (
  provider        text        not null,
  subscription_id text        not null,
  -- The id of the erased account.
  account_id      uuid        not null,
  -- How often it was found to be billed. A cancellation settles only what was found before it began.
  requests        integer     not null default 1,
  attempts        integer     not null default 0,
  found_at        timestamptz not null default now(),
  -- Null once it is cancelled.
  next_attempt_at timestamptz default now(),
  -- Without secrets.
  last_error      text,
  primary key (provider, subscription_id)
);
create index if not exists erased_account_subscriptions_due on erased_account_subscriptions (next_attempt_at)
  where next_attempt_at is not null;
create index if not exists erased_account_subscriptions_age on erased_account_subscriptions (found_at)
  where next_attempt_at is null;
